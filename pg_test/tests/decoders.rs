//! What an id says by itself, and ids from what they say, in every layout.

use crate::ask::{Bad, assert_each_refused, printed, server};
use pg_snowflake_servertest::refusal::{Refusal, assert_refused};
use pg_snowflake_servertest::{Cluster, SUPERUSER};
use postgres::Client;

/// An id that somebody published together with what it says.
struct Published {
    /// Title and address of the page.
    source: &'static str,
    id: i64,
    layout: &'static str,
    /// The time in UTC, as exact as the page gives it.
    at: &'static str,
    shard: Option<i32>,
    seq: Option<i32>,
}

/// pgEdge's first order of the fields, which its version 1.2 changed. The examples in its
/// documentation are of the first order.
const PGEDGE_BEFORE_1_2: &str = "time:41 seq:12 shard:10 epoch:2023-01-01 unit:1ms";

const PUBLISHED: [Published; 14] = [
    Published {
        source: "X Developer Platform, Tweet object, https://developer.x.com/overview/api/tweets",
        id: 1_050_118_621_198_921_728,
        layout: "twitter",
        at: "2018-10-10 20:19:24",
        shard: None,
        seq: None,
    },
    Published {
        source: "Wikipedia, Snowflake ID, https://en.wikipedia.org/wiki/Snowflake_ID",
        id: 1_541_815_603_606_036_480,
        layout: "twitter",
        at: "2022-06-28 16:07:40.105",
        shard: Some(378),
        seq: Some(0),
    },
    Published {
        source: "Discord developer documentation, Snowflakes, https://docs.discord.com/developers/reference",
        id: 175_928_847_299_117_063,
        layout: "discord",
        at: "2016-04-30 11:18:25.796",
        shard: Some(1 << 5), // worker 1, process 0
        seq: Some(7),
    },
    Published {
        source: "discord-snowflake (a package for Node), README, Usage",
        id: 90_339_695_967_350_784,
        layout: "discord",
        at: "2015-09-07 06:57:41.949",
        shard: Some(3), // worker 0, process 3
        seq: Some(0),
    },
    Published {
        // The page's created_at, 03:48:33.901, is taken 52 ms after the id.
        source: "Mastodon documentation, Status, https://docs.joinmastodon.org/entities/Status",
        id: 103_270_115_826_048_975,
        layout: "mastodon",
        at: "2019-12-08 03:48:33",
        shard: Some(0),
        seq: None,
    },
    Published {
        // 1387263000 ms after the epoch 1314220021721; user 31341 of 2000 shards; the table's 5001st id.
        source: "Instagram Engineering, Sharding & IDs at Instagram, \
                 https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c",
        id: 1_387_263_000 << 23 | 1341 << 10 | (5001 % 1024),
        layout: "instagram",
        at: "2011-09-09 22:28:04.721",
        shard: Some(31341 % 2000),
        seq: Some(905),
    },
    Published {
        source: "Stack Overflow, question 63683015, https://stackoverflow.com/questions/63683015",
        id: 2_384_288_897_814_875_714,
        layout: "instagram",
        at: "2020-08-26 13:43:27",
        shard: None,
        seq: None,
    },
    Published {
        source: "Stack Overflow, question 63683015, https://stackoverflow.com/questions/63683015",
        id: 2_383_568_809_444_681_765,
        layout: "instagram",
        at: "2020-08-25 13:52:46",
        shard: None,
        seq: None,
    },
    Published {
        source: "Unfurl, test of its Sonyflake parser, https://github.com/obsidianforensics/unfurl",
        id: 0x45e_ec4a_4600_041b,
        layout: "sonyflake",
        at: "2020-08-12 17:35:29.98",
        shard: Some(4 << 8 | 27), // machine 4.27
        seq: None,
    },
    Published {
        // A dialect of Sonyflake whose unit is 1 ms.
        source: "sonyflake for TypeScript, README, https://github.com/thedv91/sonyflake",
        id: 1_211_144_891_006_978,
        layout: "time:39 seq:8 shard:16 epoch:2020-05-18 unit:1ms",
        at: "2020-05-18 20:03:09.861", // 1589832189861
        shard: Some(2),
        seq: Some(0),
    },
    Published {
        // get_epoch() gives 1704996539.845.
        source: "pgEdge documentation, Snowflake functions, https://docs.pgedge.com/snowflake/snowflake_functions",
        id: 136_169_504_773_242_881,
        layout: "pgedge",
        at: "2024-01-11 18:08:59.845",
        shard: None,
        seq: None,
    },
    Published {
        source: "pgEdge documentation, Snowflake functions, https://docs.pgedge.com/snowflake/snowflake_functions",
        id: 136_169_504_773_242_881,
        layout: PGEDGE_BEFORE_1_2,
        at: "2024-01-11 18:08:59.845",
        shard: Some(1),
        seq: None, // the page gives 0 in one place and 3 in another
    },
    Published {
        source: "pgEdge snowflake, Converting a sequence, https://github.com/pgEdge/snowflake, docs/converting.md",
        id: 135_824_181_823_537_153,
        layout: PGEDGE_BEFORE_1_2,
        at: "2024-01-10 19:16:48.438",
        shard: Some(1),
        seq: Some(0),
    },
    Published {
        // The page gives no time; it was committed on the day that the id names.
        source: "pgEdge snowflake, Hibernate, https://github.com/pgEdge/snowflake, hibernate.md",
        id: 170_505_378_935_607_296,
        layout: "pgedge",
        at: "2024-04-15",
        shard: None,
        seq: None,
    },
];

