//! How many servers and shards a registry of leases serves: simulated nodes renew their leases over connections of their own.
//!
//! The registry's server is set up as `docs/leases.md` recommends. The nodes are one thread of this program, and share the processor
//! with it.

mod nodes;

use crate::bench::contender::Contender;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use nodes::{Fleet, Tally};
use pg_snowflake_harness::leases::Registry;
use pg_snowflake_harness::process::unshared_memory_kb;
use pg_snowflake_harness::record::available_memory_kb;
use pg_snowflake_harness::wait::comes_true;
use pg_snowflake_harness::{Cluster, Shutdown};
use postgres::Client;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nodes with these shards each, and the length of a lease in seconds.
#[derive(Debug)]
pub struct Case {
    /// The name in the CSV.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    nodes: usize,
    shards: usize,
    seconds: u64,
}

/// A case that a limit is on: few nodes of many shards.
pub const FEW_LARGE: &str = "8_nodes_1024_shards_10s";
/// A case that a limit is on: many nodes of few shards.
pub const MANY_SMALL: &str = "1024_nodes_8_shards_10s";

/// All cases. More nodes with leases of 10 s need more than two cores, and 8,192 nodes more than 24 GB.
pub const CASES: [Case; 3] = [
    case(FEW_LARGE, "8 nodes, 1,024 shards each, 10 s", 8, 1024, 10),
    case(MANY_SMALL, "1,024 nodes, 8 shards each, 10 s", 1024, 8, 10),
    case("4096_nodes_1_shard_60s", "4,096 nodes, 1 shard each, 60 s", 4096, 1, 60),
];

const fn case(
    name: &'static str,
    title: &'static str,
    nodes: usize,
    shards: usize,
    seconds: u64,
) -> Case {
    Case { name, title, nodes, shards, seconds }
}

/// How long the renewals are counted.
const TIME: Duration = Duration::from_secs(30);

/// With a shorter lease, a renewal that is a moment late ends the span.
const MIN_LEASE: Duration = Duration::from_secs(3);

/// The memory that a node takes, in kB, for the question whether all of them fit.
const MEMORY_OF_A_NODE_KB: u64 = 3_000;

