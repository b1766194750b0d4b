//! What it costs to remove the oldest month of a table: its partition is dropped, or its rows are deleted.

use crate::bench::contender::Contender;
use crate::bench::contenders::ours_cache_1::CONTENDER as OURS;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server::{self, wal_bytes};
use crate::bench::turns::interleaved;
use postgres::Client;
use std::time::Instant;

/// The name in the CSV and the title.
pub const CASES: [(&str, &str); 2] =
    [(DROP, "`snowflake_drop_partitions`"), (DELETE, "`DELETE` and `VACUUM`")];

pub const DROP: &str = "drop_partition";
pub const DELETE: &str = "delete";

pub(super) const ROWS: i64 = 2_000_000;
pub(super) const MONTHS: usize = 24;

/// Each round removes a month, and the months that are left are most of the table.
const ROUNDS: usize = 9;

/// The rows are spread evenly over the months before this one, which has a partition, too.
fn create(rows: i64) -> String {
    format!(
        "CREATE FUNCTION month(number int) RETURNS timestamptz STABLE LANGUAGE sql AS
             $$ SELECT (date_trunc('month', now() AT TIME ZONE 'UTC') - make_interval(months => {MONTHS} - number)) AT TIME ZONE 'UTC' $$;
         CREATE TABLE plain (id bigint PRIMARY KEY, body text);
         CREATE TABLE partitioned (LIKE plain INCLUDING INDEXES) PARTITION BY RANGE (id);
         SELECT format('CREATE TABLE partitioned_p%s PARTITION OF partitioned FOR VALUES FROM (%s) TO (%s)',
             to_char(month(n) AT TIME ZONE 'UTC', 'YYYYMMDD'), snowflake_min_id(month(n)), snowflake_min_id(month(n + 1))) FROM generate_series(0, {MONTHS}) AS n;
         INSERT INTO plain SELECT snowflake_encode(month(0) + (month({MONTHS}) - month(0)) / {rows} * n, 5, 0), repeat('x', 100)
             FROM generate_series(0, {rows} - 1) AS n"
    )
}

pub(super) fn run(plan: &Plan, _: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().setting("fsync", "on").start();
    let mut client = server::database_of(&server, &OURS);
    let created = client.simple_query(&create(plan.scaled(ROWS))).expect("a new database");
    for message in created {
        if let postgres::SimpleQueryMessage::Row(row) = message {
            execute(&mut client, row.get(0).expect("a statement"));
        }
    }
    execute(&mut client, "INSERT INTO partitioned TABLE plain");
    // The age is counted from the newest ID.
    execute(&mut client, "INSERT INTO partitioned VALUES (snowflake_min_id(now()), 'now')");
    execute(&mut client, "INSERT INTO plain VALUES (snowflake_min_id(now()), 'now')");
    execute(&mut client, "VACUUM (ANALYZE) plain");
    execute(&mut client, "VACUUM (ANALYZE) partitioned");
    let mut cases = CASES.map(|(name, _)| name);
    interleaved(plan.rounds.min(ROUNDS), &mut cases, |round, &mut name| {
        let statements: &[String] = &match name {
            DROP => vec![format!(
                "SELECT snowflake_drop_partitions('partitioned', make_interval(secs => extract(epoch FROM now() - month({round} + 1))::float8 - 7200))"
            )],
            _ => vec![
                format!("DELETE FROM plain WHERE id < snowflake_min_id(month({round} + 1))"),
                "VACUUM plain".to_owned(),
            ],
        };
        // Else one of them would write what the other has left to be written.
        execute(&mut client, "CHECKPOINT");
        let (wal, began) = (wal_bytes(&mut client), Instant::now());
        for statement in statements {
            execute(&mut client, statement);
        }
        let seconds = began.elapsed().as_secs_f64();
        let wal = wal_bytes(&mut client) - wal;
        findings.samples.add(round, name, Measure::RetentionSeconds, seconds);
        findings.samples.add(round, name, Measure::RetentionWalBytes, wal);
    });
    let left = "SELECT (SELECT count(*) FROM plain) = (SELECT count(*) FROM partitioned)";
    assert!(client.query_one(left, &[]).expect("a query").get::<_, bool>(0), "other rows are left");
}

fn execute(client: &mut Client, statement: &str) {
    client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}
