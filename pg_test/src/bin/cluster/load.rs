//! A million rows, through the router and directly, with 1 to 1000 rows in each round trip to a server.

use crate::report::{Claims, say, step};
use pg_snowflake_servertest::fleet::audit::{Findings, audit, number};
use pg_snowflake_servertest::fleet::{Fleet, schema};
use pg_snowflake_servertest::record::thousands;
use postgres::Client;
use postgres::types::ToSql;
use std::time::Instant;

const USERS: usize = 20_000;
const POSTS_PER_USER: usize = 9;

/// How many rows go to a server at a time, and how many comments are loaded that way: by one statement on the router,
/// and by a client each through the router and directly.
const BATCHES: [Batch; 4] = [
    Batch { rows: 1, at_once: 10_000, by_client: 8_000 },
    Batch { rows: 10, at_once: 50_000, by_client: 32_000 },
    Batch { rows: 100, at_once: 100_000, by_client: 80_000 },
    Batch { rows: 1000, at_once: 120_000, by_client: 140_000 },
];

struct Batch {
    rows: usize,
    at_once: usize,
    by_client: usize,
}

/// Loads users, posts and comments, a million rows together.
pub fn load(fleet: &Fleet, claims: &mut Claims) {
    step("users, each minted by the shard that it is dealt to");
    for shard in fleet.shards() {
        let users = USERS / fleet.shards().len();
        let insert = format!(
            "INSERT INTO users (name) SELECT 'user ' || n FROM generate_series(1, {users}) AS n"
        );
        fleet.connect_to_shard(shard).batch_execute(&insert).expect("users can be put in");
    }

    step("posts, through the router, each with an id of its user's shard:");
    say(
        "INSERT INTO posts SELECT snowflake_nextval('ids', 16 + snowflake_shard_id(user_id) % 16), …",
    );
    let mut router = fleet.router.connect();
    set_batch_size(fleet, &mut router, 1000);
    let posts = format!(
        "CREATE TEMP TABLE user_ids AS SELECT id FROM users;
         INSERT INTO posts
         SELECT snowflake_nextval('ids', {shards} + snowflake_shard_id(u.id) % {shards}), u.id, 'post ' || n
         FROM user_ids AS u, generate_series(1, {POSTS_PER_USER}) AS n;
         CREATE TEMP TABLE post_ids AS SELECT id FROM posts",
        shards = fleet.shards().len()
    );
    router.batch_execute(&posts).expect("posts can be put in");

    step("comments, in rows per second, by the number of rows that a statement sends to a server:");
    say("rows   INSERT … SELECT       a client       the same,");
    say("         on the router     through it        directly");
    for Batch { rows, at_once, by_client } in BATCHES {
        set_batch_size(fleet, &mut router, rows);
        let selected = by_one_statement(fleet, &mut router, at_once);
        let routed = by_client_of(fleet, Way::Router, rows, by_client);
        let direct = by_client_of(fleet, Way::Shard, rows, by_client);
        let [selected, routed, direct] = [selected, routed, direct].map(thousands);
        say(&format!("{rows:>4}   {selected:>15} {routed:>14} {direct:>15}"));
    }
    check(&mut router, claims);
}

fn check(router: &mut Client, claims: &mut Claims) {
    let rows = number(
        router,
        "SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM posts) + (SELECT count(*) FROM comments)",
    );
    claims.check(rows == 1_000_000, &format!("the router counts {} rows", thousands(rows)));
    let findings = audit(router, &[]);
    claims.check(
        findings == Findings::default(),
        &format!(
            "no id is there twice ({}), and every row is where snowflake_locate says ({} misplaced)",
            findings.ids_twice, findings.misplaced
        ),
    );
}

/// One statement of so many rows on the router, which collects them for each shard. Gives rows per second.
fn by_one_statement(fleet: &Fleet, router: &mut Client, rows: usize) -> i64 {
    let insert = format!(
        "INSERT INTO comments
         SELECT snowflake_nextval('ids', {shards} + snowflake_shard_id(id) % {shards}), id, 'a comment'
         FROM post_ids LIMIT {rows}",
        shards = fleet.shards().len()
    );
    let began = Instant::now();
    let inserted = router.execute(&insert, &[]).expect("comments can be put in");
    assert_eq!(inserted, rows as u64);
    per_second(rows, began)
}

fn set_batch_size(fleet: &Fleet, router: &mut Client, batch: usize) {
    for shard in fleet.shards() {
        let option = format!("ALTER SERVER {} OPTIONS (SET batch_size '{batch}')", schema(shard));
        router.batch_execute(&option).expect("an option can be set");
    }
}

/// Whom a client talks to.
#[derive(Clone, Copy)]
enum Way {
    Router,
    Shard,
}

/// A client that sends statements of so many rows of one shard, in one transaction for each shard. Gives rows per second.
fn by_client_of(fleet: &Fleet, way: Way, batch: usize, rows: usize) -> i64 {
    let shards = fleet.shards().len();
    let mut work: Vec<(Client, Vec<i64>)> = fleet
        .shards()
        .map(|shard| {
            let mut direct = fleet.connect_to_shard(shard);
            let posts = direct.query("SELECT id FROM posts", &[]).expect("posts can be read");
            let ids = posts.iter().map(|row| row.get(0)).cycle().take(rows / shards).collect();
            let client = match way {
                Way::Router => fleet.router.connect(),
                Way::Shard => direct,
            };
            (client, ids)
        })
        .collect();
    let began = Instant::now();
    for (client, posts) in &mut work {
        insert_comments(client, posts, batch, |rows| match way {
            Way::Router => insert_with_id(rows, shards),
            Way::Shard => insert_with_default(rows),
        });
    }
    per_second(rows, began)
}

fn insert_comments(
    client: &mut Client,
    posts: &[i64],
    batch: usize,
    statement: impl Fn(usize) -> String,
) {
    let mut transaction = client.transaction().expect("a transaction can begin");
    let full = transaction.prepare(&statement(batch)).expect("the statement is sound");
    for chunk in posts.chunks(batch) {
        let values: Vec<&(dyn ToSql + Sync)> = chunk.iter().map(|post| post as _).collect();
        let inserted = if chunk.len() == batch {
            transaction.execute(&full, &values)
        } else {
            transaction.execute(&statement(chunk.len()), &values)
        };
        inserted.expect("comments can be put in");
    }
    transaction.commit().expect("comments can be put in");
}

/// For the router, which mints with shard numbers of its own.
fn insert_with_id(rows: usize, shards: usize) -> String {
    let values = values(rows, |n| {
        format!(
            "(snowflake_nextval('ids', {shards} + snowflake_shard_id(${n}) % {shards}), ${n}, 'a comment')"
        )
    });
    format!("INSERT INTO comments (id, post_id, body) VALUES {values}")
}

/// For a shard, whose columns have defaults that mint.
fn insert_with_default(rows: usize) -> String {
    let values = values(rows, |n| format!("(${n}, 'a comment')"));
    format!("INSERT INTO comments (post_id, body) VALUES {values}")
}

fn values(rows: usize, row: impl Fn(usize) -> String) -> String {
    (1..=rows).map(row).collect::<Vec<_>>().join(", ")
}

fn per_second(rows: usize, since: Instant) -> i64 {
    (rows as f64 / since.elapsed().as_secs_f64()) as i64
}
