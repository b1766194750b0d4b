//! A router and the servers behind it: many logical shards on few servers, with `postgres_fdw` in between.
//!
//! A logical shard is a schema: tables, foreign keys between them, and the sequence that generates its IDs. The SQL is in `docs/routing`.

pub mod audit;
pub mod relocation;
pub mod writers;

use crate::ask::reload_with;
use crate::cluster::{Builder, Cluster, SUPERUSER};
use crate::leases::Registry;
use crate::wait::wait_for;
use postgres::Client;

const ROUTER: &str = include_str!("../../docs/routing/router.sql");
const SHARD: &str = include_str!("../../docs/routing/shard.sql");
const ROUTE: &str = include_str!("../../docs/routing/route.sql");

/// A router, its servers, and the server of each shard.
pub struct Fleet {
    /// The server that clients connect to, without rows of its own.
    pub router: Cluster,
    /// The servers that have the rows.
    pub servers: Vec<Cluster>,
    /// For each logical shard the number of its server.
    homes: Vec<usize>,
    registry: Option<Registry>,
}

/// The name of a logical shard: its schema, and on the router its foreign server.
pub fn schema(shard: usize) -> String {
    format!("shard_{shard}")
}

impl Fleet {
    /// A router, and this many servers with the logical shards assigned to them in turn.
    pub fn start(servers: usize, shards: usize) -> Fleet {
        Self::start_with(None, servers, shards)
    }

    /// The same with a lease for each logical shard, which its server holds.
    pub fn start_with_leases(servers: usize, shards: usize) -> Fleet {
        Self::start_with(Some(Registry::start()), servers, shards)
    }

    fn start_with(registry: Option<Registry>, servers: usize, shards: usize) -> Fleet {
        let router = settings_of_all(Cluster::builder()).start();
        router.psql(SUPERUSER, ROUTER);
        let mut fleet = Fleet { router, servers: Vec::new(), homes: (0..shards).map(|shard| shard % servers).collect(), registry };
        for _ in 0..servers {
            fleet.add_server();
        }
        for shard in fleet.shards() {
            fleet.create_shard(shard, fleet.homes[shard]);
            fleet.router.psql(SUPERUSER, &format!("{}{ROUTE}", fleet.variables(shard)));
        }
        fleet
    }

    /// Starts another server, without shards, and returns its number.
    pub fn add_server(&mut self) -> usize {
        let number = self.servers.len();
        let builder = match &self.registry {
            Some(registry) => registry.node(&format!("server-{number}")).setting("pg_snowflake.owned_shards", &self.owned_shards(number)),
            None => Cluster::builder(),
        };
        self.servers.push(settings_of_all(builder).start());
        if self.registry.is_some() {
            self.wait_for_leases(number);
        }
        number
    }

    /// The shards of a server, as `pg_snowflake.owned_shards` lists them.
    fn owned_shards(&self, server: usize) -> String {
        let is_home = |&shard: &usize| self.homes[shard] == server;
        self.shards().filter(is_home).map(|shard| shard.to_string()).collect::<Vec<_>>().join(",")
    }

    /// Has the servers claim and release leases, so that each holds those of its shards.
    fn assign_leases(&self, servers: impl IntoIterator<Item = usize>) {
        for server in servers {
            let mut client = self.servers[server].connect();
            let owned = self.owned_shards(server);
            reload_with(&mut client, &format!("ALTER SYSTEM SET pg_snowflake.owned_shards = '{owned}'"));
            self.wait_for_leases(server);
        }
    }

    /// Waits until a server holds the leases of its shards, and no others. One without shards gets some other number.
    fn wait_for_leases(&self, server: usize) {
        let owned = self.owned_shards(server);
        let leased = "SELECT string_agg(shard_id::text, ',' ORDER BY shard_id) FROM snowflake_lease_status() WHERE state = 'held'";
        let holds = match owned.as_str() {
            "" => format!("SELECT ({leased})::int >= {}", self.homes.len()),
            owned => format!("SELECT ({leased}) = '{owned}'"),
        };
        wait_for(&mut self.servers[server].connect(), &holds, "the server holds its leases");
    }

    pub fn shards(&self) -> std::ops::Range<usize> {
        0..self.homes.len()
    }

    pub fn home(&self, shard: usize) -> &Cluster {
        &self.servers[self.homes[shard]]
    }

    /// A connection to the server that a logical shard is on, with the shard's tables on its search path.
    pub fn connect_to_shard(&self, shard: usize) -> Client {
        let mut client = self.home(shard).connect();
        client.batch_execute(&format!("SET search_path = {}, public", schema(shard))).expect("the path can be set");
        client
    }

    /// Creates the schema of a shard on that server, with empty tables.
    fn create_shard(&self, shard: usize, server: usize) {
        self.servers[server].psql(SUPERUSER, &format!("{}{SHARD}", self.variables(shard)));
    }

    /// The psql variables for the scripts of a shard.
    fn variables(&self, shard: usize) -> String {
        format!(
            "\\set shard {shard}\n\\set shards {}\n\\set schema {}\n\\set host '{}'\n\\set dbname {SUPERUSER}\n",
            self.homes.len(),
            schema(shard),
            self.home(shard).dir().display()
        )
    }
}

/// Of a server that others can subscribe to. Its IDs may be ahead of the clock, as after a clock that was fast.
fn settings_of_all(builder: Builder) -> Builder {
    builder
        .setting("wal_level", "logical")
        .setting("pg_snowflake.max_lead", "2h")
        // Far above the time that a swap waits for a lock: the swap gives way, and no client is terminated.
        .setting("deadlock_timeout", "10min")
}
