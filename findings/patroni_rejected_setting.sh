#!/usr/bin/env bash
# Patroni 4.1.5 shows nothing when a server rejects a setting of the dynamic configuration: after `patronictl edit-config -p
# log_destination=nowhere`, the server logs an error at the reload and keeps the old value, and both `patronictl list` and the member's API
# are as before. Expected: a mark in the list, as for a pending restart.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server etcd-server=3.4.23-4+b4
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target=packages \
    'patroni[etcd3]==4.1.5' psycopg==3.2.3 ydiff==1.4.2 2>/dev/null
chmod 777 "$folder" # for the servers' user
export PYTHONPATH=$folder/packages HOME=$folder
patronictl() { server /usr/bin/python3 packages/bin/patronictl -c patroni.yml "$@"; }
etcd --data-dir=etcd --listen-client-urls=http://127.0.0.1:23790 --advertise-client-urls=http://127.0.0.1:23790 \
    --listen-peer-urls=http://127.0.0.1:23800 --initial-advertise-peer-urls=http://127.0.0.1:23800 \
    --initial-cluster=default=http://127.0.0.1:23800 >etcd.log 2>&1 &
programs+=($!)
cat >patroni.yml <<YML
scope: blog
name: db-1
restapi: {listen: "127.0.0.1:28008", connect_address: "127.0.0.1:28008"}
etcd3: {host: "127.0.0.1:23790"}
bootstrap: {dcs: {loop_wait: 2}}
postgresql:
  listen: "127.0.0.1:25432"
  connect_address: "127.0.0.1:25432"
  data_dir: $folder/data25432
  bin_dir: $bin
  use_unix_socket: true
  parameters: {unix_socket_directories: $folder}
  authentication: {superuser: {username: postgres, password: x}, replication: {username: replicator, password: x}}
  pg_hba: ["local all all trust"]
YML
server /usr/bin/python3 packages/bin/patroni patroni.yml >patroni.log 2>&1 &
until patroni=$(pgrep -P $!); do sleep 0.1; done # a child of the shell that runs the function
programs=("$patroni" "${programs[@]}")
list() { patronictl list --format json; }
api() { curl --silent http://127.0.0.1:28008/patroni; }
until api | grep -q '"role": "primary"' && sql 25432 -c "SELECT 1" >/dev/null 2>&1; do sleep 1; done
sleep 5 # until nothing changes any more
before=$(list)
patronictl edit-config blog --force --quiet --pg log_destination=nowhere >/dev/null
until [[ $(sql 25432 -c "SELECT count(*) FROM pg_file_settings WHERE error IS NOT NULL") != 0 ]]; do sleep 1; done
sleep 5 # two loops of Patroni
expect "errors in the server's configuration" "$(sql 25432 -c "SELECT name, setting, error FROM pg_file_settings WHERE error IS NOT NULL")" \
    "log_destination|nowhere|setting could not be applied"
expect "patronictl list" "$([[ $(list) == "$before" ]] && echo "as before")" "as before"
expect "words about it in the member's API" "$(api | grep -c -e log_destination -e pending_restart -e error || true)" "0"
