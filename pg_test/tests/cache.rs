//! `ALTER SEQUENCE … CACHE n`: a session takes n counters at once. What happens to the rest.

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{Refusal, assert_refused, server};
use pg_snowflake_harness::id::{count_repeats, counter, is_increasing, now_ms, split};
use pg_snowflake_harness::sequence::{Ahead, state, take, take_one};
use std::thread::sleep;
use std::time::Duration;

const TAKE: &str = "SELECT snowflake_nextval('s', 5)";

#[test]
fn a_session_fetches_as_many_counters_as_the_cache_at_a_time() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(10);

    for fetch in 0..3 {
        let first = start + fetch * 10;
        let taken: Vec<i64> = (0..10)
            .map(|_| {
                let taken = counter(take_one(&mut client, TAKE));
                assert_eq!(state(&mut client, "s").last_value, first + 9, "after {taken}");
                taken
            })
            .collect();
        assert_eq!(taken, (first..first + 10).collect::<Vec<_>>());
    }
}

#[test]
fn cached_counters_outlast_a_rollback() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(10);
    client.batch_execute(&format!("BEGIN; {TAKE}; SAVEPOINT p; {TAKE}; ROLLBACK")).unwrap();

    assert_eq!(counter(take_one(&mut client, TAKE)), start + 2);
}

#[test]
fn a_cached_counter_that_the_clock_has_passed_is_not_used() {
    let (_cluster, mut client) = server();
    client.batch_execute("CREATE SEQUENCE s CACHE 100").unwrap();
    let mut last_of_run = 0;
    for _ in 0..20 {
        let called_at = now_ms();
        let id = take_one(&mut client, TAKE);

        assert!(split(id).unix_ms >= called_at, "{:?} was cached before {called_at}", split(id));
        assert!(counter(id) > last_of_run, "{} follows {last_of_run}", counter(id));
        last_of_run = state(&mut client, "s").last_value;
        assert_eq!(last_of_run, counter(id) + 99);
        sleep(Duration::from_millis(3));
    }
}

/// In turns, so that each would have cached counters of an earlier tick than the other has just used.
#[test]
fn sessions_that_cache_and_alternate_stay_with_the_clock() {
    let cluster = Cluster::new();
    cluster.connect().batch_execute("CREATE SEQUENCE s CACHE 50").unwrap();
    let mut clients = [cluster.connect(), cluster.connect()];

    let ids: Vec<i64> = (0..2000)
        .map(|call| {
            let called_at = now_ms();
            let id = take_one(&mut clients[call % 2], TAKE);
            assert!(split(id).unix_ms >= called_at, "{:?}, called at {called_at}", split(id));
            id
        })
        .collect();

    assert_eq!(count_repeats(ids), 0);
}

#[test]
fn sessions_that_cache_never_share_a_counter() {
    // Three seconds of IDs at full rate, so that all ways of taking them are well mixed.
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "1min").start();
    cluster.connect().batch_execute("CREATE SEQUENCE s CACHE 64").unwrap();
    let by_client: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let clients: Vec<_> = [1, 50, 1, 50]
            .into_iter()
            .map(|ids_per_statement| {
                let query = format!("{TAKE} FROM generate_series(1, {ids_per_statement})");
                let mut client = cluster.connect();
                scope.spawn(move || (0..1000).flat_map(|_| take(&mut client, &query)).collect())
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });

    assert!(by_client.iter().all(|ids| is_increasing(ids)));
    assert_eq!(count_repeats(by_client.concat()), 0);
}

/// The session that changes a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Session,
    Transaction,
    Another,
}