/// How many rows each statement about a layout is tried with.
const ROWS: i64 = 10_000;

/// A layout, its figures stated a second time.
struct Dialect {
    layout: String,
    time_bits: i64,
    shard_bits: i64,
    seq_bits: i64,
    shard_is_lowest: bool,
    epoch_ms: i64,
    unit_us: i64,
}

impl Dialect {
    fn low_bits(&self) -> i64 {
        self.shard_bits + self.seq_bits
    }

    /// The first tick after the year 9000, or the first one that the time field does not hold.
    fn ticks(&self) -> i64 {
        let year_9000_us = 221_845_392_000_000_000;
        (1 << self.time_bits).min((year_9000_us - self.epoch_ms * 1000) / self.unit_us)
    }

    /// Makes a table `drawn` of fields, their id by the formula, and their time. Half of the rows are from a few
    /// ticks, so that the order below time matters. Ids may be negative where the layout has 64 bits.
    fn draw(&self, client: &mut Client, rows: i64) {
        let Dialect { shard_bits, seq_bits, epoch_ms, unit_us, .. } = self;
        let (shard_shift, seq_shift) =
            if self.shard_is_lowest { (0, *shard_bits) } else { (*seq_bits, 0) };
        let (low_bits, ticks) = (self.low_bits(), self.ticks());
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS drawn;
                 CREATE TEMP TABLE drawn AS
                 SELECT (tick << {low_bits}) | (shard << {shard_shift}) | (seq << {seq_shift}) AS id, shard, seq,
                     timestamptz '1970-01-01 UTC'
                     + make_interval(days => (us / 86400000000)::int, secs => (us % 86400000000) / 1e6) AS at
                 FROM (
                     SELECT CASE WHEN g % 2 = 0 THEN floor(random() * {ticks})::bigint
                                 ELSE {ticks} / 4 + floor(random() * least(20, {ticks} / 2))::bigint END AS tick,
                         floor(random() * (1::bigint << {shard_bits}))::bigint AS shard,
                         floor(random() * (1::bigint << {seq_bits}))::bigint AS seq
                     FROM generate_series(1, {rows}) AS g
                 ) AS fields, LATERAL (SELECT {epoch_ms}::bigint * 1000 + tick * {unit_us} AS us) AS unix"
            ))
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.layout));
    }
}

fn dialect(
    layout: &str,
    [time_bits, shard_bits, seq_bits]: [i64; 3],
    shard_is_lowest: bool,
    epoch_ms: i64,
    unit_us: i64,
) -> Dialect {
    let layout = layout.to_owned();
    Dialect { layout, time_bits, shard_bits, seq_bits, shard_is_lowest, epoch_ms, unit_us }
}

