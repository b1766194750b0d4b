//! A router: a table whose partitions are tables of other servers, by `postgres_fdw`. Databases of shared servers stand for them,
//! to which it connects in the same way.

use super::{id_of_shard, ids_of_shards, other_id_of_shard};
use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{Refusal, assert_refused, database, printed, run};
use pg_snowflake_harness::installation::has_contrib;
use postgres::Client;

/// Servers with a table `posts` and a table `comments` each, and one that routes to them by the shard in the ID.
struct Fleet {
    router: Database,
    shards: Vec<Database>,
}

impl Fleet {
    /// A router and this many shards; `None` if the installation has no `postgres_fdw`.
    fn of(shards: usize) -> Option<Fleet> {
        if !has_contrib("postgres_fdw", "routing to other servers") {
            return None;
        }
        let router = Database::new();
        let shards: Vec<Database> = (0..shards).map(|_| shard()).collect();
        let mut client = router.connect();
        client
            .batch_execute(
                "CREATE EXTENSION postgres_fdw;
                 CREATE TABLE posts (id bigint NOT NULL, body text) PARTITION BY HASH (id snowflake_shard_ops);
                 CREATE TABLE comments (id bigint NOT NULL, post_id bigint NOT NULL)
                     PARTITION BY HASH (post_id snowflake_shard_ops)",
            )
            .unwrap();
        let modulus = shards.len();
        for (number, shard) in shards.iter().enumerate() {
            let (host, name) = (super::host(shard), shard.name());
            client
                .batch_execute(&format!(
                    "CREATE SERVER shard_{number} FOREIGN DATA WRAPPER postgres_fdw
                         OPTIONS (host '{host}', port '5432', dbname '{name}');
                     CREATE USER MAPPING FOR postgres SERVER shard_{number} OPTIONS (user 'postgres');
                     CREATE FOREIGN TABLE posts_{number} PARTITION OF posts
                         FOR VALUES WITH (MODULUS {modulus}, REMAINDER {number})
                         SERVER shard_{number} OPTIONS (table_name 'posts');
                     CREATE FOREIGN TABLE comments_{number} PARTITION OF comments
                         FOR VALUES WITH (MODULUS {modulus}, REMAINDER {number})
                         SERVER shard_{number} OPTIONS (table_name 'comments')"
                ))
                .unwrap();
        }
        Some(Fleet { router, shards })
    }

    /// A fleet with a post in each of 32 shards and two comments on each, all inserted through the router.
    fn with_rows(shards: usize) -> Option<Fleet> {
        let fleet = Fleet::of(shards)?;
        fleet
            .router
            .connect()
            .batch_execute(&format!(
                "INSERT INTO posts SELECT id, 'old' FROM ({}) AS ids (id);
                 INSERT INTO comments SELECT id + (n << 12), id FROM posts, generate_series(1, 2) AS n",
                ids_of_shards(0..=31)
            ))
            .unwrap();
        Some(fleet)
    }

    /// What a query prints on the router, and the servers to which it has connected.
    fn asked(&self, sql: &str) -> (String, String) {
        let mut fresh = self.router.connect();
        let answer = printed(&mut fresh, sql);
        let servers = "SELECT string_agg(server_name, ' ' ORDER BY server_name) FROM postgres_fdw_get_connections()";
        (answer, printed(&mut fresh, servers))
    }
}

fn shard() -> Database {
    let shard = Database::new();
    shard
        .connect()
        .batch_execute(
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text);
             CREATE TABLE comments (id bigint PRIMARY KEY, post_id bigint NOT NULL REFERENCES posts)",
        )
        .unwrap();
    shard
}

#[test]
fn a_drivers_parameter_prunes_too() {
    let (_database, mut client) = database();
    run(
        &mut client,
        "CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
         CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 0);
         CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
         SET plan_cache_mode = force_generic_plan",
    );
    let statement = client.prepare("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM posts WHERE id = $1").unwrap();
    let rows = client.query(&statement, &[&id_of_shard(5)]).unwrap();
    let plan: String = rows.iter().map(|row| row.get::<_, &str>(0)).collect();
    assert!(plan.contains("posts_1") && !plan.contains("posts_0"), "{plan}");
}

