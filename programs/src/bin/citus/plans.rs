//! The nodes that a statement goes to.

use pg_snowflake_harness::ask::printed;
use pg_snowflake_harness::citus::Fleet;
use pg_snowflake_programs::output::{Claims, say, step};

/// Shows the plans of some statements, and checks how many shards they go to.
pub fn show(fleet: &Fleet, claims: &mut Claims) {
    let mut worker = fleet.nodes[1].connect();
    let id = printed(&mut worker, "INSERT INTO posts (body) VALUES ('a post') RETURNING id");
    let by_id = format!("SELECT body FROM posts WHERE id = {id}");
    let plan = explain(&mut worker, &by_id);
    claims.check(plan.contains("Task Count: 1"), "a point query by ID goes to one shard");
    claims.check(printed(&mut worker, &by_id) == "a post", "and finds the row");

    let plan = explain(&mut worker, "INSERT INTO homed_posts (body) VALUES ('a post')");
    let here = format!("host={} ", fleet.address(1));
    claims.check(plan.contains(&here), "an insert with a homed ID stays on the worker");

    let plan = explain(&mut worker, "INSERT INTO posts (body) SELECT body FROM source");
    claims.check(
        plan.contains("repartition"),
        "INSERT … SELECT of a table has the workers generate the ids of the rows that they read",
    );
}

fn explain(worker: &mut postgres::Client, sql: &str) -> String {
    step(sql);
    let plan = printed(worker, &format!("EXPLAIN (COSTS OFF) {sql}"));
    say(&plan);
    plan
}