fn presets() -> Vec<Dialect> {
    vec![
        dialect("instagram", [41, 13, 10], false, 1_314_220_021_721, 1000),
        dialect("twitter", [41, 10, 12], false, 1_288_834_974_657, 1000),
        dialect("discord", [42, 10, 12], false, 1_420_070_400_000, 1000),
        dialect("mastodon", [48, 0, 16], false, 0, 1000),
        dialect("sonyflake", [39, 16, 8], true, 1_409_529_600_000, 10_000),
        dialect("pgedge", [41, 10, 12], false, 1_672_531_200_000, 1000),
        dialect("js53", [41, 7, 5], false, 1_577_836_800_000, 1000),
    ]
}

fn custom() -> Vec<Dialect> {
    vec![
        dialect(
            "time:44 shard:12 seq:7 epoch:2020-02-29T12:34:56.789Z unit:10us",
            [44, 12, 7],
            false,
            1_582_979_696_789,
            10,
        ),
        dialect(
            "time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us",
            [40, 4, 6],
            true,
            1_704_067_200_000,
            100,
        ),
        dialect(
            "time:33 seq:31 shard:0 epoch:2000-01-01 unit:100ms",
            [33, 0, 31],
            true,
            946_684_800_000,
            100_000,
        ),
        dialect(
            "time:32 shard:31 seq:0 epoch:1970-01-01 unit:1s",
            [32, 31, 0],
            false,
            0,
            1_000_000,
        ),
        // An epoch that is an SQL integer.
        dialect(
            "time:14 shard:22 seq:9 epoch:1970-01-12T17:03:31.456Z unit:10us",
            [14, 22, 9],
            false,
            1_011_811_456,
            10,
        ),
        dialect("time:1 shard:0 seq:0 epoch:1970-01-01 unit:1s", [1, 0, 0], false, 0, 1_000_000),
    ]
}

/// Layouts that nobody chose.
fn random(client: &mut Client, count: usize) -> Vec<Dialect> {
    let sql = format!(
        "SELECT time, shard, seq, shard_is_lowest, epoch_ms, unit,
             format(CASE WHEN shard_is_lowest THEN 'time:%1$s seq:%3$s shard:%2$s epoch:%4$s unit:%5$s'
                         ELSE 'time:%1$s shard:%2$s seq:%3$s epoch:%4$s unit:%5$s' END, time, shard, seq,
                 to_char(to_timestamp(epoch_ms / 1000.0), 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),
                 ('{{10us,100us,1ms,10ms,100ms,1s}}'::text[])[unit])
         FROM (SELECT floor(1 + 48 * random())::bigint AS time, floor(32 * random())::bigint AS shard,
                   floor(32 * random())::bigint AS seq, random() < 0.5 AS shard_is_lowest,
                   floor(1.7e12 * random())::bigint AS epoch_ms, floor(1 + 6 * random())::int AS unit
               FROM generate_series(1, 1000)) AS drawn
         WHERE time + shard + seq <= 64 LIMIT {count}"
    );
    let rows = client.query(&sql, &[]).unwrap();
    let dialects = rows.iter().map(|row| {
        let unit: i32 = row.get(5);
        let unit_us = 10_i64.pow(unit.try_into().unwrap());
        let widths = [row.get(0), row.get(1), row.get(2)];
        dialect(row.get(6), widths, row.get(3), row.get(4), unit_us)
    });
    dialects.collect()
}

#[test]
fn a_published_id_decodes_to_what_was_published() {
    let (_cluster, mut client) = server();
    for Published { source, id, layout, at, shard, seq } in &PUBLISHED {
        let sql = format!("SELECT * FROM snowflake_decode({id}, '{layout}')");
        let row = printed(&mut client, &sql);
        let found: Vec<&str> = row.split('|').collect();
        assert!(found[0].starts_with(at), "{source}: {row}");
        for (published, found) in [(shard, found[1]), (seq, found[2])] {
            assert!(published.is_none_or(|field| field.to_string() == found), "{source}: {row}");
        }
    }
}

