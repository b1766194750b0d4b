//! Moves a logical shard to another server while clients use it.
//!
//! Logical replication copies the tables and follows the changes. The swap then has three transactions, each inside
//! the one before it, so that two servers never accept writes for the shard at the same time:
//!
//! 1. on the router: the shard's foreign tables are locked, so that clients of the router wait;
//! 2. on the old server: its tables and its sequence are locked, so that direct clients wait; the new server gets the last changes and the
//!    state of the sequence; the schema is renamed, and the transaction commits: from here on the old server refuses writes;
//! 3. on the router: the foreign server's address is changed, and the transaction commits: from here on the new server accepts the writes.
//!
//! A failure before the commit of 2 changes nothing. One between the commits leaves a shard that nobody can write to until
//! 3 is done by hand, and loses nothing.

use super::{Fleet, schema};
use crate::ask::run;
use crate::wait::{PATIENCE, wait_for};
use postgres::error::SqlState;
use postgres::{Client, Error};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the first attempt of a swap waits for a lock, in milliseconds. If a client and the swap wait for each other's
/// locks, the swap gives way, and the client notices only the wait. Each further attempt waits twice as long, up to
/// [`MAX_LOCK_WAIT_MS`], because the client's transactions may take longer than the first attempt waited.
const FIRST_LOCK_WAIT_MS: u64 = 100;

/// Far below the `deadlock_timeout` of the servers, after which PostgreSQL might cancel the client's statement instead.
const MAX_LOCK_WAIT_MS: u64 = 10_000;

/// The foreign tables of a shard, in the order in which clients of the router usually lock them.
const FOREIGN_TABLES: [&str; 4] = ["posts", "posts_by_user", "users", "comments"];

/// A shard that was copied to its new server, where replication keeps it up to date.
pub struct Copied {
    shard: usize,
    to: usize,
    clients: Clients,
}

/// Copies a logical shard to the server with that number, which follows its changes from then on.
pub fn copy(fleet: &Fleet, shard: usize, to: usize) -> Copied {
    fleet.create_shard(shard, to);
    let mut clients = Clients {
        router: fleet.router.connect(),
        old: fleet.home(shard).connect(),
        beside: fleet.home(shard).connect(),
        new: fleet.servers[to].connect(),
    };
    clients.replicate(&schema(shard), &fleet.home(shard).dir().display().to_string());
    Copied { shard, to, clients }
}

/// Puts the copy in the place of the shard. The old tables stay, under another name: see [`forget`]. Returns the number of attempts:
/// the swap gives way to clients that hold its locks.
pub fn swap(fleet: &mut Fleet, copied: Copied) -> u32 {
    let Copied { shard, to, mut clients } = copied;
    let (name, address) = (schema(shard), fleet.servers[to].dir().display().to_string());
    let deadline = Instant::now() + PATIENCE;
    let mut attempts = 0;
    let mut lock_wait_ms = FIRST_LOCK_WAIT_MS;
    loop {
        attempts += 1;
        assert!(Instant::now() < deadline, "the swap of {name} does not get its locks");
        match clients.swap(fleet, (shard, to), &address, lock_wait_ms) {
            Ok(()) => break,
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                clients.give_way();
                lock_wait_ms = MAX_LOCK_WAIT_MS.min(2 * lock_wait_ms);
            }
            Err(error) => panic!("the swap of {name} failed: {error:?}"),
        }
    }
    clients.end_replication(&name);
    attempts
}

/// Removes the tables that a moved shard has left on a server.
pub fn forget(client: &mut Client, shard: usize) {
    client.batch_execute(&format!("DROP SCHEMA {}_moved CASCADE", schema(shard))).expect("the old tables can be dropped");
}

/// Sessions on the three servers involved.
struct Clients {
    router: Client,
    old: Client,
    /// Another session on the old server, which can commit while the first holds its locks.
    beside: Client,
    new: Client,
}

impl Clients {
    /// Copies the tables and waits until replication follows them all.
    fn replicate(&mut self, name: &str, old_host: &str) {
        run(&mut self.old, &format!("CREATE PUBLICATION {name} FOR TABLES IN SCHEMA {name}"));
        // It confirms what it has on disk, which without synchronous_commit is up to 200 ms late.
        let sql = format!(
            "CREATE SUBSCRIPTION {name} CONNECTION 'host={old_host} dbname=postgres user=postgres'
             PUBLICATION {name} WITH (synchronous_commit = local)"
        );
        run(&mut self.new, &sql);
        wait_for(&mut self.new, "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel", "the copy is complete");
        // As close as possible before any client must wait.
        self.catch_up(name);
    }

