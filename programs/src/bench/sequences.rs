//! One backend that takes IDs from many sequences in turn.

use crate::bench::contender::Contender;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use postgres::Client;
use std::time::Instant;

/// Those with sequence code of their own: the PL/pgSQL and SQL functions call core's.
const NAMES: [&str; 3] = ["core_cache_1", "ours_cache_1", "pgedge"];

/// The numbers of sequences. A smaller scale leaves out the larger ones.
const COUNTS: [u32; 4] = [1, 10, 1000, 100_000];

/// How many IDs a pass takes, for any number of sequences.
const TURNS: i64 = 100_000;

/// Passes that are timed together.
const PASSES: u32 = 3;

/// A session of a contender with this many sequences.
struct Session {
    name: &'static str,
    sequences: u32,
    client: Client,
    empty_loop: String,
    take: String,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let turns = plan.scaled(TURNS);
    // One transaction takes IDs from all of them, and so locks each. The pages of all contenders must fit in memory: 800 MB for
    // each.
    let server = server::builder()
        .setting("max_locks_per_transaction", "2048")
        .setting("shared_buffers", "4GB")
        .start();
    let mut sessions = Vec::new();
    for contender in contenders.iter().filter(|contender| NAMES.contains(&contender.name)) {
        let mut client = server::database_of(&server, contender);
        let counts: Vec<u32> =
            COUNTS.into_iter().filter(|&count| i64::from(count) <= turns).collect();
        let most = counts.iter().copied().max().unwrap_or(1);
        create_sequences(&mut client, most);
        for count in counts {
            let table = format!("turns_{count}");
            create_turns(&mut client, &table, count, turns);
            let take = contender.take_in_turn(&table).expect("one ID a call");
            sessions.push(Session {
                name: contender.name,
                sequences: count,
                client: server::connect(&server, contender),
                empty_loop: format!("SELECT count(sequence) FROM {table}"),
                take,
            });
        }
    }
    interleaved(plan.rounds, &mut sessions, |round, session| {
        let ns = session.ns_per_turn() / turns as f64;
        findings.samples.add(round, session.name, Measure::InTurnNs(session.sequences), ns);
    });
}

/// Creates sequences `s0` and so on, in transactions of 1000.
fn create_sequences(client: &mut Client, count: u32) {
    let create = format!(
        "DO $$ BEGIN
             FOR n IN 0..{} LOOP
                 EXECUTE 'CREATE SEQUENCE s' || n;
                 IF n % 1000 = 999 THEN COMMIT; END IF;
             END LOOP;
         END $$",
        count - 1
    );
    client.batch_execute(&create).expect("sequences can be created");
}

/// A table with a row for each turn, naming its sequence.
fn create_turns(client: &mut Client, table: &str, sequences: u32, turns: i64) {
    let create = format!(
        "CREATE TABLE {table} AS
         SELECT ('s' || n % {sequences})::regclass AS sequence FROM generate_series(0, {turns} - 1) AS n;
         VACUUM ANALYZE {table}"
    );
    for statement in create.split(';') {
        client.batch_execute(statement).expect("a table can be created");
    }
}

impl Session {
    /// Nanoseconds of a pass, less those of the empty loop.
    ///
    /// The transaction's first pass is not timed: it locks each sequence once, as every transaction that uses it does.
    fn ns_per_turn(&mut self) -> f64 {
        let mut transaction = self.client.transaction().expect("a transaction can begin");
        let mut pass = |query: &str| {
            let began = Instant::now();
            transaction.query_one(query, &[]).expect("IDs are returned");
            began.elapsed().as_nanos() as f64
        };
        pass(&self.take);
        let mut ns = 0.0;
        for _ in 0..PASSES {
            ns += pass(&self.take) - pass(&self.empty_loop);
        }
        transaction.commit().expect("a transaction can end");
        ns / f64::from(PASSES)
    }
}
