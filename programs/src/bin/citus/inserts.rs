//! A million rows from all nodes at once, by each way of inserting.

use pg_snowflake_harness::ask::{printed, run};
use pg_snowflake_harness::citus::{Fleet, TABLES, Way, default_of, rows_and_ids, strangers};
use pg_snowflake_programs::output::{Claims, say, step};
use pg_snowflake_programs::record::thousands;
use postgres::Client;
use std::time::Instant;

/// How many rows each way of inserting adds to a table.
pub const ROWS: usize = 1_000_000;

const CLIENTS: usize = 2;

/// Inserts into both tables, and adds a column with a default to the rows of one.
pub fn show(fleet: &Fleet, claims: &mut Claims) {
    let mut coordinator = fleet.coordinator();
    for table in TABLES {
        for way in Way::ALL {
            let short = way.statement(table, ROWS / fleet.nodes.len());
            let short = match short.split_once("), (") {
                Some((first, _)) => format!("{first}), …"),
                None => short,
            };
            step(&format!(
                "{} rows from {} nodes: {short}",
                thousands(ROWS as i64),
                fleet.nodes.len()
            ));
            run(&mut coordinator, &format!("TRUNCATE {table}"));
            let began = Instant::now();
            // The statement that reads a whole table is one on each node.
            let clients = if way == Way::SelectTable { 1 } else { CLIENTS };
            fleet.insert_at_once(way, table, ROWS / fleet.nodes.len(), clients);
            let took = began.elapsed().as_secs_f64();
            let (rows, ids) = rows_and_ids(&mut coordinator, table, "id");
            say(&format!("{} rows per second", thousands((rows as f64 / took) as i64)));
            let shards = format!(
                "SELECT string_agg(shard || ': ' || rows, ', ' ORDER BY shard)
                 FROM (SELECT snowflake_shard_id(id) AS shard, count(*) AS rows FROM {table} GROUP BY 1) AS shards"
            );
            say(&format!("rows of each shard: {}", printed(&mut coordinator, &shards)));
            check(rows, ids, claims);
            if table == "homed_posts" {
                let elsewhere = strangers(&mut coordinator, table, "snowflake_shard_id(id) > 0");
                claims.check(
                    elsewhere == "0",
                    &format!(
                        "{elsewhere} rows of workers are not on the worker that generated their ID"
                    ),
                );
            }
        }
    }
    for table in TABLES {
        add_column(&mut coordinator, table, claims);
    }
}

/// Adds a column with the default of a table to the rows of `posts`, all at once.
fn add_column(coordinator: &mut Client, table: &str, claims: &mut Claims) {
    let add = format!(
        "ALTER TABLE posts ADD COLUMN of_{table} bigint DEFAULT {}",
        default_of(coordinator, table)
    );
    step(&add);
    run(coordinator, &add);
    let (rows, ids) = rows_and_ids(coordinator, "posts", &format!("of_{table}"));
    check(rows, ids, claims);
}

fn check(rows: i64, ids: i64, claims: &mut Claims) {
    claims.check(
        rows == ROWS as i64 && ids == rows,
        &format!("{} rows have {} different IDs", thousands(rows), thousands(ids)),
    );
}