#[test]
fn fields_and_ids_turn_into_each_other() {
    let (_cluster, mut client) = server();
    let chosen = presets().into_iter().chain(custom()).map(|dialect| (dialect, ROWS));
    let random: Vec<(Dialect, i64)> =
        random(&mut client, 40).into_iter().map(|dialect| (dialect, 500)).collect();
    assert_eq!(random.len(), 40);
    for (dialect, rows) in chosen.chain(random) {
        dialect.draw(&mut client, rows);
        let layout = &dialect.layout;
        let agreeing = format!(
            "SELECT count(*) FROM drawn, snowflake_decode(id, '{layout}') AS d
             WHERE (d.created_at, d.shard_id, d.seq) = (at, shard, drawn.seq)
               AND (snowflake_created_at(id, '{layout}'), snowflake_shard_id(id, '{layout}'),
                    snowflake_seq(id, '{layout}')) = (at, shard, drawn.seq)
               AND snowflake_encode(at, shard::int, drawn.seq::int, '{layout}') = id"
        );
        assert_eq!(printed(&mut client, &agreeing), rows.to_string(), "{layout}");
    }
}

#[test]
fn ids_sort_by_time_and_then_by_their_lower_fields() {
    let (_cluster, mut client) = server();
    for dialect in presets().into_iter().chain(custom()) {
        dialect.draw(&mut client, ROWS);
        let fields = if dialect.shard_is_lowest { "at, seq, shard" } else { "at, shard, seq" };
        assert_same_order(&mut client, &dialect, fields);
    }
}

#[test]
fn base_32_gives_the_id_back_and_sorts_as_ids_do() {
    let (_cluster, mut client) = server();
    for dialect in presets().into_iter().chain(custom()) {
        dialect.draw(&mut client, ROWS);
        let back = "SELECT count(*) FROM drawn
                    WHERE snowflake_from_base32(snowflake_to_base32(id)) = id
                      AND snowflake_from_base32(lower(snowflake_to_base32(id))) = id";
        assert_eq!(printed(&mut client, back), ROWS.to_string(), "{}", dialect.layout);
        assert_same_order(&mut client, &dialect, "snowflake_to_base32(id) COLLATE \"C\"");
    }
}

#[test]
fn a_uuid_gives_the_id_back_sorts_as_ids_do_and_has_its_time() {
    let (_cluster, mut client) = server();
    for dialect in presets().into_iter().chain(custom()) {
        dialect.draw(&mut client, ROWS);
        let layout = &dialect.layout;
        // RFC 9562: 48 bits of Unix milliseconds, then the version 7; the variant is binary 10.
        let back = format!(
            "SELECT count(*)
             FROM drawn, LATERAL (SELECT snowflake_to_uuid(id, '{layout}') AS uuid) AS made,
                 LATERAL (SELECT replace(uuid::text, '-', '') AS hex) AS shown
             WHERE snowflake_from_uuid(uuid, '{layout}') = id
               AND ('x' || left(hex, 12))::bit(48)::bigint
                   = floor(extract(epoch FROM date_trunc('milliseconds', at)) * 1000)
               AND substr(hex, 13, 1) = '7' AND substr(hex, 17, 1) IN ('8', '9', 'a', 'b')"
        );
        assert_eq!(printed(&mut client, &back), ROWS.to_string(), "{layout}");
        assert_same_order(&mut client, &dialect, &format!("snowflake_to_uuid(id, '{layout}')"));
    }
}

