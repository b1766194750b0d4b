# shellcheck shell=bash
# Sourced by the scripts: a server of Debian's PostgreSQL in the temporary folder, with a table whose default calls a function of the user's.
# shellcheck source=findings/folder.sh
source "$(dirname "${BASH_SOURCE[0]}")/folder.sh"
bin=$(find /usr/lib/postgresql -path '*/bin/initdb' -printf '%h\n' | sort -V | tail -n 1)
[[ -n $bin ]] || { echo "Debian's postgresql is missing" >&2; exit 1; }
# The server refuses to run as root.
server() { if ((EUID == 0)); then runuser -u postgres -- "$@"; else "$@"; fi; }
trap 'server "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null; rm -rf "$folder"' EXIT
chmod 711 "$folder"
mkdir data
((EUID)) || chown postgres "$folder" data
server "$bin/initdb" -D "$folder/data" -A trust -U postgres >/dev/null
server "$bin/pg_ctl" -D "$folder/data" -o "-k $folder -p ${PGPORT:=5432} -c listen_addresses=${LISTEN-}" -l "$folder/log" -w start \
    >/dev/null
export PGHOST=$folder PGPORT PGUSER=postgres PGDATABASE=postgres
run_sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }
run_sql -f - <<'SQL'
CREATE SEQUENCE posts_id_seq;
CREATE FUNCTION my_nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT nextval($1) * 1000 + 7';
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT my_nextval('posts_id_seq'), body text);
SQL
