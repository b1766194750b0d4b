//! A router that has `postgres_fdw` only: its own hash of a homed ID leads to the server that generates it.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{printed, run};
use pg_snowflake_harness::installation::has_contrib;
use postgres::Client;

const SERVERS: usize = 3;
const ROWS: usize = 100;

/// A router without the extension, and servers that have each inserted so many rows with the default of their `posts`.
struct Fleet {
    router: Database,
    servers: Vec<Database>,
}

impl Fleet {
    /// `None` if the installation has no `postgres_fdw`.
    fn start() -> Option<Fleet> {
        if !has_contrib("postgres_fdw", "routing without the extension") {
            return None;
        }
        let router = Database::empty();
        let mut client = router.connect();
        run(
            &mut client,
            "CREATE EXTENSION postgres_fdw;
             CREATE TABLE posts (id bigint NOT NULL, made_on int NOT NULL) PARTITION BY HASH (id)",
        );
        let servers: Vec<Database> = (0..SERVERS).map(|_| Database::new()).collect();
        for (number, server) in servers.iter().enumerate() {
            let (host, name) = (super::host(server), server.name());
            run(
                &mut client,
                &format!(
                    "CREATE SERVER server_{number} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', dbname '{name}');
                     CREATE USER MAPPING FOR postgres SERVER server_{number} OPTIONS (user 'postgres');
                     CREATE FOREIGN TABLE posts_{number} PARTITION OF posts
                         FOR VALUES WITH (MODULUS {SERVERS}, REMAINDER {number})
                         SERVER server_{number} OPTIONS (table_name 'posts')"
                ),
            );
            run(
                &mut server.connect(),
                &format!(
                    "CREATE SEQUENCE ids;
                     CREATE TABLE posts (
                         id bigint PRIMARY KEY DEFAULT snowflake_nextval_homed('ids', {number}, {SERVERS}),
                         made_on int NOT NULL DEFAULT {number});
                     INSERT INTO posts SELECT FROM generate_series(1, {ROWS})"
                ),
            );
        }
        Some(Fleet { router, servers })
    }

    /// IDs that the server generates now, without rows.
    fn generated_on(&self, server: usize, count: usize) -> String {
        let ids = format!("SELECT string_agg(id::text, ',') FROM snowflake_nextvals_homed('ids', {server}, {SERVERS}, {count}) AS id");
        printed(&mut self.servers[server].connect(), &ids)
    }
}

/// Checks that the plan of a statement has a part for that server, and none for another.
fn assert_goes_to_one_server(client: &mut Client, sql: &str, server: usize) {
    let plan = printed(client, &format!("EXPLAIN (VERBOSE, COSTS OFF) {sql}"));
    let is_for_the_server = plan.contains(&format!("on public.posts_{server}"));
    assert!(is_for_the_server && plan.matches("Remote SQL").count() == 1, "{sql}:\n{plan}");
}

#[test]
fn an_id_is_looked_for_on_the_server_that_made_it_by_a_router_without_the_extension() {
    let Some(fleet) = Fleet::start() else { return };
    let mut client = fleet.router.connect();
    let prepare = "SET plan_cache_mode = force_generic_plan;
                   PREPARE by_id (bigint) AS SELECT made_on FROM posts WHERE id = $1";
    run(&mut client, prepare);
    for (number, server) in fleet.servers.iter().enumerate() {
        let made = "SELECT string_agg(id::text, ' ') FROM posts";
        let made = printed(&mut server.connect(), made);
        let ids: Vec<&str> = made.split(' ').collect();
        assert_eq!(ids.len(), ROWS);
        for (n, id) in ids.iter().enumerate() {
            let constant = format!("SELECT made_on FROM posts WHERE id = {id}");
            let parameter = format!("EXECUTE by_id ({id})");
            for sql in [&constant, &parameter] {
                assert_eq!(printed(&mut client, sql), number.to_string(), "{sql}");
            }
            if n < 10 {
                let update = format!("UPDATE posts SET made_on = made_on WHERE id = {id}");
                for sql in [&constant, &parameter, &update] {
                    assert_goes_to_one_server(&mut client, sql, number);
                }
            }
        }
    }
}

#[test]
fn a_row_that_such_a_router_inserts_goes_to_the_server_that_made_its_id() {
    let Some(fleet) = Fleet::start() else { return };
    let mut client = fleet.router.connect();
    for number in 0..SERVERS {
        let ids = fleet.generated_on(number, ROWS);
        run(&mut client, &format!("INSERT INTO posts SELECT unnest('{{{ids}}}'::bigint[]), {number}"));
    }
    let rows = "SELECT made_on, count(*) FROM posts GROUP BY 1";
    for (number, server) in fleet.servers.iter().enumerate() {
        assert_eq!(printed(&mut server.connect(), rows), format!("{number}|{}", 2 * ROWS));
    }
}
