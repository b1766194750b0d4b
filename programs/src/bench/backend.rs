//! Many IDs in one statement of one backend: the time for each, and the WAL that they write.

use crate::bench::contender::{Contender, ROOMY, empty_loop};
use crate::bench::floor::{self, FLOORS};
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::short_turns;
use pg_snowflake_harness::SUPERUSER;
use pg_snowflake_harness::process::{backend_pid, cpu_time};
use postgres::{Client, Statement};
use std::time::{Duration, Instant};

const IDS: i64 = 1_000_000;

/// Figures are shown for this many IDs.
const MILLION: f64 = 1e6;

/// The loop's name among the contenders.
pub(super) const LOOP: &str = "empty_loop";

/// A session that takes IDs in one statement.
struct Backend {
    name: &'static str,
    client: Client,
    pid: i32,
    statement: Statement,
}

/// What a statement used.
struct Used {
    time: Duration,
    cpu: Duration,
    wal_records: i64,
    wal_bytes: i64,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().start();
    let ids = plan.scaled(IDS);
    drop(floor::create(&server));
    let of_floors = FLOORS.map(|(name, _)| (name, SUPERUSER, floor::take(name, ids)));
    let mut statements = vec![(LOOP, SUPERUSER, empty_loop(ids))];
    statements.extend(of_floors);
    for contender in contenders {
        if let Some(take) = contender.take(ids, ROOMY) {
            drop(server::database_of(&server, contender));
            statements.push((contender.name, contender.name, take));
        }
    }
    let open = || {
        let connect = |(name, database, take): &(&'static str, &str, String)| {
            Backend::new(name, server.connect_to(SUPERUSER, database), take)
        };
        statements.iter().map(connect).collect()
    };
    short_turns(
        plan.rounds,
        open,
        Backend::take,
        |used| used.time,
        |round, backend, used| {
            let mut add =
                |measure, value| findings.samples.add(round, backend.name, measure, value);
            let of_a_million = |figure: f64| figure / ids as f64 * MILLION;
            add(Measure::StatementNs, used.time.as_nanos() as f64 / ids as f64);
            add(Measure::IdCpuSeconds, of_a_million(used.cpu.as_secs_f64()));
            add(Measure::WalRecords, of_a_million(used.wal_records as f64));
            add(Measure::WalBytes, of_a_million(used.wal_bytes as f64));
        },
    );
    findings.samples.subtract_loop(Measure::StatementNs, Measure::IdNs, LOOP);
}

impl Backend {
    fn new(name: &'static str, mut client: Client, statement: &str) -> Self {
        let pid = backend_pid(&mut client);
        let statement = client.prepare(statement).expect("the statement is valid");
        Backend { name, client, pid, statement }
    }

    fn take(&mut self) -> Used {
        let (records, bytes) = wal(&mut self.client);
        let cpu = cpu_time(self.pid);
        let began = Instant::now();
        self.client.query_one(&self.statement, &[]).expect("IDs are returned");
        let time = began.elapsed();
        let cpu = cpu_time(self.pid) - cpu;
        let (records_after, bytes_after) = wal(&mut self.client);
        Used { time, cpu, wal_records: records_after - records, wal_bytes: bytes_after - bytes }
    }
}

/// The WAL records and bytes that the server has written so far.
fn wal(client: &mut Client) -> (i64, i64) {
    client.execute("SELECT pg_stat_force_next_flush()", &[]).expect("statistics can be flushed");
    let row = client
        .query_one("SELECT wal_records, wal_bytes::bigint FROM pg_stat_wal", &[])
        .expect("statistics can be read");
    (row.get(0), row.get(1))
}
