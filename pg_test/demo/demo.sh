# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: the demonstration.
set -euo pipefail

readonly DEMO_ROWS=1000000
readonly DEMO_ROWS_PER_INSERT=100
readonly DEMO_CLIENTS_PER_SHARD=4

demo() {
    local scripts=$PWD/pg_test/demo
    make_run_folder
    step "starting two private servers in $run_folder: shard 1 and shard 2"
    run both_shards start_server
    step "creating the extension and a table on each:"
    say "      CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', SHARD), …)"
    run both_shards create_table
    insert_rows
    step "collecting the ids of both shards in one table, to look at them together"
    run gather
    show_ids
    check_ids
    step "all of it holds; stopping the servers and removing $run_folder"
}

# Runs a function for both shards at once. Fails if one fails.
both_shards() {
    local first
    "$1" shard1 &
    first=$!
    "$1" shard2
    wait "$first"
}

create_table() { sql "$1" -v shard="${1#shard}" -f "$scripts/schema.sql"; }

insert_rows() {
    local started clients=$((2 * DEMO_CLIENTS_PER_SHARD))
    step "inserting $(thousands $DEMO_ROWS) rows from $clients clients at once," \
        "$DEMO_ROWS_PER_INSERT rows a transaction, each commit flushed to disk"
    started=${EPOCHREALTIME/[.,]/}
    run both_shards insert_on
    local microseconds=$((${EPOCHREALTIME/[.,]/} - started))
    say "      $(seconds_since "$started") s: $(thousands $((DEMO_ROWS * 1000000 / microseconds))) rows per second"
}

insert_on() {
    local transactions=$((DEMO_ROWS / 2 / DEMO_CLIENTS_PER_SHARD / DEMO_ROWS_PER_INSERT)) log=$run_folder/$1/pgbench.log
    "$bin/pgbench" -n -M prepared -f "$scripts/insert.sql" -D rows=$DEMO_ROWS_PER_INSERT \
        -c $DEMO_CLIENTS_PER_SHARD -j $DEMO_CLIENTS_PER_SHARD -t $transactions \
        -h "$run_folder/$1" -U postgres postgres >"$log" 2>&1 || die_with "$log" "pgbench failed on $1"
}

gather() {
    sql shard1 -f "$scripts/gather.sql"
    sql shard2 -c "COPY (SELECT 2, began, id, ended, body FROM posts) TO STDOUT (FORMAT binary)" |
        sql shard1 -c "COPY posts_of_both FROM STDIN (FORMAT binary)"
    sql shard1 -c "ANALYZE posts_of_both"
}

show_ids() {
    step "some rows from the middle of the run, their ids taken apart by snowflake_decode(id):"
    sql shard1 -f "$scripts/sample.sql"
    step "rows per shard, found from the ids alone by snowflake_shard_id(id):"
    sql shard1 -c "SELECT snowflake_shard_id(id) AS shard_id, count(*) FROM posts_of_both GROUP BY 1 ORDER BY 1"
}

check_ids() {
    local holds claim claims=$run_folder/claims
    step "checking the ids of both shards:"
    run sql shard1 -At -f "$scripts/check.sql" >"$claims"
    while IFS='|' read -r holds claim; do
        [[ $holds == t ]] || die "it does not hold: $claim"
        say "      holds: $claim"
    done <"$claims"
}
