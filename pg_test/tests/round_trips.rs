//! IDs in every layout: from their fields and back, to texts and UUIDs and back, and their order.

use ShardPlace::{AboveSeq, Lowest, LowestXored};
use pg_snowflake_harness::ask::{database, printed};
use pg_snowflake_ids::{PRESETS, ShardPlace};
use postgres::Client;

/// How many rows test each statement about a layout.
const ROWS: i64 = 10_000;

/// A layout and its figures, which are stated independently for custom ones.
struct Dialect {
    layout: String,
    time_bits: i64,
    shard_bits: i64,
    seq_bits: i64,
    shard_place: ShardPlace,
    epoch_ms: i64,
    unit_us: i64,
}

impl Dialect {
    fn low_bits(&self) -> i64 {
        self.shard_bits + self.seq_bits
    }

    /// The first tick after the year 9000, or the first one that the time field cannot hold.
    fn ticks(&self) -> i64 {
        let year_9000_us = 221_845_392_000_000_000;
        (1 << self.time_bits).min((year_9000_us - self.epoch_ms * 1000) / self.unit_us)
    }

    /// Creates a table `drawn` of random fields, their ID by the formula, and their time. Half of the rows are from a
    /// few ticks, so that the order of the lower fields matters. IDs may be negative if the layout has 64 bits.
    fn draw(&self, client: &mut Client, rows: i64) {
        let Dialect { shard_bits, seq_bits, epoch_ms, unit_us, .. } = self;
        let (shard_shift, seq_shift) =
            if self.shard_place == AboveSeq { (*seq_bits, 0) } else { (0, *shard_bits) };
        let mask = if self.shard_place == LowestXored { (1_i64 << shard_bits) - 1 } else { 0 };
        let (low_bits, ticks) = (self.low_bits(), self.ticks());
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS drawn;
                 CREATE TEMP TABLE drawn AS
                 SELECT above | ((shard # (above >> {shard_bits} & {mask})) << {shard_shift}) AS id, shard, seq,
                     timestamptz '1970-01-01 UTC'
                     + make_interval(days => (us / 86400000000)::int, secs => (us % 86400000000) / 1e6) AS at
                 FROM (
                     SELECT CASE WHEN g % 2 = 0 THEN floor(random() * {ticks})::bigint
                                 ELSE {ticks} / 4 + floor(random() * least(20, {ticks} / 2))::bigint END AS tick,
                         floor(random() * (1::bigint << {shard_bits}))::bigint AS shard,
                         floor(random() * (1::bigint << {seq_bits}))::bigint AS seq
                     FROM generate_series(1, {rows}) AS g
                 ) AS fields, LATERAL (SELECT {epoch_ms}::bigint * 1000 + tick * {unit_us} AS us) AS unix,
                     LATERAL (SELECT (tick << {low_bits}) | (seq << {seq_shift}) AS above) AS placed"
            ))
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.layout));
    }
}

fn dialect(
    layout: &str,
    [time_bits, shard_bits, seq_bits]: [i64; 3],
    shard_place: ShardPlace,
    epoch_ms: i64,
    unit_us: i64,
) -> Dialect {
    let layout = layout.to_owned();
    Dialect { layout, time_bits, shard_bits, seq_bits, shard_place, epoch_ms, unit_us }
}

fn presets() -> Vec<Dialect> {
    let presets = PRESETS.iter().map(|(name, layout)| {
        let widths = [layout.time_bits, layout.shard_bits, layout.seq_bits].map(i64::from);
        dialect(name, widths, layout.shard_place, layout.epoch_ms, layout.unit.us())
    });
    presets.collect()
}

