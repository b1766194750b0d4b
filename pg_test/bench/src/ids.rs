//! IDs in one session: the time for each in one statement, with their WAL, and in transactions of one; and duplicates among them.

use crate::contenders::{Contender, FLOORS, LOOP, OF_LAYOUTS, in_transactions};
use crate::run::{Run, connect, database_of, execute, server, value};
use crate::turns::{SHORT_ROUNDS, has_turn, interleaved};
use pg_snowflake_harness::Cluster;
use postgres::Client;
use std::time::Instant;

const IDS: i64 = 1_000_000;

/// For so many that a session's first ones, with cold caches, do not count.
const TRANSACTIONS: i64 = 100_000;

/// A contender, and what it runs.
type Statement = (&'static Contender, String);

/// Many IDs in one statement.
pub fn in_one_statement(run: &mut Run) {
    let (server, ids) = (server().start(), run.scaled(IDS));
    let contenders = FLOORS.iter().chain(run.contenders.iter().copied()).chain(&OF_LAYOUTS);
    let statements = contenders.filter_map(|contender| Some((contender, contender.take(ids)?)));
    let statements: Vec<Statement> = statements.collect();
    measure(run, &server, &statements, ids, ["ns_per_id_with_loop", "ns_per_id"]);
}

/// One ID in each of many transactions. Nobody takes a batch of one.
pub fn in_transactions_of_one(run: &mut Run) {
    let (server, count) = (server().start(), run.scaled(TRANSACTIONS));
    let contenders = FLOORS[..1].iter().chain(run.contenders.iter().copied());
    let statements = contenders.filter_map(|contender| Some((contender, in_transactions(count, contender.one()?))));
    let statements: Vec<Statement> = statements.collect();
    let measures = ["ns_per_transaction_with_loop", "ns_per_first_id"];
    measure(run, &server, &statements, count, measures);
}

/// Measures the time with the loop and without. Sessions are not those that created the extensions: these have larger tables of locks,
/// which each commit reads.
fn measure(run: &mut Run, server: &Cluster, statements: &[Statement], count: i64, [with_loop, without]: [&str; 2]) {
    statements.iter().for_each(|(contender, _)| drop(database_of(server, contender)));
    let turn = |statement: &str, client: &mut Client| {
        let before = wal_records(client);
        let began = Instant::now();
        execute(client, statement);
        let time = began.elapsed();
        (time, wal_records(client) - before)
    };
    for third in 0..SHORT_ROUNDS {
        let sessions = statements.iter().map(|(contender, statement)| {
            let mut client = connect(server, contender);
            // Not recorded: it fills the caches.
            let (first, _) = turn(statement, &mut client);
            (contender.name, statement, client, first)
        });
        let mut sessions: Vec<_> = sessions.collect();
        interleaved(run.rounds, &mut sessions, |round, (name, statement, client, first)| {
            let round = third * run.rounds + round;
            if has_turn(round, *first) {
                let (time, records) = turn(statement, client);
                run.samples.add(round, name, with_loop, time.as_nanos() as f64 / count as f64);
                if without == "ns_per_id" {
                    let of_a_million = records as f64 / count as f64 * 1e6;
                    run.samples.add(round, name, "wal_records_per_1000000_ids", of_a_million);
                }
            }
        });
    }
    run.samples.subtract(with_loop, without, LOOP);
}

/// The WAL records that the server has written so far.
fn wal_records(client: &mut Client) -> i64 {
    execute(client, "SELECT pg_stat_force_next_flush()");
    value(client, "SELECT wal_records FROM pg_stat_wal")
}

/// How many IDs of one statement are duplicates. One round, since all that matters is whether the count is 0.
pub fn repeats(run: &mut Run) {
    let (server, ids) = (server().setting("work_mem", "256MB").start(), run.scaled(IDS));
    for contender in &run.contenders {
        let Some(series) = contender.series(ids) else { continue };
        let count = format!("WITH taken AS MATERIALIZED ({series}) SELECT count(*) - count(DISTINCT id) FROM taken");
        let repeats: i64 = value(&mut database_of(&server, contender), &count);
        let of_a_million = repeats as f64 / ids as f64 * 1e6;
        run.samples.add(0, contender.name, "repeats_in_1000000_ids", of_a_million);
    }
}
