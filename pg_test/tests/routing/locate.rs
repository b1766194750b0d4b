//! `snowflake_locate`: the place of a row, from the catalog alone. The planner always has the same answer.

use super::classes::CLASSES;
use super::{id_of_shard, partition_by_shard};
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{Bad, assert_each_refused, printed, server};
use pg_snowflake_harness::wait::wait_for;
use pg_snowflake_ids::PRESETS;
use postgres::Client;
use std::thread;

/// Checks that every row of a table is where `snowflake_locate` says, and returns the numbers of rows and partitions.
fn assert_agreement(client: &mut Client, table: &str, key: &str, layout: &str) -> String {
    let astray = misplaced(table, key, layout);
    assert_eq!(printed(client, &astray), "", "{table}");
    printed(client, &format!("SELECT count(*), count(DISTINCT tableoid) FROM {table}"))
}

/// A query for misplaced rows.
fn misplaced(table: &str, key: &str, layout: &str) -> String {
    format!(
        "SELECT t.tableoid::regclass, {key}, partition
         FROM {table} AS t, snowflake_locate('{table}', {key}, '{layout}')
         WHERE partition IS DISTINCT FROM t.tableoid ORDER BY {key} LIMIT 3"
    )
}

/// IDs of all shards of the default layout, with times in the first half of 2024.
const IDS: &str =
    "SELECT snowflake_encode(timestamptz '2024-01-01' + interval '1 hour' * shard, shard, 0)
                   FROM generate_series(0, 4095) AS shard";

#[test]
fn a_local_partition_has_no_server() {
    let (_cluster, mut client) = server();
    partition_by_shard(&mut client, "posts", "id bigint PRIMARY KEY", "id", 4);
    let found = |id: i64| {
        format!(
            "SELECT *, server IS NULL AND host IS NULL AND port IS NULL AND dbname IS NULL FROM snowflake_locate('posts', {id})"
        )
    };
    assert_eq!(printed(&mut client, &found(id_of_shard(5))), "5|posts_1|||||t");
    assert_eq!(printed(&mut client, &found(id_of_shard(4095))), "4095|posts_3|||||t");
    assert_eq!(printed(&mut client, &found(-1)), "0|posts_0|||||t");
    assert_eq!(printed(&mut client, &found(-4096)), "4095|posts_3|||||t");
}

#[test]
fn null_is_located_nowhere() {
    let (_cluster, mut client) = server();
    partition_by_shard(&mut client, "posts", "id bigint", "id", 4);
    for arguments in ["NULL, 5", "'posts', NULL", "'posts', 5, NULL"] {
        let query =
            format!("SELECT count(*), bool_and(l IS NULL) FROM snowflake_locate({arguments}) AS l");
        assert_eq!(printed(&mut client, &query), "1|t", "{arguments}");
    }
}

#[test]
fn it_agrees_with_the_place_of_each_row_for_each_class() {
    let (_cluster, mut client) = server();
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
            assert_eq!(assert_agreement(&mut client, "posts", "id", layout), "5004|7", "{layout}");
        }
    }
}

