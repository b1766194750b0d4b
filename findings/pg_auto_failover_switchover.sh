#!/usr/bin/env bash
# pg_auto_failover 2.0: `perform switchover` promotes the standby once the primary has been asked to stop. If the shutdown takes longer, the
# old primary is still running then: here it waits for a pg_receivewal that is paused. What it writes last, such as the checkpoint of its
# shutdown, may not reach the standby. Expected: a promotion after the shutdown, as Patroni does it. `enable maintenance --allow-failover` on
# the primary waits for the shutdown.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server pg-auto-failover-cli=2.0-2+b1 postgresql-15-auto-failover=2.0-2+b1
export HOME=$folder XDG_CONFIG_HOME=$folder XDG_DATA_HOME=$folder XDG_RUNTIME_DIR=$folder PG_REGRESS_SOCK_DIR=$folder
((EUID)) || chown postgres "$folder"

# init PORT: a data directory that only the socket leads to.
init() {
    server "$bin/initdb" -D "$folder/data$1" -A trust -U postgres >/dev/null
    printf '%s\n' "unix_socket_directories = '$folder'" wal_sender_timeout=10min >>"data$1/postgresql.conf"
}
# run_node PORT KIND [OPTION]...
run_node() {
    "${as_server[@]}" pg_autoctl create "$2" --run --no-ssl --skip-pg-hba --pgctl "$bin/pg_ctl" --pgdata "$folder/data$1" --pgport "$1" \
        --hostname "$folder" "${@:3}" >"$1.log" 2>&1 &
    programs+=($!)
}
run_member() {
    run_node "$1" postgres --monitor "postgres://autoctl_node@/pg_auto_failover?host=$folder&port=6000" --name "db-$1" --pghost "$folder" \
        --listen 127.0.0.1 --username postgres --dbname postgres
}
monitor_says() { PGDATABASE=pg_auto_failover wait_for 6000 "SELECT count(*) = $1 FROM pgautofailover.node WHERE reportedstate = goalstate AND $2"; }
are_whole() { monitor_says 2 "health = 1 AND reportedstate IN ('primary', 'secondary')"; }
is_running() { if server "$bin/pg_ctl" -D "data$1" status >/dev/null; then echo running; else echo stopped; fi; }

# hold_up PORT: a paused client that the server's shutdown waits for.
hold_up() {
    server mkdir "wal$1"
    "${as_server[@]}" "$bin/pg_receivewal" -D "wal$1" -p "$1" >>client.log 2>&1 &
    client=$!
    programs+=("$client")
    wait_for "$1" "SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = 'pg_receivewal' AND state = 'streaming'"
    kill -STOP "$client"
    sql "$1" -c "SELECT pg_switch_wal()" >/dev/null
}

init 6000
run_node 6000 monitor
until PGDATABASE=pg_auto_failover sql 6000 -c "SELECT FROM pgautofailover.node" >/dev/null 2>&1; do sleep 0.1; done
init 6001
run_member 6001
monitor_says 1 "reportedstate = 'single'"
run_member 6002
are_whole

hold_up 6001
"${as_server[@]}" pg_autoctl perform switchover --pgdata "$folder/data6000" >switchover.log 2>&1 &
programs+=($!)
wait_for 6002 "SELECT NOT pg_is_in_recovery()"
expect "perform switchover: when the standby is promoted, the old primary is" "$(is_running 6001)" running
kill -CONT "$client"
kill "$client"
are_whole

hold_up 6002
"${as_server[@]}" pg_autoctl enable maintenance --allow-failover --pgdata "$folder/data6002" >maintenance.log 2>&1 &
programs+=($!)
sleep 10 # much longer than a switchover takes
expect "enable maintenance: while the old primary is" "$(is_running 6002)" running
expect "the standby is" "$(sql 6001 -c "SELECT CASE WHEN pg_is_in_recovery() THEN 'not promoted' ELSE 'promoted' END")" "not promoted"
kill -CONT "$client"
wait_for 6001 "SELECT NOT pg_is_in_recovery()"
expect "when it is promoted, the old primary is" "$(is_running 6002)" stopped