#[test]
fn rows_land_on_the_server_that_their_id_names() {
    let Some(fleet) = Fleet::with_rows(3) else { return };
    for (number, shard) in fleet.shards.iter().enumerate() {
        let found = "SELECT array_agg(DISTINCT snowflake_shard_id(id) % 3), count(*) FROM posts";
        let posts = (0..32).filter(|shard| shard % 3 == number).count();
        let expected = format!("{{{number}}}|{posts}");
        assert_eq!(printed(&mut shard.connect(), found), expected);
        let comments = "SELECT count(*) FROM comments";
        assert_eq!(printed(&mut shard.connect(), comments), (2 * posts).to_string());
    }
}

#[test]
fn a_statement_that_names_an_id_goes_to_one_server() {
    let Some(fleet) = Fleet::with_rows(3) else { return };
    let [four, seven] = [4, 7].map(id_of_shard);
    let new = other_id_of_shard(4);
    let generic = "SET plan_cache_mode = force_generic_plan; PREPARE one (bigint) AS SELECT body FROM posts WHERE id = $1;";
    let cases = [
        (format!("SELECT body FROM posts WHERE id = {four}"), "old"),
        (format!("SELECT count(*) FROM posts WHERE id IN ({four}, {seven})"), "2"),
        (format!("{generic} EXECUTE one ({four})"), "old"),
        (format!("SELECT body, count(*) FROM posts AS p JOIN comments ON post_id = p.id WHERE p.id = {four} GROUP BY 1"), "old|2"),
        (format!("UPDATE posts SET body = 'new' WHERE id = {four} RETURNING body"), "new"),
        (format!("INSERT INTO posts VALUES ({new}, 'first') RETURNING body"), "first"),
        (format!("DELETE FROM posts WHERE id = {new} RETURNING body"), "first"),
    ];
    for (sql, answer) in cases {
        let asked = fleet.asked(&sql);
        assert_eq!((asked.0.as_str(), asked.1.as_str()), (answer, "shard_1"), "{sql}");
    }
    let all = fleet.asked("SELECT count(*) FROM posts");
    assert_eq!(all, ("32".into(), "shard_0 shard_1 shard_2".into()));
}

#[test]
fn an_array_as_a_parameter_goes_to_its_servers_however_often_the_statement_is_run() {
    let Some(fleet) = Fleet::with_rows(3) else { return };
    let [four, seven] = [4, 7].map(id_of_shard);
    let execute = format!("EXECUTE many ('{{{four},{seven}}}');").repeat(12);
    let sql = format!("PREPARE many (bigint[]) AS SELECT count(*) FROM posts WHERE id = ANY ($1); {execute}");
    let (answer, servers) = fleet.asked(&sql);
    assert_eq!((answer, servers.as_str()), (["2"; 12].join("\n"), "shard_1"));
}

#[test]
fn a_row_is_on_the_server_that_snowflake_locate_names() {
    let Some(fleet) = Fleet::with_rows(2) else { return };
    let mut client = fleet.router.connect();
    for shard_id in [4, 5] {
        let id = id_of_shard(shard_id);
        let located = printed(&mut client, &format!("SELECT * FROM snowflake_locate('posts', {id})"));
        let shard = &fleet.shards[shard_id as usize % 2];
        let number = shard_id % 2;
        let (host, name) = (super::host(shard), shard.name());
        assert_eq!(located, format!("{shard_id}|posts_{number}|shard_{number}|{host}|5432|{name}"));
        let there = format!("SELECT count(*) FROM posts WHERE id = {id}");
        assert_eq!(printed(&mut shard.connect(), &there), "1");
    }
}

#[test]
fn joins_and_aggregates_are_computed_by_the_shards() {
    let Some(fleet) = Fleet::with_rows(2) else { return };
    let mut client = fleet.router.connect();
    client
        .batch_execute(
            // Enough that sending the groups is less than sending their rows.
            "INSERT INTO comments SELECT id + (n << 12), id FROM posts, generate_series(3, 100) AS n;
             ANALYZE posts; ANALYZE comments;
             SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on",
        )
        .unwrap();
    let join = "SELECT p.id, c.id FROM posts AS p JOIN comments AS c ON c.post_id = p.id";
    let verbose = printed(&mut client, &format!("EXPLAIN (VERBOSE, COSTS OFF) {join}"));
    let remote: Vec<&str> = verbose.lines().filter(|line| line.contains("Remote SQL")).collect();
    assert_eq!(remote.len(), 2, "{verbose}");
    assert!(remote.iter().all(|sql| sql.contains("INNER JOIN")), "{verbose}");

    let group = "SELECT post_id, count(*) FROM comments GROUP BY post_id";
    let verbose = printed(&mut client, &format!("EXPLAIN (VERBOSE, COSTS OFF) {group}"));
    let remote: Vec<&str> = verbose.lines().filter(|line| line.contains("Remote SQL")).collect();
    assert_eq!(remote.len(), 2, "{verbose}");
    assert!(remote.iter().all(|sql| sql.contains("GROUP BY")), "{verbose}");
    assert_eq!(printed(&mut client, &format!("SELECT count(*), sum(count) FROM ({group}) AS g")), "32|3200");
}