/// Checks that the ids of `drawn` that are not negative have the same order as `key`.
fn assert_same_order(client: &mut Client, dialect: &Dialect, key: &str) {
    let misplaced = format!(
        "SELECT count(*) FILTER (WHERE by_id <> by_key), count(*) > {ROWS} / 4
         FROM (SELECT rank() OVER (ORDER BY id) AS by_id, rank() OVER (ORDER BY {key}) AS by_key
               FROM drawn WHERE id >= 0) AS ranked"
    );
    assert_eq!(printed(client, &misplaced), "0|t", "{} by {key}", dialect.layout);
}

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
        // Before the layout's first instant.
        ("'2011-08-24 21:07:01.721Z'", "instagram", 0),
        ("'2011-08-24 21:07:01.720999Z'", "instagram", 0),
        ("'4713-01-01 BC'", "twitter", 0),
        ("'-infinity'", "instagram", 0),
        // Around its last tick whose ids are not negative, and after it.
        ("'2046-06-27 17:00:49.496Z'", "instagram", ((1 << 40) - 1) << 23),
        ("'2046-06-27 17:00:49.497Z'", "instagram", i64::MAX),
        ("'294276-12-31 23:59:59Z'", "instagram", i64::MAX),
        ("'infinity'", "instagram", i64::MAX),
        ("'infinity'", "mastodon", i64::MAX),
        ("'infinity'", "twitter", i64::MAX),
        ("'2089-09-06 15:47:35.551Z'", "js53", ((1 << 41) - 1) << 12),
        ("'2089-09-06 15:47:35.552Z'", "js53", 1 << 53),
        // A life that is longer than timestamps are.
        ("'infinity'", "time:48 shard:0 seq:0 epoch:2024-01-01 unit:1s", 1 << 48),
        ("'infinity'", "js53", 1 << 53),
    ];
    for (at, layout, id) in cases {
        let sql = format!("SELECT snowflake_min_id({at}, '{layout}')");
        assert_eq!(printed(&mut client, &sql), id.to_string(), "{sql}");
    }
}

#[test]
fn a_span_of_time_has_its_beginning_and_not_its_end() {
    let (_cluster, mut client) = server();
    // The last id of the tick before, the first and the last of the tick, and the first of the next.
    let noon = "'2024-01-01 12:00:00Z'";
    let around = format!(
        "SELECT id FROM (SELECT snowflake_min_id({noon}) AS first) AS noon,
             unnest(ARRAY[first - 1, first, first + (1 << 23) - 1, first + (1 << 23)]) WITH ORDINALITY AS ids (id, n)"
    );
    let cases = [
        (noon, "'2024-01-01 12:00:00.001Z'", "f t t f"),
        ("'2024-01-01 11:59:59.999Z'", noon, "t f f f"),
        (noon, noon, "f f f f"),
        ("'2024-01-01 12:00:01Z'", "'2024-01-01 11:00:00Z'", "f f f f"),
        ("'-infinity'", "'infinity'", "t t t t"),
        // An id's time is the beginning of its tick.
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
fn null_gives_null() {
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
fn what_a_layout_does_not_have_is_refused_with_what_it_has() {
    let (_cluster, mut client) = server();
    let beyond_the_life = "from 2011-08-24T21:07:01.721Z to 2081-04-30T12:54:37.273Z";
    let out_of_range = |sql, message, allowed| Bad { sql, sqlstate: "22003", message, allowed };
    assert_each_refused(
        &mut client,
        &[
            out_of_range(
                "SELECT snowflake_decode(-1, 'twitter')",
                "-1 is no id of layout twitter",
                "0 to 9223372036854775807",
            ),
            out_of_range(
                "SELECT snowflake_created_at(9007199254740992, 'js53')",
                "9007199254740992 is no id of layout js53",
                "53 bits: 0 to 9007199254740991",
            ),
            out_of_range("SELECT snowflake_shard_id(-1, 'sonyflake')", "-1 is no id", "63 bits"),
            out_of_range("SELECT snowflake_seq(-1, 'pgedge')", "-1 is no id", "63 bits"),
            out_of_range("SELECT snowflake_explain(-1, 'js53')", "-1 is no id", "53 bits"),
            out_of_range("SELECT snowflake_to_uuid(-1, 'twitter')", "-1 is no id", "63 bits"),
            out_of_range(
                "SELECT snowflake_decode(2, 'time:1 shard:0 seq:0 epoch:2024-01-01 unit:1s')",
                "2 is no id of layout time:1 shard:0 seq:0 epoch:2024-01-01 unit:1s",
                "1 bits: 0 to 1",
            ),
            out_of_range(
                "SELECT snowflake_encode('2011-08-24 21:07:01.720999Z', 5, 1)",
                "out of range for layout instagram",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('2081-04-30 12:54:37.273Z', 5, 1)",
                "out of range for layout instagram",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('infinity', 0, 0, 'time:48 shard:0 seq:0 epoch:2024-01-01 unit:1s')",
                "out of range",
                "from 2024-01-01T00:00:00Z to after the year 9999",
            ),
            out_of_range(
                "SELECT snowflake_encode('infinity', 5, 1)",
                "out of range",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('-infinity', 5, 1)",
                "out of range",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 8192, 1)",
                "shard id 8192 is out of range for layout instagram",
                "0 to 8191",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', -1, 1)",
                "shard id -1 is out of range",
                "0 to 8191",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 1, 0, 'mastodon')",
                "shard id 1 is out of range for layout mastodon",
                "0 to 0",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 5, 1024)",
                "seq 1024 is out of range for layout instagram",
                "0 to 1023",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 5, -1)",
                "seq -1 is out of range",
                "0 to 1023",
            ),
            out_of_range(
                "SELECT snowflake_to_uuid(281474976710655, 'time:48 shard:0 seq:0 epoch:1970-01-01 unit:10ms')",
                "too late for a UUID",
                "10889",
            ),
        ],
    );
}

