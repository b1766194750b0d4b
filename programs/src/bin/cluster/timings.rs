//! The cost of a query through the router.

use pg_snowflake_harness::SUPERUSER;
use pg_snowflake_harness::fleet::{Fleet, schema};
use pg_snowflake_programs::output::{Claims, milliseconds, say, step};
use postgres::{Client, Statement};
use std::time::{Duration, Instant};

const QUERIES: usize = 1000;

const POSTS_HERE: &str = include_str!("../../../../docs/routing/posts_here.sql");
const POSTS_ANYWHERE: &str = include_str!("../../../../docs/routing/posts_anywhere.sql");

/// A way to query a post, and the time of each query.
struct Way {
    client: Client,
    statement: Statement,
    took: Vec<Duration>,
}

impl Way {
    fn new(mut client: Client, table: &str) -> Way {
        let query = format!("SELECT body FROM {table} WHERE id = $1");
        let statement = client.prepare(&query).expect("the query is valid");
        Way { client, statement, took: Vec::new() }
    }

    fn take(&mut self, id: i64) {
        let began = Instant::now();
        self.client.query_one(&self.statement, &[&id]).expect("the post is there");
        self.took.push(began.elapsed());
    }
}

/// Times a query of a post by its ID: on its server, through the router, and through a router that queries all servers.
pub fn compare(fleet: &Fleet, claims: &mut Claims) {
    step(&format!("SELECT body FROM posts WHERE id = $1, the median of {QUERIES}:"));
    route_anywhere(fleet);
    let mut direct: Vec<Way> = fleet
        .shards()
        .map(|shard| Way::new(fleet.home(shard).connect(), &format!("{}.posts", schema(shard))))
        .collect();
    let mut routed = Way::new(fleet.router.connect(), "posts");
    let mut in_turn = Way::new(fleet.router.connect(), "posts_anywhere");

    for (shard, id) in some_posts(fleet) {
        direct[shard].take(id);
        routed.take(id);
        in_turn.take(id);
    }
    set_async(fleet);
    let mut at_once = Way::new(fleet.router.connect(), "posts_anywhere");
    for (_, id) in some_posts(fleet) {
        at_once.take(id);
    }

    let alone = median(direct.into_iter().flat_map(|way| way.took).collect());
    let routed = median(routed.took);
    let in_turn = median(in_turn.took);
    let at_once = median(at_once.took);
    let line = |what: &str, took: Duration| {
        let ratio = took.as_secs_f64() / alone.as_secs_f64();
        say(&format!("{what:<52} {:>9} {ratio:>6.1}", milliseconds(took)));
    };
    line("directly, on the shard", alone);
    line("through the router, which asks one", routed);
    line("through one that asks all servers in turn", in_turn);
    line("through one that asks them at once (async_capable)", at_once);
    claims.check(
        routed < in_turn && routed < at_once,
        "the router that knows whom to ask is faster than one that asks all",
    );
}

/// The shard and the ID of the posts to query, from all shards in turn.
fn some_posts(fleet: &Fleet) -> Vec<(usize, i64)> {
    let shards = fleet.shards().len();
    let query =
        format!("SELECT id FROM posts ORDER BY hashint8(id) LIMIT {}", QUERIES / shards + 1);
    let ids: Vec<Vec<i64>> = fleet
        .shards()
        .map(|shard| {
            let posts = fleet.connect_to_shard(shard).query(&query, &[]);
            posts.expect("posts can be read").iter().map(|row| row.get(0)).collect()
        })
        .collect();
    (0..QUERIES).map(|n| (n % shards, ids[n % shards][n / shards])).collect()
}

/// A table on the router whose partitions do not depend on the ID.
fn route_anywhere(fleet: &Fleet) {
    for (number, server) in fleet.servers.iter().enumerate() {
        server.psql(SUPERUSER, POSTS_HERE);
        let variables = format!(
            "\\set number {number}\n\\set servers {}\n\\set host '{}'\n",
            fleet.servers.len(),
            server.dir().display()
        );
        fleet.router.psql(SUPERUSER, &format!("{variables}{POSTS_ANYWHERE}"));
    }
}

fn set_async(fleet: &Fleet) {
    let mut router = fleet.router.connect();
    for number in 0..fleet.servers.len() {
        let option =
            format!("ALTER FOREIGN TABLE posts_on_{number} OPTIONS (SET async_capable 'true')");
        router.batch_execute(&option).expect("an option can be set");
    }
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() / 2]
}
