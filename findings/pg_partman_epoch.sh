#!/usr/bin/env bash
# pg_partman 4.7.2 accepts p_epoch => 'milliseconds' for a key whose values are no Unix times: all rows go to the default partition, and
# run_maintenance() fails, without a word of the key. Expected: an error as soon as the default partition has rows, or from create_parent().
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server postgresql-15-partman=4.7.2-1
start_server 5501
sql 5501 -f - <<'SQL'
CREATE EXTENSION pg_partman;
CREATE TABLE public.posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT FROM create_parent('public.posts', 'id', 'native', 'monthly', p_epoch => 'milliseconds');
INSERT INTO posts SELECT 2237826556821345371 + n FROM generate_series(1, 1000) AS n;
SQL
expect "rows in the default partition" "$(sql 5501 -c "SELECT count(*) FROM posts_default")" 1000
error() { sql 5501 -c "SELECT run_maintenance('public.posts')" 2>&1 | sed -n 's/^ERROR:  \([^:]*: "[^"]*"\).*/\1/p'; }
expect "maintenance" "$(error)" 'timestamp out of range: "2.23783e+15"'
