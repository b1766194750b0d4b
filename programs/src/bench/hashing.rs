//! What PostgreSQL's hash of a bigint costs the IDs of a layout, by the script that docs/hashing.md offers to everybody.

use crate::bench::contender::Contender;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;

const SCRIPT: &str = include_str!("../../../docs/hashing/measure.sql");

pub(super) const ROWS: i64 = 3_000_000;

/// Seconds after which a query is cancelled, and not repeated.
const TIMEOUT: u32 = 5;

/// At most so many rounds, since one takes most of a minute.
pub(super) const ROUNDS: usize = 3;

/// docs/hashing.md has the same of other layouts.
const LAYOUT: &str = "postgres";

/// The tables of the script: the name in it, and the title for people, in Markdown.
pub const CASES: [(&str, &str); 7] = [
    ("bigserial", "`bigserial`"),
    ("postgres_1", "`postgres`, 1 per ms"),
    ("postgres_10", "`postgres`, 10 per ms"),
    ("postgres_100", "`postgres`, 100 per ms"),
    ("postgres_1000", "`postgres`, 1,000 per ms"),
    ("postgres_100_16shards", "`postgres`, 100 per ms, 16 shards"),
    ("postgres_100_100shards", "`postgres`, 100 per ms, 100 shards"),
];

/// Runs the script in a database of its own, and takes the figures from its tables.
pub(super) fn run(plan: &Plan, _: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().start();
    let mut client = server.empty_database("hashing");
    let variables = format!(
        "\\set rows {}\n\\set rounds {}\n\\set timeout {TIMEOUT}s\n\\set layouts {LAYOUT}\n",
        plan.scaled(ROWS),
        plan.rounds.min(ROUNDS)
    );
    print!("{}", server.psql("hashing", &(variables + SCRIPT)));
    let timings = "SELECT name, query, round, extract(epoch FROM took)::float8 FROM timings";
    for row in client.query(timings, &[]).expect("the script has made its tables") {
        let Some((name, title)) = case(row.get(0)) else { continue };
        let (query, round, seconds): (&str, i32, f64) = (row.get(1), row.get(2), row.get(3));
        let (measure, what) = match query {
            "aggregate" => (Measure::AggregateSeconds, "HashAggregate"),
            _ => (Measure::JoinSeconds, "a hash join"),
        };
        if seconds >= f64::from(TIMEOUT) {
            findings.note(format!(
                "The query with {what} in the row {title} was cancelled after {TIMEOUT} s."
            ));
        } else {
            findings.samples.add(round as usize - 1, name, measure, seconds);
        }
    }
    let ids = "SELECT name, hashes::float8, memory::float8 FROM ids";
    for row in client.query(ids, &[]).expect("the script has made its tables") {
        let Some((name, _)) = case(row.get(0)) else { continue };
        findings.samples.add(0, name, Measure::DistinctHashes, row.get(1));
        if let Some(kilobytes) = row.get(2) {
            findings.samples.add(0, name, Measure::AggregateKilobytes, kilobytes);
        }
    }
}

fn case(name: &str) -> Option<(&'static str, &'static str)> {
    CASES.into_iter().find(|&(case, _)| case == name)
}
