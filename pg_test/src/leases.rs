//! A registry of leases, and servers that generate IDs by its leases.

use crate::ask::run;
use crate::installation::{self, System};
use crate::wait::{PATIENCE, comes_true};
use crate::{Builder, Cluster};
use nix::sys::signal::{Signal, kill};
use postgres::Client;
use std::os::unix::fs::symlink;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Makes the database `postgres` of a server a registry, without the extension that generates IDs, and returns a superuser's
/// connection to it.
pub fn make_registry(cluster: &Cluster) -> Client {
    let mut client = cluster.connect();
    client.batch_execute("DROP EXTENSION IF EXISTS pg_snowflake; CREATE EXTENSION pg_snowflake_registry").expect("a superuser");
    client
}

/// What a server's role needs in the registry. It is `node`.
pub const GRANTS: &str = "
    GRANT USAGE ON SCHEMA snowflake_registry TO node;
    GRANT EXECUTE ON FUNCTION snowflake_registry.id, snowflake_registry.claim, snowflake_registry.release TO node";

/// Changes the tables of a registry as a restore does that disables their triggers.
pub fn change_by_hand(superuser: &mut Client, statement: &str) {
    let triggers = |change: &str| {
        let of_table = |table| format!("ALTER TABLE snowflake_registry.{table} {change} TRIGGER refuse_change;");
        ["identity", "nodes", "shards"].map(of_table).concat()
    };
    let script = format!("BEGIN; {} {statement}; {} COMMIT", triggers("DISABLE"), triggers("ENABLE ALWAYS"));
    superuser.batch_execute(&script).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// A registry: the database `postgres` of a server, with a role that may do what a server needs.
pub struct Registry {
    pub cluster: Cluster,
    /// Has the link that is the registry's address, as a name of its own would be in a network.
    address: TempDir,
}

impl Registry {
    pub fn start() -> Self {
        Self::start_with(Cluster::builder())
    }

    pub fn start_with(builder: Builder) -> Self {
        let cluster = builder.of_system(System::Registry).without_extension().start();
        make_registry(&cluster).batch_execute(&format!("CREATE ROLE node LOGIN; {GRANTS}")).expect("a superuser");
        let registry = Registry { cluster, address: installation::temp_dir() };
        registry.publish();
        registry
    }

    /// What `pg_snowflake.registry` is set to.
    pub fn conninfo(&self) -> String {
        format!("host={}/registry user=node dbname=postgres", self.address.path().display())
    }

    /// Builds a server of that name which generates IDs by the registry's leases.
    pub fn node(&self, name: &str) -> Builder {
        node(name, &self.conninfo())
    }

    /// Another server with the registry takes over its address.
    pub fn move_to(&mut self, cluster: Cluster) {
        self.cluster = cluster;
        self.publish();
    }

    fn publish(&self) {
        let [new, address] = ["new", "registry"].map(|name| self.address.path().join(name));
        symlink(self.cluster.dir(), &new).expect("the folder is ours");
        std::fs::rename(new, address).expect("the folder is ours");
    }
}

/// Builds a server of that name whose registry is at `conninfo`.
pub fn node(name: &str, conninfo: &str) -> Builder {
    as_node(Cluster::builder(), name, conninfo)
}

/// Makes a server a node of that name whose registry is at `conninfo`.
pub fn as_node(builder: Builder, name: &str, conninfo: &str) -> Builder {
    builder
        .setting("shared_preload_libraries", "pg_snowflake")
        .setting("pg_snowflake.registry", conninfo)
        .setting("pg_snowflake.node", name)
}

/// An ID of shard 5.
pub const GENERATE: &str = "SELECT snowflake_nextval('s', 5)";

pub fn wants_shard_5(registry: &Registry, name: &str, lease: &str) -> Builder {
    registry.node(name).setting("pg_snowflake.shard_id", "5").setting("pg_snowflake.lease", lease)
}

/// Starts a server with a sequence `s`.
pub fn start(builder: Builder) -> (Cluster, Client) {
    let cluster = builder.start();
    let mut client = cluster.connect();
    run(&mut client, "CREATE SEQUENCE s");
    (cluster, client)
}

/// A registry, and a server with a session that has shard 5 for that time.
pub fn holder(lease: &str) -> (Registry, Cluster, Client) {
    let registry = Registry::start();
    let (server, mut client) = start(wants_shard_5(&registry, "db-1", lease));
    first_id(&mut client, GENERATE);
    (registry, server, client)
}

/// Lets the lease worker see a fake clock. PostgreSQL 15 starts it in a signal handler during `select`, in which libfaketime leaves
/// the clock alone, and so it does forever in a process that begins there. A worker that starts again begins elsewhere.
pub fn restart_worker(server: &Cluster) {
    let workers = || server.processes("lease worker");
    assert!(comes_true(|| !workers().is_empty()), "there is no lease worker");
    let first = workers();
    for &worker in &first {
        kill(worker, Signal::SIGTERM).expect("the process is ours");
    }
    let is_new = || workers().iter().any(|worker| !first.contains(worker));
    assert!(comes_true(is_new), "the lease worker does not start again");
}

/// Waits until a query that returns an ID is no longer refused, and returns the ID.
pub fn first_id(client: &mut Client, query: &str) -> i64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match client.query_one(query, &[]) {
            Ok(row) => return row.get(0),
            Err(error) if is_refusal(&error) && Instant::now() < deadline => {
                sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{query}: {error:?}"),
        }
    }
}

/// How many sessions of servers in the registry wait for that event, or for one of that type.
pub fn waiting_sessions(registry: &Registry, event: &str) -> i64 {
    let query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'node' AND $1 IN (wait_event_type, wait_event)";
    let row = registry.cluster.connect().query_one(query, &[&event]);
    row.expect("a superuser sees all sessions").get(0)
}

/// Keeps the answers of the registry back until the transaction of this session ends.
pub fn answers_kept_back(registry: &Registry) -> Client {
    let mut client = registry.cluster.connect();
    client.batch_execute("BEGIN; LOCK TABLE snowflake_registry.shards").expect("a superuser");
    client
}

/// Whether a call was refused because of the server's state.
pub fn is_refusal(error: &postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code() == "55000")
}
