//! The layout type, and generating IDs in every layout.

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{
    Bad, Refusal, assert_each_refused, assert_refused, copy, printed, refused, server,
    server_with_sequence,
};
use pg_snowflake_harness::id::is_increasing;
use pg_snowflake_harness::sequence::{take, take_one};
use pg_snowflake_ids::PRESETS;
use pg_snowflake_ids::layout_spec::spec;
use postgres::Client;
use std::io::Write;

/// 16 shards, 64 IDs in 100 microseconds, for three and a half years.
const CUSTOM: &str = "time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us";

/// Each preset and a custom layout, with its number of shards.
fn layouts() -> impl Iterator<Item = (&'static str, i64)> {
    PRESETS.iter().map(|(name, layout)| (*name, layout.shards())).chain([(CUSTOM, 16)])
}

#[test]
fn the_view_has_every_preset_in_its_order() {
    let (_cluster, mut client) = server();
    let expected: Vec<String> =
        PRESETS.iter().map(|(name, layout)| format!("{name}|{}", spec(layout))).collect();
    let presets = printed(&mut client, "SELECT name, spec FROM snowflake_layouts");
    assert_eq!(presets, expected.join("\n"));
}

/// Stored IDs would be decoded differently.
#[test]
fn a_released_preset_never_changes() {
    let (_cluster, mut client) = server();
    let figures =
        "SELECT name, time_bits, shard_bits, seq_bits, unit, epoch, ends_at, shards, ids_per_second
                   FROM snowflake_layouts";
    let found = printed(&mut client, figures);
    let released = [
        "postgres|41|12|10|00:00:00.001|2010-01-01 00:00:00+00|2079-09-07 15:47:35.552+00|4096|1024000",
        "instagram|41|13|10|00:00:00.001|2011-08-24 21:07:01.721+00|2046-06-27 17:00:49.497+00|8192|1024000",
        "twitter|41|10|12|00:00:00.001|2010-11-04 01:42:54.657+00|2080-07-10 17:30:30.209+00|1024|4096000",
        "discord|42|10|12|00:00:00.001|2015-01-01 00:00:00+00|2084-09-06 15:47:35.552+00|1024|4096000",
        "mastodon|48|0|16|00:00:00.001|1970-01-01 00:00:00+00|6429-10-17 02:45:55.328+00|1|65536000",
        "sonyflake|39|16|8|00:00:00.01|2014-09-01 00:00:00+00|2188-11-16 03:28:58.88+00|65536|25600",
        "pgedge|41|10|12|00:00:00.001|2023-01-01 00:00:00+00|2092-09-06 15:47:35.552+00|1024|4096000",
        "pgdog|41|10|12|00:00:00.001|2025-11-26 19:13:15+00|2095-08-03 11:00:50.552+00|1024|4096000",
        "js53|41|7|5|00:00:00.001|2020-01-01 00:00:00+00|2089-09-06 15:47:35.552+00|128|32000",
    ];
    for preset in released {
        assert!(found.lines().any(|line| line == preset), "{preset} is not in\n{found}");
    }
}

#[test]
fn a_layouts_figures_follow_from_its_spec() {
    let (_cluster, mut client) = server();
    let cases = [
        (
            CUSTOM,
            "40|4|6|00:00:00.0001|2024-01-01 00:00:00+00|2027-06-26 13:59:22.7776+00|16|640000|384000000|id & 15",
        ),
        (
            "time:41 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:1ms",
            "41|12|10|00:00:00.001|2024-01-01 00:00:00+00|2093-09-06 15:47:35.552+00|4096|1024000|614400000|\
             (id # (id >> 12)) & 4095",
        ),
        (
            "time:30 shard:0 seq:0 epoch:2000-01-01 unit:1s",
            "30|0|0|00:00:01|2000-01-01 00:00:00+00|2034-01-09 13:37:04+00|1|1|600|0",
        ),
        (
            "time:20 shard:31 seq:0 epoch:2000-01-01 unit:10us",
            "20|31|0|00:00:00.00001|2000-01-01 00:00:00+00|2000-01-01 00:00:10.48576+00|2147483648|100000|1048576|id & 2147483647",
        ),
    ];
    for (layout, figures) in cases {
        let sql = format!("SELECT * FROM snowflake_layout_info('{layout}')");
        assert_eq!(printed(&mut client, &sql), format!("{layout}|{figures}"));
    }
}

