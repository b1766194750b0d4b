//! `check_shard`: a table that refuses rows of other shards.

use super::run;
use pg_snowflake_harness::ask::{printed, refused, server};
use postgres::Client;

const CHECKS: &str = "SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint
    WHERE contype = 'c' AND coninhcount = 0 AND conrelid = 'posts'::regclass ORDER BY 1";

const OF_ANOTHER_SHARD: &str = "INSERT INTO posts (id) SELECT snowflake_encode(now(), 6, 0)";

fn assert_fenced(client: &mut Client) {
    run(client, "INSERT INTO posts (id) VALUES (DEFAULT), (snowflake_encode(now(), 5, 0))");
    assert_eq!(refused(client, OF_ANOTHER_SHARD).code().code(), "23514");
}

#[test]
fn an_empty_table_refuses_every_row_of_another_shard() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE posts (id bigint); SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true)",
    );

    assert_eq!(
        printed(&mut client, CHECKS),
        "posts_id_shard_check|CHECK ((snowflake_shard_id(id, 'postgres'::snowflake_layout) = 5))|t"
    );
    assert_fenced(&mut client);
    assert_eq!(refused(&mut client, "INSERT INTO posts VALUES (1)").code().code(), "23514");
}

#[test]
fn old_ids_pass_and_can_be_dumped_and_restored() {
    let (cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE posts (id int PRIMARY KEY); INSERT INTO posts VALUES (-1), (4711);
         SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true)",
    );

    assert_fenced(&mut client);
    run(&mut client, "UPDATE posts SET id = id WHERE id = 4711");
    assert_eq!(
        printed(&mut client, CHECKS),
        "posts_id_shard_check|CHECK (((id < (4194304)::bigint) OR (snowflake_shard_id(id, 'postgres'::snowflake_layout) = 5)))|t"
    );
    let mut restored = cluster.restored_database("restored", &cluster.dump("postgres"));
    assert_eq!(
        printed(&mut restored, "SELECT id FROM posts WHERE id < 5000 ORDER BY id"),
        "-1\n4711"
    );
    assert_fenced(&mut restored);
}

#[test]
fn negative_values_pass_in_a_layout_that_has_no_shard_for_them() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (-1), (-4711);
         SELECT snowflake_convert_column('posts', 'id', 5, 'js53', check_shard => true);
         INSERT INTO posts VALUES (DEFAULT)",
    );

    assert_eq!(
        printed(&mut client, CHECKS),
        "posts_id_shard_check|CHECK (((id < (0)::bigint) OR (snowflake_shard_id(id, 'js53'::snowflake_layout) = 5)))|t"
    );
}

#[test]
fn rows_that_are_all_of_the_shard_make_it_strict() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (snowflake_encode('2020-01-01', 5, 7));
         SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true)",
    );

    assert_eq!(
        printed(&mut client, CHECKS),
        "posts_id_shard_check|CHECK ((snowflake_shard_id(id, 'postgres'::snowflake_layout) = 5))|t"
    );
}

#[test]
fn a_partitioned_table_has_it_for_all_partitions() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
         CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
         SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true)",
    );

    assert_fenced(&mut client);
    let into_partition = OF_ANOTHER_SHARD.replace("posts", "posts_0");
    assert_eq!(refused(&mut client, &into_partition).code().code(), "23514");
}

#[test]
fn it_gets_an_unused_name_and_is_created_once() {
    for (rows, condition) in [
        ("", "CHECK ((snowflake_shard_id(id, 'postgres'::snowflake_layout) = 5))"),
        (
            "INSERT INTO posts VALUES (4711);",
            "CHECK (((id < (4194304)::bigint) OR (snowflake_shard_id(id, 'postgres'::snowflake_layout) = 5)))",
        ),
    ] {
        let (_cluster, mut client) = server();
        run(
            &mut client,
            &format!(
                "CREATE TABLE posts (id bigint, body text CONSTRAINT posts_id_shard_check CHECK (body <> '')); {rows}
                 SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
                 INSERT INTO posts DEFAULT VALUES;
                 SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true)"
            ),
        );

        let body = "posts_id_shard_check|CHECK ((body <> ''::text))|t";
        assert_eq!(
            printed(&mut client, CHECKS),
            format!("{body}\nposts_id_shard_check1|{condition}|t")
        );
    }
}

#[test]
fn another_check_on_the_column_does_not_replace_it() {
    let tables = [
        "CREATE TABLE posts (id bigint) PARTITION BY HASH (id);
         CREATE TABLE a PARTITION OF posts (CHECK (snowflake_shard_id(id) = 5)) FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE b PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) BETWEEN 5 AND 10))",
        "CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) <> 4))",
        "CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) = 5) NO INHERIT)",
        "CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (4711);
         ALTER TABLE posts ADD CHECK (snowflake_shard_id(id) = 5) NOT VALID",
    ];
    for table in tables {
        let (_cluster, mut client) = server();
        let convert = "SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true)";
        run(&mut client, &format!("{table}; {convert}"));

        assert!(printed(&mut client, CHECKS).contains("posts_id_shard_check|"), "{table}");
        // IDs of one tick, which fall into both partitions.
        for seq in 0..20 {
            let insert = OF_ANOTHER_SHARD.replace("0)", &format!("{seq})"));
            assert_eq!(refused(&mut client, &insert).code().code(), "23514", "{table}");
        }
    }
}

#[test]
fn the_shard_of_the_setting_is_written_into_it() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "SET pg_snowflake.shard_id = 5; CREATE TABLE posts (id bigint);
         SELECT snowflake_convert_column('posts', 'id', check_shard => true)",
    );

    assert_fenced(&mut client);
}
