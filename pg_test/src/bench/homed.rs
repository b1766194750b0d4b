//! What it costs to search for homed ids.

use crate::bench::contender::{Contender, empty_loop};
use crate::bench::contenders::ours_cache_1::CONTENDER as OURS;
use crate::bench::samples::Measure;
use crate::bench::{Findings, Plan, interleaved, server};
use postgres::Client;
use std::time::Instant;

/// Plain ids, and homed ones of these moduli: the name in the CSV, the title, and the expression.
pub const CASES: [(&str, &str, &str); 5] = [
    (PLAIN, "`snowflake_nextval`", "snowflake_nextval('ids', 1)"),
    (MODULUS_2, "homed, modulus 2", "snowflake_nextval_homed('ids', 1, 2)"),
    ("homed_4", "homed, modulus 4", "snowflake_nextval_homed('ids', 1, 4)"),
    (MODULUS_16, "homed, modulus 16", "snowflake_nextval_homed('ids', 1, 16)"),
    ("homed_64", "homed, modulus 64", "snowflake_nextval_homed('ids', 1, 64)"),
];

pub const PLAIN: &str = "plain";
pub const MODULUS_2: &str = "homed_2";
pub const MODULUS_16: &str = "homed_16";

const IDS: i64 = 1_000_000;

struct Case {
    name: &'static str,
    statement: String,
    client: Client,
}

/// The layout is `instagram`, since the search takes shard numbers. So the sequences run ahead of the clock.
pub(super) fn run(plan: &Plan, _: &[&'static Contender], findings: &mut Findings) {
    let ids = plan.scaled(IDS);
    let server = server::builder().start();
    drop(server::database_of(&server, &OURS));
    let case = |(name, _, id)| {
        let mut client = server::connect(&server, &OURS);
        client
            .batch_execute("LOAD 'pg_snowflake'; SET pg_snowflake.max_lead = '24h'")
            .expect("a superuser");
        let statement =
            format!("SELECT count({id}) FROM (SELECT generate_series(1, {ids})) AS series");
        Case { name, statement, client }
    };
    let mut cases = CASES.map(case);
    for case in &mut cases {
        case.ns(&case.statement.clone());
    }
    interleaved(plan.rounds, &mut cases, |round, case| {
        let without = case.ns(&empty_loop(ids));
        let with = case.ns(&case.statement.clone());
        findings.samples.add(round, case.name, Measure::IdNs, (with - without) / ids as f64);
    });
}

impl Case {
    /// The nanoseconds that a statement takes.
    fn ns(&mut self, statement: &str) -> f64 {
        let began = Instant::now();
        self.client.batch_execute(statement).expect("ids are returned");
        began.elapsed().as_nanos() as f64
    }
}