#[test]
fn a_layout_is_printed_as_a_preset_or_in_one_spelling() {
    let (_cluster, mut client) = server();
    let cases = [
        ("twitter", "twitter"),
        ("  twitter ", "twitter"),
        // A preset's spec, with its parts in another order.
        ("unit:1ms epoch:2010-11-04T01:42:54.657Z time:41 shard:10 seq:12", "twitter"),
        ("time:39 seq:8 shard:16 epoch:2014-09-01 unit:10ms", "sonyflake"),
        ("time:41 unit:1ms seq:10 shard_xor_above:12 epoch:2010-01-01", "postgres"),
        (
            "time:41 seq:10 shard:12 epoch:2010-01-01 unit:1ms",
            "time:41 seq:10 shard:12 epoch:2010-01-01 unit:1ms",
        ),
        (CUSTOM, CUSTOM),
        (
            "time:40   shard:6\tseq:4 unit:1s epoch:2024-01-01T00:00:00.000Z",
            "time:40 shard:6 seq:4 epoch:2024-01-01 unit:1s",
        ),
        (
            "time:40 shard:6 seq:4 unit:1s epoch:2024-01-01T00:00:00.5Z",
            "time:40 shard:6 seq:4 epoch:2024-01-01T00:00:00.5Z unit:1s",
        ),
    ];
    for (text, layout) in cases {
        let sql = format!("SELECT '{text}'::snowflake_layout");
        assert_eq!(printed(&mut client, &sql), layout, "{text}");
        let again =
            format!("SELECT ('{text}'::snowflake_layout)::text::snowflake_layout = '{text}'");
        assert_eq!(printed(&mut client, &again), "t", "{text}");
    }
}

#[test]
fn layouts_are_compared_by_value() {
    let (_cluster, mut client) = server();
    let twitter = "time:41 shard:10 seq:12 epoch:2010-11-04T01:42:54.657Z unit:1ms";
    client
        .batch_execute(&format!(
            "CREATE TABLE used (id int, layout snowflake_layout);
             INSERT INTO used VALUES (1, 'twitter'), (2, '{twitter}'), (3, 'pgedge'), (4, '{CUSTOM}'), (5, NULL);
             SET enable_mergejoin = off; SET enable_nestloop = off"
        ))
        .unwrap();
    let cases = [
        ("SELECT id FROM used WHERE layout = 'twitter' ORDER BY id", "1\n2"),
        ("SELECT id FROM used WHERE layout <> 'twitter' ORDER BY id", "3\n4"),
        ("SELECT count(*) FROM (SELECT DISTINCT layout FROM used) AS distinct_ones", "4"),
        ("SELECT max(n) FROM (SELECT count(*) AS n FROM used GROUP BY layout) AS groups", "2"),
        ("SELECT count(*) FROM used AS a JOIN used AS b USING (layout)", "6"),
        (
            "SELECT count(*) FROM used JOIN snowflake_layouts ON layout = name::snowflake_layout",
            "3",
        ),
        ("SELECT id FROM used WHERE layout IN ('js53', 'pgedge')", "3"),
    ];
    for (sql, expected) in cases {
        assert_eq!(printed(&mut client, sql), expected, "{sql}");
    }
    let join =
        printed(&mut client, "EXPLAIN SELECT 1 FROM used AS a JOIN used AS b USING (layout)");
    assert!(join.starts_with("Hash Join"), "{join}");
}

