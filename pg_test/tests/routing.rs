//! Routing: the shard in an ID determines the partition of its row, and the server.

pub mod class;
mod locate;
mod relocation;
mod router;
mod servers;
mod without_extension;

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::printed;
use std::ops::RangeInclusive;

/// The ID of that shard in the default layout.
fn id_of_shard(shard: i64) -> i64 {
    id_of(shard, 1_387_263_000)
}

/// Another ID of that shard.
fn other_id_of_shard(shard: i64) -> i64 {
    id_of(shard, 1_387_263_001)
}

/// The ID with these bits above the shard, with which the shard is XORed.
fn id_of(shard: i64, above: i64) -> i64 {
    above << 12 | (shard ^ above & 4095)
}

/// A query for [`id_of_shard`] of each of these.
fn ids_of_shards(shards: RangeInclusive<i64>) -> String {
    let (first, last) = shards.into_inner();
    let zero = id_of_shard(0);
    format!("SELECT {zero} # shard FROM generate_series({first}::bigint, {last}) AS shard")
}

/// Where `postgres_fdw` finds the server of a database.
fn host(database: &Database) -> String {
    printed(&mut database.connect(), "SHOW unix_socket_directories")
}