#[test]
fn ddl_by_any_session_discards_cached_counters() {
    let Ahead { cluster, mut client, start } = Ahead::caching(10);
    let recreate = format!("DROP SEQUENCE s; CREATE SEQUENCE s CACHE 10 START {}", start + 1000);
    // The statement after the first of ten counters was used, and the offset of the next counter from the first.
    let cases = [
        ("ALTER SEQUENCE s CACHE 1", 10),
        ("ALTER SEQUENCE s CACHE 20", 10),
        ("ALTER SEQUENCE s MAXVALUE 9223372036854775806", 10),
        ("ALTER SEQUENCE s START 7", 10),
        ("ALTER SEQUENCE s SET UNLOGGED", 10),
        // These two do not change the sequence's storage.
        ("ALTER SEQUENCE s OWNED BY NONE", 10),
        ("ALTER SEQUENCE s OWNED BY posts.id", 10),
        // After a reset the sequence is behind what the session took, and the session continues above that.
        ("ALTER SEQUENCE s RESTART", 10),
        ("TRUNCATE posts RESTART IDENTITY", 10),
        (&format!("ALTER SEQUENCE s RESTART {}", start + 500), 500),
        (&recreate, 1000),
        (&format!("BEGIN; {recreate}; COMMIT"), 1000),
    ];
    for (ddl, expected) in cases {
        // By the session, by the transaction that took the counter, and by another session.
        for by in [By::Session, By::Transaction, By::Another] {
            if by == By::Transaction && ddl.starts_with("BEGIN") {
                continue;
            }
            client
                .batch_execute(&format!(
                    "DROP TABLE IF EXISTS posts; DROP SEQUENCE IF EXISTS s; CREATE TABLE posts (id bigint); \
                     CREATE SEQUENCE s CACHE 10 START {start} OWNED BY posts.id"
                ))
                .unwrap();
            if by == By::Transaction {
                client.batch_execute("BEGIN").unwrap();
            }
            assert_eq!(counter(take_one(&mut client, TAKE)), start);

            match by {
                By::Another => cluster.connect().batch_execute(ddl).unwrap(),
                _ => client.batch_execute(ddl).unwrap(),
            }

            let next = counter(take_one(&mut client, TAKE)) - start;
            assert_eq!(next, expected, "{ddl}, by {by:?}");
            client.batch_execute("COMMIT").unwrap();
        }
    }
}

#[test]
fn a_definition_changed_within_a_transaction_applies_at_once() {
    let Ahead { cluster: _cluster, mut client, .. } = Ahead::caching(1);
    let unfit =
        Refusal { sqlstate: "55000", message: "cannot be used to generate IDs", hint: "ALTER" };
    for change in ["INCREMENT 2", "CYCLE", "MAXVALUE 7 START 7 RESTART 7"] {
        client
            .batch_execute(&format!(
                "BEGIN; {TAKE}; {TAKE}; ALTER SEQUENCE s {change}; SAVEPOINT p"
            ))
            .unwrap();
        // Again, since a refusal must not restore what was known before.
        for _ in 0..2 {
            assert_refused(&mut client, TAKE, unfit);
            client.batch_execute("ROLLBACK TO p").unwrap();
        }
        client.batch_execute("ROLLBACK").unwrap();
        take_one(&mut client, TAKE);
    }
}

#[test]
fn a_sequence_dropped_within_a_transaction_returns_nothing_more() {
    let Ahead { cluster: _cluster, mut client, .. } = Ahead::caching(10);
    let take_by_oid = "SELECT snowflake_nextval(seq, 5) FROM oids";
    client.batch_execute("CREATE TABLE oids AS SELECT 's'::regclass AS seq").unwrap();
    client.batch_execute(&format!("BEGIN; {take_by_oid}; {take_by_oid}; DROP SEQUENCE s")).unwrap();

    let gone = Refusal { sqlstate: "42P01", message: "does not exist", hint: "" };
    assert_refused(&mut client, take_by_oid, gone);
}

#[test]
fn a_page_that_was_evicted_within_a_transaction_is_read_again() {
    let cluster = Cluster::builder().setting("shared_buffers", "128kB").start();
    let mut client = cluster.connect();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE TABLE many AS SELECT g, repeat('x', 500) AS filler \
             FROM generate_series(1, 5000) AS g; BEGIN",
        )
        .unwrap();
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.extend(take(&mut client, &format!("{TAKE} FROM generate_series(1, 3)")));
        client.batch_execute("UPDATE many SET g = g + 1").unwrap();
    }
    assert!(is_increasing(&ids));
}

