#!/usr/bin/env bash
# pgpool-II 4.3.5 looks a function up when it is first called, to send a volatile one to the primary. If the function does not exist yet,
# pgpool takes it for one that is not volatile, and keeps that answer until it is restarted: with load balancing, all later calls go to the
# standby. Expected: a function that was not found is looked up again.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server pgpool2=4.3.5-1+deb12u1
start_server 5501
server "$bin/pg_basebackup" -h "$folder" -p 5501 -D "$folder/data5502" -R
printf '%s\n' "port = 5502" >>"$folder/data5502/postgresql.conf"
server "$bin/pg_ctl" -D "$folder/data5502" -l "$folder/data5502/log" -w start >/dev/null
cat >pgpool.conf <<CONF
listen_addresses = ''
port = 5500
socket_dir = '$folder'
pcp_listen_addresses = ''
pcp_port = 5503
pcp_socket_dir = '$folder'
pid_file_name = '$folder/pgpool.pid'
logdir = '$folder'
num_init_children = 2
backend_clustering_mode = 'streaming_replication'
backend_hostname0 = '$folder'
backend_port0 = 5501
backend_weight0 = 0
backend_hostname1 = '$folder'
backend_port1 = 5502
backend_weight1 = 1
load_balance_mode = on
sr_check_user = 'postgres'
CONF
touch pool_hba.conf pcp.conf
chmod a+r ./*.conf
start_pgpool() {
    server pgpool -n -f "$folder/pgpool.conf" -F "$folder/pcp.conf" -a "$folder/pool_hba.conf" >>log 2>&1 &
    until psql -X -p 5500 -c "SELECT 1" >/dev/null 2>&1; do sleep 0.1; done
    programs=("$(tr -d '\0' <pgpool.pid)")
}
start_pgpool
# Which server has answered.
call() {
    sql 5500 -c "SELECT CASE in_recovery() WHEN true THEN 'standby' ELSE 'primary' END" 2>&1 |
        sed -n 's/.*does not exist.*/missing/; /^\(missing\|standby\|primary\)$/p'
}
expect "before the function exists" "$(call)" missing
sql 5501 -c "CREATE FUNCTION in_recovery() RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT pg_is_in_recovery()'"
wait_for 5502 "SELECT count(*) = 1 FROM pg_proc WHERE proname = 'in_recovery'"
expect "afterwards, in new sessions" "$(for _ in {1..6}; do call; done | sort | uniq -c | xargs)" "6 standby"
kill "${programs[@]}"
wait
start_pgpool
expect "after a restart of pgpool" "$(for _ in {1..6}; do call; done | sort | uniq -c | xargs)" "6 primary"
