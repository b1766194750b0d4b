//! What it costs to search for homed IDs.

use crate::bench::contender::{Contender, empty_loop, in_loop};
use crate::bench::contenders::ours_cache_1::CONTENDER as OURS;
use crate::bench::plan::{Findings, Plan};
use crate::bench::rate::{POSTGRES, TIME, share_of_the_limit};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use postgres::Client;
use std::time::Instant;

/// Plain IDs, and homed ones of these moduli: the name in the CSV, the title, and the expression.
pub const CASES: [(&str, &str, &str); 5] = [
    (PLAIN, "`snowflake_nextval`", "snowflake_nextval('ids', 1)"),
    (MODULUS_2, "homed, modulus 2", "snowflake_nextval_homed('ids', 1, 2)"),
    (MODULUS_4, "homed, modulus 4", "snowflake_nextval_homed('ids', 1, 4)"),
    (MODULUS_16, "homed, modulus 16", "snowflake_nextval_homed('ids', 1, 16)"),
    ("homed_64", "homed, modulus 64", "snowflake_nextval_homed('ids', 1, 64)"),
];

pub const PLAIN: &str = "plain";
pub const MODULUS_2: &str = "homed_2";
pub const MODULUS_4: &str = "homed_4";
pub const MODULUS_16: &str = "homed_16";

const IDS: i64 = 1_000_000;

struct Case {
    name: &'static str,
    /// The expression that returns an ID.
    id: &'static str,
    /// A session whose IDs run ahead of the clock.
    ahead: Client,
    /// A session that waits for it.
    waiting: Client,
}

/// The layout is the default, `postgres`, since the search takes shard numbers.
pub(super) fn run(plan: &Plan, _: &[&'static Contender], findings: &mut Findings) {
    let ids = plan.scaled(IDS);
    let server = server::builder().start();
    drop(server::database_of(&server, &OURS));
    let mut cases = CASES.map(|(name, _, id)| {
        let [mut ahead, waiting] = [(); 2].map(|()| server::connect(&server, &OURS));
        let lead = "LOAD 'pg_snowflake'; SET pg_snowflake.max_lead = '24h'";
        ahead.batch_execute(lead).expect("a superuser");
        Case { name, id, ahead, waiting }
    });
    for case in &mut cases {
        case.ns(&case.take(ids));
    }
    interleaved(plan.rounds, &mut cases, |round, case| {
        let each = (case.ns(&case.take(ids)) - case.ns(&empty_loop(ids))) / ids as f64;
        findings.samples.add(round, case.name, Measure::IdNs, each);
        let time = plan.scaled_time(TIME);
        let take = taking(case.id);
        let share = share_of_the_limit(&mut case.waiting, &POSTGRES, time, take);
        findings.samples.add(round, case.name, Measure::ShareOfPostgres, share);
    });
}

/// The statements that take IDs.
fn taking(id: &str) -> impl Fn(i64) -> String {
    move |count| in_loop(id, count)
}

impl Case {
    fn take(&self, ids: i64) -> String {
        taking(self.id)(ids)
    }

    /// The nanoseconds that a statement takes in the session that does not wait.
    fn ns(&mut self, statement: &str) -> f64 {
        let began = Instant::now();
        self.ahead.batch_execute(statement).expect("IDs are returned");
        began.elapsed().as_nanos() as f64
    }
}