#[test]
fn a_text_that_is_no_base_32_is_refused_with_the_alphabet() {
    let (_cluster, mut client) = server();
    let cases = [
        ("", "length is 0,"),
        ("000000000000", "length is 12,"),
        ("00000000000000", "length is 14,"),
        ("000000000000U", "\"U\""),
        ("000000-000000", "\"-\""),
        (" 000000000000", "\" \""),
        ("G000000000000", "more than the 64 bits"),
    ];
    for (text, detail) in cases {
        let sql = format!("SELECT snowflake_from_base32('{text}')");
        let message = format!("\"{text}\" is no id in base 32");
        for allowed in [detail, "0 to 9 and A to Z without U"] {
            let bad = Bad { sql: &sql, sqlstate: "22P02", message: &message, allowed };
            assert_each_refused(&mut client, &[bad]);
        }
    }
}

#[test]
fn a_text_beyond_ascii_is_refused_in_every_encoding() {
    let (cluster, mut client) = server();
    client.batch_execute("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1").unwrap();
    let mut latin = cluster.connect_to(SUPERUSER, "latin");
    latin.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    for client in [&mut client, &mut latin] {
        for (sql, sqlstate, message) in [
            (
                "SELECT snowflake_from_base32(chr(233) || '000000000000')",
                "22P02",
                "the text is no id in base 32",
            ),
            ("SELECT chr(233)::snowflake_layout", "22023", "unknown layout"),
        ] {
            assert_refused(client, sql, Refusal { sqlstate, message, hint: "" });
        }
    }
}

#[test]
fn a_uuid_that_carries_no_id_is_refused() {
    let (_cluster, mut client) = server();
    let cases = [
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "instagram"), // RFC 9562's own example
        ("00000000-0000-0000-0000-000000000000", "instagram"),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "instagram"),
        ("0194d3b8-1c00-4000-8000-000000000000", "instagram"), // version 4
        ("0194d3b8-1c00-7000-c000-000000000000", "instagram"), // another variant
        ("0194d3b8-1c00-7000-8000-000000800000", "instagram"), // a bit above the shard
        ("00000000-0001-7000-8000-000000000000", "instagram"), // before the epoch
        ("0194d3b8-1c01-7000-8000-000000000000", "sonyflake"), // between two ticks
    ];
    for (uuid, layout) in cases {
        let sql = format!("SELECT snowflake_from_uuid('{uuid}', '{layout}')");
        let message = format!("{uuid} carries no id of layout {layout}");
        let allowed = "Only a UUID that snowflake_to_uuid() made";
        let bad = Bad { sql: &sql, sqlstate: "22023", message: &message, allowed };
        assert_each_refused(&mut client, &[bad]);
    }
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
        ("(SELECT count(*) FROM ext.snowflake_layouts)".into(), "7"),
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