#[test]
fn a_session_that_resets_a_sequence_gets_no_duplicate_id() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(1);
    client
        .batch_execute("CREATE TABLE posts (id bigint); ALTER SEQUENCE s OWNED BY posts.id")
        .unwrap();
    assert_eq!(counter(take_one(&mut client, TAKE)), start);
    let resets = [
        "ALTER SEQUENCE s RESTART",
        "ALTER SEQUENCE s RESTART 1",
        "TRUNCATE posts RESTART IDENTITY",
        "SELECT setval('s', 1)",
        "SELECT setval('s', 1, false)",
    ];
    for (taken, reset) in (1..).zip(resets) {
        client.batch_execute(reset).unwrap();
        assert_eq!(counter(take_one(&mut client, TAKE)), start + taken, "after {reset}");
    }
}

#[test]
fn counters_cached_under_a_rolled_back_definition_are_discarded() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(10);
    client.batch_execute(&format!("BEGIN; ALTER SEQUENCE s RESTART {}", start + 500)).unwrap();
    assert_eq!(counter(take_one(&mut client, TAKE)), start + 500);

    client.batch_execute("ROLLBACK").unwrap();

    // Above the whole run, since some of it may have been returned.
    assert_eq!(counter(take_one(&mut client, TAKE)), start + 510);
}

#[test]
fn a_revoked_privilege_discards_cached_counters() {
    let Ahead { cluster, client: mut owner, start } = Ahead::caching(10);
    owner.batch_execute("CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer").unwrap();
    let mut writer = cluster.connect_to("writer", "postgres");
    assert_eq!(counter(take_one(&mut writer, TAKE)), start);

    owner.batch_execute("REVOKE ALL ON SEQUENCE s FROM writer").unwrap();
    assert_refused(&mut writer, TAKE, Refusal { sqlstate: "42501", message: "", hint: "" });
    owner.batch_execute("GRANT USAGE ON SEQUENCE s TO writer").unwrap();

    assert_eq!(counter(take_one(&mut writer, TAKE)), start + 10);
}

#[test]
fn discard_sequences_discards_cached_counters() {
    for discard in ["DISCARD SEQUENCES", "DISCARD ALL"] {
        let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(10);
        assert_eq!(counter(take_one(&mut client, TAKE)), start);

        client.batch_execute(discard).unwrap();

        assert_eq!(counter(take_one(&mut client, TAKE)), start + 10, "{discard}");
    }
}

#[test]
fn a_batch_and_later_ids_continue_above_cached_counters() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(10);
    assert_eq!(counter(take_one(&mut client, TAKE)), start);

    let batch = take(&mut client, "SELECT snowflake_nextvals('s', 5, 3)");
    let counters: Vec<i64> = batch.into_iter().map(counter).collect();
    assert_eq!(counters, [start + 10, start + 11, start + 12]);

    assert_eq!(counter(take_one(&mut client, TAKE)), start + 13);
}

#[test]
fn a_cached_counter_obeys_the_limit_on_the_lead() {
    let Ahead { cluster: _cluster, mut client, .. } = Ahead::caching(10);
    take_one(&mut client, TAKE);

    client.batch_execute("SET pg_snowflake.max_lead = '100ms'").unwrap();

    let too_far = Refusal { sqlstate: "55000", message: "ahead of the server clock", hint: "" };
    assert_refused(&mut client, TAKE, too_far);
}

#[test]
fn a_killed_server_continues_above_cached_counters() {
    let Ahead { mut cluster, mut client, start } = Ahead::caching(10);
    assert_eq!(counter(take_one(&mut client, TAKE)), start);
    assert_eq!(counter(take_one(&mut client, TAKE)), start + 1);

    cluster.kill_9();
    cluster.start();

    let resumed = counter(take_one(&mut cluster.connect(), TAKE));
    assert!(resumed > start + 9, "cached up to {}, resumed at {resumed}", start + 9);
}
