//! `snowflake_locate`: deeply nested partitions, and what a call locks.

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

#[test]
fn a_table_that_is_dropped_meanwhile_does_not_exist() {
    let (database, mut client) = database();
    nest(&mut client, 1);
    client.batch_execute("BEGIN; DROP TABLE t0").unwrap();
    let locate = |other: &mut Client| refused(other, "SELECT snowflake_locate('t0', 5)");
    let (error, ()) = while_it_waits(&mut client, &mut database.connect(), locate, |client| run(client, "COMMIT"));
    assert_eq!(error.code().code(), "42P01");
}

#[test]
fn a_table_is_locked_until_its_partition_is() {
    let (database, mut client) = database();
    nest(&mut client, 2);
    for (barred, held) in [("t0", ""), ("t1", "t0"), ("t2", "t1")] {
        client.batch_execute(&format!("BEGIN; LOCK TABLE ONLY {barred}")).unwrap();
        let mut other = database.connect();
        let pid = backend_pid(&mut other);
        let locate = |other: &mut Client| printed(other, "SELECT partition FROM snowflake_locate('t0', 5)");
        let meanwhile = |client: &mut Client| {
            let locks = format!("FROM pg_locks WHERE pid = {pid} AND relation::regclass::text ~ '^t[0-9]$' AND granted");
            let granted = printed(client, &format!("SELECT relation::regclass {locks}"));
            run(client, "COMMIT");
            granted
        };
        let (partition, granted) = while_it_waits(&mut client, &mut other, locate, meanwhile);
        assert_eq!((&*partition, &*granted), ("leaf", held), "while it waits for {barred}");
    }
}
