#!/usr/bin/env bash
# pgcopydb 0.10 writes numbers above 999,999 with six significant digits if it follows the changes of a source (`clone --follow`): two keys
# become the same, or rows get other keys, and it ends with status 0. Its copy of the rows from before is right, and so are changes of a
# column whose type is a domain. Expected: all digits.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server pgcopydb=0.10-1 postgresql-15-wal2json=2.5-1+b1
start_server 5501 "wal_level = logical" "output_plugin_libraries = wal2json"
start_server 5502
sql 5501 -f - <<'SQL'
CREATE DOMAIN key AS bigint;
CREATE TABLE numbers (id bigint PRIMARY KEY, n int, d key);
INSERT INTO numbers VALUES (2237826556821345370, 1234567, 2237826556821345370);
SQL
export PGCOPYDB_SOURCE_PGURI="host=$folder port=5501"
export PGCOPYDB_TARGET_PGURI="host=$folder port=5502"
TMPDIR=$folder pgcopydb clone --follow --dir "$folder/pgcopydb" >log 2>&1 &
clone=$!
programs+=("$clone")
wait_for 5501 "SELECT count(*) = 1 FROM pg_stat_replication"
sql 5501 -c "INSERT INTO numbers VALUES (2237826556821345371, 7654321, 2237826556821345371)"
pgcopydb stream sentinel set endpos --current >>log 2>&1
status=0
wait "$clone" || status=$?
programs=()
expect "status" "$status" 0
expect "copied, and changed later" "$(sql 5502 -c "SELECT string_agg(concat_ws(' ', id, n, d), ', ' ORDER BY d) FROM numbers")" \
    "2237826556821345370 1234567 2237826556821345370, 2237830000000000000 7654320 2237826556821345371"