pub(super) fn run(plan: &Plan, _: &[&'static Contender], findings: &mut Findings) {
    let limit = nodes::raise_limit_of_sockets();
    for case in &CASES {
        let nodes =
            ((case.nodes as f64 * plan.scale) as usize).clamp(case.nodes.min(8), case.nodes);
        let lacking = if nodes + 100 > limit {
            Some(format!("{limit} open files"))
        } else if available_memory_kb() < nodes as u64 * MEMORY_OF_A_NODE_KB + 1_000_000 {
            Some(format!("{} GB of free memory", available_memory_kb() / 1_000_000))
        } else {
            None
        };
        match lacking {
            None => measure(&Case { nodes, ..*case }, plan, findings),
            Some(limit) => findings.note(format!(
                "The registry with {} is not measured: this machine allows {limit}.",
                case.title
            )),
        }
    }
}

fn measure(case: &Case, plan: &Plan, findings: &mut Findings) {
    let lease = plan.scaled_time(Duration::from_secs(case.seconds)).max(MIN_LEASE);
    // Long enough for a renewal of each node.
    let time = plan.scaled_time(TIME).max(lease / 2);
    let mut registry = Registry::start_with(
        Cluster::builder()
            .background_work()
            .setting("fsync", "on")
            .setting("shared_buffers", "128MB")
            .setting("log_min_messages", "fatal")
            .setting("log_min_error_statement", "panic")
            .setting("max_connections", &(case.nodes + case.nodes / 2 + 20).to_string()),
    );
    let mut add = |measure: Measure, value: f64| {
        println!("      {}: {measure} {value:.3}", case.name);
        findings.samples.add(0, case.name, measure, value);
    };
    let free_kb = available_memory_kb();

    let began = Instant::now();
    let fleet = Fleet::start(registry.cluster.dir(), case.nodes, case.shards, lease);
    wait_for_all(&fleet, began + 12 * lease);
    add(Measure::RegistryStartSeconds, seconds_between(began, fleet.tally().last));
    // Those that came last have renewed, too.
    sleep(lease / 3);
    fleet.tally().print(case.name);

    let mut client = registry.cluster.connect_again();
    let before = Used::of(&registry.cluster, &mut client);
    fleet.reset();
    let began = Instant::now();
    sleep(time);
    let seconds = began.elapsed().as_secs_f64();
    let tally = fleet.tally();
    let used = Used::of(&registry.cluster, &mut client).since(&before);
    add(Measure::RegistryClaimsWanted, case.nodes as f64 / (lease / 3).as_secs_f64());
    add(Measure::RegistryClaims, tally.renewals as f64 / seconds);
    add(Measure::RegistryShareInTime, tally.in_time as f64 / tally.renewals.max(1) as f64);
    add(Measure::RegistryWorstDelayMs, tally.worst_delay.as_secs_f64() * 1e3);
    // The nodes that had no answer hold nothing.
    let without = (case.nodes - tally.nodes) * case.shards;
    add(Measure::RegistrySpansEnded, (tally.spans_ended + without) as f64);
    add(Measure::RegistryWalBytes, used.wal_bytes / seconds);
    add(Measure::RegistryCommits, used.commits / seconds);
    add(Measure::RegistryCpu, used.cpu.as_secs_f64() / seconds);
    add(Measure::RegistryHotShare, used.hot_updates / used.updates.max(1.0));
    add(Measure::RegistryTableBytes, bytes_of_table(&mut client));
    let sessions = registry.cluster.processes("node postgres");
    let some = &sessions[..sessions.len().min(100)];
    let private_kb: u64 = some.iter().map(|pid| unshared_memory_kb(pid.as_raw())).sum();
    add(Measure::RegistryPrivateKilobytes, private_kb as f64 / some.len().max(1) as f64);
    let used_kb = free_kb.saturating_sub(available_memory_kb());
    add(Measure::RegistryMachineKilobytes, used_kb as f64 / case.nodes as f64);
    tally.print(case.name);

    fleet.reset();
    let began = Instant::now();
    registry.cluster.stop(Shutdown::Fast);
    registry.cluster.start();
    add(Measure::RegistryRestartSeconds, began.elapsed().as_secs_f64());
    wait_for_all(&fleet, began + 12 * lease);
    add(Measure::RegistryOutageSeconds, seconds_between(began, fleet.tally().last));
    let tally = fleet.tally();
    add(Measure::RegistrySpansEndedByOutage, tally.spans_ended as f64);
    tally.print(case.name);
}

fn wait_for_all(fleet: &Fleet, deadline: Instant) {
    let are_all_there = || Instant::now() > deadline || fleet.tally().nodes == fleet.nodes;
    let _ = comes_true(are_all_there);
    let there = fleet.tally().nodes;
    if there < fleet.nodes {
        println!("      only {there} of {} nodes have an answer", fleet.nodes);
    }
}

fn seconds_between(began: Instant, last: Option<Instant>) -> f64 {
    last.map_or(f64::INFINITY, |last| (last - began).as_secs_f64())
}

/// What the registry's server has used so far.
struct Used {
    wal_bytes: f64,
    commits: f64,
    updates: f64,
    hot_updates: f64,
    cpu: Duration,
}

impl Used {
    fn of(server: &Cluster, client: &mut Client) -> Self {
        let used = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8, xact_commit::float8, n_tup_upd::float8,
                        n_tup_hot_upd::float8
                    FROM pg_stat_database, pg_stat_user_tables WHERE datname = current_database() AND relname = 'shards'";
        let row = client.query_one(used, &[]).expect("statistics can be read");
        Used {
            wal_bytes: row.get(0),
            commits: row.get(1),
            updates: row.get(2),
            hot_updates: row.get(3),
            cpu: server.cpu_time(),
        }
    }

    fn since(&self, before: &Used) -> Used {
        Used {
            wal_bytes: self.wal_bytes - before.wal_bytes,
            commits: self.commits - before.commits,
            updates: self.updates - before.updates,
            hot_updates: self.hot_updates - before.hot_updates,
            cpu: self.cpu - before.cpu,
        }
    }
}

fn bytes_of_table(client: &mut Client) -> f64 {
    let bytes = "SELECT pg_total_relation_size('snowflake_registry.shards')::float8";
    client.query_one(bytes, &[]).expect("it has a size").get(0)
}

impl Tally {
    fn print(&self, case: &str) {
        for (problem, times) in &self.problems {
            println!("      {case}: {times} times: {problem}");
        }
    }
}
