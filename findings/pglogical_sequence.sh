#!/usr/bin/env bash
# pglogical 2.4.2 sets a sequence of the subscriber to the provider's value, and a buffer, even if that is less than its own: if the
# subscriber uses the sequence, its keys are repeated. It also replaces a row that a subscriber has inserted with the same key, without an
# error. Expected: a sequence is never set to a lower value, and a conflict stops the subscription.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server postgresql-15-pglogical=2.4.2-3
for port in 5501 5502; do
    start_server "$port" "wal_level = logical" "shared_preload_libraries = pglogical" "output_plugin_libraries = pglogical_output"
    sql "$port" -f - <<SQL
CREATE EXTENSION pglogical;
CREATE SEQUENCE s;
CREATE TABLE t (id bigint PRIMARY KEY, body text);
SELECT FROM pglogical.create_node('node_$port', 'host=$folder port=$port dbname=postgres user=postgres');
SQL
done
sql 5501 -c "SELECT FROM pglogical.replication_set_add_table('default', 't')" \
    -c "SELECT FROM pglogical.replication_set_add_sequence('default', 's')"
sql 5502 -f - <<SQL
SELECT FROM pglogical.create_subscription('subscription', 'host=$folder port=5501 dbname=postgres user=postgres',
    synchronize_data := false);
SELECT FROM pglogical.wait_for_subscription_sync_complete('subscription');
SQL
wait_for 5501 "SELECT count(*) > 0 FROM pg_stat_replication"
# The subscriber uses 100,000 values, and inserts a row.
sql 5502 -c "SELECT setval('s', 100000)" -c "INSERT INTO t VALUES (1, 'of the subscriber')" >/dev/null
expect "next value" "$(sql 5502 -c "SELECT nextval('s')")" 100001
sql 5501 -c "INSERT INTO t VALUES (1, 'of the provider'), (2, 'last')" -c "SELECT FROM pglogical.synchronize_sequence('s')"
wait_for 5502 "SELECT count(*) = 2 FROM t"
wait_for 5502 "SELECT last_value < 100000 FROM s"
expect "next value after pglogical has set the sequence" "$(sql 5502 -c "SELECT nextval('s')")" 1002
expect "the subscriber's row" "$(sql 5502 -c "SELECT body FROM t WHERE id = 1")" "of the provider"
expect "status" "$(sql 5502 -c "SELECT status FROM pglogical.show_subscription_status()")" replicating