#[test]
fn the_key_is_whatever_column_the_table_is_partitioned_by() {
    let (_cluster, mut client) = server();
    let columns = r#"id bigint, "Post" bigint, body text"#;
    partition_by_shard(&mut client, "comments", columns, r#""Post""#, 4);
    client
        .batch_execute(&format!(
            r#"INSERT INTO comments ("Post", id) SELECT i, 0 FROM ({IDS}) AS ids (i)"#
        ))
        .unwrap();
    assert_eq!(assert_agreement(&mut client, "comments", r#""Post""#, "postgres"), "4096|4");
}

#[test]
fn it_follows_partitions_of_partitions() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(&format!(
            "CREATE TABLE by_shard (id bigint, n int) PARTITION BY HASH (id snowflake_shard_ops);
             CREATE TABLE s_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY RANGE (id);
             CREATE TABLE s_1 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             CREATE TABLE s_0_january PARTITION OF s_0
                 FOR VALUES FROM (snowflake_min_id('2024-01-01')) TO (snowflake_min_id('2024-02-01'));
             -- The columns of this one are in another order.
             CREATE TABLE s_0_february (n int, dropped int, id bigint) PARTITION BY LIST (id);
             ALTER TABLE s_0_february DROP dropped;
             ALTER TABLE s_0 ATTACH PARTITION s_0_february
                 FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (snowflake_min_id('2024-03-01'));
             CREATE TABLE s_0_february_rest PARTITION OF s_0_february DEFAULT;
             CREATE TABLE s_0_rest PARTITION OF s_0 DEFAULT;
             INSERT INTO by_shard {IDS};

             CREATE TABLE by_month (id bigint, n int) PARTITION BY RANGE (id);
             CREATE TABLE m_1 PARTITION OF by_month
                 FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2024-02-01'))
                 PARTITION BY HASH (id snowflake_shard_ops);
             CREATE TABLE m_1_0 PARTITION OF m_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE m_1_1 PARTITION OF m_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             CREATE TABLE m_2 PARTITION OF by_month
                 FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (MAXVALUE)
                 PARTITION BY HASH (id snowflake_shard_ops);
             CREATE TABLE m_2_all PARTITION OF m_2 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
             INSERT INTO by_month {IDS};

             CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
             CREATE TABLE l_1 PARTITION OF listed FOR VALUES IN (1, 5);
             CREATE TABLE l_2 PARTITION OF listed FOR VALUES IN (3, NULL);
             INSERT INTO listed VALUES (1), (3), (5)"
        ))
        .unwrap();
    assert_eq!(assert_agreement(&mut client, "by_shard", "id", "postgres"), "4096|4");
    assert_eq!(assert_agreement(&mut client, "by_month", "id", "postgres"), "4096|3");
    assert_eq!(assert_agreement(&mut client, "listed", "id", "postgres"), "3|2");
    // Also from a lower level.
    assert_eq!(assert_agreement(&mut client, "s_0", "id", "postgres"), "2048|3");
}

#[test]
fn it_follows_a_table_that_is_partitioned_by_another_class() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(&format!(
            "CREATE TABLE posts (id bigint) PARTITION BY HASH (id);
             CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             INSERT INTO posts {IDS}"
        ))
        .unwrap();
    assert_eq!(assert_agreement(&mut client, "posts", "id", "postgres"), "4096|2");
}

#[test]
fn an_id_without_a_partition_is_nowhere() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE TABLE none (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
             CREATE TABLE part (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
             CREATE TABLE part_1 PARTITION OF part FOR VALUES WITH (MODULUS 4, REMAINDER 1);
             CREATE TABLE part_2 PARTITION OF part FOR VALUES WITH (MODULUS 4, REMAINDER 2) PARTITION BY RANGE (id);
             CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
             CREATE TABLE listed_1 PARTITION OF listed FOR VALUES IN (5)",
        )
        .unwrap();
    let [five, six, seven] = [5, 6, 7].map(id_of_shard);
    let cases = [
        ("none", five, "5|"),
        ("part", five, "5|part_1"),
        ("part", six, "6|"),
        ("part", seven, "7|"),
        ("listed", seven, "7|"),
    ];
    for (table, id, expected) in cases {
        let query = format!("SELECT shard_id, partition FROM snowflake_locate('{table}', {id})");
        assert_eq!(printed(&mut client, &query), expected, "{table} {id}");
    }
}

#[test]
fn a_detached_partition_is_no_longer_found() {
    let (_cluster, mut client) = server();
    partition_by_shard(&mut client, "posts", "id bigint", "id", 4);
    let query = format!("SELECT partition FROM snowflake_locate('posts', {})", id_of_shard(5));
    assert_eq!(printed(&mut client, &query), "posts_1");
    client.batch_execute("ALTER TABLE posts DETACH PARTITION posts_1").unwrap();
    assert_eq!(printed(&mut client, &query), "");
    client
        .batch_execute(
            "ALTER TABLE posts ATTACH PARTITION posts_1 FOR VALUES WITH (MODULUS 4, REMAINDER 1)",
        )
        .unwrap();
    assert_eq!(printed(&mut client, &query), "posts_1");
}

#[test]
fn a_table_without_partitions_is_the_place_of_all_its_rows() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE TABLE posts (id bigint);
             CREATE FOREIGN DATA WRAPPER nothing;
             CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing OPTIONS (host 'db7.example');
             CREATE FOREIGN TABLE remote (id bigint) SERVER elsewhere;
             CREATE TABLE parent (id bigint);
             CREATE TABLE child () INHERITS (parent);
             CREATE TABLE bereft (id bigint);
             CREATE TABLE gone () INHERITS (bereft);
             DROP TABLE gone",
        )
        .unwrap();
    let locate = |table| format!("SELECT * FROM snowflake_locate('{table}', {})", id_of_shard(5));
    assert_eq!(printed(&mut client, &locate("posts")), "5|posts||||");
    assert_eq!(printed(&mut client, &locate("remote")), "5|remote|elsewhere|db7.example||");
    assert_eq!(printed(&mut client, &locate("child")), "5|child||||");
    assert_eq!(printed(&mut client, &locate("bereft")), "5|bereft||||");
}

