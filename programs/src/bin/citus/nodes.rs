//! A node that is added, and gets a part of the shards, while clients write.

use pg_snowflake_harness::ask::{printed, run};
use pg_snowflake_harness::citus::{Fleet, TABLES, Way, rows_and_ids, strangers, while_writing};
use pg_snowflake_programs::output::{Claims, say, step};
use pg_snowflake_programs::record::thousands;
use std::time::Instant;

/// Rows of each table before the node is added.
const ROWS: usize = 100_000;

/// Adds a node, and moves shards to it.
pub fn show(fleet: &mut Fleet, claims: &mut Claims) {
    step("a node is added while clients of all nodes write, and gets a part of the shards");
    let mut coordinator = fleet.coordinator();
    run(&mut coordinator, "TRUNCATE posts, homed_posts");
    for table in TABLES {
        Way::SelectFunction.insert(&mut coordinator, table, ROWS);
    }
    // A session that knows the ranges of before.
    let mut old = fleet.nodes[1].connect();
    Way::SingleRows.insert(&mut old, "homed_posts", 1);

    let (written, (added, before)) = while_writing(fleet, &TABLES, |fleet| {
        let began = Instant::now();
        let added = fleet.add_node();
        let mut client = fleet.nodes[added].connect();
        TABLES.iter().for_each(|table| Way::SingleRows.insert(&mut client, table, 1000));
        say(&format!("node {added} inserts rows after {:.1} s", began.elapsed().as_secs_f64()));
        let shards = "SELECT count(*) FROM citus_shards WHERE table_name = 'homed_posts'::regclass
                      AND nodename = (SELECT nodename FROM pg_dist_node WHERE groupid = 1)";
        let before = printed(&mut coordinator, shards);
        run(&mut coordinator, "SELECT rebalance_table_shards()");
        say(&format!(
            "rebalanced after {:.1} s: node 1 has {} shards of a table instead of {before}",
            began.elapsed().as_secs_f64(),
            printed(&mut coordinator, shards),
        ));
        (added, before)
    });
    let (posts, ids) = rows_and_ids(&mut coordinator, "posts", "id");
    let (homed, homed_ids) = rows_and_ids(&mut coordinator, "homed_posts", "id");
    let expected = 2 * (ROWS as i64 + 1000) + 1 + written;
    claims.check(
        (ids, homed_ids) == (posts, homed) && posts + homed == expected,
        &format!(
            "all {} rows are there, {} of them written meanwhile, and no ID is a duplicate",
            thousands(expected),
            thousands(written)
        ),
    );
    let of_added = format!("SELECT count(*) FROM posts WHERE snowflake_shard_id(id) = {added}");
    claims.check(
        printed(&mut coordinator, &of_added).parse::<i64>().expect("a count") >= 1000,
        &format!("node {added} generates IDs of shard {added}"),
    );

    let after = "INSERT INTO homed_posts (body) VALUES ('after')";
    let mut new = fleet.nodes[added].connect();
    for _ in 0..500 {
        run(&mut old, after);
        run(&mut new, after);
    }
    let elsewhere = strangers(&mut coordinator, "homed_posts", "body = 'after'");
    claims.check(
        elsewhere == "0" && before != "0",
        &format!(
            "homed IDs are at home again, in sessions of before and on the new node ({elsewhere} of 1,000 are not)"
        ),
    );
}
