//! The servers that a statement on the router queries, and what they compute.

use pg_snowflake_harness::fleet::audit::number;
use pg_snowflake_harness::fleet::{Fleet, schema};
use pg_snowflake_programs::output::{Claims, say, step};
use postgres::Client;

/// Shows the plans of some statements, and checks what they send to which servers.
pub fn show(fleet: &Fleet, claims: &mut Claims) {
    let mut router = fleet.router.connect();
    for shard in fleet.shards() {
        for table in ["users", "posts", "posts_by_user", "comments"] {
            let analyze = format!("ANALYZE {}.{table}", schema(shard));
            router.batch_execute(&analyze).expect("a foreign table can be analyzed");
        }
    }
    router
        .batch_execute(
            "SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on",
        )
        .expect("settings can be set");
    let post = number(&mut router, "SELECT id FROM posts LIMIT 1");
    let user = number(&mut router, &format!("SELECT user_id FROM posts WHERE id = {post}"));
    let shards = fleet.shards().len();

    one_server(
        fleet,
        claims,
        "a post, by its ID",
        &format!("SELECT * FROM posts WHERE id = {post}"),
    );
    one_server(
        fleet,
        claims,
        "a post with its comments",
        &format!(
            "SELECT p.body, c.body FROM posts AS p JOIN comments AS c ON post_id = p.id WHERE p.id = {post}"
        ),
    );
    one_server(
        fleet,
        claims,
        "a user with the user's posts, which are on the same server",
        &format!(
            "SELECT name, body FROM users AS u JOIN posts_by_user AS p ON user_id = u.id WHERE u.id = {user}"
        ),
    );

    // Without it, the router overestimates the cost of a remote join of many rows, and joins locally. With it, planning any
    // statement costs a query on each server.
    estimate_remotely(fleet, &mut router, "ADD use_remote_estimate 'true'");
    let join = "SELECT name, count(*) FROM users AS u JOIN posts_by_user AS p ON user_id = u.id GROUP BY u.id, name";
    all_servers(
        &mut router,
        claims,
        "all users joined with their posts and counted, with use_remote_estimate",
        join,
        "INNER JOIN",
        shards,
    );
    estimate_remotely(fleet, &mut router, "DROP use_remote_estimate");

    let group = "SELECT post_id, count(*) FROM comments GROUP BY post_id";
    all_servers(&mut router, claims, "comments counted by post", group, "GROUP BY", shards);
    let sum = format!("SELECT sum(count)::bigint FROM ({group}) AS counted");
    let counted = number(&mut router, &sum);
    let comments = number(&mut router, "SELECT count(*) FROM comments");
    claims.check(counted == comments, &format!("the groups have all {comments} comments"));
}

fn estimate_remotely(fleet: &Fleet, router: &mut Client, option: &str) {
    for shard in fleet.shards() {
        let alter = format!("ALTER SERVER {} OPTIONS ({option})", schema(shard));
        router.batch_execute(&alter).expect("an option can be set");
    }
}

/// Checks that a statement talks to one server.
fn one_server(fleet: &Fleet, claims: &mut Claims, what: &str, sql: &str) {
    step(&format!("{what}: {sql}"));
    // A session that has no connections to servers yet.
    let mut router = fleet.router.connect();
    let plan = explain(&mut router, sql);
    say(&plan);
    let rows = router.query(sql, &[]).expect("the statement is valid").len();
    let asked = number(&mut router, "SELECT count(*) FROM postgres_fdw_get_connections()");
    claims.check(asked == 1 && rows > 0, &format!("one shard was asked (rows: {rows})"));
}

/// Checks that each shard computes its part.
fn all_servers(
    router: &mut Client,
    claims: &mut Claims,
    what: &str,
    sql: &str,
    part: &str,
    shards: usize,
) {
    step(&format!("{what}: {sql}"));
    let plan = explain(router, sql);
    let remote: Vec<&str> = plan.lines().filter(|line| line.contains("Remote SQL")).collect();
    say(&format!("{}\n… and {} more", remote[0].trim(), remote.len() - 1));
    claims.check(
        remote.len() == shards && remote.iter().all(|sql| sql.contains(part)),
        &format!("each of {} shards was sent the {part}", remote.len()),
    );
}

fn explain(router: &mut Client, sql: &str) -> String {
    let rows = router
        .query(&format!("EXPLAIN (VERBOSE, COSTS OFF) {sql}"), &[])
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.iter().map(|row| row.get(0)).collect::<Vec<String>>().join("\n")
}
