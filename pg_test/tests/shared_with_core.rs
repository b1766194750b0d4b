//! Core's own `nextval()` on the same sequence is safe.

use pg_snowflake_harness::ask::server_with_sequence;
use pg_snowflake_harness::id::{count_repeats, is_increasing};
use pg_snowflake_harness::sequence::{counter_in_an_hour, state, take, take_one};
use pg_snowflake_harness::{Cluster, Shutdown};

#[test]
fn concurrent_callers_of_both_never_share_a_value() {
    let (cluster, _) = server_with_sequence();

    let by_client = take_from_both(&cluster, 20_000);

    assert!(by_client.iter().all(|counters| is_increasing(counters)));
    assert_eq!(count_repeats(by_client.concat()), 0);
}

#[test]
fn a_killed_server_resumes_above_the_values_of_both() {
    let mut cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
    let mut client = cluster.connect();
    // Ahead of the clock, which would otherwise hide a counter that fell back.
    let in_an_hour = counter_in_an_hour();
    client.batch_execute(&format!("CREATE SEQUENCE s START {in_an_hour}")).unwrap();
    let mut taken = Vec::new();
    for _ in 0..5 {
        taken.extend(take_from_both(&cluster, 1000).concat());
        cluster.kill_9();
        cluster.start();
        let resumed = state(&mut cluster.connect(), "s").last_value;
        assert!(taken.iter().all(|&value| value <= resumed), "resumed at {resumed}");
    }
    assert_eq!(count_repeats(taken), 0);
}

/// What docs/proof.md says about plain `nextval` on a copied sequence.
#[test]
fn a_crash_repeats_core_nextval_values_of_a_copy_without_a_logged_id() {
    let cores = "SELECT nextval('s')";
    let ours = "SELECT snowflake_nextval('s', 5)";
    // Before the copy, after it, how many values are taken then, and how many of them are repeated.
    let cases = [
        (cores, "SELECT 1", 32, 32),
        (cores, "SELECT 1", 33, 0),
        (ours, "SELECT 1", 32, 32),
        (ours, "SELECT 1", 33, 0),
        (ours, "CHECKPOINT", 1000, 0),
        (ours, ours, 1000, 0),
    ];
    let mut cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
    for (before, after, taken, repeated) in cases {
        let mut client = cluster.connect();
        let create = format!("CREATE SEQUENCE s START WITH {}", counter_in_an_hour());
        let copy = "ALTER SEQUENCE s START WITH 7";
        let insert = format!("CREATE TABLE t AS SELECT nextval('s') AS value FROM generate_series(1, {taken})");
        for sql in [&create, before, copy, after, &insert] {
            client.batch_execute(sql).unwrap();
        }

        cluster.stop(Shutdown::Immediate);
        cluster.start();

        let mut client = cluster.connect();
        let next = take_one(&mut client, cores);
        let count = format!("SELECT count(*) FROM t WHERE value >= {next}");
        assert_eq!(take_one(&mut client, &count), repeated, "{before}; {after}; {taken} values");
        client.batch_execute("DROP TABLE t; DROP SEQUENCE s").unwrap();
    }
}

/// The counters that two clients of each function get at the same time.
fn take_from_both(cluster: &Cluster, counters_per_client: usize) -> Vec<Vec<i64>> {
    // In one unit, so that they can be compared: the ID without its shard is the counter.
    let ours = "SELECT (id >> 22 << 10) | snowflake_seq(id) FROM \
                (SELECT snowflake_nextval('s', 5) AS id FROM generate_series(1, 50) OFFSET 0) AS taken";
    let cores = "SELECT nextval('s') FROM generate_series(1, 50)";
    std::thread::scope(|scope| {
        let clients: Vec<_> = [ours, cores, ours, cores]
            .into_iter()
            .map(|query| {
                scope.spawn(move || {
                    let mut client = cluster.connect();
                    (0..counters_per_client / 50).flat_map(|_| take(&mut client, query)).collect()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}
