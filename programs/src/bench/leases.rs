//! What a lease costs: IDs of two servers of the same build, of which one has a registry.

use crate::bench::contender::{Contender, ROOMY, empty_loop, in_transactions};
use crate::bench::contenders::ours_cache_1::CONTENDER as OURS;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use pg_snowflake_harness::leases::{Registry, as_node, first_id};
use pg_snowflake_harness::{Builder, Cluster};
use postgres::Client;
use std::time::Instant;

/// The server without a registry.
pub const WITHOUT: &str = "without_leases";

/// The server with one.
pub const WITH: &str = "with_leases";

const IDS: i64 = 1_000_000;

const TRANSACTIONS: i64 = 200_000;

/// Where a server's memory happens to lie changes its times by 1 %, so each turn has new servers.
const TURNS: usize = 3;

struct Session {
    name: &'static str,
    client: Client,
    _server: Cluster,
}

/// A measure, how many IDs it takes, and the statements without and with them.
type Case = (Measure, i64, [String; 2]);

pub(super) fn run(plan: &Plan, _: &[&'static Contender], findings: &mut Findings) {
    let (ids, transactions) = (plan.scaled(IDS), plan.scaled(TRANSACTIONS));
    let take_one = OURS.take_one().expect("a call returns one");
    let cases: [Case; 2] = [
        (Measure::IdNs, ids, [empty_loop(ids), OURS.take(ids, ROOMY).expect("it is called")]),
        (
            Measure::FirstIdNs,
            transactions,
            ["1", &take_one].map(|taken| in_transactions(transactions, taken)),
        ),
    ];
    let registry = Registry::start();
    let rounds = plan.rounds.div_ceil(TURNS);
    for turn in 0..TURNS {
        let mut sessions = [WITHOUT, WITH].map(|name| Session::start(name, &registry, turn));
        // The first run is not recorded: it fills the caches.
        for session in &mut sessions {
            cases.iter().flat_map(|(.., statements)| statements).for_each(|statement| {
                session.ns(statement);
            });
        }
        interleaved(rounds, &mut sessions, |round, session| {
            for (measure, count, statements) in &cases {
                let [without, with] = statements.each_ref().map(|statement| session.ns(statement));
                let each = (with - without) / *count as f64;
                findings.samples.add(turn * rounds + round, session.name, *measure, each);
            }
        });
    }
}

/// A server with that registry, or with none, that has shard 5.
pub(super) fn builder(conninfo: &str, node: &str) -> Builder {
    as_node(server::builder(), node, conninfo).setting("pg_snowflake.owned_shards", "5")
}

impl Session {
    fn start(name: &'static str, registry: &Registry, turn: usize) -> Self {
        let conninfo = if name == WITH { registry.conninfo() } else { String::new() };
        let server = builder(&conninfo, &format!("db-{turn}")).start();
        // Not the session that created the extension: it has a larger table of locks, which each commit reads.
        drop(server::database_of(&server, &OURS));
        let mut client = server::connect(&server, &OURS);
        first_id(&mut client, &format!("SELECT {}", OURS.take_one().expect("a call returns one")));
        Session { name, client, _server: server }
    }

    /// The nanoseconds that a statement takes.
    fn ns(&mut self, statement: &str) -> f64 {
        let began = Instant::now();
        self.client.batch_execute(statement).expect("IDs are returned");
        began.elapsed().as_nanos() as f64
    }
}
