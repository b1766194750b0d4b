//! The fast path: ids of a transaction after its first, taken without opening the sequence, and with a reading of the clock
//! that may be some microseconds old.

use pg_snowflake_servertest::ask::server_with_sequence;

/// The server counts an access to a sequence's page if it has opened the relation.
#[test]
fn the_sequence_is_opened_once_a_transaction() {
    let (_cluster, mut client) = server_with_sequence();
    for _ in 0..3 {
        client
            .batch_execute("SELECT snowflake_nextval('s', 5) FROM generate_series(1, 1000)")
            .unwrap();
    }
    client.batch_execute("SELECT pg_stat_force_next_flush()").unwrap();
    let reads = "SELECT blks_hit + blks_read FROM pg_statio_user_sequences WHERE relname = 's'";
    let reads: i64 = client.query_one(reads, &[]).unwrap().get(0);
    // CREATE SEQUENCE has accessed it too.
    assert!((3..10).contains(&reads), "{reads}");
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
/// used before would repeat an id.
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
