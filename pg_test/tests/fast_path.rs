//! The fast path: IDs that a session takes after its first, without opening the sequence, and with a reading of the clock that
//! may be some microseconds old.

use pg_snowflake_harness::ask::server_with_sequence;
use postgres::Client;

/// `ReadRecentBuffer()` does not raise the usage count of the buffer, so the session opens the sequence from time to time.
#[test]
fn a_session_opens_the_sequence_for_its_first_id_and_for_one_in_a_thousand() {
    let (_cluster, mut client) = server_with_sequence();
    let take = |ids| {
        format!(
            "DO $$ BEGIN FOR i IN 1..{ids} LOOP PERFORM snowflake_nextval('s', 5); END LOOP; END $$"
        )
    };
    let before = openings(&mut client);
    let mut openings_after = |ids| {
        client.batch_execute(&take(ids)).unwrap();
        openings(&mut client) - before
    };
    assert_eq!(openings_after(1_001), 1);
    assert_eq!(openings_after(1), 2);
    assert_eq!(openings_after(1_000), 2);
}

#[test]
fn a_session_that_returns_late_does_not_open_the_sequence_again() {
    let (_cluster, mut client) = server_with_sequence();
    let before = openings(&mut client);
    for _ in 0..3 {
        client.batch_execute("SELECT snowflake_nextval('s', 5); SELECT pg_sleep(0.2)").unwrap();
    }
    assert_eq!(openings(&mut client) - before, 1);
}

#[test]
fn changes_of_other_relations_do_not_make_a_session_open_the_sequence_again() {
    let (cluster, mut client) = server_with_sequence();
    let mut other = cluster.connect();
    let before = openings(&mut client);
    for round in 0..100 {
        other
            .batch_execute(&format!(
                "CREATE TEMP TABLE t{round} (id int PRIMARY KEY);
                 CREATE SEQUENCE s{round}; ALTER SEQUENCE s{round} CACHE 5"
            ))
            .unwrap();
        client.batch_execute("SELECT snowflake_nextval('s', 5)").unwrap();
    }
    // Other relations can share the slot in which the session counts changes of the sequence, one in 1,024.
    let opened = openings(&mut client) - before;
    assert!(opened <= 1 + 10, "{opened}");
}

/// How often sessions have opened the sequence and then accessed its page, which the server counts.
fn openings(client: &mut Client) -> i64 {
    client.batch_execute("SELECT pg_stat_force_next_flush()").unwrap();
    let accesses = "SELECT blks_hit + blks_read FROM pg_statio_user_sequences WHERE relname = 's'";
    client.query_one(accesses, &[]).unwrap().get(0)
}

#[test]
fn a_statement_that_sleeps_reads_the_clock_anew() {
    let (_cluster, mut client) = server_with_sequence();
    client
        .batch_execute(
            "DO $$
             DECLARE
                 before bigint;
                 after bigint;
             BEGIN
                 FOR i IN 1..3 LOOP before := snowflake_nextval('s', 5); END LOOP;
                 PERFORM pg_sleep(0.02);
                 after := snowflake_nextval('s', 5);
                 ASSERT snowflake_created_at(after) - snowflake_created_at(before) >= '19 ms', 'no new reading';
             END $$",
        )
        .unwrap();
}

/// After a reset, the only safeguard is what the session has taken, judged by the clock: a reading older than one that was
/// used before would repeat an ID.
#[test]
fn no_reading_of_the_clock_is_older_than_one_that_was_used() {
    let (_cluster, mut client) = server_with_sequence();
    let next = "snowflake_nextval('s', 5, 'time:48 shard:4 seq:5 epoch:2024-01-01 unit:10us')";
    client
        .batch_execute(&format!(
            "SET pg_snowflake.max_lead = 0;
             CREATE TABLE pairs AS
             SELECT {next} AS one, setval('s', 1), {next} AS other FROM generate_series(1, 300000)"
        ))
        .unwrap();
    let repeats = "SELECT count(*) - count(DISTINCT id)
                   FROM (SELECT one FROM pairs UNION ALL SELECT other FROM pairs) AS ids (id)";
    let repeats: i64 = client.query_one(repeats, &[]).unwrap().get(0);
    assert_eq!(repeats, 0);
}
