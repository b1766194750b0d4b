//! pgpool-II with two servers: which of them generates an ID.

use super::pooler::{PORT, Package, Pooler};
use pg_snowflake_harness::prelude::*;
use std::fs;
use std::thread;

/// Statements that generate an ID.
const GENERATE: [&str; 9] = [
    "SELECT snowflake_nextval('s')",
    "SELECT snowflake_nextvals('s', 3)",
    "SELECT id FROM (SELECT snowflake_nextval('s') AS id) AS ids",
    "WITH ids AS (SELECT snowflake_nextval('s') AS id) SELECT id FROM ids",
    "VALUES (snowflake_nextval('s'))",
    "SELECT next_id()",
    "INSERT INTO posts DEFAULT VALUES RETURNING id",
    "SELECT * FROM new_ids",
    "COPY (SELECT snowflake_nextval('s')) TO STDOUT",
];

/// Settings with which all of them go to the primary. pgpool looks the functions up in the first, and not in the second.
const SETTINGS: [&str; 2] = [
    "primary_routing_query_pattern_list = '.*snowflake_nextval.*;.*from new_ids.*'",
    "primary_routing_query_pattern_list = '.*snowflake_nextval.*;.*from new_ids.*'
     write_function_list = 'nextval,setval,snowflake_nextval.*,snowflake_currval,snowflake_convert_column,snowflake_.*_partitions,next_id'",
];

const SCHEMA: &str = "
    ALTER DATABASE postgres SET pg_snowflake.shard_id = 5;
    CREATE SEQUENCE s;
    CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s'));
    CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT snowflake_nextval(''s'')';
    CREATE VIEW new_ids AS SELECT snowflake_nextval('s') AS id";

#[test]
fn ids_are_generated_on_the_primary_while_the_standby_is_read() {
    let Some(package) = package() else { return };
    let primary = Cluster::new();
    run(&mut primary.connect(), SCHEMA);
    let standby = primary.standby();
    wait_for(&mut standby.connect(), "SELECT count(*) = 1 FROM pg_class WHERE relname = 'new_ids'", "the standby has the schema");
    for settings in SETTINGS {
        let pgpool = start(&package, [&primary, &standby], "streaming_replication", settings);
        for statement in GENERATE {
            let said = pgpool.psql(package.dir(), statement);
            assert!(said.lines().all(|line| line.parse::<i64>().is_ok()), "{settings}\n{statement}: {said}");
        }
        // pg_is_in_recovery() is volatile, so pgpool would send it to the primary.
        let of_standby = "SELECT snowflake_current_shard() = 5 AND current_setting('primary_conninfo') <> ''";
        assert_eq!(pgpool.psql(package.dir(), of_standby), "t", "{settings}: reads go to the primary");
    }
}

#[test]
fn with_an_id_that_was_selected_before_both_servers_of_native_replication_have_equal_rows() {
    let Some(package) = package() else { return };
    let servers = [Cluster::new(), Cluster::new()];
    servers.iter().for_each(|server| run(&mut server.connect(), SCHEMA));
    let pgpool = start(&package, [&servers[0], &servers[1]], "native_replication", "");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = pgpool.connect();
                for _ in 0..50 {
                    let id = printed(&mut client, "SELECT snowflake_nextval('s')");
                    run(&mut client, &format!("INSERT INTO posts VALUES ({id})"));
                }
            });
        }
    });
    let rows = servers.each_ref().map(|server| printed(&mut server.connect(), "SELECT id FROM posts ORDER BY id"));
    assert_eq!(rows[0].lines().count(), 100);
    assert_eq!(rows[0], rows[1]);
}

fn package() -> Option<Package> {
    Package::get("pgpool-II", "pgpool2", "pgpool")
}

/// All reads that may go to the second server go there.
fn start(package: &Package, servers: [&Cluster; 2], mode: &str, settings: &str) -> Pooler {
    let dir = package.dir();
    let files = dir.display();
    let [first, second] = servers.map(|server| server.dir().display());
    let configuration = format!(
        "listen_addresses = ''\nport = {PORT}\nsocket_dir = '{files}'\npcp_listen_addresses = ''\npcp_socket_dir = '{files}'
         pid_file_name = '{files}/pid'\nlogdir = '{files}'\nnum_init_children = 4\nmemory_cache_enabled = off
         backend_clustering_mode = '{mode}'\nload_balance_mode = on\nsr_check_user = 'postgres'
         backend_hostname0 = '{first}'\nbackend_port0 = 5432\nbackend_weight0 = 0
         backend_hostname1 = '{second}'\nbackend_port1 = 5432\nbackend_weight1 = 1\n{settings}\n"
    );
    // It is killed at the end, and then leaves these.
    for file in ["pid", "pgpool_status", ".s.PGSQL.5432", ".s.PGSQL.9898"] {
        let _ = fs::remove_file(dir.join(file));
    }
    fs::write(dir.join("conf"), configuration).unwrap();
    for empty in ["hba", "pcp"] {
        fs::write(dir.join(empty), "").unwrap();
    }
    let pgpool = package.start(&["-n", "-f", "conf", "-a", "hba", "-F", "pcp"]);
    let has_both = || pgpool.psql(dir, "SHOW pool_nodes").lines().filter(|line| line.contains("|up|")).count() == 2;
    assert!(comes_true(has_both), "{}", pgpool.psql(dir, "SHOW pool_nodes"));
    pgpool
}
