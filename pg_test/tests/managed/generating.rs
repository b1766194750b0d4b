//! Sessions that generate at the same time and wait for the clock. The campaign cancels and terminates them.

use super::{JS53, file_for, managed};
use pg_snowflake_harness::prelude::*;
use std::sync::Barrier;
use std::thread::{scope, sleep};
use std::time::Duration;

const TAKE: &str = "SELECT snowflake_managed.snowflake_nextval('s', 5)";
const TAKE_BATCH: &str = "SELECT snowflake_managed.snowflake_nextvals('s', 5, 1)";
const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
    (SELECT oid FROM pg_database WHERE datname = current_database())";

#[test]
fn ids_increase_over_sessions_in_every_kind_of_transaction() {
    let (database, mut client) = managed();
    let mut other = database.connect();
    let sql = "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_managed.snowflake_nextval('s', 5), n int);
        CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.id := snowflake_managed.snowflake_nextval('s', 5); RETURN NEW; END $$;
        CREATE TABLE u (LIKE t); CREATE TRIGGER late BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION late()";
    run(&mut client, sql);
    let mut last = 0;
    for statement in [
        "INSERT INTO t (n) SELECT generate_series(1, 50)",
        "INSERT INTO u (n) SELECT generate_series(1, 50)",
        "BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO t (n) VALUES (1); COMMIT",
        "BEGIN; SAVEPOINT p; INSERT INTO t (n) VALUES (1); ROLLBACK TO p; INSERT INTO t (n) VALUES (2); COMMIT",
        "BEGIN; DECLARE c CURSOR FOR SELECT snowflake_managed.snowflake_nextval('s', 5) FROM generate_series(1, 9); FETCH 3 FROM c; COMMIT",
        "DO $$ BEGIN INSERT INTO t (n) VALUES (1); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $$",
        "BEGIN; ALTER SEQUENCE s CACHE 50; INSERT INTO t (n) VALUES (1); COMMIT",
        "BEGIN; INSERT INTO t (n) VALUES (1); SELECT snowflake_managed.snowflake_nextvals('s', 5, 1)",
        "ROLLBACK",
        "BEGIN; INSERT INTO t (n) VALUES (1); PREPARE TRANSACTION 'p'",
        "COMMIT PREPARED 'p'",
        "GRANT INSERT ON t TO writer; GRANT USAGE, SELECT, UPDATE ON SEQUENCE s TO writer;
         SET ROLE writer; INSERT INTO t (n) VALUES (1); RESET ROLE",
    ] {
        run(&mut client, statement);
        let next = take_one(&mut other, TAKE);
        assert!(next > last, "{statement}");
        last = next;
        assert_eq!(printed(&mut other, LOCKS), "0", "{statement}");
    }
    copy(&mut client, "(SELECT n FROM t)", "t (n)", "text");
    assert_eq!(printed(&mut client, "SELECT count(*) - count(DISTINCT id) FROM (TABLE t UNION ALL TABLE u) AS all_ids"), "0");
}

#[test]
fn a_call_waits_for_an_altered_sequence_and_follows_it() {
    let (database, mut client) = managed();
    assert_waits_and_follows(&database, &mut client, TAKE);
    run(&mut client, "CREATE SEQUENCE s");
    assert_waits_and_follows(&database, &mut client, TAKE_BATCH);
}

#[test]
fn a_call_that_waits_while_the_sequence_is_reset_issues_no_id_of_before_the_wait() {
    let (database, mut client) = managed();
    let key = "1936617319, 's'::regclass::oid::int4";
    let locks = [
        ("BEGIN; ALTER SEQUENCE s RESTART".to_owned(), "COMMIT".to_owned()),
        (format!("SELECT pg_advisory_lock({key}), setval('s', 1, false)"), format!("SELECT pg_advisory_unlock({key})")),
    ];
    for (lock, unlock) in &locks {
        for call in [TAKE, TAKE_BATCH] {
            let mut other = database.connect();
            run(&mut client, lock);
            let meanwhile = |client: &mut Client| {
                let waited_until = now_ms() + 1;
                sleep(Duration::from_millis(2));
                run(client, unlock);
                waited_until
            };
            let (id, waited_until) = while_it_waits(&mut client, &mut other, |other| take_one(other, call), meanwhile);
            assert!(counter(id) >= first_counter_at(waited_until), "{lock}: {call}: {id}");
        }
    }
}

#[test]
fn a_call_that_waits_while_the_sequence_is_altered_judges_it_afterwards() {
    let (database, mut client) = managed();
    for call in [TAKE, TAKE_BATCH] {
        let mut other = database.connect();
        // A call reads the definition for the first ID of a tick.
        run(&mut client, "ALTER SEQUENCE s NO CYCLE RESTART");
        run(&mut client, "BEGIN; ALTER SEQUENCE s CYCLE");
        let (error, ()) = while_it_waits(&mut client, &mut other, |other| refused(other, call), |client| run(client, "COMMIT"));
        assert_eq!(error.detail(), Some("It is defined with CYCLE, which would repeat IDs."), "{call}");
    }
}

