//! `snowflake_locate`: the place of a row, from the catalog alone. The planner always has the same answer.

use super::class::CLASSES;
use super::{id_of_shard, partition_by_shard};
use pg_snowflake_harness::ask::{database, printed, server};
use pg_snowflake_harness::wait::wait_for;
use pg_snowflake_harness::{Cluster, Database};
use pg_snowflake_ids::PRESETS;
use postgres::Client;
use std::thread;

/// Checks that every row of `posts` is where `snowflake_locate` says, and returns the numbers of rows and partitions.
fn assert_agreement(client: &mut Client, layout: &str) -> String {
    let astray = format!(
        "SELECT t.tableoid::regclass, id, partition FROM posts AS t, snowflake_locate('posts', id, '{layout}')
         WHERE partition IS DISTINCT FROM t.tableoid ORDER BY id LIMIT 3"
    );
    assert_eq!(printed(client, &astray), "", "{layout}");
    printed(client, "SELECT count(*), count(DISTINCT tableoid) FROM posts")
}

/// IDs of all shards of the default layout, with times in the first half of 2024.
const IDS: &str =
    "SELECT snowflake_encode(timestamptz '2024-01-01' + interval '1 hour' * shard, shard, 0)
                   FROM generate_series(0, 4095) AS shard";

#[test]
fn it_agrees_with_the_place_of_each_row_for_each_class() {
    let (_database, mut client) = database();
    for class in CLASSES {
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS posts;
                 CREATE TABLE posts (id bigint) PARTITION BY HASH (id {})",
                class.name
            ))
            .unwrap();
        for remainder in 0..7 {
            client
                .batch_execute(&format!(
                    "CREATE TABLE posts_{remainder} PARTITION OF posts FOR VALUES WITH (MODULUS 7, REMAINDER {remainder})"
                ))
                .unwrap();
        }
        // All bits, including the sign.
        client
            .batch_execute(
                "INSERT INTO posts SELECT hashint8extended(g, 1) FROM generate_series(1, 5000) AS g;
                 INSERT INTO posts VALUES (9223372036854775807), (-9223372036854775808), (-1), (0)",
            )
            .unwrap();
        for layout in class.presets() {
            assert_eq!(assert_agreement(&mut client, layout), "5004|7", "{layout}");
        }
    }
}

#[test]
fn a_foreign_partition_names_its_server_and_the_servers_options() {
    let (_database, mut client) = database();
    client
        .batch_execute(
            "CREATE FOREIGN DATA WRAPPER nothing;
             CREATE SERVER shard_0 FOREIGN DATA WRAPPER nothing
                 OPTIONS (host 'db0.example', port '6432', dbname 'app', fetch_size '100');
             CREATE SERVER shard_1 FOREIGN DATA WRAPPER nothing;
             CREATE SERVER \"Shard 2\" FOREIGN DATA WRAPPER nothing
                 OPTIONS (dbname 'größer', host 'a.example,b.example', port '5432,5433');
             CREATE SERVER shard_3 FOREIGN DATA WRAPPER nothing OPTIONS (host '/var/run/postgresql', port '5432');
             CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
             CREATE FOREIGN TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 0) SERVER shard_0;
             CREATE FOREIGN TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1) SERVER shard_1;
             CREATE FOREIGN TABLE posts_2 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 2) SERVER \"Shard 2\";
             CREATE FOREIGN TABLE posts_3 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3) SERVER shard_3",
        )
        .unwrap();
    let located =
        "SELECT l.* FROM generate_series(4, 7) AS shard, snowflake_locate('posts', shard) AS l";
    let expected = "4|posts_0|shard_0|db0.example|6432|app\n\
                    5|posts_1|shard_1|||\n\
                    6|posts_2|Shard 2|a.example,b.example||größer\n\
                    7|posts_3|shard_3|/var/run/postgresql|5432|";
    assert_eq!(printed(&mut client, located), expected);
}

#[test]
fn each_class_takes_its_own_layouts_and_no_other() {
    let (_database, mut client) = database();
    for class in CLASSES {
        let (class, own) = (class.name, class.presets());
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS posts; CREATE TABLE posts (id bigint) PARTITION BY HASH (id {class})"
            ))
            .unwrap();
        for (layout, _) in PRESETS {
            let located =
                client.simple_query(&format!("SELECT snowflake_locate('posts', 5, '{layout}')"));
            assert_eq!(located.is_ok(), own.contains(layout), "{class} {layout}: {located:?}");
        }
    }
}

