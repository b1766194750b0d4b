//! The fields of an ID, and IDs from their fields, in every layout.

mod published;
mod refusals;
mod round_trips;

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{printed, server};

#[test]
fn the_smallest_id_of_an_instant_is_rounded_up_to_a_tick_and_clamped_to_the_layouts_life() {
    let (_cluster, mut client) = server();
    let cases = [
        // At the beginning of a tick, before it, and after it.
        ("'2011-08-24 21:07:01.722Z'", "instagram", 1 << 23),
        ("'2011-08-24 21:07:01.721001Z'", "instagram", 1 << 23),
        ("'2011-08-24 21:07:01.722001Z'", "instagram", 2 << 23),
        ("'2014-09-01 00:00:00.01Z'", "sonyflake", 1 << 24),
        ("'2014-09-01 00:00:00.010001Z'", "sonyflake", 2 << 24),
        ("'1970-01-01 00:00:00.001Z'", "mastodon", 1 << 16),
        // Before the layout's epoch.
        ("'2011-08-24 21:07:01.721Z'", "instagram", 0),
        ("'2011-08-24 21:07:01.720999Z'", "instagram", 0),
        ("'4713-01-01 BC'", "twitter", 0),
        ("'-infinity'", "instagram", 0),
        // Around its last tick whose IDs are not negative, and after it.
        ("'2046-06-27 17:00:49.496Z'", "instagram", ((1 << 40) - 1) << 23),
        ("'2046-06-27 17:00:49.497Z'", "instagram", i64::MAX),
        ("'294276-12-31 23:59:59Z'", "instagram", i64::MAX),
        ("'infinity'", "instagram", i64::MAX),
        ("'infinity'", "mastodon", i64::MAX),
        ("'infinity'", "twitter", i64::MAX),
        ("'2089-09-06 15:47:35.551Z'", "js53", ((1 << 41) - 1) << 12),
        ("'2089-09-06 15:47:35.552Z'", "js53", 1 << 53),
        // A layout that lasts longer than timestamps.
        ("'infinity'", "time:48 shard:0 seq:0 epoch:2024-01-01 unit:1s", 1 << 48),
        ("'infinity'", "js53", 1 << 53),
    ];
    for (at, layout, id) in cases {
        let sql = format!("SELECT snowflake_min_id({at}, '{layout}')");
        assert_eq!(printed(&mut client, &sql), id.to_string(), "{sql}");
    }
}

#[test]
fn a_time_range_includes_its_start_and_excludes_its_end() {
    let (_cluster, mut client) = server();
    // The last ID of the tick before, the first and the last of the tick, and the first of the next.
    let noon = "'2024-01-01 12:00:00Z'";
    let around = format!(
        "SELECT id FROM (SELECT snowflake_min_id({noon}) AS first) AS noon,
             unnest(ARRAY[first - 1, first, first + (1 << 22) - 1, first + (1 << 22)]) WITH ORDINALITY AS ids (id, n)"
    );
    let cases = [
        (noon, "'2024-01-01 12:00:00.001Z'", "f t t f"),
        ("'2024-01-01 11:59:59.999Z'", noon, "t f f f"),
        (noon, noon, "f f f f"),
        ("'2024-01-01 12:00:01Z'", "'2024-01-01 11:00:00Z'", "f f f f"),
        ("'-infinity'", "'infinity'", "t t t t"),
        // An ID's time is the beginning of its tick.
        (noon, "'2024-01-01 12:00:00.000001Z'", "f t t f"),
        ("'2024-01-01 12:00:00.000001Z'", "'2024-01-01 12:00:00.001001Z'", "f f f t"),
        ("'2024-01-01 12:00:00.000001Z'", "'2024-01-01 12:00:00.000999Z'", "f f f f"),
    ];
    for (since, until, expected) in cases {
        let sql = format!(
            "SELECT string_agg(left(snowflake_between(id, {since}, {until})::text, 1), ' ' ORDER BY id)
             FROM ({around}) AS around"
        );
        assert_eq!(printed(&mut client, &sql), expected, "{since} to {until}");
        let by_time = format!(
            "SELECT string_agg(left((t >= {since} AND t < {until})::text, 1), ' ' ORDER BY id)
             FROM ({around}) AS around, snowflake_created_at(id) AS t"
        );
        assert_eq!(printed(&mut client, &by_time), expected, "{since} to {until}");
    }
}