/// Drops the sequence in the end.
fn assert_waits_and_follows(database: &Database, client: &mut Client, call: &str) {
    let mut other = database.connect();
    let first = take_one(&mut other, call);
    run(client, "BEGIN; ALTER SEQUENCE s RESTART");
    let meanwhile = |client: &mut Client| {
        // The call holds nothing that this session needs.
        let own = take_one(client, call);
        run(client, "COMMIT");
        own
    };
    let (id, own) = while_it_waits(client, &mut other, |other| take_one(other, call), meanwhile);
    assert!(first < own && own < id, "{first} {own} {id}");

    run(client, "BEGIN; DROP SEQUENCE s");
    let commit = |client: &mut Client| run(client, "COMMIT");
    let (error, ()) = while_it_waits(client, &mut other, |other| refused(other, call), commit);
    assert!(error.message().contains("could not open relation"));
}

#[test]
fn the_lead_and_the_wait_are_those_of_the_extension() {
    let (_database, mut client) = managed();
    let max_wait = |us: i64| {
        format!(
            "CREATE OR REPLACE FUNCTION snowflake_managed.max_wait_us() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
             AS 'SELECT {us}::pg_catalog.int8'"
        )
    };
    // A call that may not wait succeeds within the lead.
    for (ahead_ms, max_wait_us) in [(50, 0), (500, 1_000_000)] {
        run(&mut client, &max_wait(max_wait_us));
        let start = first_counter_at(now_ms() + ahead_ms);
        run(&mut client, &format!("SELECT setval('s', {start})"));
        assert!(counter(take_one(&mut client, TAKE)) > start, "{ahead_ms} ms ahead");
        assert!(first_counter_at(now_ms() + 101) > start, "{ahead_ms} ms ahead, and not waited");
    }
    let longest =
        "LOAD 'pg_snowflake'; SELECT snowflake_managed.max_lead_us() / 1000 || ' ms', snowflake_managed.max_wait_us() / 1000000 || ' s',
        current_setting('pg_snowflake.max_lead'), current_setting('pg_snowflake.max_wait')";
    assert_eq!(printed(&mut client, longest), "100 ms|1 s|100ms|1s");

    // With the sequence an hour ahead of the clock, a call is refused as that of the extension, and takes nothing.
    run(&mut client, &format!("SELECT setval('s', {})", counter_in_an_hour()));
    let before = state(&mut client, "s");
    let managed = refused(&mut client, TAKE);
    let native = refused(&mut client, &TAKE.replace("snowflake_managed.", ""));
    assert_eq!((managed.code(), managed.message()), (native.code(), native.message()));
    assert_eq!(state(&mut client, "s"), before);
}

#[test]
fn a_batch_waits_for_the_clock_where_the_lead_ends() {
    // 32 IDs in a millisecond: the batch takes 0.3 s, and a server generates it in less.
    let (database, mut client) = database();
    database.psql(&file_for(JS53));
    run(&mut client, "CREATE SEQUENCE s");
    let facts = "SELECT count(*), count(DISTINCT id), bool_and(id > before IS NOT FALSE),
            snowflake_managed.snowflake_created_at(max(id)) < clock_timestamp() + interval '101 ms'
        FROM (SELECT id, lag(id) OVER () AS before FROM snowflake_managed.snowflake_nextvals('s', 5, 10000) AS id) AS ids";
    assert_eq!(printed(&mut client, facts), "10000|10000|t|t");
}

#[test]
fn the_first_calls_of_many_sessions_on_a_new_sequence_succeed() {
    let (database, mut client) = managed();
    const SESSIONS: usize = 8;
    const SEQUENCES: usize = 30;
    run(&mut client, &format!("DO $$ BEGIN FOR n IN 1..{SEQUENCES} LOOP EXECUTE format('CREATE SEQUENCE new_%s', n); END LOOP; END $$"));
    let begin = Barrier::new(SESSIONS);
    let errors: Vec<String> = scope(|scope| {
        let sessions = [(); SESSIONS].map(|()| {
            scope.spawn(|| {
                let mut client = database.connect();
                let mut call = |n| {
                    begin.wait();
                    client.batch_execute(&TAKE.replace("'s'", &format!("'new_{n}'"))).err()
                };
                (1..=SEQUENCES).filter_map(&mut call).map(|error| format!("{error:?}")).collect()
            })
        });
        sessions.into_iter().flat_map(|session| -> Vec<String> { session.join().unwrap() }).collect()
    });
    assert!(errors.is_empty(), "{errors:?}");
}
