//! Routing: the shard in an ID determines the partition of its row, and the server.

pub mod class;
mod classes;
mod locate;
mod misuse;
mod plans;
mod relocation;
mod router;
mod servers;
mod without_extension;

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{database, printed};
use postgres::Client;
use std::ops::RangeInclusive;

/// The time and seq of the IDs here, whose low bits are XORed with the shard.
const ABOVE: i64 = 1_387_263_000;

/// The ID of that shard in the default layout.
fn id_of_shard(shard: i64) -> i64 {
    class::CLASSES[0].id_of_shard(shard, ABOVE)
}

/// Another ID of that shard.
fn other_id_of_shard(shard: i64) -> i64 {
    class::CLASSES[0].id_of_shard(shard, ABOVE + 1)
}

/// A query for [`id_of_shard`] of each of these.
fn ids_of_shards(shards: RangeInclusive<i64>) -> String {
    let id = class::CLASSES[0].sql_of_id("shard", &ABOVE.to_string());
    let (first, last) = shards.into_inner();
    format!("SELECT {id} FROM generate_series({first}, {last}) AS shard")
}

/// Where `postgres_fdw` finds the server of a database.
fn host(database: &Database) -> String {
    printed(&mut database.connect(), "SHOW unix_socket_directories")
}

/// Creates a table `NAME (KEY bigint PRIMARY KEY, REST)` with a local partition for every remainder.
fn partition_by_shard(client: &mut Client, name: &str, columns: &str, key: &str, modulus: i32) {
    partition_by_hash(client, name, columns, &format!("{key} snowflake_shard_ops"), modulus);
}

/// The same by a key with any operator class.
fn partition_by_hash(client: &mut Client, name: &str, columns: &str, key: &str, modulus: i32) {
    client
        .batch_execute(&format!("CREATE TABLE {name} ({columns}) PARTITION BY HASH ({key})"))
        .unwrap();
    for remainder in 0..modulus {
        client
            .batch_execute(&format!(
                "CREATE TABLE {name}_{remainder} PARTITION OF {name}
                 FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})"
            ))
            .unwrap();
    }
}

/// A database with the tables `posts` and `comments`, partitioned by the shard of the post into four, a post in each of
/// 64 shards and two comments on each.
fn posts_and_comments() -> (Database, Client) {
    posts_and_comments_of_each_shard(1)
}

/// The same with so many posts of each shard. What a plan of a few rows costs differs from major to major.
fn posts_and_comments_of_each_shard(posts: u32) -> (Database, Client) {
    let (database, mut client) = database();
    partition_by_shard(&mut client, "posts", "id bigint PRIMARY KEY, body text", "id", 4);
    partition_by_shard(&mut client, "comments", "post_id bigint NOT NULL, n int", "post_id", 4);
    client
        .batch_execute(&format!(
            "INSERT INTO posts SELECT {}, 'old' FROM generate_series(0, 63) AS shard, generate_series(0, {posts} - 1) AS n;
             INSERT INTO comments SELECT id, n FROM posts, generate_series(1, 2) AS n;
             ANALYZE",
            class::CLASSES[0].sql_of_id("shard", &format!("{ABOVE} + n"))
        ))
        .unwrap();
    (database, client)
}
