//! `snowflake_create_partitions` and `snowflake_drop_partitions`: the partitions by time of a table that is partitioned by a
//! range of its IDs.

mod concurrency;
mod creation;
mod proof;
mod removal;
mod roles;

use pg_snowflake_harness::ask::{database, printed, run};
use pg_snowflake_harness::id::now_ms;
use pg_snowflake_harness::{Cluster, Database};
use postgres::Client;

/// The clock of [`server_at_noon`]: a Monday.
const NOON: &str = "2026-11-23 12:00:00+00";

/// [`NOON`] as a Unix time in milliseconds.
const NOON_MS: i64 = 1_795_435_200_000;

/// A server at [`NOON`].
fn server_at_noon() -> (Cluster, Client) {
    let cluster = Cluster::builder().fake_clock().start();
    set_hours_from_noon(&cluster, 0.0);
    let mut client = cluster.connect();
    assert_eq!(printed(&mut client, &format!("SELECT now() - '{NOON}' < interval '5 min'")), "t");
    run(&mut client, "SET timezone = 'UTC'; SET datestyle = 'ISO'");
    (cluster, client)
}

/// Sets the clock to [`NOON`] and that many hours.
fn set_hours_from_noon(cluster: &Cluster, hours: f64) {
    cluster.set_clock((NOON_MS - now_ms()) as f64 / 1000.0 + hours * 3600.0);
}

/// The rows of `snowflake_create_partitions`, without their times and without the name of the table.
fn created(client: &mut Client, arguments: &str) -> String {
    outcome(client, "snowflake_create_partitions", arguments)
}

/// The rows of `snowflake_drop_partitions`, in the same way.
fn dropped(client: &mut Client, arguments: &str) -> String {
    outcome(client, "snowflake_drop_partitions", arguments)
}

fn outcome(client: &mut Client, function: &str, arguments: &str) -> String {
    printed(client, &format!("SELECT action, partition, message FROM {function}({arguments})"))
}

/// The names of the partitions of `posts`, in the order of their bounds.
fn partitions(client: &mut Client) -> String {
    printed(
        client,
        "SELECT string_agg(c.relname, ' ' ORDER BY substring(pg_get_expr(relpartbound, c.oid) FROM '\\d+')::bigint, c.relname)
         FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid WHERE inhparent = 'posts'::regclass",
    )
}

/// A table `posts` whose IDs are those of shard 5.
const POSTS: &str = "CREATE SEQUENCE posts_id_seq;
    CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5), body text)
        PARTITION BY RANGE (id);";

/// A partition of `posts` with the IDs of a month, and one row, of its 15th.
fn month(month: &str) -> String {
    let name = month.replace('-', "");
    format!(
        "CREATE TABLE posts_p{name}01 PARTITION OF posts FOR VALUES FROM (snowflake_min_id('{month}-01 00:00+00'))
             TO (snowflake_min_id(timestamptz '{month}-01 00:00+00' + interval '1 month'));
         INSERT INTO posts VALUES (snowflake_min_id('{month}-15 00:00+00'), '{month}');"
    )
}

/// A partition of `posts` with the IDs of a layout from one time to another.
fn partition(name: &str, from: &str, to: &str, layout: &str) -> String {
    format!(
        "CREATE TABLE {name} PARTITION OF posts
             FOR VALUES FROM (snowflake_min_id('{from} 00:00+00', '{layout}')) TO (snowflake_min_id('{to} 00:00+00', '{layout}'));"
    )
}

/// A partition of `posts` from a month to the current one, and a row of now.
fn filled_from(month: &str) -> String {
    let name = month.replace('-', "");
    format!(
        "CREATE TABLE posts_p{name}01 PARTITION OF posts FOR VALUES FROM (snowflake_min_id('{month}-01 00:00+00'))
             TO (snowflake_min_id(date_trunc('month', now(), 'UTC')));
         SELECT snowflake_create_partitions('posts', '1 month', 0);
         INSERT INTO posts DEFAULT VALUES;"
    )
}

/// A database with `posts` of some months, and in one more partition those from `next` up to now.
fn old_posts(months: &[&str], next: &str) -> (Database, Client) {
    let (database, mut client) = database();
    let months: String = months.iter().map(|name| month(name)).collect();
    run(&mut client, &format!("{POSTS}{months}{}", filled_from(next)));
    (database, client)
}