#[test]
fn it_finds_the_same_whatever_the_search_path() {
    let database = Database::empty();
    let mut client = database.connect();
    // The last schema would catch unqualified calls.
    client
        .batch_execute(
            r#"CREATE SCHEMA "My Extensions";
               CREATE EXTENSION pg_snowflake SCHEMA "My Extensions";
               CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY HASH (id "My Extensions".snowflake_shard_ops);
               CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
               CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
               CREATE SCHEMA trap;
               CREATE TABLE trap.pg_class (oid oid);
               CREATE TABLE trap.pg_inherits (inhrelid oid);
               CREATE FUNCTION trap.hashint8(bigint) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1 / 0';
               CREATE FUNCTION trap.hashint8extended(bigint, bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 1 / 0::bigint';
               CREATE FUNCTION trap.satisfies_hash_partition(oid, int, int, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
               CREATE FUNCTION trap.equal(bigint, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
               CREATE OPERATOR trap.= (FUNCTION = trap.equal, LEFTARG = bigint, RIGHTARG = bigint)"#,
        )
        .unwrap();
    for search_path in ["''", "public", "trap, pg_catalog", "\"My Extensions\", trap, pg_catalog"] {
        client.batch_execute(&format!("SET search_path = {search_path}")).unwrap();
        for (shard, partition) in [(4, "posts_0"), (5, "posts_1")] {
            let id = id_of_shard(shard);
            let located = format!(
                r#"SELECT shard_id, partition OPERATOR(pg_catalog.=) 'public.{partition}'::pg_catalog.regclass
                   FROM "My Extensions".snowflake_locate('public.posts', {id})"#
            );
            assert_eq!(printed(&mut client, &located), format!("{shard}|t"), "{search_path}");
            client.batch_execute(&format!("INSERT INTO public.posts VALUES ({id}); DELETE FROM public.{partition} WHERE id OPERATOR(pg_catalog.=) {id}")).unwrap();
        }
    }
}

#[test]
fn a_parallel_query_may_ask_for_many_ids() {
    let (_cluster, mut client) = server();
    partition_by_shard(&mut client, "posts", "id bigint", "id", 4);
    client
        .batch_execute(&format!(
            "INSERT INTO posts {IDS};
             ANALYZE posts;
             SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
             SET max_parallel_workers_per_gather = 2"
        ))
        .unwrap();
    let query =
        "SELECT count(*) FROM posts WHERE (snowflake_locate('posts', id)).partition = tableoid";
    let executed = printed(&mut client, &format!("EXPLAIN (ANALYZE, COSTS OFF) {query}"));
    assert!(executed.contains("Workers Launched: 2"), "{executed}");
    assert_eq!(printed(&mut client, query), "4096");
}

/// Tables `t0`, `t1`, …, each the only partition of the one before, and a leaf at the end.
fn nest(client: &mut Client, depth: i32) {
    client.batch_execute("CREATE TABLE t0 (id bigint) PARTITION BY LIST (id)").unwrap();
    // In separate transactions, or their locks would fill the lock table.
    client
        .batch_execute(&format!(
            "DO $$ BEGIN
                 FOR i IN 1 .. {depth} LOOP
                     EXECUTE format('CREATE TABLE t%s PARTITION OF t%s DEFAULT PARTITION BY LIST (id)', i, i - 1);
                     COMMIT;
                 END LOOP;
             END $$"
        ))
        .unwrap();
    client.batch_execute(&format!("CREATE TABLE leaf PARTITION OF t{depth} DEFAULT")).unwrap();
}

#[test]
fn a_user_who_nests_partitions_deeply_does_not_crash_the_server() {
    // Corresponds to 16,000 levels with the usual 8 MB.
    let cluster = Cluster::builder().stack(1 << 20).start();
    let mut client = cluster.connect();
    nest(&mut client, 2000);
    // From below, so that core has cached the lower levels: looking them up on a full stack is an error.
    let located =
        "SELECT count(*), min(partition::text) FROM generate_series(2000, 0, -10) AS level,
                   snowflake_locate(('t' || level)::regclass, 5)";
    assert_eq!(printed(&mut client, located), "201|leaf");
}

#[test]
fn thousands_of_levels_do_not_fill_the_lock_table() {
    let cluster = Cluster::builder()
        .setting("max_connections", "10")
        .setting("max_locks_per_transaction", "10")
        .start();
    let mut client = cluster.connect();
    nest(&mut client, 2000);
    let located = "SELECT partition FROM snowflake_locate('t0', 5)";
    assert_eq!(printed(&mut client, located), "leaf");
}

#[test]
fn a_table_is_locked_until_its_partition_is() {
    let (database, mut client) = database();
    nest(&mut client, 2);
    for (barred, held) in [("t0", ""), ("t1", "t0"), ("t2", "t1")] {
        client.batch_execute(&format!("BEGIN; LOCK TABLE ONLY {barred}")).unwrap();
        let mut other = database.connect();
        let pid = printed(&mut other, "SELECT pg_backend_pid()");
        let locating = thread::spawn(move || {
            printed(&mut other, "SELECT partition FROM snowflake_locate('t0', 5)")
        });
        let locks = format!(
            "FROM pg_locks WHERE pid = {pid} AND relation::regclass::text ~ '^t[0-9]$' AND granted"
        );
        let waits = format!("SELECT count(*) = 1 {locks} = false");
        wait_for(&mut client, &waits, "it waits for a lock");
        let granted = printed(&mut client, &format!("SELECT relation::regclass {locks}"));
        assert_eq!(granted, held, "while it waits for {barred}");
        client.batch_execute("COMMIT").unwrap();
        assert_eq!(locating.join().unwrap(), "leaf");
    }
}
