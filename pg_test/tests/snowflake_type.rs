//! The type `snowflake` is planned, copied and sent like a bigint.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{copy, database, plan, printed, run};
use postgres::Client;

/// A table `posts` of 10,000 IDs.
fn posts() -> (Database, Client) {
    let (database, mut client) = database();
    client
        .batch_execute(
            "CREATE TABLE posts (id snowflake PRIMARY KEY, n int);
             INSERT INTO posts SELECT snowflake_encode('2024-01-01', g % 8, g % 1024) + (g::bigint << 22), g
                 FROM generate_series(1, 10000) AS g;
             ANALYZE",
        )
        .unwrap();
    (database, client)
}

#[test]
fn comparisons_with_bigints_use_its_index() {
    let (_database, mut client) = posts();
    let id = printed(&mut client, "SELECT id FROM posts WHERE n = 9990");
    let cases = [
        format!("id = {id}"),
        format!("id = '{id}'"),
        format!("id = {id}::snowflake"),
        "id = 5".into(),
        format!("id IN (5, {id})"),
        format!("id >= {id}"),
        format!("id > {id} AND id < {id} + 100000000"),
        "id >= snowflake_min_id('2024-01-01 00:00:09.990')".into(),
        "snowflake_between(id, '2024-01-01 00:00:05', '2024-01-01 00:00:05.010')".into(),
    ];
    for condition in cases {
        let plan = plan(&mut client, &format!("SELECT * FROM posts WHERE {condition}"));
        assert!(plan.contains("posts_pkey") && plan.contains("Index Cond"), "{condition}:\n{plan}");
    }
}

#[test]
fn the_highest_is_read_from_its_index() {
    let (_database, mut client) = posts();
    let max = plan(&mut client, "SELECT max(id) FROM posts");
    assert!(max.contains("Index Only Scan Backward using posts_pkey"), "{max}");
}

#[test]
fn it_round_trips_through_every_copy_format() {
    let (_database, mut client) = posts();
    for format in ["text", "csv", "binary"] {
        client.batch_execute("CREATE TABLE target (id snowflake, ids snowflake[])").unwrap();
        let select =
            "SELECT id, ARRAY[id, n::bigint::snowflake] FROM posts UNION ALL SELECT NULL, NULL";
        let copied = copy(&mut client, &format!("({select})"), "target", format);
        assert_eq!(copied, 10001, "{format}");
        let same = "SELECT count(*) FROM posts JOIN target USING (id) WHERE ids = ARRAY[id, n::bigint::snowflake]";
        assert_eq!(printed(&mut client, same), "10000", "{format}");
        client.batch_execute("DROP TABLE target").unwrap();
    }
}

#[test]
fn its_bytes_are_a_bigints() {
    let (_database, mut client) = posts();
    client.batch_execute("CREATE TABLE target (id bigint)").unwrap();
    assert_eq!(copy(&mut client, "(SELECT id FROM posts)", "target", "binary"), 10000);
    assert_eq!(
        printed(&mut client, "SELECT count(*) FROM posts JOIN target ON posts.id = target.id"),
        "10000"
    );
}

#[test]
fn conditions_on_it_prune_partitions() {
    let (_database, mut client) = database();
    run(
        &mut client,
        "CREATE TABLE ranged (id snowflake PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE ranged_1 PARTITION OF ranged
             FOR VALUES FROM (snowflake_min_id('2024-01-01')) TO (snowflake_min_id('2024-02-01'));
         CREATE TABLE ranged_2 PARTITION OF ranged
             FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (snowflake_min_id('2024-03-01'));
         CREATE TABLE hashed (id snowflake PRIMARY KEY) PARTITION BY HASH (id);
         CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    );
    let february = plan(
        &mut client,
        "SELECT * FROM ranged WHERE snowflake_between(id, '2024-02-03', '2024-02-04')",
    );
    assert!(february.contains("ranged_2") && !february.contains("ranged_1"), "{february}");
    for id in ["5", "1409869991632729716", "'5'"] {
        let one = plan(&mut client, &format!("SELECT * FROM hashed WHERE id = {id}"));
        assert!(one.contains("hashed_0") != one.contains("hashed_1"), "{one}");
    }
}
