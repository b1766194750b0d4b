//! How many IDs of one statement are duplicates.

use crate::bench::contender::Contender;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;

const IDS: i64 = 1_000_000;

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().setting("work_mem", "256MB").start();
    let ids = plan.scaled(IDS);
    for contender in contenders {
        let Some(series) = contender.series(ids) else { continue };
        let mut client = server::database_of(&server, contender);
        let count = format!(
            "WITH taken AS MATERIALIZED ({series}) SELECT count(*) - count(DISTINCT id) FROM taken"
        );
        // One round, since all that matters is whether the count is 0.
        let repeats: i64 = client.query_one(&count, &[]).expect("IDs are returned").get(0);
        let of_a_million = repeats as f64 / ids as f64 * 1e6;
        findings.samples.add(0, contender.name, Measure::Repeats, of_a_million);
    }
}
