//! `snowflake_convert_column`: the columns of live tables begin to generate ids.

mod cases;
mod columns;
mod postgres_18;
mod refusals;
mod roles;
mod shard_check;
mod writers;

use pg_snowflake_servertest::Cluster;
use postgres::Client;

/// A new database of that name with the extension, what `setup` makes in it, and a session.
fn database(cluster: &Cluster, name: &str, setup: &str) -> Client {
    let mut client = cluster.fresh_database(name);
    run(&mut client, setup);
    client
}

/// Runs statements that have to succeed.
fn run(client: &mut Client, sql: &str) {
    client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// What `pg_dump` writes for a database, without the key that newer ones draw anew each time.
fn dump(cluster: &Cluster, database: &str) -> String {
    let dump = cluster.dump(database);
    let is_of_the_database = |line: &&str| !line.contains("restrict ");
    dump.lines().filter(is_of_the_database).collect::<Vec<_>>().join("\n")
}