#[test]
fn a_layout_round_trips_through_every_copy_format() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(&format!(
            "CREATE TABLE source (n int, layout snowflake_layout, layouts snowflake_layout[]);
             INSERT INTO source SELECT row_number() OVER (), name::snowflake_layout, ARRAY[name, '{CUSTOM}']::snowflake_layout[]
             FROM snowflake_layouts;
             INSERT INTO source VALUES (100, '{CUSTOM}', '{{}}'), (101, NULL, NULL)"
        ))
        .unwrap();
    for format in ["text", "csv", "binary"] {
        client.batch_execute("CREATE TABLE target (LIKE source)").unwrap();
        copy(&mut client, "source", "target", format);
        let different = "SELECT count(*) FILTER (WHERE s.layout IS DISTINCT FROM t.layout OR s.layouts IS DISTINCT FROM t.layouts),
                             count(*)
                         FROM source AS s FULL JOIN target AS t USING (n)";
        let all = format!("0|{}", PRESETS.len() + 2);
        assert_eq!(printed(&mut client, different), all, "{format}");
        client.batch_execute("DROP TABLE target").unwrap();
    }
}

#[test]
fn bytes_that_are_not_a_layout_are_refused() {
    let (_cluster, mut client) = server();
    client.batch_execute("CREATE TABLE received (layout snowflake_layout)").unwrap();
    let twitter = 1_288_834_974_657_u64 << 21 | 2 << 18 | 12 << 11 | 10 << 6 | 41;
    assert_eq!(receive(&mut client, &twitter.to_be_bytes()), Ok(()));
    assert_eq!(printed(&mut client, "SELECT layout FROM received"), "twitter");

    let cases = [
        ("no time", 0, "22P03"),
        ("49 bits of time", 49 | 2 << 18, "22P03"),
        ("65 bits", 41 | 13 << 6 | 11 << 11 | 2 << 18, "22P03"),
        ("the seventh unit", 41 | 6 << 18, "22P03"),
        ("the eighth unit", 41 | 7 << 18, "22P03"),
        ("the fourth place", 41 | 3 << 16, "22P03"),
        ("all bits", u64::MAX, "22P03"),
    ];
    for (what, packed, sqlstate) in cases {
        let refused = receive(&mut client, &packed.to_be_bytes());
        assert_eq!(refused, Err(sqlstate.into()), "{what}");
    }
    for length in [0, 7, 9] {
        assert!(receive(&mut client, &vec![0; length]).is_err(), "{length} bytes");
    }
}

/// Sends these bytes as a layout in the binary format, and returns the SQLSTATE if they are refused.
fn receive(client: &mut Client, layout: &[u8]) -> Result<(), String> {
    let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01".to_vec();
    data.extend(u32::try_from(layout.len()).unwrap().to_be_bytes());
    data.extend(layout);
    data.extend((-1_i16).to_be_bytes());
    let mut target = client.copy_in("COPY received FROM STDIN (FORMAT binary)").unwrap();
    target.write_all(&data).unwrap();
    match target.finish() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.code().expect("the server refuses").code().to_owned()),
    }
}

