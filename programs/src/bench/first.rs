//! Transactions of one ID each: the time for the first ID of a transaction.

use crate::bench::backend::LOOP;
use crate::bench::contender::{Contender, in_transactions};
use crate::bench::plan::{Findings, Plan, SHORT_ROUNDS, has_turn};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use pg_snowflake_harness::SUPERUSER;
use postgres::Client;
use std::time::{Duration, Instant};

/// For so many that a session's first ones, with cold caches, do not count.
const TRANSACTIONS: i64 = 100_000;

/// A session that takes an ID in each of many transactions.
struct Session {
    name: &'static str,
    client: Client,
    statement: String,
    /// The time that its first turn took.
    first: Duration,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().start();
    let count = plan.scaled(TRANSACTIONS);
    let the_loop = Session {
        name: LOOP,
        client: server.connect_to(SUPERUSER, SUPERUSER),
        statement: in_transactions(count, "1"),
        first: Duration::ZERO,
    };
    // Nobody takes a batch of one.
    let takers = contenders.iter().filter(|contender| contender.fills_single_rows());
    let takers = takers.filter_map(|contender| {
        let statement = in_transactions(count, &contender.take_one()?);
        // Not the session that created the extension: it has a larger table of locks, which each commit reads.
        drop(server::database_of(&server, contender));
        let client = server::connect(&server, contender);
        Some(Session { name: contender.name, client, statement, first: Duration::ZERO })
    });
    let mut sessions: Vec<Session> = std::iter::once(the_loop).chain(takers).collect();
    // The first run is not recorded: it fills the caches.
    for session in &mut sessions {
        session.first = session.take();
    }
    let samples = &mut findings.samples;
    interleaved(plan.rounds * SHORT_ROUNDS, &mut sessions, |round, session| {
        if !has_turn(round, session.first) {
            return;
        }
        let ns = session.take().as_nanos() as f64 / count as f64;
        samples.add(round, session.name, Measure::TransactionNs, ns);
    });
    samples.subtract_loop(Measure::TransactionNs, Measure::FirstIdNs, LOOP);
}

impl Session {
    /// The time that all transactions take.
    fn take(&mut self) -> Duration {
        let began = Instant::now();
        self.client.batch_execute(&self.statement).expect("IDs are returned");
        began.elapsed()
    }
}
