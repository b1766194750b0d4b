//! Leases: only one server at a time generates IDs for a shard.

mod activity;
mod cached;
mod copies;
mod errors;
mod extension;
mod holders;
mod numbers;
mod outage;
mod registry;
mod rollback;
mod settings;
mod without;

use pg_snowflake_harness::leases::{GENERATE, Registry, holder, make_registry, start, wants_shard_5};
use pg_snowflake_harness::prelude::*;

/// A lease that does not end while a test runs.
const LONG: &str = "5min";

/// A lease whose end a test waits for.
const SHORT: &str = "1s";

const NO_EXTENSION: &str = "registry does not have the extension pg_snowflake_registry";

const NO_LEASE: Refusal = refusal("55000", "no lease for shard 5");

/// The view of the leases, with the columns that only the table has.
const LEASES: &str = "snowflake_registry.leases NATURAL JOIN snowflake_registry.shards";

/// Claims and releases in SQL: `claim` and `release`.
const HELPERS: &str = include_str!("../data/registry.sql");

/// A registry in a database that generates no IDs, with [`HELPERS`].
fn registry() -> (Database, Client) {
    let database = Database::empty();
    let mut client = database.connect();
    run(&mut client, &format!("CREATE EXTENSION pg_snowflake_registry; {HELPERS}"));
    (database, client)
}

/// The same in the database `postgres` of a server.
fn registry_on(cluster: &Cluster) -> Client {
    let mut client = make_registry(cluster);
    run(&mut client, HELPERS);
    client
}

/// The claim of a server for a shard that it does not hold.
fn claim(columns: &str, shard_ids: &str, node: &str, incarnation: usize) -> String {
    format!("SELECT {columns} FROM claim({shard_ids}, '{node}', {incarnation}, NULL, {incarnation})")
}

/// An expression over the registry's row of shard 5.
fn of_lease(registry: &Registry, expression: &str) -> String {
    printed(&mut registry.cluster.connect(), &format!("SELECT {expression} FROM {LEASES} WHERE shard_id = 5"))
}

fn wait_for_lease(registry: &Registry, condition: &str) {
    wait_for(&mut registry.cluster.connect(), &format!("SELECT {condition} FROM {LEASES} WHERE shard_id = 5"), condition);
}

/// Waits until the server has an answer of the registry, or another reason for not having a lease, that is like that.
fn wait_for_error(client: &mut Client, pattern: &str) {
    wait_for(client, &format!("SELECT registry_error LIKE '{pattern}' FROM snowflake_lease_status()"), pattern);
}

fn set(cluster: &Cluster, setting: &str, value: &str) {
    reload_with(&mut cluster.connect(), &format!("ALTER SYSTEM SET pg_snowflake.{setting} = '{value}'"));
}
