//! No crash causes a duplicate ID. The sequences are an hour ahead of the clock, which would otherwise hide a counter that fell back. The
//! campaign kills servers under load.

use pg_snowflake_harness::prelude::*;

/// How far the WAL's counter is ahead of the issued ones: 100 ms at full rate.
const LOGGED_AHEAD: i64 = 100 * SEQS;

#[test]
fn a_crash_resumes_the_counter_at_most_100_ms_ahead_and_never_behind() {
    let ways_to_crash: [fn(&mut Cluster); 2] = [Cluster::crash, |cluster| cluster.restart(Shutdown::Immediate)];
    for cache in [1, 10] {
        let Ahead { mut cluster, .. } = Ahead::caching(cache);
        for crash in ways_to_crash {
            for count in [1, 1000, 150_000] {
                let mut client = cluster.connect();
                let last = last_counter(&mut client, count);
                // With those that a session has cached.
                let issued = state(&mut client, "s").last_value;
                assert!((last..last + cache).contains(&issued), "issued up to {last}, with a cache of {cache} up to {issued}");
                crash(&mut cluster);
                let resumed = state(&mut cluster.connect(), "s").last_value;
                assert!((issued..=issued + LOGGED_AHEAD).contains(&resumed), "issued {count} ids up to {issued}, resumed at {resumed}");
            }
        }
    }
}

#[test]
fn a_crash_resumes_above_ids_that_were_issued_after_a_checkpoint() {
    let Ahead { mut cluster, mut client, .. } = Ahead::caching(1);
    last_counter(&mut client, 1);
    client.batch_execute("CHECKPOINT").unwrap();
    // Without the checkpoint these would need no record: tests/wal.rs.
    let issued = last_counter(&mut client, 100);
    cluster.crash();

    let resumed = state(&mut cluster.connect(), "s").last_value;
    assert!(resumed >= issued, "issued up to {issued}, resumed at {resumed}");
}

#[test]
fn a_clean_restart_skips_nothing() {
    for logged in ["LOGGED", "UNLOGGED"] {
        let Ahead { mut cluster, mut client, .. } = Ahead::caching(1);
        client.batch_execute(&format!("ALTER SEQUENCE s SET {logged}")).unwrap();
        // The page is clean after this, so only the IDs' changes can bring it to disk.
        client.batch_execute("CHECKPOINT").unwrap();
        let issued = last_counter(&mut client, 1000);

        cluster.restart(Shutdown::Fast);

        assert_eq!(last_counter(&mut cluster.connect(), 1), issued + 1, "{logged}");
    }
}

/// Takes this many IDs in one transaction, and returns the last one's counter.
fn last_counter(client: &mut Client, count: i32) -> i64 {
    counter(client.query_one("SELECT max(snowflake_nextval('s', 5)) FROM generate_series(1, $1)", &[&count]).unwrap().get(0))
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

        cluster.restart(Shutdown::Immediate);

        let mut client = cluster.connect();
        let next = take_one(&mut client, cores);
        let count = format!("SELECT count(*) FROM t WHERE value >= {next}");
        assert_eq!(take_one(&mut client, &count), repeated, "{before}; {after}; {taken} values");
        client.batch_execute("DROP TABLE t; DROP SEQUENCE s").unwrap();
    }
}