#[test]
fn a_bad_layout_is_refused_with_what_is_allowed() {
    let (_cluster, mut client) = server();
    let rest = "epoch:2024-01-01 unit:1ms";
    let cases = [
        (
            "instagramm".into(),
            "unrecognized layout \"instagramm\"",
            "postgres, instagram, twitter, discord, mastodon",
        ),
        ("Twitter".into(), "unrecognized layout \"Twitter\"", "twitter"),
        (String::new(), "unrecognized layout", "instagram"),
        (format!("shard:13 seq:10 {rest}"), "\"time\" is missing", "1 to 48 bits"),
        (format!("time:41 seq:10 {rest}"), "\"shard\" is missing", "0 to 31 bits"),
        (format!("time:41 shard:13 {rest}"), "\"seq\" is missing", "0 to 31 bits"),
        ("time:41 shard:13 seq:10 unit:1ms".into(), "\"epoch\" is missing", "from 1970 to now"),
        (
            "time:41 shard:13 seq:10 epoch:2024-01-01".into(),
            "\"unit\" is missing",
            "10us, 100us, 1ms",
        ),
        (
            format!("time:41 time:41 shard:13 seq:10 {rest}"),
            "\"time\" is specified more than once",
            "once",
        ),
        (
            format!("time:41 shard:13 seq:10 unit:1s {rest}"),
            "\"unit\" is specified more than once",
            "once",
        ),
        (format!("time:0 shard:13 seq:10 {rest}"), "\"time:0\"", "1 to 48 bits"),
        (format!("time:49 shard:5 seq:10 {rest}"), "\"time:49\"", "1 to 48 bits"),
        (format!("time:30 shard:32 seq:0 {rest}"), "\"shard:32\"", "0 to 31 bits"),
        (format!("time:30 shard:0 seq:32 {rest}"), "\"seq:32\"", "0 to 31 bits"),
        (format!("time:30 shard:-1 seq:2 {rest}"), "\"shard:-1\"", "0 to 31 bits"),
        (format!("time:41.5 shard:1 seq:2 {rest}"), "\"time:41.5\"", "1 to 48 bits"),
        (format!("time:+41 shard:13 seq:10 {rest}"), "\"time:+41\"", "plain digits"),
        (format!("time:41 shard:013 seq:10 {rest}"), "\"shard:013\"", "plain digits"),
        (format!("time:41 shard:13 seq:11 {rest}"), "65 bits", "64 bits"),
        (
            format!("shard:13 time:41 seq:10 {rest}"),
            "order",
            "time, shard, seq, or time, seq, shard, or time, seq, shard_xor_above",
        ),
        (
            "time:41 shard:13 seq:10 epoch:2024-01-01 unit:3ms".into(),
            "unit:3ms",
            "10us, 100us, 1ms, 10ms, 100ms, 1s",
        ),
        (
            "time:41 shard:13 seq:10 epoch:2924-01-01 unit:1ms".into(),
            "in the future",
            "from 1970 to now",
        ),
        (
            "time:41 shard:13 seq:10 epoch:1969-12-31 unit:1ms".into(),
            "epoch:1969-12-31",
            "from 1970 to now",
        ),
        ("time:41 shard:13 seq:10 epoch:2024-02-30 unit:1ms".into(), "2024-02-30", "2024-01-01"),
        (
            "time:41 shard:13 seq:10 epoch:2024-01-01T00:00:00.0001Z unit:1ms".into(),
            "00.0001Z",
            "to the millisecond",
        ),
        (
            format!("time:41 shard:13 seq:10 worker:1 {rest}"),
            "unrecognized layout part \"worker\"",
            "time, shard or shard_xor_above, seq, epoch and unit",
        ),
        (format!("time:41 shard seq:10 {rest}"), "layout part \"shard\" has no value", "colon"),
    ];
    for (layout, message, allowed) in &cases {
        let sql = format!("SELECT '{layout}'::snowflake_layout");
        assert_each_refused(&mut client, &[Bad { sql: &sql, sqlstate: "22P02", message, allowed }]);
    }
}

