//! Transactions of several clients, run by pgbench, on a server that flushes each commit to disk.

use crate::bench::contender::{Contender, INSERT, ROOMY};
use crate::bench::limits::is_due;
use crate::bench::pgbench::Outcome;
use crate::bench::plan::{Findings, INSERT_ROUNDS, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use pg_snowflake_harness::{Cluster, SUPERUSER};
use std::time::Duration;

/// How many IDs a transaction takes if it only takes IDs.
const IDS: i64 = 100;

/// How long a turn takes that only takes IDs.
const TIME: Duration = Duration::from_secs(1);

/// How long a turn of inserts takes. Those of all contenders have the same number of transactions, since the first rows of a
/// session and of a table cost more.
const INSERT_TIME: Duration = Duration::from_millis(400);

/// The server's CPU time is known to 10 ms. A total below this is not shown.
const MIN_CPU: Duration = Duration::from_millis(500);

/// One contender's transactions with a number of clients.
struct Load {
    contender: &'static Contender,
    clients: u32,
    script: String,
    /// The connections' settings, as libpq's `options` takes them.
    options: &'static str,
    tps: Measure,
    cpu: Measure,
    /// Transactions for each client, so that a turn takes as long as it should.
    transactions: u32,
    /// The total of all rounds, since a single turn uses too little to be measured.
    used: Used,
}

/// The CPU time that transactions have used.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu: Duration,
    transactions: u32,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().setting("fsync", "on").setting("min_wal_size", "1GB").start();
    for contender in contenders.iter().filter(|contender| contender.is_called()) {
        let mut client = server::database_of(&server, contender);
        client.batch_execute(&contender.create_table()).expect("a table can be created");
    }
    // Contenders take turns, because the machine's other load changes within seconds.
    let fillers = || contenders.iter().filter(|contender| contender.fills_single_rows());
    let (mut takers, mut inserters) = (Vec::new(), Vec::new());
    for &clients in &plan.clients {
        takers.extend(contenders.iter().filter_map(|contender| Load::of_ids(contender, clients)));
        for of_inserts in [Load::of_inserts, Load::of_async_inserts] {
            let mut loads: Vec<Load> =
                fillers().map(|contender| of_inserts(contender, clients)).collect();
            if let Some((first, others)) = loads.split_first_mut() {
                first.calibrate(&server, plan.scaled_time(INSERT_TIME));
                others.iter_mut().for_each(|load| load.transactions = first.transactions);
            }
            inserters.extend(loads);
        }
    }
    for load in &mut takers {
        load.calibrate(&server, plan.scaled_time(TIME));
    }
    measure(&server, plan.rounds, &mut takers, findings);
    measure(&server, plan.rounds * INSERT_ROUNDS, &mut inserters, findings);
}

fn measure(server: &Cluster, rounds: usize, loads: &mut [Load], findings: &mut Findings) {
    interleaved(rounds, loads, |round, load| {
        if !is_due(round, rounds, load.tps, load.contender) {
            return;
        }
        load.empty_the_table(server);
        let cpu = server.cpu_time();
        let outcome = load.run(server, load.transactions);
        load.used.cpu += server.cpu_time() - cpu;
        load.used.transactions += outcome.transactions;
        findings.samples.add(round, load.contender.name, load.tps, outcome.tps);
    });
    for load in loads {
        if let Some(us) = load.used.us_per_transaction() {
            findings.samples.add(0, load.contender.name, load.cpu, us);
        }
    }
}

impl Load {
    /// `None` if no call returns the contender's IDs.
    fn of_ids(contender: &'static Contender, clients: u32) -> Option<Self> {
        Some(Load {
            contender,
            clients,
            script: contender.take(IDS, ROOMY)?,
            options: "",
            tps: Measure::TakingTps(clients),
            cpu: Measure::TakingCpuUs(clients),
            transactions: 0,
            used: Used::default(),
        })
    }

    fn of_inserts(contender: &'static Contender, clients: u32) -> Self {
        Load {
            contender,
            clients,
            script: INSERT.to_owned(),
            options: "-c synchronous_commit=on",
            tps: Measure::InsertingTps(clients),
            cpu: Measure::InsertingCpuUs(clients),
            transactions: 0,
            used: Used::default(),
        }
    }

    fn of_async_inserts(contender: &'static Contender, clients: u32) -> Self {
        Load {
            options: "-c synchronous_commit=off",
            tps: Measure::InsertingAsyncTps(clients),
            cpu: Measure::InsertingAsyncCpuUs(clients),
            ..Load::of_inserts(contender, clients)
        }
    }

    /// Finds the number of transactions that take that time.
    fn calibrate(&mut self, server: &Cluster, time: Duration) {
        let each = |tps: f64, time: Duration| {
            ((tps * time.as_secs_f64() / f64::from(self.clients)) as u32).max(10)
        };
        let first = self.run(server, 10).tps;
        self.transactions = each(self.run(server, each(first, time / 2)).tps, time);
    }

    /// So that no turn inserts into a larger table than another, and all tables together fit in memory.
    fn empty_the_table(&self, server: &Cluster) {
        let mut client = server.connect_to(SUPERUSER, self.contender.name);
        client.batch_execute("TRUNCATE posts").expect("a table can be emptied");
        // WAL files are reused rather than created in a turn, and pages that the last turn left dirty do not count for this one.
        client.batch_execute("CHECKPOINT").expect("a checkpoint can be written");
    }

    fn run(&self, server: &Cluster, transactions: u32) -> Outcome {
        let Contender { name, library, .. } = self.contender;
        // Loaded while the session connects, which pgbench does not count: sessions of users live longer than a turn.
        let preload = format!("-c session_preload_libraries={library}");
        let database = format!("dbname={name} options='{} {preload}'", self.options);
        Outcome::of(server, &database, self.clients, transactions, &self.script)
    }
}

impl Used {
    /// `None` if it is too little to be measured.
    fn us_per_transaction(self) -> Option<f64> {
        let us = self.cpu.as_secs_f64() * 1e6 / f64::from(self.transactions);
        (self.cpu >= MIN_CPU).then_some(us)
    }
}

#[cfg(test)]
mod tests {
    use super::Used;
    use std::time::Duration;

    #[test]
    fn too_little_cpu_time_yields_no_figure() {
        let us = |milliseconds| {
            let cpu = Duration::from_millis(milliseconds);
            Used { cpu, transactions: 1000 }.us_per_transaction()
        };
        assert_eq!(us(500), Some(500.0));
        assert_eq!(us(490), None);
    }
}
