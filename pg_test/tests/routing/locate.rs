//! `snowflake_locate`: deeply nested partitions. What a call locks is in the spec `sessions`.

use pg_snowflake_harness::prelude::*;

/// Tables `t0`, `t1`, …, each the only partition of the one before, and a leaf at the end.
fn nest(client: &mut Client, depth: i32) {
    client.batch_execute("CREATE TABLE t0 (id bigint) PARTITION BY LIST (id)").unwrap();
    // In separate transactions, or their locks would fill the lock table.
    let sql = format!(
        "DO $$ BEGIN
             FOR i IN 1 .. {depth} LOOP
                 EXECUTE format('CREATE TABLE t%s PARTITION OF t%s DEFAULT PARTITION BY LIST (id)', i, i - 1);
                 COMMIT;
             END LOOP;
         END $$"
    );
    client.batch_execute(&sql).unwrap();
    client.batch_execute(&format!("CREATE TABLE leaf PARTITION OF t{depth} DEFAULT")).unwrap();
}

#[test]
fn a_user_who_nests_partitions_deeply_neither_crashes_the_server_nor_fills_its_lock_table() {
    // Corresponds to 16,000 levels with the usual 8 MB.
    let cluster = Cluster::builder().stack(1 << 20).setting("max_connections", "10").setting("max_locks_per_transaction", "10").start();
    nest(&mut cluster.connect(), 2000);
    // From below, so that core has cached the lower levels: looking them up on a full stack is an error.
    let located = "SELECT count(*), min(partition::text) FROM generate_series(2000, 0, -10) AS level,
                   snowflake_locate(('t' || level)::regclass, 5)";
    assert_eq!(printed(&mut cluster.connect(), located), "201|leaf");
    assert_eq!(printed(&mut cluster.connect(), "SELECT partition FROM snowflake_locate('t0', 5)"), "leaf");
}
