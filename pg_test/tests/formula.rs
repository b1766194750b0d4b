//! An ID is the published formula, bit for bit.

use pg_snowflake_servertest::ask::{server, server_with_sequence};
use pg_snowflake_servertest::id::{Fields, compose, counter, now_ms, split};
use pg_snowflake_servertest::sequence::{state, take, take_one};

#[test]
fn an_id_is_the_original_formula_of_clock_shard_and_seq() {
    let (_cluster, mut client) = server_with_sequence();

    for (seq, shard) in [(1, 0), (2, 1), (3, 5), (4, 1341), (5, 8191)] {
        let before = now_ms();
        let id = take_one(&mut client, &format!("SELECT snowflake_nextval('s', {shard})"));
        let after = now_ms();

        let of_that_moment =
            (before..=after).map(|unix_ms| compose(Fields { unix_ms, shard, seq }));
        assert!(of_that_moment.into_iter().any(|expected| expected == id), "{id}: {:?}", split(id));
    }
}

#[test]
fn the_first_id_of_a_fresh_sequence_has_seq_1() {
    let (_cluster, mut client) = server_with_sequence();

    let id = take_one(&mut client, "SELECT snowflake_nextval('s', 5)");

    assert_eq!(split(id).seq, 1);
}

#[test]
fn an_existing_sequence_continues_with_the_next_seq() {
    let (_cluster, mut client) = server();

    let cases = [
        ("setval('s', 123456)", 123_457 % 1024),
        ("setval('s', 123456, true)", 123_457 % 1024),
        ("setval('s', 123456, false)", 123_456 % 1024),
        ("setval('s', 1023)", 0),
        ("setval('s', 1024)", 1),
    ];
    for (existing, seq) in cases {
        // A new one each time: a session that resets a sequence within a tick continues above its IDs.
        client
            .batch_execute(&format!(
                "DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s; SELECT {existing}"
            ))
            .unwrap();
        let id = take_one(&mut client, "SELECT snowflake_nextval('s', 5)");
        assert_eq!(split(id).seq, seq, "after {existing}");
    }
}

#[test]
fn seq_cycles_through_all_of_its_values() {
    let (_cluster, mut client) = server_with_sequence();

    let ids = take(&mut client, "SELECT snowflake_nextval('s', 5) FROM generate_series(1, 3000)");

    let seqs: Vec<i64> = ids.iter().map(|&id| split(id).seq).collect();
    let expected: Vec<i64> = (1..=3000).map(|n| n % 1024).collect();
    assert_eq!(seqs, expected);
}

#[test]
fn the_sequence_holds_the_id_without_its_shard() {
    let (_cluster, mut client) = server_with_sequence();

    for shard in [0, 5, 8191] {
        let id = take_one(&mut client, &format!("SELECT snowflake_nextval('s', {shard})"));
        let after = state(&mut client, "s");
        assert_eq!((after.last_value, after.is_called), (counter(id), true), "shard {shard}");
    }
}

#[test]
fn ids_of_several_shards_from_one_sequence_stay_distinct_in_time_and_seq() {
    let (_cluster, mut client) = server_with_sequence();

    let ids = take(
        &mut client,
        "SELECT snowflake_nextval('s', n % 8192) FROM generate_series(1, 50000) n",
    );

    let counters: Vec<i64> = ids.into_iter().map(counter).collect();
    assert!(counters.is_sorted_by(|earlier, later| earlier < later));
}

#[test]
fn decoding_returns_the_fields() {
    let (_cluster, mut client) = server();
    // The first is the example of the article that published the formula. The last is the highest ID that is not negative.
    let cases = [
        (1_387_263_000 << 23 | 1341 << 10 | 905, "2011-09-09 22:28:04.721+00", 1341, 905),
        (0, "2011-08-24 21:07:01.721+00", 0, 0),
        (453_005_578_279 << 23 | 1023, "2026-01-01 00:00:00+00", 0, 1023),
        (453_005_578_280 << 23 | 8191 << 10, "2026-01-01 00:00:00.001+00", 8191, 0),
        (i64::MAX, "2046-06-27 17:00:49.496+00", 8191, 1023),
    ];
    for (id, instant, shard, seq) in cases {
        let row = client
            .query_one(
                "SELECT created_at = $2::text::timestamptz, d.shard_id, seq, snowflake_shard_id($1) \
                 FROM snowflake_decode($1) AS d",
                &[&id, &instant],
            )
            .unwrap();
        assert!(row.get::<_, bool>(0), "{id} is not of {instant}");
        assert_eq!((row.get(1), row.get(2), row.get(3)), (shard, seq, shard), "{id}");
    }
}

#[test]
fn decoding_reads_the_sign_bit_as_the_highest_bit_of_time() {
    let (_cluster, mut client) = server();

    let row = client
        .query_one(
            "SELECT extract(epoch FROM created_at) * 1000 = 1314220021721 + (1::bigint << 41) - 1, \
                    d.shard_id, seq, snowflake_shard_id(-1) \
             FROM snowflake_decode(-1) AS d",
            &[],
        )
        .unwrap();

    assert!(row.get::<_, bool>(0));
    assert_eq!((row.get(1), row.get(2), row.get(3)), (8191, 1023, 8191));
}

#[test]
fn decoding_a_fresh_id_returns_the_time_of_its_issue() {
    let (_cluster, mut client) = server_with_sequence();

    let between = client
        .query_one(
            "WITH before AS MATERIALIZED (SELECT clock_timestamp() AS at),
                  generated AS MATERIALIZED (SELECT at, snowflake_nextval('s', 5) AS id FROM before)
             SELECT created_at BETWEEN date_trunc('milliseconds', at) AND clock_timestamp()
             FROM generated, snowflake_decode(id)",
            &[],
        )
        .unwrap();

    assert!(between.get::<_, bool>(0));
}