    fn swap(&mut self, fleet: &mut Fleet, (shard, to): (usize, usize), address: &str, lock_wait_ms: u64) -> Result<(), Error> {
        let name = &schema(shard);
        self.hold_the_router(name, lock_wait_ms)?;
        self.hold_the_old_server(name, lock_wait_ms)?;
        self.catch_up(name);
        if fleet.registry.is_none() {
            self.carry_the_sequence(name);
        }
        self.old.batch_execute(&format!("ALTER SCHEMA {name} RENAME TO {name}_moved; COMMIT"))?;
        let from = std::mem::replace(&mut fleet.homes[shard], to);
        if fleet.registry.is_some() {
            // The new holder's span begins above what the old one has used, so the state of the sequence does not matter.
            fleet.assign_leases([from, to]);
        }
        // The old server is closed: the swap cannot give way any more, whatever the error.
        run(&mut self.router, &format!("ALTER SERVER {name} OPTIONS (SET host '{address}'); COMMIT"));
        Ok(())
    }

    /// Locks the shard's foreign tables, and those of no other shard, by an ALTER that changes nothing.
    fn hold_the_router(&mut self, name: &str, lock_wait_ms: u64) -> Result<(), Error> {
        let lock = FOREIGN_TABLES.map(|table| format!("ALTER FOREIGN TABLE {name}.{table} OPTIONS (SET schema_name '{name}')"));
        self.router.batch_execute(&format!("BEGIN; SET LOCAL lock_timeout = {lock_wait_ms}; {}", lock.join(";")))
    }

    /// Locks the tables and the sequence of the old server. LOCK TABLE cannot lock a sequence; ALTER SEQUENCE CYCLE does, and waits for
    /// transactions that have taken an ID and not yet committed. CYCLE also makes calls that wait for the sequence fail: they have looked
    /// up its OID, so a new name would not stop them from generating an ID that the new server generates as well.
    fn hold_the_old_server(&mut self, name: &str, lock_wait_ms: u64) -> Result<(), Error> {
        self.old.batch_execute(&format!(
            "BEGIN; SET LOCAL lock_timeout = {lock_wait_ms};
             LOCK TABLE {name}.users, {name}.posts, {name}.comments IN EXCLUSIVE MODE;
             ALTER SEQUENCE {name}.ids CYCLE"
        ))
    }

    /// Waits until the new server has, on disk, everything that was committed on the old one before.
    fn catch_up(&mut self, name: &str) {
        // Its commit flushes the log. Without that, the end of the log can stay in memory for a quarter of a minute on
        // an idle server, and replication sends only what is on disk.
        let end: String = self
            .beside
            .query_one("SELECT pg_logical_emit_message(true, 'relocation', $1)::text", &[&name])
            .expect("a message can be logged")
            .get(0);
        let caught_up = format!("SELECT confirmed_flush_lsn >= '{end}' FROM pg_replication_slots WHERE slot_name = '{name}'");
        wait_for(&mut self.beside, &caught_up, "replication has caught up");
    }

    /// Continues the sequence on the new server where the old one has stopped. Logical replication does not copy
    /// sequences, and the clock alone is not enough: the old one may be ahead of it.
    fn carry_the_sequence(&mut self, name: &str) {
        let state = self.old.query_one(&format!("SELECT last_value, is_called FROM {name}.ids"), &[]).expect("the sequence can be read");
        let (last, is_called): (i64, bool) = (state.get(0), state.get(1));
        run(&mut self.new, &format!("SELECT setval('{name}.ids', {last}, {is_called})"));
    }

    fn give_way(&mut self) {
        run(&mut self.old, "ROLLBACK");
        run(&mut self.router, "ROLLBACK");
        sleep(Duration::from_millis(50));
    }

    fn end_replication(&mut self, name: &str) {
        run(&mut self.new, &format!("DROP SUBSCRIPTION {name}"));
        run(&mut self.old, &format!("DROP PUBLICATION {name}"));
    }
}
