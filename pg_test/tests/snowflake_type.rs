//! The type `snowflake`: a bigint that is a string in JSON.

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{Refusal, assert_refused, copy, plan, printed, server};
use postgres::Client;

/// Above 2^53, so that a JavaScript number would lose it.
const ID: &str = "1409869991632729716";

/// A table `posts` of 10,000 IDs and `comments` on them, of bigints.
fn posts() -> (Cluster, Client) {
    let (cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s;
             CREATE TABLE posts (id snowflake PRIMARY KEY DEFAULT snowflake_nextval('s', 5), n int);
             INSERT INTO posts (id, n) SELECT snowflake_encode('2024-01-01', g % 8, g % 1024) + (g::bigint << 22), g
                 FROM generate_series(1, 10000) AS g;
             CREATE TABLE comments (id snowflake PRIMARY KEY DEFAULT snowflake_nextval('s', 5),
                 post_id bigint NOT NULL REFERENCES posts);
             CREATE TABLE plain (id bigint PRIMARY KEY);
             CREATE TABLE of_plain (plain_id snowflake REFERENCES plain ON DELETE CASCADE ON UPDATE CASCADE);
             ANALYZE",
        )
        .unwrap();
    (cluster, client)
}

#[test]
fn it_is_a_bigint_in_all_expressions() {
    let (_cluster, mut client) = server();
    let cases = [
        (format!("'{ID}'::snowflake"), ID),
        (format!("{ID}::snowflake"), ID),
        ("5::snowflake".into(), "5"),
        ("'-1'::snowflake".into(), "-1"),
        (format!("('{ID}'::snowflake)::bigint + 1"), "1409869991632729717"),
        (format!("'{ID}'::snowflake + 1"), "1409869991632729717"),
        (format!("'{ID}'::snowflake = {ID}"), "t"),
        (format!("'{ID}'::snowflake > 5"), "t"),
        ("'10'::snowflake > '9'::snowflake".into(), "t"),
        (format!("'{ID}'::snowflake IN (1, {ID})"), "t"),
        (format!("'{ID}'::snowflake = ANY (ARRAY[1, {ID}])"), "t"),
        (format!("'{ID}'::snowflake BETWEEN 1 AND {ID}"), "t"),
        (format!("snowflake_shard_id('{ID}'::snowflake)"), "2675"),
        (format!("snowflake_between('{ID}'::snowflake, '2020-08-26', '2020-08-27')"), "t"),
        (format!("snowflake_to_base32('{ID}'::snowflake) = snowflake_to_base32({ID})"), "t"),
        (format!("ARRAY['{ID}'::snowflake, 5]::snowflake[]"), "{1409869991632729716,5}"),
        ("'{9,10}'::snowflake[] @> ARRAY[10::snowflake]".into(), "t"),
        ("('{9,10}'::snowflake[])[2]".into(), "10"),
        ("greatest('9'::snowflake, '10'::snowflake)".into(), "10"),
        ("coalesce(NULL::snowflake, 3::bigint::snowflake)".into(), "3"),
        // With an integer, such as a literal, it stays a snowflake.
        ("pg_typeof(coalesce('3'::snowflake, 0))".into(), "snowflake"),
        ("greatest('3'::snowflake, 4)".into(), "4"),
        ("ARRAY['3'::snowflake, 5]".into(), "{3,5}"),
        // With a bigint the common type is bigint.
        ("coalesce('3'::snowflake, 4::bigint)".into(), "3"),
        ("pg_typeof(greatest('3'::snowflake, 4::bigint))".into(), "bigint"),
        ("(SELECT count(*) FROM (SELECT '3'::snowflake UNION SELECT 3::bigint) AS u)".into(), "1"),
        (
            "(SELECT id FROM (SELECT '3'::snowflake AS id) AS a JOIN (SELECT 3::bigint AS id) AS b USING (id))"
                .into(),
            "3",
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(printed(&mut client, &format!("SELECT {expression}")), expected, "{expression}");
    }
}

#[test]
fn a_value_that_is_not_a_bigint_is_not_a_snowflake() {
    let (_cluster, mut client) = server();
    for (text, sqlstate) in
        [("x", "22P02"), ("", "22P02"), ("1.5", "22P02"), ("9223372036854775808", "22003")]
    {
        let refusal = Refusal { sqlstate, message: "", hint: "" };
        assert_refused(&mut client, &format!("SELECT '{text}'::snowflake"), refusal);
    }
}

#[test]
fn comparisons_with_bigints_use_its_index() {
    let (_cluster, mut client) = posts();
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
fn it_orders_groups_and_aggregates_as_a_bigint() {
    let (_cluster, mut client) = posts();
    let cases = [
        (
            "SELECT count(*) FROM (SELECT rank() OVER (ORDER BY id) AS r, n FROM posts) AS x WHERE r <> n",
            "0",
        ),
        ("SELECT n FROM posts ORDER BY id DESC LIMIT 2", "10000\n9999"),
        ("SELECT max(id) = (SELECT id FROM posts WHERE n = 10000) FROM posts", "t"),
        ("SELECT min(id) = (SELECT id FROM posts WHERE n = 1) FROM posts", "t"),
        ("SELECT count(*) FROM (SELECT id FROM posts GROUP BY id) AS grouped", "10000"),
        ("SELECT count(DISTINCT id) FROM posts", "10000"),
        ("SELECT count(*) FROM posts AS a JOIN posts AS b USING (id)", "10000"),
        ("SELECT cardinality(array_agg(id ORDER BY id)) FROM posts", "10000"),
    ];
    for (sql, expected) in cases {
        assert_eq!(printed(&mut client, sql), expected, "{sql}");
    }
    let max = plan(&mut client, "SELECT max(id) FROM posts");
    assert!(max.contains("Index Only Scan Backward using posts_pkey"), "{max}");
}

#[test]
fn json_has_it_as_a_string_and_round_trips() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(&format!(
            "CREATE TABLE posts (id snowflake, ids snowflake[], plain bigint);
             INSERT INTO posts VALUES ({ID}, '{{{ID},5}}', {ID})"
        ))
        .unwrap();
    let cases = [
        ("row_to_json(posts)::text", format!(r#"{{"id":"{ID}","ids":["{ID}","5"],"plain":{ID}}}"#)),
        (
            "to_jsonb(posts)::text",
            format!(r#"{{"id": "{ID}", "ids": ["{ID}", "5"], "plain": {ID}}}"#),
        ),
        ("to_json(id)::text", format!("\"{ID}\"")),
        ("jsonb_build_object('id', id)::text", format!(r#"{{"id": "{ID}"}}"#)),
        ("json_object_agg(id, id)::text", format!(r#"{{ "{ID}" : "{ID}" }}"#)),
        ("jsonb_agg(id)::text", format!("[\"{ID}\"]")),
        ("(SELECT (r).id FROM jsonb_populate_record(posts, to_jsonb(posts)) AS r)", ID.into()),
        ("(jsonb_populate_record(NULL::posts, to_jsonb(posts)) = posts)::text", "true".into()),
        ("(json_populate_record(NULL::posts, row_to_json(posts)) = posts)::text", "true".into()),
        ("(SELECT id FROM jsonb_to_record(to_jsonb(posts)) AS r (id snowflake))", ID.into()),
    ];
    for (expression, expected) in cases {
        let found = printed(&mut client, &format!("SELECT {expression} FROM posts"));
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn it_round_trips_through_every_copy_format() {
    let (_cluster, mut client) = posts();
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
    let (_cluster, mut client) = posts();
    client.batch_execute("CREATE TABLE target (id bigint)").unwrap();
    assert_eq!(copy(&mut client, "(SELECT id FROM posts)", "target", "binary"), 10000);
    assert_eq!(
        printed(&mut client, "SELECT count(*) FROM posts JOIN target ON posts.id = target.id"),
        "10000"
    );
}

#[test]
fn foreign_keys_go_to_and_from_bigints() {
    let (_cluster, mut client) = posts();
    client
        .batch_execute(
            "INSERT INTO comments (post_id) SELECT id FROM posts LIMIT 10;
             INSERT INTO plain VALUES (1), (2), (3);
             INSERT INTO of_plain VALUES (1), (2);
             UPDATE plain SET id = 20 WHERE id = 2;
             DELETE FROM plain WHERE id = 1",
        )
        .unwrap();
    assert_eq!(printed(&mut client, "SELECT plain_id FROM of_plain"), "20");
    for sql in [
        "INSERT INTO comments (post_id) VALUES (-1)",
        "INSERT INTO of_plain VALUES (99)",
        "DELETE FROM posts WHERE id IN (SELECT post_id FROM comments)",
    ] {
        let refusal = Refusal { sqlstate: "23503", message: "foreign key", hint: "" };
        assert_refused(&mut client, sql, refusal);
    }
}

#[test]
fn it_is_a_partition_key() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE TABLE ranged (id snowflake PRIMARY KEY) PARTITION BY RANGE (id);
             CREATE TABLE ranged_1 PARTITION OF ranged
                 FOR VALUES FROM (snowflake_min_id('2024-01-01')) TO (snowflake_min_id('2024-02-01'));
             CREATE TABLE ranged_2 PARTITION OF ranged
                 FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (snowflake_min_id('2024-03-01'));
             INSERT INTO ranged SELECT snowflake_encode(t, 5, 1)
                 FROM generate_series(timestamptz '2024-01-01', '2024-02-29', '1 hour') AS t;
             CREATE TABLE hashed (id snowflake PRIMARY KEY) PARTITION BY HASH (id);
             CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             INSERT INTO hashed SELECT id FROM ranged",
        )
        .unwrap();
    assert_eq!(printed(&mut client, "SELECT count(*) FROM ranged_1"), (31 * 24).to_string());
    assert_eq!(printed(&mut client, "SELECT count(*) FROM ranged_2"), (28 * 24 + 1).to_string());
    let halves = "SELECT count(*) FROM hashed, (SELECT count(*) AS half FROM hashed_0) AS h GROUP BY half HAVING half BETWEEN 600 AND 820";
    assert_eq!(printed(&mut client, halves), "1417");

    let february = plan(
        &mut client,
        "SELECT * FROM ranged WHERE snowflake_between(id, '2024-02-03', '2024-02-04')",
    );
    assert!(february.contains("ranged_2") && !february.contains("ranged_1"), "{february}");
    for id in ["5", ID, "'5'"] {
        let one = plan(&mut client, &format!("SELECT * FROM hashed WHERE id = {id}"));
        assert!(one.contains("hashed_0") != one.contains("hashed_1"), "{one}");
    }
}
