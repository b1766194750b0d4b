//! What it costs to read the time, the shard and the counter of IDs that are stored, and to find the rows of a span of time.

use crate::contenders::OURS;
use crate::run::{Run, connect, database_of, execute, server, value};
use crate::turns::interleaved;
use pg_snowflake_harness::Cluster;
use postgres::Client;
use std::time::Instant;

const ROWS: i64 = 10_000_000;

const SCAN: &str = "scan";

/// What is read of each row: the name in the CSV, the title, the expression, and the name of what must return the same. The arithmetic is
/// that of the default layout, whose epoch is 1262304000 s after 1970.
#[rustfmt::skip]
pub const EXPRESSIONS: [(&str, &str, &str, &str); 9] = [
    (SCAN, "the scan, `count(id)`", "id", ""),
    ("shard", "`snowflake_shard_id(id)`", "snowflake_shard_id(id)", "shard_in_sql"),
    ("shard_in_sql", "its arithmetic in SQL", "((id # (id >> 12)) & 4095)::int", ""),
    ("time", "`snowflake_created_at(id)`", "snowflake_created_at(id)", "time_in_sql"),
    ("time_in_sql", "its arithmetic in SQL", "to_timestamp((id >> 22) / 1000::float8 + 1262304000)", ""),
    ("decode", "`snowflake_decode(id)`", "snowflake_decode(id)", "decode_in_sql"),
    ("decode_in_sql", "its arithmetic in SQL",
        "ROW(to_timestamp((id >> 22) / 1000::float8 + 1262304000), ((id # (id >> 12)) & 4095)::int, ((id >> 12) & 1023)::int)", ""),
    ("is_between", "`snowflake_between(id, …)`",
        "snowflake_between(id, timestamptz '2026-01-01 00:10+00', timestamptz '2026-01-01 00:20+00')", "is_between_in_sql"),
    // The first IDs of these two times.
    ("is_between_in_sql", "its arithmetic in SQL",
        "id >= (1767226200000 - 1262304000000) << 22 AND id < (1767226800000 - 1262304000000) << 22", ""),
];

/// The ways to find the rows of a span of time: the name in the CSV, the title, the condition and the index.
#[rustfmt::skip]
pub const SPANS: [(&str, &str, &str, &str); 2] = [
    ("between", "rows by `snowflake_between(id, …)`", "snowflake_between(id, {since}, {until})", "posts_pkey"),
    ("column_between", "rows by a `timestamptz` column with an index", "created_at >= {since} AND created_at < {until}",
        "posts_created_at_idx"),
];

/// The part of the rows that a span of time has.
const SPAN_PART: i64 = 10;

/// The time of the first row, and the rows of each millisecond.
const START: &str = "2026-01-01 00:00+00";
const ROWS_PER_MS: i64 = 2;

/// A session that runs one query.
struct Reader {
    name: &'static str,
    query: String,
    measure: &'static str,
    client: Client,
}

pub fn reading(run: &mut Run) {
    let rows = run.scaled(ROWS);
    let server = server().setting("max_parallel_workers", "2").start();
    create_posts(&mut database_of(&server, &OURS), rows);
    let mut readers = Vec::new();
    for (workers, measure) in [(0, "ns_per_row_with_scan"), (2, "ns_per_row_with_scan_parallel")] {
        for (name, _, expression, twin) in EXPRESSIONS {
            let query = format!("SELECT count({expression}) FROM posts");
            let part = if workers == 0 { "" } else { "Workers Planned: 2" };
            let mut reader = Reader::new(&server, name, query, measure, workers, part);
            if let Some((.., in_sql, _)) = EXPRESSIONS.into_iter().find(|other| other.0 == twin) {
                let differing = format!(
                    "SELECT count(*) FROM (SELECT id FROM posts LIMIT 100000) AS sample WHERE ({expression})::text <> ({in_sql})::text"
                );
                assert_eq!(value::<i64>(&mut reader.client, &differing), 0, "{expression}");
            }
            readers.push(reader);
        }
    }
    for (name, _, condition, index) in SPANS {
        let at = |row| format!("(timestamptz '{START}' + interval '{} ms')", row / ROWS_PER_MS);
        let condition = condition.replace("{since}", &at(rows / 2)).replace("{until}", &at(rows / 2 + rows / SPAN_PART));
        readers.push(Reader::new(&server, name, format!("SELECT count(body) FROM posts WHERE {condition}"), "span_rows_per_s", 0, index));
    }
    // The first run is not recorded: it fills the caches.
    for reader in &mut readers {
        let part = if reader.measure == "span_rows_per_s" { SPAN_PART } else { 1 };
        assert_eq!(reader.read(), rows / part, "{}", reader.query);
    }
    interleaved(run.rounds, &mut readers, |round, reader| {
        let began = Instant::now();
        let counted = reader.read() as f64;
        let ns = began.elapsed().as_nanos() as f64;
        let is_rate = reader.measure == "span_rows_per_s";
        let value = if is_rate { counted / ns * 1e9 } else { ns / counted };
        run.samples.add(round, reader.name, reader.measure, value);
    });
    run.samples.subtract("ns_per_row_with_scan", "ns_per_row", SCAN);
}

/// Rows of IDs in order, each with the same time in a column.
fn create_posts(client: &mut Client, rows: i64) {
    execute(
        client,
        &format!(
            "CREATE TABLE posts (id bigint, created_at timestamptz, body text);
             INSERT INTO posts SELECT id, snowflake_created_at(id), 'a post'
             FROM (SELECT snowflake_encode(timestamptz '{START}' + n / {ROWS_PER_MS} * interval '1 ms', 5, n % 1024) AS id
                   FROM (SELECT generate_series(0, {rows} - 1)::int AS n) AS series) AS ids;
             ALTER TABLE posts ADD PRIMARY KEY (id);
             CREATE INDEX ON posts (created_at)"
        ),
    );
    execute(client, "VACUUM ANALYZE posts");
}

impl Reader {
    /// Checks that the plan of the query names `part`.
    fn new(server: &Cluster, name: &'static str, query: String, measure: &'static str, workers: u32, part: &str) -> Self {
        let mut client = connect(server, &OURS);
        let is_by_index = part.starts_with("posts_");
        // Else a small table would be scanned.
        let scans = if is_by_index { "SET enable_seqscan = off; SET enable_bitmapscan = off" } else { "" };
        execute(
            &mut client,
            &format!(
                "SET max_parallel_workers_per_gather = {workers}; SET min_parallel_table_scan_size = 0;
                 SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; {scans}"
            ),
        );
        let plan = client.query(&format!("EXPLAIN {query}"), &[]).expect("it can be planned");
        assert!(plan.iter().any(|line| line.get::<_, &str>(0).contains(part)), "{query}: no {part}: {plan:?}");
        Reader { name, query, measure, client }
    }

    fn read(&mut self) -> i64 {
        value(&mut self.client, &self.query)
    }
}
