//! `snowflake_convert_column`: converts columns of live tables to generated IDs.

mod cases;
mod columns;
mod postgres_18;
mod roles;
mod writers;

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::run;
use postgres::Client;

/// Creates a database of that name with the extension, runs `setup` in it, and returns a session.
fn database(cluster: &Cluster, name: &str, setup: &str) -> Client {
    let mut client = cluster.fresh_database(name);
    run(&mut client, setup);
    client
}

/// The output of `pg_dump` for a database, without the random key that newer versions write.
fn dump(cluster: &Cluster, database: &str) -> String {
    let dump = cluster.dump(database);
    let is_of_the_database = |line: &&str| !line.contains("restrict ");
    dump.lines().filter(is_of_the_database).collect::<Vec<_>>().join("\n")
}
