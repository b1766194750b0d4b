//! What it costs to read the time, the shard and the counter of IDs that are stored, and to find the rows of a span of time.

use crate::bench::contender::Contender;
use crate::bench::contenders::ours_cache_1::CONTENDER as OURS;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use pg_snowflake_harness::{Cluster, installation};
use postgres::Client;
use std::time::Instant;

/// The first major whose `uuid_extract_timestamp()` reads UUIDs of version 7.
const UUID_TIMES: u32 = 18;

const ROWS: i64 = 10_000_000;

/// The scan that every query contains.
const SCAN: &str = "scan";

/// The function for the shard.
pub const SHARD: &str = "shard";
/// The same in SQL.
pub const SHARD_SQL: &str = "shard_in_sql";
/// The function for the time.
pub const TIME: &str = "time";
/// The same in SQL.
pub const TIME_SQL: &str = "time_in_sql";
/// The function for all fields.
pub const DECODE: &str = "decode";
/// The same in SQL.
pub const DECODE_SQL: &str = "decode_in_sql";
/// A span of time by the ID.
pub const BETWEEN: &str = "between";
/// The same by a column.
pub const COLUMN_BETWEEN: &str = "column_between";

/// Whether the ID is of a span of time.
pub const IS_BETWEEN: &str = "is_between";
/// The same in SQL.
pub const IS_BETWEEN_SQL: &str = "is_between_in_sql";

const UUID_TIME: &str = "uuid_time";

/// What is read of each row: the name in the CSV, the title and the expression. The arithmetic is that of the default layout, whose
/// epoch is 1262304000 s after 1970.
pub const EXPRESSIONS: [(&str, &str, &str); 13] = [
    (SCAN, "the scan, `count(id)`", "id"),
    (SHARD, "`snowflake_shard_id(id)`", "snowflake_shard_id(id)"),
    (SHARD_SQL, "its arithmetic in SQL", "((id # (id >> 12)) & 4095)::int"),
    (TIME, "`snowflake_created_at(id)`", "snowflake_created_at(id)"),
    (TIME_SQL, "its arithmetic in SQL", "to_timestamp((id >> 22) / 1000::float8 + 1262304000)"),
    (
        "time_by_interval",
        "the same with an `interval`",
        "timestamptz '2010-01-01 00:00+00' + (id >> 22) * interval '1 ms'",
    ),
    (DECODE, "`snowflake_decode(id)`", "snowflake_decode(id)"),
    (
        DECODE_SQL,
        "its arithmetic in SQL",
        "ROW(to_timestamp((id >> 22) / 1000::float8 + 1262304000), ((id # (id >> 12)) & 4095)::int, ((id >> 12) & 1023)::int)",
    ),
    (
        IS_BETWEEN,
        "`snowflake_between(id, …)`",
        "snowflake_between(id, timestamptz '2026-01-01 00:10+00', timestamptz '2026-01-01 00:20+00')",
    ),
    // The first IDs of these two times.
    (
        IS_BETWEEN_SQL,
        "its arithmetic in SQL",
        "id >= (1767226200000 - 1262304000000) << 22 AND id < (1767226800000 - 1262304000000) << 22",
    ),
    (UUID_TIME, "`uuid_extract_timestamp(key)`", "uuid_extract_timestamp(key)"),
    ("time_column", "a `timestamptz` column", "created_at"),
    (
        "column_is_between",
        "whether that column is in the span",
        "created_at >= timestamptz '2026-01-01 00:10+00' AND created_at < timestamptz '2026-01-01 00:20+00'",
    ),
];

/// A function and its arithmetic, which must return the same.
const TWINS: [(&str, &str); 4] =
    [(SHARD, SHARD_SQL), (TIME, TIME_SQL), (DECODE, DECODE_SQL), (IS_BETWEEN, IS_BETWEEN_SQL)];

/// The ways to find the rows of a span of time: the name in the CSV, the title, the condition and the index.
pub const SPANS: [(&str, &str, &str, &str); 2] = [
    (
        BETWEEN,
        "`snowflake_between(id, …)`",
        "snowflake_between(id, {since}, {until})",
        "posts_pkey",
    ),
    (
        COLUMN_BETWEEN,
        "a `timestamptz` column with an index",
        "created_at >= {since} AND created_at < {until}",
        "posts_created_at_idx",
    ),
];

/// The part of the rows that a span of time has.
const SPAN_PART: i64 = 10;

/// The time of the first row.
const START: &str = "2026-01-01 00:00+00";

/// Rows of each millisecond.
const ROWS_PER_MS: i64 = 2;

/// A session that runs one query.
struct Reader {
    name: &'static str,
    query: String,
    measure: Measure,
    client: Client,
}

