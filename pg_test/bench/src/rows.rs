//! Rows: many in one INSERT, with the size of the primary key afterwards; and transactions of several clients, run by pgbench on a
//! server that flushes each commit to disk.

use crate::contenders::{COPIED_SQL, Contender, INSERT};
use crate::limits::is_due;
use crate::measures::{CLIENTS, INSERT_ROUNDS};
use crate::run::{Run, connect, database_of, empty, execute, server, tps, value};
use crate::turns::interleaved;
use pg_snowflake_harness::Cluster;
use postgres::Client;
use postgres::error::SqlState;
use std::time::{Duration, Instant};

const ROWS: i64 = 1_000_000;

/// How many IDs a transaction takes if it only takes IDs.
const IDS: i64 = 100;

/// How long a turn takes that only takes IDs, and one of inserts.
const TIME: Duration = Duration::from_secs(1);
const INSERT_TIME: Duration = Duration::from_millis(400);

pub fn bulk(run: &mut Run) {
    let (server, rounds, rows) = (server().start(), run.rounds, run.scaled(ROWS));
    let mut tables: Vec<(&Contender, Client)> = Vec::new();
    for contender in run.contenders.clone() {
        let mut client = database_of(&server, contender);
        execute(&mut client, &contender.create_source(rows));
        execute(&mut client, &contender.create_table());
        // Not recorded: it fills the caches and creates the WAL files.
        if fill(run, contender, &mut client, rows).is_some() {
            tables.push((contender, client));
        }
    }
    interleaved(rounds, &mut tables, |round, (contender, client)| {
        let is_due = |measure| is_due(round, rounds, measure, contender.name);
        if !["bulk_insert_s", "primary_key_bytes"].into_iter().any(is_due) {
            return;
        }
        let Some(seconds) = fill(run, contender, client, rows) else { return };
        let key_bytes = value(client, "SELECT pg_relation_size('posts_pkey')::float8");
        let mut add = |measure, value| run.samples.add(round, contender.name, measure, value);
        add("bulk_insert_s", seconds);
        add("primary_key_bytes", key_bytes);
    });
}

/// The seconds that an INSERT into an empty table takes; `None` if the key rejects the IDs.
fn fill(run: &mut Run, contender: &Contender, client: &mut Client, rows: i64) -> Option<f64> {
    empty(client);
    let began = Instant::now();
    match client.execute(&contender.insert("source", rows), &[]) {
        Err(error) if contender.name == COPIED_SQL && error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            let title = contender.title;
            run.note(format!("{title} does not fill each table of `bulk`: its IDs repeat, and the primary key rejects them."));
            return None;
        }
        filled => filled.unwrap_or_else(|error| panic!("{}: {error:?}", contender.name)),
    };
    Some(began.elapsed().as_secs_f64())
}

/// One contender's transactions with a number of clients.
struct Load {
    contender: &'static Contender,
    clients: u32,
    script: String,
    measure: String,
    synchronous_commit: &'static str,
    /// For each client, so that a turn takes as long as it should.
    transactions: u32,
}

pub fn load(run: &mut Run) {
    let server = server().setting("fsync", "on").setting("min_wal_size", "1GB").start();
    let (mut takers, mut inserters) = (Vec::new(), Vec::new());
    let contenders = run.contenders.iter().copied();
    let contenders = contenders.filter(|contender| contender.fills_single_rows() || contender.take(IDS).is_some());
    let contenders: Vec<&'static Contender> = contenders.collect();
    for contender in &contenders {
        execute(&mut database_of(&server, contender), &contender.create_table());
    }
    for clients in CLIENTS {
        let load = |contender, script, kind, synchronous_commit| {
            let measure = format!("tps_of_{kind}_{clients}_clients");
            Load { contender, clients, script, measure, synchronous_commit, transactions: 0 }
        };
        for &contender in &contenders {
            if let Some(take) = contender.take(IDS) {
                let mut load = load(contender, take, "100_ids", "on");
                load.calibrate(&server, run.scaled_time(TIME));
                takers.push(load);
            }
        }
        for (kind, synchronous_commit) in [("an_insert", "on"), ("an_insert_async", "off")] {
            // All have the same number of transactions, since the first rows of a session and of a table cost more.
            let mut transactions = None;
            for contender in contenders.iter().filter(|contender| contender.fills_single_rows()) {
                let mut load = load(contender, INSERT.to_owned(), kind, synchronous_commit);
                let calibrate = || load.calibrate(&server, run.scaled_time(INSERT_TIME));
                load.transactions = *transactions.get_or_insert_with(calibrate);
                inserters.push(load);
            }
        }
    }
    for (rounds, loads) in [(run.rounds, takers), (run.rounds * INSERT_ROUNDS, inserters)] {
        let mut loads = loads;
        interleaved(rounds, &mut loads, |round, load| {
            let name = load.contender.name;
            if is_due(round, rounds, &load.measure, name) {
                empty(&mut connect(&server, load.contender));
                let tps = load.tps(&server, load.transactions);
                run.samples.add(round, name, &load.measure, tps);
            }
        });
    }
}

impl Load {
    /// Finds the number of transactions that take that time.
    fn calibrate(&mut self, server: &Cluster, time: Duration) -> u32 {
        let each = |tps: f64, time: Duration| ((tps * time.as_secs_f64() / f64::from(self.clients)) as u32).max(10);
        let first = self.tps(server, 10);
        self.transactions = each(self.tps(server, each(first, time / 2)), time);
        self.transactions
    }

    fn tps(&self, server: &Cluster, transactions: u32) -> f64 {
        let Contender { name, library, .. } = self.contender;
        // Loaded while the session connects, which pgbench does not count: sessions of users live longer than a turn.
        let database =
            format!("dbname={name} options='-c synchronous_commit={} -c session_preload_libraries={library}'", self.synchronous_commit);
        tps(server, &database, self.clients, transactions, &self.script)
    }
}