fn custom() -> Vec<Dialect> {
    vec![
        dialect(
            "time:44 shard:12 seq:7 epoch:2020-02-29T12:34:56.789Z unit:10us",
            [44, 12, 7],
            AboveSeq,
            1_582_979_696_789,
            10,
        ),
        dialect(
            "time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us",
            [40, 4, 6],
            Lowest,
            1_704_067_200_000,
            100,
        ),
        dialect(
            "time:33 seq:31 shard:0 epoch:2000-01-01 unit:100ms",
            [33, 0, 31],
            Lowest,
            946_684_800_000,
            100_000,
        ),
        dialect(
            "time:17 seq:3 shard_xor_above:29 epoch:2000-01-01 unit:10ms",
            [17, 29, 3],
            LowestXored,
            946_684_800_000,
            10_000,
        ),
        dialect(
            "time:32 shard:31 seq:0 epoch:1970-01-01 unit:1s",
            [32, 31, 0],
            AboveSeq,
            0,
            1_000_000,
        ),
        // An epoch as an SQL integer.
        dialect(
            "time:14 shard:22 seq:9 epoch:1970-01-12T17:03:31.456Z unit:10us",
            [14, 22, 9],
            AboveSeq,
            1_011_811_456,
            10,
        ),
        dialect("time:1 shard:0 seq:0 epoch:1970-01-01 unit:1s", [1, 0, 0], AboveSeq, 0, 1_000_000),
    ]
}

/// Random layouts.
fn random(client: &mut Client, count: usize) -> Vec<Dialect> {
    let sql = format!(
        "SELECT time, shard, seq, place, epoch_ms, unit,
             format(CASE place WHEN 1 THEN 'time:%1$s seq:%3$s shard:%2$s epoch:%4$s unit:%5$s'
                         WHEN 2 THEN 'time:%1$s seq:%3$s shard_xor_above:%2$s epoch:%4$s unit:%5$s'
                         ELSE 'time:%1$s shard:%2$s seq:%3$s epoch:%4$s unit:%5$s' END, time, shard, seq,
                 to_char(to_timestamp(epoch_ms / 1000.0), 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),
                 ('{{10us,100us,1ms,10ms,100ms,1s}}'::text[])[unit])
         FROM (SELECT floor(1 + 48 * random())::bigint AS time, floor(32 * random())::bigint AS shard,
                   floor(32 * random())::bigint AS seq, floor(3 * random())::int AS place,
                   floor(1.7e12 * random())::bigint AS epoch_ms, floor(1 + 6 * random())::int AS unit
               FROM generate_series(1, 1000)) AS drawn
         WHERE time + shard + seq <= 64 LIMIT {count}"
    );
    let rows = client.query(&sql, &[]).unwrap();
    let dialects = rows.iter().map(|row| {
        let unit: i32 = row.get(5);
        let unit_us = 10_i64.pow(unit.try_into().unwrap());
        let widths = [row.get(0), row.get(1), row.get(2)];
        let place = [AboveSeq, Lowest, LowestXored][row.get::<_, i32>(3) as usize];
        dialect(row.get(6), widths, place, row.get(4), unit_us)
    });
    dialects.collect()
}

#[test]
fn fields_and_ids_round_trip() {
    let (_database, mut client) = database();
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
               AND CASE WHEN id < 0 THEN true  -- after the layout's end, where none is encoded
                        ELSE snowflake_encode(at, shard::int, drawn.seq::int, '{layout}') = id END"
        );
        assert_eq!(printed(&mut client, &agreeing), rows.to_string(), "{layout}");
    }
}

#[test]
fn ids_sort_by_time_and_then_by_their_lower_fields() {
    let (_database, mut client) = database();
    for dialect in presets().into_iter().chain(custom()) {
        dialect.draw(&mut client, ROWS);
        let fields = match dialect.shard_place {
            AboveSeq => "at, shard, seq",
            Lowest => "at, seq, shard",
            LowestXored => "at, seq, id",
        };
        assert_same_order(&mut client, &dialect, fields);
    }
}

#[test]
fn base_32_round_trips_and_sorts_as_ids_do() {
    let (_database, mut client) = database();
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
fn a_uuid_round_trips_sorts_as_ids_do_and_has_the_ids_time() {
    let (_database, mut client) = database();
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

/// Checks that the IDs of `drawn` that are not negative have the same order as `key`.
fn assert_same_order(client: &mut Client, dialect: &Dialect, key: &str) {
    let misplaced = format!(
        "SELECT count(*) FILTER (WHERE by_id <> by_key), count(*) > {ROWS} / 4
         FROM (SELECT rank() OVER (ORDER BY id) AS by_id, rank() OVER (ORDER BY {key}) AS by_key
               FROM drawn WHERE id >= 0) AS ranked"
    );
    assert_eq!(printed(client, &misplaced), "0|t", "{} by {key}", dialect.layout);
}