#[test]
fn null_returns_null() {
    let (_cluster, mut client) = server();
    let cases = [
        "snowflake_decode(1, NULL)",
        "snowflake_created_at(NULL)",
        "snowflake_shard_id(1, NULL)",
        "snowflake_seq(NULL)",
        "snowflake_encode(NULL, 1, 1)",
        "snowflake_encode(now(), NULL, 1)",
        "snowflake_encode(now(), 1, 1, NULL)",
        "snowflake_min_id(NULL)",
        "snowflake_between(NULL, now(), now())",
        "snowflake_between(1, NULL, now())",
        "snowflake_between(snowflake_min_id(now()), now(), NULL)",
        "snowflake_between(1, now(), now(), NULL)",
        "snowflake_explain(NULL)",
        "snowflake_to_base32(NULL)",
        "snowflake_from_base32(NULL)",
        "snowflake_to_uuid(1, NULL)",
        "snowflake_from_uuid(NULL)",
        "snowflake_layout_info(NULL)",
        "NULL::snowflake_layout",
        "NULL::snowflake_layout = 'twitter'",
    ];
    for call in cases {
        assert_eq!(printed(&mut client, &format!("SELECT ({call}) IS NULL")), "t", "{call}");
    }
}

#[test]
fn an_id_is_drawn_with_its_bits() {
    let (_cluster, mut client) = server();
    let drawn = printed(&mut client, "SELECT snowflake_explain(175928847299117063, 'discord')");
    let lines: Vec<&str> = drawn.lines().map(str::trim_end).collect();
    let expected = [
        "175928847299117063 = 0x0271065ac1020007",
        "discord: time:42 shard:10 seq:12 epoch:2015-01-01 unit:1ms",
        "time  42 bits  000000100111000100000110010110101100000100        41944705796 ticks of 1ms: \
         2016-04-30T11:18:25.796Z",
        "shard 10 bits  0000100000                                        32",
        "seq   12 bits  000000000111                                      7",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn the_decoders_need_no_search_path() {
    let cluster = Cluster::builder().setting("timezone", "UTC").start();
    let mut client = cluster.connect();
    client
        .batch_execute(
            "DROP EXTENSION pg_snowflake; CREATE SCHEMA ext; CREATE EXTENSION pg_snowflake SCHEMA ext;
             CREATE SCHEMA trap;
             CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT NULL::boolean';
             CREATE OPERATOR trap.>= (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
             CREATE OPERATOR trap.< (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
             CREATE FUNCTION trap.snowflake_min_id(timestamptz, ext.snowflake_layout) RETURNS bigint
                 LANGUAGE sql AS 'SELECT 0::bigint';
             CREATE SEQUENCE public.s",
        )
        .unwrap();
    let id = "ext.snowflake_encode('2024-01-01', 5, 7, 'twitter')";
    let cases = [
        (format!("(ext.snowflake_decode({id}, 'twitter')).shard_id"), "5"),
        (format!("ext.snowflake_between({id}, '2024-01-01', '2024-01-02', 'twitter')"), "t"),
        (format!("ext.snowflake_between({id}, '2023-12-31', '2024-01-01', 'twitter')"), "f"),
        (format!("ext.snowflake_between({id}, '2024-01-01', '2024-01-02')"), "f"),
        ("(SELECT count(*) FROM ext.snowflake_layouts WHERE name = 'twitter')".into(), "1"),
        ("(ext.snowflake_layout_info('twitter')).shards".into(), "1024"),
        ("'twitter'::ext.snowflake_layout OPERATOR(ext.=) 'twitter'".into(), "t"),
        (format!("({id})::ext.snowflake::bigint = {id}"), "t"),
        (
            "ext.snowflake_shard_id(ext.snowflake_nextval('public.s', 3, 'twitter'), 'twitter')"
                .into(),
            "3",
        ),
    ];
    for search_path in ["''", "public", "trap, pg_catalog"] {
        client.batch_execute(&format!("SET search_path = {search_path}")).unwrap();
        for (expression, expected) in &cases {
            let found = printed(&mut client, &format!("SELECT {expression}"));
            assert_eq!(found, *expected, "{expression} with search_path {search_path}");
        }
    }
}