#[test]
fn an_epoch_is_in_the_future_until_it_is_past() {
    let (_cluster, mut client) = server();
    let spec = |offset| {
        format!(
            "SELECT format('time:40 shard:5 seq:5 epoch:%s unit:1s',
                 to_char(clock_timestamp() + interval '{offset}', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'))::snowflake_layout IS NULL"
        )
    };
    assert_eq!(printed(&mut client, &spec("-1 hour")), "f");
    let future = Refusal { sqlstate: "22P02", message: "in the future", hint: "to now" };
    assert_refused(&mut client, &spec("1 hour"), future);
}

#[test]
fn a_typo_in_a_default_fails_when_the_table_is_created() {
    let (_cluster, mut client) = server();
    client.batch_execute("CREATE SEQUENCE s; CREATE TABLE posts (id bigint)").unwrap();
    let default = "DEFAULT snowflake_nextval('s', 5, 'twiter')";
    for sql in [
        format!("CREATE TABLE typo (id bigint {default})"),
        format!("ALTER TABLE posts ALTER id SET {default}"),
        "ALTER TABLE posts ADD CHECK (snowflake_shard_id(id, 'twiter') = 5)".into(),
        "CREATE INDEX ON posts (snowflake_created_at(id, 'twiter'))".into(),
    ] {
        let unknown = Refusal {
            sqlstate: "22P02",
            message: "unrecognized layout \"twiter\"",
            hint: "twitter",
        };
        assert_refused(&mut client, &sql, unknown);
    }
}

#[test]
fn an_id_generated_in_a_layout_carries_now_and_its_shard() {
    let (_cluster, mut client) = server();
    for (layout, shards) in layouts() {
        for shard in [0, shards / 2, shards - 1] {
            let generated = format!(
                "DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s;
                 WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS before),
                     generated AS MATERIALIZED (SELECT before, snowflake_nextval('s', {shard}, '{layout}') AS id FROM clock)
                 SELECT d.shard_id, d.seq = (1 + 617 * {shard}::int8) % (1::int8 << seq_bits), d.created_at BETWEEN before - unit AND clock_timestamp()
                 FROM snowflake_layout_info('{layout}'), generated, snowflake_decode(id, '{layout}') AS d"
            );
            assert_eq!(printed(&mut client, &generated), format!("{shard}|t|t"), "{layout}");
        }
    }
}

#[test]
fn ids_of_a_layout_increase_one_by_one_and_in_batches() {
    let (_cluster, mut client) = server();
    for (layout, shards) in layouts() {
        let shard = shards - 1;
        client.batch_execute("DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s").unwrap();
        let mut ids = Vec::new();
        for sql in [
            format!(
                "SELECT snowflake_nextval('s', {shard}, '{layout}') FROM generate_series(1, 500)"
            ),
            format!("SELECT snowflake_nextvals('s', {shard}, 500, '{layout}')"),
            format!("SELECT snowflake_nextval('s', {shard}, '{layout}')"),
        ] {
            ids.extend(take(&mut client, &sql));
        }
        assert_eq!(ids.len(), 1001);
        assert!(is_increasing(&ids), "{layout}: {ids:?}");
        assert_eq!(take_one(&mut client, "SELECT snowflake_currval('s')"), ids[1000]);
        let of_shard = format!(
            "SELECT count(*) FROM unnest($1::bigint[]) AS id WHERE snowflake_shard_id(id, '{layout}') = {shard}"
        );
        let count: i64 = client.query_one(&of_shard, &[&ids]).unwrap().get(0);
        assert_eq!(count, 1001, "{layout}");
    }
}

#[test]
fn a_shard_that_a_layout_does_not_have_is_refused() {
    let (_cluster, mut client) = server_with_sequence();
    for (layout, shards) in layouts() {
        for shard in [-1, shards] {
            let message = format!("shard ID {shard} is out of range");
            let allowed = format!("0 to {}", shards - 1);
            for call in [
                format!("snowflake_nextval('s', {shard}, '{layout}')"),
                format!("snowflake_nextvals('s', {shard}, 10, '{layout}')"),
            ] {
                let sql = format!("SELECT {call}");
                let bad =
                    Bad { sql: &sql, sqlstate: "22023", message: &message, allowed: &allowed };
                assert_each_refused(&mut client, &[bad]);
            }
        }
    }
}

