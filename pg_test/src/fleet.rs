//! A router and the servers behind it: many logical shards on few servers, with `postgres_fdw` in between.
//!
//! A logical shard is a schema: tables, foreign keys between them, and the sequence that generates its ids. The SQL is in
//! `pg_test/cluster`.

pub mod audit;
pub mod relocation;
pub mod writers;

use crate::cluster::{Cluster, SUPERUSER};
use crate::installation;
use postgres::Client;

const ROUTER: &str = include_str!("../cluster/router.sql");
const SHARD: &str = include_str!("../cluster/shard.sql");
const ROUTE: &str = include_str!("../cluster/route.sql");

/// A router, its servers, and the server of each shard.
pub struct Fleet {
    /// The server that clients connect to, without rows of its own.
    pub router: Cluster,
    /// The servers that have the rows.
    pub servers: Vec<Cluster>,
    /// For each logical shard the number of its server.
    homes: Vec<usize>,
}

/// Whether the installation has `postgres_fdw`, without which there is no router.
pub fn is_available() -> bool {
    installation::has_module("postgres_fdw")
}

/// The name of a logical shard: its schema, and on the router its foreign server.
pub fn schema(shard: usize) -> String {
    format!("shard_{shard}")
}

impl Fleet {
    /// A router, and this many servers with the logical shards assigned to them in turn.
    pub fn start(servers: usize, shards: usize) -> Fleet {
        let router = server();
        router.psql(SUPERUSER, ROUTER);
        let fleet = Fleet {
            router,
            servers: (0..servers).map(|_| server()).collect(),
            homes: (0..shards).map(|shard| shard % servers).collect(),
        };
        for shard in fleet.shards() {
            fleet.create_shard(shard, fleet.homes[shard]);
            let route = format!("{}{ROUTE}", fleet.variables(shard));
            fleet.router.psql(SUPERUSER, &route);
        }
        fleet
    }

    /// Starts another server, without shards, and returns its number.
    pub fn add_server(&mut self) -> usize {
        self.servers.push(server());
        self.servers.len() - 1
    }

    /// The numbers of the logical shards.
    pub fn shards(&self) -> std::ops::Range<usize> {
        0..self.homes.len()
    }

    /// The server that a logical shard is on.
    pub fn home(&self, shard: usize) -> &Cluster {
        &self.servers[self.homes[shard]]
    }

    /// A connection to the server that a logical shard is on, with the shard's tables on its search path.
    pub fn connect_to_shard(&self, shard: usize) -> Client {
        let mut client = self.home(shard).connect();
        client
            .batch_execute(&format!("SET search_path = {}, public", schema(shard)))
            .expect("the path can be set");
        client
    }

    /// Creates the schema of a shard on that server, with empty tables.
    fn create_shard(&self, shard: usize, server: usize) {
        let script = format!("{}{SHARD}", self.variables(shard));
        self.servers[server].psql(SUPERUSER, &script);
    }

    /// The psql variables for the scripts of a shard.
    fn variables(&self, shard: usize) -> String {
        format!(
            "\\set shard {shard}\n\\set shards {}\n\\set schema {}\n\\set host '{}'\n",
            self.homes.len(),
            schema(shard),
            self.home(shard).dir().display()
        )
    }
}

/// A server that others can subscribe to. Its ids may be ahead of the clock, as after a clock that was fast.
fn server() -> Cluster {
    Cluster::builder()
        .setting("wal_level", "logical")
        .setting("pg_snowflake.max_lead", "2h")
        // Far above the time that a swap waits for a lock: the swap gives way, and no client is terminated.
        .setting("deadlock_timeout", "10min")
        .start()
}
