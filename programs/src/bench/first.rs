//! Transactions of one ID each: the time for the first ID of a transaction.

use crate::bench::backend::LOOP;
use crate::bench::contender::{Contender, in_transactions};
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::short_turns;
use pg_snowflake_harness::SUPERUSER;
use postgres::Client;
use std::time::{Duration, Instant};

/// For so many that a session's first ones, with cold caches, do not count.
const TRANSACTIONS: i64 = 100_000;

/// A session that takes an ID in each of many transactions.
struct Session<'a> {
    name: &'static str,
    client: Client,
    statement: &'a str,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().start();
    let count = plan.scaled(TRANSACTIONS);
    let mut statements = vec![(LOOP, SUPERUSER, in_transactions(count, "1"))];
    // Nobody takes a batch of one.
    for contender in contenders.iter().filter(|contender| contender.fills_single_rows()) {
        if let Some(take) = contender.take_one() {
            drop(server::database_of(&server, contender));
            statements.push((contender.name, contender.name, in_transactions(count, &take)));
        }
    }
    // Not the sessions that created the extensions: they have larger tables of locks, which each commit reads.
    let open = || {
        let mut sessions = Vec::new();
        for (name, database, statement) in &statements {
            let client = server.connect_to(SUPERUSER, database);
            sessions.push(Session { name, client, statement });
        }
        sessions
    };
    short_turns(
        plan.rounds,
        open,
        Session::take,
        |&time| time,
        |round, session, time| {
            let ns = time.as_nanos() as f64 / count as f64;
            findings.samples.add(round, session.name, Measure::TransactionNs, ns);
        },
    );
    findings.samples.subtract_loop(Measure::TransactionNs, Measure::FirstIdNs, LOOP);
}

impl Session<'_> {
    /// The time that all transactions take.
    fn take(&mut self) -> Duration {
        let began = Instant::now();
        self.client.batch_execute(self.statement).expect("IDs are returned");
        began.elapsed()
    }
}
