//! An ID is the formula of its layout, bit for bit: of the default one, and of the one that Instagram published.

use pg_snowflake_harness::ask::{printed, server, server_with_sequence};
use pg_snowflake_harness::id::{Fields, compose, counter, first_seq, now_ms, split};
use pg_snowflake_harness::sequence::{state, take, take_one};
use pg_snowflake_ids::PRESETS;

#[test]
fn an_id_is_the_formula_of_clock_shard_and_seq() {
    let (_cluster, mut client) = server_with_sequence();

    for (seq, shard) in [(1, 0), (2, 1), (3, 5), (4, 1341), (5, 4095)] {
        let before = now_ms();
        let id = take_one(&mut client, &format!("SELECT snowflake_nextval('s', {shard})"));
        let after = now_ms();

        let of_that_moment =
            (before..=after).map(|unix_ms| compose(Fields { unix_ms, shard, seq }));
        assert!(of_that_moment.into_iter().any(|expected| expected == id), "{id}: {:?}", split(id));
        assert_eq!((id ^ id >> 12) & 4095, shard, "{id}");
    }
}

#[test]
fn an_id_of_instagram_is_the_formula_that_instagram_published() {
    let (_cluster, mut client) = server_with_sequence();

    for (seq, shard) in [(1, 0), (2, 1), (3, 5), (4, 1341), (5, 8191)] {
        let before = now_ms();
        let call = format!("SELECT snowflake_nextval('s', {shard}, 'instagram')");
        let id = take_one(&mut client, &call);
        let after = now_ms();

        let of_that_moment =
            (before..=after).map(|unix_ms| (unix_ms - 1_314_220_021_721) << 23 | shard << 10 | seq);
        assert!(of_that_moment.into_iter().any(|expected| expected == id), "{id}");
    }
}

#[test]
fn the_formula_of_every_layout_in_sql_is_the_shard() {
    let (_cluster, mut client) = server();
    let ids = "SELECT snowflake_encode('2026-11-21 00:46:04.617Z'::timestamptz + n * interval '1.234567 s',
                      (n * 7 % shards)::int, n * 5 % (2 ^ seq_bits)::int, 'LAYOUT') AS id
               FROM snowflake_layout_info('LAYOUT'), generate_series(0, 999) AS n";
    let custom = [
        "time:41 seq:8 shard_xor_above:14 epoch:2024-01-01 unit:1ms",
        "time:33 seq:0 shard_xor_above:31 epoch:2000-01-01 unit:1s",
        "time:41 seq:12 shard:10 epoch:2010-11-04T01:42:54.657Z unit:1ms",
        "time:48 shard:0 seq:15 epoch:1970-01-01 unit:100us",
    ];
    let presets = PRESETS.iter().map(|(name, _)| *name);
    for layout in presets.chain(custom) {
        let formula = printed(
            &mut client,
            &format!("SELECT shard_formula FROM snowflake_layout_info('{layout}')"),
        );
        let wrong = format!(
            "SELECT count(*), count(*) FILTER (WHERE {formula} IS DISTINCT FROM snowflake_shard_id(id, '{layout}'))
             FROM ({}) AS ids",
            ids.replace("LAYOUT", layout)
        );
        assert_eq!(printed(&mut client, &wrong), "1000|0", "{layout}: {formula}");
    }
}

#[test]
fn the_seq_of_the_first_id_depends_on_the_shard() {
    let (_cluster, mut client) = server();

    for shard in [0, 1, 2, 5, 4095] {
        client.batch_execute(&format!("CREATE SEQUENCE s{shard}")).unwrap();
        let id = take_one(&mut client, &format!("SELECT snowflake_nextval('s{shard}', {shard})"));
        assert_eq!(split(id).seq, first_seq(shard), "shard {shard}");
    }
}

#[test]
fn an_existing_sequence_continues_with_the_next_seq() {
    let (_cluster, mut client) = server();

    let cases = [
        ("setval('s', 123456)", 123_457 % 1024),
        ("setval('s', 123456, true)", 123_457 % 1024),
        // Not called: it begins there, plus what the shard adds.
        ("setval('s', 123456, false)", (123_455 + first_seq(5)) % 1024),
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
    let expected: Vec<i64> = (0..3000).map(|n| (first_seq(5) + n) % 1024).collect();
    assert_eq!(seqs, expected);
}

#[test]
fn the_sequence_holds_the_id_without_its_shard() {
    let (_cluster, mut client) = server_with_sequence();

    for shard in [0, 5, 4095] {
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
        "SELECT snowflake_nextval('s', n % 4096) FROM generate_series(1, 50000) n",
    );

    let counters: Vec<i64> = ids.into_iter().map(counter).collect();
    assert!(counters.is_sorted_by(|earlier, later| earlier < later));
}

#[test]
fn decoding_returns_the_fields() {
    let (_cluster, mut client) = server();
    // The first ID of instagram is the example of the article that published the formula. The last of each layout is the highest
    // that is not negative.
    let x = 504_921_600_001 << 22;
    let cases = [
        ("postgres", 0, "2010-01-01 00:00:00+00", 0, 0),
        ("postgres", (x - (1 << 12)) | 1023, "2026-01-01 00:00:00+00", 0, 1023),
        ("postgres", x | 1 << 10 ^ 4095, "2026-01-01 00:00:00.001+00", 4095, 0),
        ("postgres", 2_235_219_950_664_999_947, "2026-11-21 00:46:04.617+00", 5, 14),
        ("postgres", i64::MAX, "2079-09-07 15:47:35.551+00", 0, 1023),
        (
            "instagram",
            1_387_263_000 << 23 | 1341 << 10 | 905,
            "2011-09-09 22:28:04.721+00",
            1341,
            905,
        ),
        ("instagram", 0, "2011-08-24 21:07:01.721+00", 0, 0),
        ("instagram", 453_005_578_279 << 23 | 1023, "2026-01-01 00:00:00+00", 0, 1023),
        ("instagram", 453_005_578_280 << 23 | 8191 << 10, "2026-01-01 00:00:00.001+00", 8191, 0),
        ("instagram", i64::MAX, "2046-06-27 17:00:49.496+00", 8191, 1023),
    ];
    for (layout, id, instant, shard, seq) in cases {
        let row = client
            .query_one(
                "SELECT created_at = $2::text::timestamptz, d.shard_id, seq, snowflake_shard_id($1, $3::text::snowflake_layout) \
                 FROM snowflake_decode($1, $3::text::snowflake_layout) AS d",
                &[&id, &instant, &layout],
            )
            .unwrap();
        assert!(row.get::<_, bool>(0), "{id} of {layout} is not of {instant}");
        assert_eq!((row.get(1), row.get(2), row.get(3)), (shard, seq, shard), "{id}");
    }
}

#[test]
fn decoding_reads_the_sign_bit_as_the_highest_bit_of_time_if_the_layout_has_64_bits() {
    let (_cluster, mut client) = server();

    let row = client
        .query_one(
            "SELECT extract(epoch FROM created_at) * 1000 = 1314220021721 + (1::bigint << 41) - 1, \
                    d.shard_id, seq, snowflake_shard_id(-1, 'instagram') \
             FROM snowflake_decode(-1, 'instagram') AS d",
            &[],
        )
        .unwrap();

    assert!(row.get::<_, bool>(0));
    assert_eq!((row.get(1), row.get(2), row.get(3)), (8191, 1023, 8191));

    let refused = client.query_one("SELECT snowflake_decode(-1)", &[]).unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("22003"), "{refused:?}");
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