#[test]
fn a_shard_that_is_down_fails_only_the_statements_that_need_it() {
    let Some(fleet) = Fleet::with_rows(2) else { return };
    let mut client = fleet.router.connect();
    let mut down = fleet.shards[1].connect();
    // A session cannot do this to its own database by ALTER DATABASE.
    let mut accept_connections = |are_accepted: bool| {
        let set = format!("SET datallowconn = {are_accepted} WHERE datname = current_database()");
        run(&mut down, &format!("UPDATE pg_database {set}"));
    };
    accept_connections(false);
    let [four, five] = [4, 5].map(id_of_shard);

    let alive = [
        format!("SELECT body FROM posts WHERE id = {four}"),
        format!("UPDATE posts SET body = 'new' WHERE id = {four}"),
        format!("INSERT INTO posts VALUES ({}, 'first')", other_id_of_shard(4)),
        format!("SELECT snowflake_locate('posts', {five})"),
    ];
    for sql in alive {
        client.batch_execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let dead = [
        format!("SELECT body FROM posts WHERE id = {five}"),
        format!("UPDATE posts SET body = 'new' WHERE id = {five}"),
        format!("INSERT INTO posts VALUES ({}, 'first')", other_id_of_shard(5)),
        "SELECT count(*) FROM posts".into(),
        // The ID, which is of the other shard, is known only after all servers are connected.
        format!("SELECT body FROM posts WHERE id = (SELECT {four})"),
    ];
    let refusal = Refusal { sqlstate: "08001", message: "could not connect to server \"shard_1\"", hint: "" };
    for sql in &dead {
        assert_refused(&mut client, sql, refusal);
    }

    accept_connections(true);
    for sql in dead {
        client.batch_execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

/// The posts on another server than their ID says.
const MISPLACED: &str = "SELECT p.tableoid::regclass, partition, count(*)
                         FROM posts AS p, snowflake_locate('posts', p.id)
                         WHERE partition IS DISTINCT FROM p.tableoid GROUP BY 1, 2 ORDER BY 1";

#[test]
fn rows_on_the_wrong_server_are_found_by_a_query() {
    let Some(fleet) = Fleet::with_rows(2) else { return };
    let mut client: Client = fleet.router.connect();
    assert_eq!(printed(&mut client, MISPLACED), "");

    // Somebody attaches each table to the other one's remainder.
    client
        .batch_execute(
            "ALTER TABLE posts DETACH PARTITION posts_0; ALTER TABLE posts DETACH PARTITION posts_1;
             ALTER TABLE posts ATTACH PARTITION posts_0 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             ALTER TABLE posts ATTACH PARTITION posts_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        )
        .unwrap();
    assert_eq!(printed(&mut client, MISPLACED), "posts_0|posts_1|16\nposts_1|posts_0|16");
}

/// Core routes inserts, but does not check a row that stays in a foreign table. The checks on the shards of
/// `docs/routing` do.
#[test]
fn a_row_whose_id_changes_its_shard_stays_and_is_found_by_a_query() {
    let Some(fleet) = Fleet::with_rows(2) else { return };
    let mut client = fleet.router.connect();
    let [four, five] = [id_of_shard(4), other_id_of_shard(5)];
    client.batch_execute(&format!("DELETE FROM comments WHERE post_id = {four}; UPDATE posts SET id = {five} WHERE id = {four}")).unwrap();
    let by_id = format!("SELECT count(*) FROM posts WHERE id = {five}");
    assert_eq!(printed(&mut client, &by_id), "0");
    assert_eq!(printed(&mut client, MISPLACED), "posts_0|posts_1|1");
}