#[test]
fn a_foreign_partition_names_its_server_and_the_servers_options() {
    let (_cluster, mut client) = server();
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
fn a_table_in_which_ids_cannot_be_located_is_refused() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE TABLE two (id bigint, tenant bigint) PARTITION BY HASH (id snowflake_shard_ops, tenant);
             CREATE TABLE by_time (id bigint, at timestamptz) PARTITION BY RANGE (at);
             CREATE TABLE by_int (id int) PARTITION BY RANGE (id);
             CREATE TABLE by_half (id bigint) PARTITION BY HASH ((id / 2));
             CREATE TABLE mixed (id bigint, author bigint) PARTITION BY HASH (id snowflake_shard_ops);
             CREATE TABLE mixed_0 PARTITION OF mixed FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY RANGE (author);
             CREATE TABLE tweets (id bigint) PARTITION BY HASH (id snowflake_shard_ops_twitter);
             CREATE TABLE posts (id bigint) PARTITION BY RANGE (id);
             CREATE TABLE posts_all PARTITION OF posts DEFAULT PARTITION BY HASH (id snowflake_shard_ops);
             CREATE VIEW v AS SELECT * FROM posts;
             CREATE MATERIALIZED VIEW mv AS SELECT * FROM posts;
             CREATE SEQUENCE s;
             CREATE INDEX posts_id ON posts (id);
             CREATE TABLE parent (id bigint);
             CREATE TABLE child () INHERITS (parent)",
        )
        .unwrap();
    let not_by_id = |sql, table, key| Bad { sql, sqlstate: "42809", message: table, allowed: key };
    let not_a_table =
        |sql, message| Bad { sql, sqlstate: "42809", message, allowed: "Pass a table" };
    let wrong_layout = |sql, message, allowed| Bad { sql, sqlstate: "22023", message, allowed };
    let cases = [
        not_by_id(
            "SELECT snowflake_locate('two', 5)",
            "cannot locate IDs in table \"two\" because it is not partitioned by the ID alone",
            "Its partition key is (id, tenant). Partition every level by the same single column",
        ),
        not_by_id("SELECT snowflake_locate('by_time', 5)", "\"by_time\"", "(at)"),
        not_by_id("SELECT snowflake_locate('by_int', 5)", "\"by_int\"", "(id)"),
        not_by_id("SELECT snowflake_locate('by_half', 5)", "\"by_half\"", "id / 2"),
        not_by_id("SELECT snowflake_locate('mixed', 5)", "\"mixed_0\"", "(author)"),
        Bad {
            sql: "SELECT snowflake_locate('parent', 5)",
            sqlstate: "42809",
            message: "cannot locate IDs in table \"parent\" because other tables inherit from it",
            allowed: "pass one of the children",
        },
        not_a_table("SELECT snowflake_locate('v', 5)", "\"v\" is not a table"),
        not_a_table("SELECT snowflake_locate('mv', 5)", "\"mv\" is not a table"),
        not_a_table("SELECT snowflake_locate('s', 5)", "\"s\" is not a table"),
        not_a_table("SELECT snowflake_locate('posts_id', 5)", "\"posts_id\" is not a table"),
        Bad {
            sql: "SELECT snowflake_locate(4000000000, 5)",
            sqlstate: "42P01",
            message: "table with OID 4000000000 does not exist",
            allowed: "Pass the table by name",
        },
        wrong_layout(
            "SELECT snowflake_locate('tweets', 5)",
            "table \"tweets\" is not partitioned by shards of layout \"postgres\"",
            "snowflake_shard_ops_twitter reads (id >> 12) & 1023. The shard of the layout is (id # (id >> 12)) & 4095. Pass \
             the layout of the IDs in the table.",
        ),
        wrong_layout(
            "SELECT snowflake_locate('tweets', 5, 'js53')",
            "layout \"js53\"",
            "(id >> 5) & 127",
        ),
        wrong_layout(
            "SELECT snowflake_locate('tweets', 5, 'mastodon')",
            "layout \"mastodon\"",
            "The shard of the layout is 0.",
        ),
        wrong_layout(
            "SELECT snowflake_locate('posts', 5, 'twitter')",
            "\"posts_all\"",
            "(id >> 12) & 1023",
        ),
    ];
    assert_each_refused(&mut client, &cases);
}

