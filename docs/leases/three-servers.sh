#!/usr/bin/env bash
# A registry and three servers that number themselves, on this machine: docs/leases.md.
#
#   three-servers.sh start [FOLDER]    start them in a new folder
#   three-servers.sh stop [FOLDER]     stop them and remove the folder
#
# PG_CONFIG names the pg_config of a PostgreSQL that has the extension; the default is the first one on PATH. PostgreSQL refuses to
# run as root.
set -euo pipefail
umask 077

folder=$(realpath -m "${2:-${TMPDIR:-/tmp}/three-servers}")
bin=$("${PG_CONFIG:-pg_config}" --bindir)

start() {
    local n number
    mkdir "$folder"

    start_server registry 5440 </dev/null
    ask 5440 "CREATE EXTENSION pg_snowflake_registry"
    ask 5440 "CREATE ROLE snowflake_node LOGIN"
    ask 5440 "GRANT USAGE ON SCHEMA snowflake_registry TO snowflake_node"
    ask 5440 "GRANT EXECUTE ON FUNCTION snowflake_registry.id, snowflake_registry.claim, snowflake_registry.release TO snowflake_node"

    for n in 1 2 3; do
        start_server "db-$n" "544$n" <<CONF
shared_preload_libraries = 'pg_snowflake'
pg_snowflake.registry = 'host=$folder port=5440 dbname=postgres user=snowflake_node'
pg_snowflake.node = 'db-$n'
CONF
        ask "544$n" "CREATE EXTENSION pg_snowflake"
        number=$(shard_of "544$n")
        echo "db-$n generates IDs for shard $number: psql -h $folder -p 544$n -U postgres"
    done
}

# A server with these lines in postgresql.conf. Its port is in the name of its socket; nothing listens on a network.
start_server() { # NAME PORT <CONF
    "$bin/initdb" --pgdata="$folder/$1" --username=postgres --auth=trust --no-sync >"$folder/$1.log"
    cat >>"$folder/$1/postgresql.conf"
    "$bin/pg_ctl" start --silent --wait --pgdata="$folder/$1" --log="$folder/$1.log" \
        --options="-p $2 -k $folder -c listen_addresses="
}

ask() { # PORT SQL
    "$bin/psql" --no-psqlrc --quiet --tuples-only --no-align --host="$folder" --port="$1" --username=postgres --command="$2"
}

# The registry answers a moment after the start.
shard_of() { # PORT
    local wait
    for wait in {1..100}; do
        ask "$1" "SELECT snowflake_current_shard()" 2>/dev/null && return
        sleep "0.$((wait > 9 ? 9 : wait))"
    done
    ask "$1" "SELECT snowflake_current_shard()"
}

stop() {
    local name
    for name in db-1 db-2 db-3 registry; do
        [[ ! -e $folder/$name/postmaster.pid ]] || "$bin/pg_ctl" stop --silent --wait --pgdata="$folder/$name"
    done
    [[ ! -e $folder/registry/PG_VERSION ]] || rm -r "$folder"
}

case ${1:-} in
    start | stop) "$1" ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