#[test]
fn a_default_generates_in_its_layout() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s;
             CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 100, 'js53'), body text);
             INSERT INTO posts (body) SELECT 'a' FROM generate_series(1, 100)",
        )
        .unwrap();
    let of_shard = "SELECT count(*) FROM posts WHERE id < 1::bigint << 53 AND snowflake_shard_id(id, 'js53') = 100";
    assert_eq!(printed(&mut client, of_shard), "100");
}

#[test]
fn a_sequence_that_was_used_under_another_layout_is_refused_and_the_error_says_so() {
    let (_cluster, mut client) = server();
    // mastodon's counters are far above those of every other layout; js53's are far below.
    for (first, then) in
        [("mastodon", "instagram"), ("twitter", "js53"), ("instagram", "sonyflake")]
    {
        client
            .batch_execute(&format!(
                "DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s; SELECT snowflake_nextval('s', 0, '{first}')"
            ))
            .unwrap();
        let sql = format!("SELECT snowflake_nextval('s', 0, '{then}')");
        let message = "is too far ahead of the server clock";
        let (sqlstate, allowed) = ("55000", "another layout");
        assert_each_refused(&mut client, &[Bad { sql: &sql, sqlstate, message, allowed }]);
        let detail = refused(&mut client, &sql).detail().unwrap().to_owned();
        assert!(detail.contains(" days ahead"), "{detail}");
        let again = take(&mut client, &format!("SELECT snowflake_nextval('s', 0, '{first}')"));
        assert_eq!(again.len(), 1, "{first} is continued");
    }
}

#[test]
fn a_dump_with_layouts_in_default_check_and_index_restores_and_goes_on_above() {
    let (source, mut client) = server();
    client
        .batch_execute(&format!(
            "CREATE SEQUENCE s;
             CREATE SEQUENCE t;
             CREATE TABLE posts (
                 id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 3, '{CUSTOM}'),
                 written timestamptz GENERATED ALWAYS AS (snowflake_created_at(id, '{CUSTOM}')) STORED,
                 body text,
                 CHECK (snowflake_shard_id(id, '{CUSTOM}') = 3));
             CREATE INDEX posts_written ON posts (snowflake_created_at(id, '{CUSTOM}'));
             CREATE TABLE tweets (id snowflake DEFAULT snowflake_nextval('t', 7, 'twitter'), layout snowflake_layout DEFAULT 'twitter');
             INSERT INTO posts (body) SELECT 'old' FROM generate_series(1, 1000)"
        ))
        .unwrap();
    client.batch_execute("INSERT INTO tweets DEFAULT VALUES").unwrap();
    let last = take_one(&mut client, "SELECT max(id) FROM posts");

    let target = Cluster::builder().setting("timezone", "UTC").start();
    let mut restored = target.restored_database("restored", &source.dump("postgres"));

    let all = "SELECT id, written, body FROM posts ORDER BY id";
    assert_eq!(printed(&mut restored, all), printed(&mut client, all));
    let new = take_one(&mut restored, "INSERT INTO posts (body) VALUES ('new') RETURNING id");
    assert!(new > last, "{new} after {last}");
    let pieces = "SELECT count(*) FROM pg_indexes WHERE indexname = 'posts_written' AND indexdef LIKE '%100us%'
                  UNION ALL SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND conrelid = 'posts'::regclass";
    assert_eq!(take(&mut restored, pieces), [1, 1]);
    assert_refused(
        &mut restored,
        "INSERT INTO posts (id) VALUES (1)",
        Refusal { sqlstate: "23514", message: "check constraint", hint: "" },
    );
    let tweets = "SELECT id, layout, snowflake_shard_id(id, layout) FROM tweets ORDER BY id";
    assert_eq!(printed(&mut restored, tweets), printed(&mut client, tweets));
    restored.batch_execute("INSERT INTO tweets DEFAULT VALUES").unwrap();
    let shards = "SELECT count(*) FROM tweets WHERE snowflake_shard_id(id, layout) = 7";
    assert_eq!(printed(&mut restored, shards), "2");
}
