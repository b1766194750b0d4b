# shellcheck shell=bash
# Sourced by the scripts that need servers: those of Debian 12's PostgreSQL, which end with the script.
# shellcheck source=findings/folder.sh
source "$(dirname "${BASH_SOURCE[0]}")/folder.sh"
bin=$folder/usr/lib/postgresql/15/bin
chmod 711 "$folder"
export PGHOST=$folder PGUSER=postgres PGDATABASE=postgres
programs=() # that a script has started in the background
as_server=() # A server refuses to run as root.
((EUID)) || as_server=(setpriv --reuid=postgres --regid=postgres --clear-groups)
server() { "${as_server[@]}" "$@"; }
end_all() {
    local data
    ((${#programs[@]} == 0)) || { kill "${programs[@]}" && kill -CONT "${programs[@]}"; } 2>/dev/null || true
    for data in "$folder"/data*; do server "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null || true; done
    wait
    rm -rf "$folder"
}
trap end_all EXIT

# unpack_with_server PACKAGE=VERSION...
unpack_with_server() { unpack "$@" postgresql-15 postgresql-client-15; }

# start_server PORT [SETTING=VALUE]...: its socket is in the folder.
start_server() {
    local data=$folder/data$1
    mkdir "$data"
    ((EUID)) || chown postgres "$folder" "$data"
    server "$bin/initdb" -D "$data" -A trust -U postgres >/dev/null
    printf '%s\n' "port = $1" "unix_socket_directories = '$folder'" "listen_addresses = ''" "${@:2}" >>"$data/postgresql.conf"
    server "$bin/pg_ctl" -D "$data" -l "$data/log" -w start >/dev/null
}

# sql PORT [OPTION OF psql]...
sql() { "$bin/psql" -X -q -At -v ON_ERROR_STOP=1 -p "$@"; }

# wait_for PORT QUERY: until the query returns t.
wait_for() { for _ in {1..600}; do [[ $(sql "$1" -c "$2") != t ]] || return 0; sleep 0.1; done; echo "never true: $2" >&2; exit 1; }