#[test]
fn each_class_takes_its_own_layouts_and_no_other() {
    let (_cluster, mut client) = server();
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
fn a_custom_layout_with_the_shard_at_the_same_place_is_accepted() {
    let (_cluster, mut client) = server();
    partition_by_shard(&mut client, "posts", "id bigint", "id", 4);
    let locate =
        |layout| format!("SELECT partition FROM snowflake_locate('posts', 12289, '{layout}')");
    for layout in [
        "time:40 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:10ms",
        "time:40 seq:8 shard_xor_above:12 epoch:2024-01-01 unit:1ms",
    ] {
        assert_eq!(printed(&mut client, &locate(layout)), "posts_2", "{layout}");
    }
    for (layout, place) in [
        ("time:40 seq:10 shard:12 epoch:2024-01-01 unit:10ms", "is id & 4095."),
        ("time:40 shard:12 seq:10 epoch:2024-01-01 unit:10ms", "is (id >> 10) & 4095."),
        (
            "time:40 seq:10 shard_xor_above:13 epoch:2024-01-01 unit:10ms",
            "is (id # (id >> 13)) & 8191.",
        ),
    ] {
        let sql = &locate(layout);
        let bad = Bad { sql, sqlstate: "22023", message: "shards", allowed: place };
        assert_each_refused(&mut client, &[bad]);
    }
}

#[test]
fn it_finds_the_same_whatever_the_search_path() {
    let cluster = Cluster::new();
    let mut client = cluster.empty_database("bare");
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
fn a_role_that_cannot_read_a_table_can_ask_where_its_rows_are() {
    let (cluster, mut client) = server();
    partition_by_shard(&mut client, "posts", "id bigint", "id", 4);
    client
        .batch_execute("CREATE ROLE somebody LOGIN; GRANT USAGE ON SCHEMA public TO somebody")
        .unwrap();
    let mut somebody = cluster.connect_to("somebody", "postgres");
    assert!(somebody.batch_execute("SELECT * FROM posts").is_err());
    let located = "SELECT partition FROM snowflake_locate('posts', 3)";
    assert_eq!(printed(&mut somebody, located), "posts_3");
}

/// Core lets everybody read pg_foreign_server, but only its owner and superusers a user mapping.
#[test]
fn it_shows_of_a_server_what_everybody_can_read_in_the_catalog() {
    let (cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE FOREIGN DATA WRAPPER nothing;
             CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing OPTIONS (host 'db7.example', port '6432', dbname 'app');
             CREATE USER MAPPING FOR PUBLIC SERVER elsewhere OPTIONS (host 'secret', password 'secret');
             CREATE FOREIGN TABLE remote (id bigint) SERVER elsewhere;
             CREATE ROLE somebody LOGIN",
        )
        .unwrap();
    let mut somebody = cluster.connect_to("somebody", "postgres");
    let rights = "SELECT has_server_privilege('elsewhere', 'USAGE'), has_table_privilege('remote', 'SELECT')";
    assert_eq!(printed(&mut somebody, rights), "f|f");
    let located = "SELECT host, port, dbname FROM snowflake_locate('remote', 3)";
    let catalog = "SELECT max(option_value) FILTER (WHERE option_name = 'host'),
                          max(option_value) FILTER (WHERE option_name = 'port'),
                          max(option_value) FILTER (WHERE option_name = 'dbname')
                   FROM pg_foreign_server, pg_options_to_table(srvoptions)";
    assert_eq!(printed(&mut somebody, located), "db7.example|6432|app");
    assert_eq!(printed(&mut somebody, catalog), "db7.example|6432|app");
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
    let (cluster, mut client) = server();
    nest(&mut client, 2);
    for (barred, held) in [("t0", ""), ("t1", "t0"), ("t2", "t1")] {
        client.batch_execute(&format!("BEGIN; LOCK TABLE ONLY {barred}")).unwrap();
        let mut other = cluster.connect();
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

/// Core evaluates what is constant in a partition key's expression when it reads the key.
#[test]
fn the_expressions_of_a_partition_key_are_not_evaluated() {
    let (cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'evaluated'; END $$;
             CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
                 IF current_setting('test.key', true) IS NOT NULL THEN RETURN fails(); END IF;
                 RETURN 1;
             END $$;
             CREATE TABLE two (id bigint) PARTITION BY RANGE (id, (f(1) + id));
             CREATE TABLE one (id bigint) PARTITION BY RANGE ((f(1) + id));
             CREATE TABLE outer_one (id bigint) PARTITION BY RANGE (id);
             CREATE TABLE inner_one PARTITION OF outer_one DEFAULT PARTITION BY RANGE ((f(1) + id));",
        )
        .unwrap();
    let database = printed(&mut client, "SELECT current_database()");
    client.batch_execute(&format!("ALTER DATABASE {database} SET test.key = 'set'")).unwrap();
    let mut client = cluster.connect();
    for table in ["two", "one", "outer_one"] {
        let error = client.query(&format!("SELECT snowflake_locate('{table}', 5)"), &[]);
        let message = error.unwrap_err().as_db_error().unwrap().message().to_owned();
        assert!(message.contains("because it is not partitioned by the ID alone"), "{message}");
    }
}