pub(super) fn run(plan: &Plan, _: &[&'static Contender], findings: &mut Findings) {
    let rows = plan.scaled(ROWS);
    let server = server::builder().setting("max_parallel_workers", "2").start();
    let mut client = server::database_of(&server, &OURS);
    create_posts(&mut client, rows);
    compare_twins(&mut client);
    let mut readers = Vec::new();
    for (workers, measure) in [(0, Measure::ScanNs), (2, Measure::ParallelScanNs)] {
        for (name, _, expression) in EXPRESSIONS {
            if name != UUID_TIME || installation::major(installation::bindir()) >= UUID_TIMES {
                let query = format!("SELECT count({expression}) FROM posts");
                let mut reader = Reader::new(&server, name, query, measure, workers);
                if workers > 0 {
                    reader.must_plan(&format!("Workers Planned: {workers}"));
                }
                readers.push(reader);
            }
        }
    }
    for (name, _, condition, index) in SPANS {
        let at = |row| format!("(timestamptz '{START}' + interval '{} ms')", row / ROWS_PER_MS);
        let condition = condition
            .replace("{since}", &at(rows / 2))
            .replace("{until}", &at(rows / 2 + rows / SPAN_PART));
        let query = format!("SELECT count(body) FROM posts WHERE {condition}");
        let mut reader = Reader::new(&server, name, query, Measure::SpanRowsPerSecond, 0);
        // Else a small table would be scanned.
        let by_index = "SET enable_seqscan = off; SET enable_bitmapscan = off";
        reader.client.batch_execute(by_index).expect("settings of everybody");
        reader.must_plan(index);
        let size = format!("SELECT pg_relation_size('{index}')::float8");
        let bytes = reader.client.query_one(&size, &[]).expect("the index exists").get(0);
        findings.samples.add(0, name, Measure::SpanIndexBytes, bytes);
        readers.push(reader);
    }
    // The first run is not recorded: it fills the caches.
    for reader in &mut readers {
        let expected = match reader.measure {
            Measure::SpanRowsPerSecond => rows / SPAN_PART,
            _ => rows,
        };
        assert_eq!(reader.read(), expected, "{}", reader.query);
    }
    let samples = &mut findings.samples;
    interleaved(plan.rounds, &mut readers, |round, reader| {
        let began = Instant::now();
        let counted = reader.read() as f64;
        let ns = began.elapsed().as_nanos() as f64;
        let value = match reader.measure {
            Measure::SpanRowsPerSecond => counted / ns * 1e9,
            _ => ns / counted,
        };
        samples.add(round, reader.name, reader.measure, value);
    });
    samples.subtract_loop(Measure::ScanNs, Measure::ReadNs, SCAN);
    samples.subtract_loop(Measure::ParallelScanNs, Measure::ParallelReadNs, SCAN);
}

/// Rows of IDs in order, each with the same time in a column and in a UUID.
fn create_posts(client: &mut Client, rows: i64) {
    client
        .batch_execute(&format!(
            "CREATE TABLE posts (id bigint, created_at timestamptz, key uuid, body text);
             INSERT INTO posts SELECT id, snowflake_created_at(id), snowflake_to_uuid(id), 'a post'
             FROM (SELECT snowflake_encode(timestamptz '{START}' + n / {ROWS_PER_MS} * interval '1 ms', 5, n % 1024) AS id
                   FROM (SELECT generate_series(0, {rows} - 1)::int AS n) AS series) AS ids;
             ALTER TABLE posts ADD PRIMARY KEY (id);
             CREATE INDEX ON posts (created_at)"
        ))
        .expect("the table can be filled");
    client.batch_execute("VACUUM ANALYZE posts").expect("the table exists");
}

/// Checks that each function returns what its arithmetic does.
fn compare_twins(client: &mut Client) {
    let of = |name| {
        let expression = EXPRESSIONS.into_iter().find(|&(other, ..)| other == name);
        expression.expect("it is in the list").2
    };
    for (function, in_sql) in TWINS {
        let [function, in_sql] = [of(function), of(in_sql)];
        let differing = format!(
            "SELECT count(*) FROM (SELECT id FROM posts LIMIT 100000) AS sample WHERE ({function})::text <> ({in_sql})::text"
        );
        let differing: i64 = client.query_one(&differing, &[]).expect("rows can be read").get(0);
        assert_eq!(differing, 0, "{function} and {in_sql}");
    }
}

impl Reader {
    fn new(
        server: &Cluster,
        name: &'static str,
        query: String,
        measure: Measure,
        workers: u32,
    ) -> Self {
        let mut client = server::connect(server, &OURS);
        client
            .batch_execute(&format!(
                "SET max_parallel_workers_per_gather = {workers}; SET min_parallel_table_scan_size = 0;
                 SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0"
            ))
            .expect("a setting of everybody's");
        Reader { name, query, measure, client }
    }

    /// The number of rows that are read.
    fn read(&mut self) -> i64 {
        self.client.query_one(&self.query, &[]).expect("rows can be read").get(0)
    }

    /// Checks that the plan of the query names this.
    fn must_plan(&mut self, part: &str) {
        let plan = self.client.query(&format!("EXPLAIN {}", self.query), &[]);
        let lines = plan.expect("the query can be planned");
        let has_part = lines.iter().any(|line| line.get::<_, &str>(0).contains(part));
        assert!(has_part, "{}: no {part}: {lines:?}", self.query);
    }
}
