#!/usr/bin/env bash
# repmgr 5.3.3: `node rejoin --force-rewind` replaces the postgresql.conf of the server that rejoins by that of the new primary, if the file
# is in the data directory, and names no file that it has replaced. The server then has the settings of the other: here, its port and its
# cluster_name. Expected: its own settings, or a warning. With --config-files=postgresql.conf, it keeps them.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server postgresql-15-repmgr=5.3.3-2
export HOME=$folder
start_server 6001 wal_log_hints=on cluster_name=db-1
for i in 1 2; do
    printf '%s\n' "node_id=$i" "node_name='db-$i'" "data_directory='$folder/data600$i'" "pg_bindir='$bin'" node_rejoin_timeout=5 \
        "conninfo='host=$folder port=600$i user=postgres dbname=postgres'" >"$i.conf"
done
chmod a+r ./*.conf
repmgr() { server "$bin/repmgr" -f "$folder/$1.conf" "${@:2}" >>repmgr.log 2>&1; }
start() { server "$bin/pg_ctl" -D "data600$1" -l "data600$1/log" -w start >/dev/null; }
stop() { server "$bin/pg_ctl" -D "data600$1" -m fast stop >/dev/null; }
settings() { grep -hE '^(port|cluster_name)' data6001/postgresql.conf | xargs; }
repmgr 1 primary register
repmgr 2 -h "$folder" -p 6001 -U postgres -d postgres standby clone
sed -i 's/^port = 6001/port = 6002/; s/^cluster_name=db-1/cluster_name=db-2/' data6002/postgresql.conf
start 2
repmgr 2 standby register
stop 1
repmgr 2 standby promote
# The old primary has written what the new one lacks, so that pg_rewind has something to do.
start 1
sql 6001 -c "CREATE TABLE lost ()"
stop 1
expect "settings of the old primary" "$(settings)" "port = 6001 cluster_name=db-1"
: >repmgr.log
# On one machine, the server cannot start, because the port is in use.
repmgr 1 -d "host=$folder port=6002 user=postgres dbname=postgres" node rejoin --force-rewind || true
expect "after node rejoin --force-rewind" "$(settings)" "port = 6002 cluster_name=db-2"
expect "lines of repmgr that name the file" "$(grep -c 'postgresql\.conf' repmgr.log || true)" 0
