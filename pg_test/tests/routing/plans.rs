//! Plans: a statement that names an ID touches only the partition of its shard.

use super::class::CLASSES;
use super::{
    ABOVE, id_of_shard, other_id_of_shard, partition_by_hash, posts_and_comments,
    posts_and_comments_of_each_shard,
};
use pg_snowflake_harness::ask::{database, plan, printed};
use postgres::Client;

/// The tables that a statement has read, in alphabetical order.
fn read_tables(client: &mut Client, sql: &str) -> String {
    let executed = printed(client, &format!("EXPLAIN (ANALYZE, FORMAT JSON) {sql}"));
    let query = format!(
        "SELECT string_agg(DISTINCT node->>'Relation Name', ' ' ORDER BY node->>'Relation Name')
         FROM jsonb_path_query($${executed}$$,
             '$.** ? (@.\"Relation Name\" != null && @.\"Node Type\" != \"ModifyTable\" && @.\"Actual Loops\" > 0)') AS node"
    );
    printed(client, &query)
}

/// How many partitions a plan has pruned at run time.
fn removed_at_run_time(client: &mut Client, sql: &str) -> String {
    let executed = printed(client, &format!("EXPLAIN (ANALYZE, FORMAT JSON) {sql}"));
    let query = format!(
        "SELECT jsonb_path_query($${executed}$$, 'strict $.**.\"Subplans Removed\" ? (@ > 0)')"
    );
    printed(client, &query)
}

#[test]
fn a_named_id_is_looked_for_in_the_partition_of_its_shard() {
    let (_database, mut client) = posts_and_comments();
    let [five, six, nine] = [5, 6, 9].map(id_of_shard);
    let cases = [
        (format!("id = {five}"), "posts_1"),
        (format!("id = '{five}'"), "posts_1"),
        (format!("{six} = id"), "posts_2"),
        (format!("id IN ({five}, {nine})"), "posts_1"),
        (format!("id IN ({five}, {six})"), "posts_1 posts_2"),
        (format!("id = ANY ('{{{five},{nine}}}')"), "posts_1"),
        (format!("id = {five} OR id = {six}"), "posts_1 posts_2"),
        (format!("id = {five} AND body = 'old'"), "posts_1"),
        // A small literal is an integer.
        ("id = 3".into(), "posts_3"),
        ("id = 3 << 12 | 1".into(), "posts_2"),
        ("id = 12289".into(), "posts_2"),
        ("id IN (1, 12289)".into(), "posts_1 posts_2"),
        // Unknown before the statement runs.
        (format!("id = (SELECT {six})"), "posts_2"),
        (format!("id = {six} + extract(epoch FROM now() - now())::bigint"), "posts_2"),
        // A range does not determine the shard.
        (format!("id > {five}"), "posts_0 posts_1 posts_2 posts_3"),
    ];
    for (condition, expected) in cases {
        let found = read_tables(&mut client, &format!("SELECT * FROM posts WHERE {condition}"));
        assert_eq!(found, expected, "{condition}");
    }
}

#[test]
fn each_class_prunes_to_the_partition_of_the_shard() {
    let (_database, mut client) = database();
    for class in CLASSES {
        let name = class.name;
        client.batch_execute("DROP TABLE IF EXISTS t; DEALLOCATE ALL").unwrap();
        partition_by_hash(&mut client, "t", "id snowflake", &format!("id {name}"), 4);
        client
            .batch_execute(
                "SET plan_cache_mode = force_generic_plan;
                 PREPARE one (bigint) AS SELECT * FROM t WHERE id = $1;
                 PREPARE of_integer (int) AS SELECT * FROM t WHERE id = $1",
            )
            .unwrap();
        let [five, six, nine] = [5, 6, 9].map(|shard| class.id_of_shard(shard, ABOVE));
        let integer = class.id_of_shard(7, 1);
        let cases = [
            (format!("SELECT * FROM t WHERE id = {five}"), "t_1"),
            (format!("SELECT * FROM t WHERE id = '{six}'::snowflake"), "t_2"),
            (format!("SELECT * FROM t WHERE id = {integer}"), "t_3"),
            (format!("SELECT * FROM t WHERE id IN ({five}, {nine})"), "t_1"),
            (format!("SELECT * FROM t WHERE id = (SELECT {six})"), "t_2"),
            (format!("DELETE FROM t WHERE id = {six}"), "t_2"),
            (format!("EXECUTE one ({nine})"), "t_1"),
            (format!("EXECUTE of_integer ({integer})"), "t_3"),
        ];
        for (sql, partitions) in cases {
            assert_eq!(read_tables(&mut client, &sql), partitions, "{name}: {sql}");
        }
    }
}

#[test]
fn constants_prune_before_the_statement_runs() {
    let (_database, mut client) = posts_and_comments();
    let one = plan(&mut client, &format!("SELECT * FROM posts WHERE id = {}", id_of_shard(5)));
    assert!(
        one.contains("posts_1") && !one.contains("Append") && !one.contains("Removed"),
        "{one}"
    );
}

#[test]
fn parameters_of_a_generic_plan_prune_when_it_runs() {
    let (_database, mut client) = posts_and_comments();
    client
        .batch_execute(
            "SET plan_cache_mode = force_generic_plan;
             PREPARE one (bigint) AS SELECT * FROM posts WHERE id = $1;
             PREPARE two (bigint, bigint) AS SELECT * FROM posts WHERE id IN ($1, $2);
             PREPARE of_integer (int) AS SELECT * FROM posts WHERE id = $1",
        )
        .unwrap();
    let [five, six, nine] = [5, 6, 9].map(id_of_shard);
    let cases = [
        (format!("one ({five})"), "posts_1", "3"),
        (format!("one ({six})"), "posts_2", "3"),
        (format!("two ({five}, {nine})"), "posts_1", "3"),
        (format!("two ({five}, {six})"), "posts_1 posts_2", "2"),
        ("of_integer (12289)".into(), "posts_2", "3"),
    ];
    for (execute, tables, removed) in cases {
        let execute = format!("EXECUTE {execute}");
        assert_eq!(read_tables(&mut client, &execute), tables, "{execute}");
        assert_eq!(removed_at_run_time(&mut client, &execute), removed, "{execute}");
    }
}

/// Core prunes by an array if it knows the elements, but not when a generic plan runs. A join does it there.
#[test]
fn an_array_as_a_parameter_prunes_in_a_custom_plan_and_a_join_with_it_in_any() {
    let (_database, mut client) = posts_and_comments_of_each_shard(500);
    client
        .batch_execute(
            "PREPARE many (bigint[]) AS SELECT * FROM posts WHERE id = ANY ($1);
             PREPARE joined (bigint[]) AS SELECT * FROM unnest($1) AS wanted (id) JOIN posts USING (id);
             SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off",
        )
        .unwrap();
    let [five, six, nine] = [5, 6, 9].map(id_of_shard);
    for (statement, mode) in [
        ("many", "force_custom_plan"),
        ("joined", "force_custom_plan"),
        ("joined", "force_generic_plan"),
    ] {
        client.batch_execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
        let one = format!("EXECUTE {statement} ('{{{five},{nine}}}')");
        assert_eq!(read_tables(&mut client, &one), "posts_1", "{one} {mode}");
        let two = format!("EXECUTE {statement} ('{{{five},{six}}}')");
        assert_eq!(read_tables(&mut client, &two), "posts_1 posts_2", "{two} {mode}");
    }
}

#[test]
fn a_drivers_parameter_prunes_too() {
    let (_database, mut client) = posts_and_comments();
    client.batch_execute("SET plan_cache_mode = force_generic_plan").unwrap();
    let statement =
        client.prepare("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM posts WHERE id = $1").unwrap();
    let rows = client.query(&statement, &[&id_of_shard(5)]).unwrap();
    let plan: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("posts_1") && !plan.contains("posts_2"), "{plan}");
}

#[test]
fn a_nested_loop_visits_for_each_row_the_partition_of_its_shard() {
    let (_database, mut client) = posts_and_comments_of_each_shard(500);
    client
        .batch_execute(&format!(
            "CREATE TABLE wanted (id bigint);
             INSERT INTO wanted VALUES ({}), ({});
             ANALYZE wanted;
             SET enable_hashjoin = off; SET enable_mergejoin = off;
             SET enable_seqscan = off",
            id_of_shard(5),
            id_of_shard(9)
        ))
        .unwrap();
    let join = "SELECT * FROM wanted JOIN posts USING (id)";
    assert_eq!(read_tables(&mut client, join), "posts_1 wanted");
    let executed = printed(&mut client, &format!("EXPLAIN (ANALYZE, COSTS OFF) {join}"));
    assert_eq!(executed.matches("never executed").count(), 3, "{executed}");
}

#[test]
fn update_and_delete_of_an_id_touch_the_partition_of_its_shard() {
    let (_database, mut client) = posts_and_comments();
    let five = id_of_shard(5);
    for sql in [
        format!("UPDATE posts SET body = 'new' WHERE id = {five}"),
        format!("UPDATE posts SET body = 'new' WHERE id IN ({five}, {})", id_of_shard(9)),
        format!("DELETE FROM posts WHERE id = {five}"),
    ] {
        assert_eq!(locked_partitions(&mut client, &sql), "posts_1", "{sql}");
        assert_eq!(read_tables(&mut client, &sql), "posts_1", "{sql}");
    }
    assert_eq!(printed(&mut client, "SELECT count(*) FROM posts"), "63");
    assert_eq!(printed(&mut client, "SELECT count(*) FROM posts WHERE body = 'new'"), "1");
}

#[test]
fn insert_and_upsert_touch_the_partition_of_the_shard() {
    let (_database, mut client) = posts_and_comments();
    let [old, new] = [id_of_shard(5), other_id_of_shard(5)];
    for id in [old, new, new] {
        let upsert = format!(
            "INSERT INTO posts VALUES ({id}, 'first') ON CONFLICT (id) DO UPDATE SET body = posts.body || ' again'"
        );
        assert_eq!(locked_partitions(&mut client, &upsert), "posts_1");
    }
    let found = format!(
        "SELECT tableoid::regclass, body FROM posts WHERE id IN ({old}, {new}) ORDER BY id"
    );
    assert_eq!(printed(&mut client, &found), "posts_1|old again\nposts_1|first again");
}

/// The partitions of `posts` that a statement locks when it runs. Core locks the partitions that are left after pruning,
/// and for an insert the partitions that get rows.
fn locked_partitions(client: &mut Client, sql: &str) -> String {
    client.batch_execute(&format!("BEGIN; {sql}")).unwrap();
    let locked = "SELECT string_agg(relid::text, ' ' ORDER BY relid) FROM pg_partition_tree('posts')
                  WHERE isleaf AND relid IN (
                      SELECT relation FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'RowExclusiveLock')";
    let locked = printed(client, locked);
    client.batch_execute("COMMIT").unwrap();
    locked
}

#[test]
fn a_row_whose_id_changes_its_shard_moves() {
    let (_database, mut client) = posts_and_comments();
    let [five, six] = [id_of_shard(5), other_id_of_shard(6)];
    client.batch_execute(&format!("UPDATE posts SET id = {six} WHERE id = {five}")).unwrap();
    let found = format!("SELECT tableoid::regclass FROM posts WHERE id IN ({five}, {six})");
    assert_eq!(printed(&mut client, &found), "posts_2");
}

#[test]
fn the_rows_of_a_post_are_joined_and_grouped_shard_by_shard() {
    // Without hash joins, since 19 takes one of all partitions to be cheaper, also of core's own hash partitions.
    let (_database, mut client) = posts_and_comments_of_each_shard(500);
    client
        .batch_execute(
            "SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on;
             SET enable_hashjoin = off",
        )
        .unwrap();
    let join = "SELECT body, n FROM posts JOIN comments ON post_id = id";
    let joined = plan(&mut client, join);
    for shard in 0..4 {
        let (_, below) = joined.split_once("Append").expect("partitions are appended");
        assert!(below.contains(&format!("posts_{shard}")), "{joined}");
    }
    assert_eq!(joined.matches("Join").count(), 4, "{joined}");

    let group = "SELECT post_id, count(*) FROM comments GROUP BY post_id";
    let grouped = plan(&mut client, group);
    assert_eq!(grouped.matches("Aggregate").count(), 4, "{grouped}");
    assert!(grouped.starts_with("Append"), "{grouped}");

    let both = "SELECT id, count(*) FROM posts JOIN comments ON post_id = id GROUP BY id";
    assert_eq!(
        printed(&mut client, &format!("SELECT count(*), sum(count) FROM ({both}) AS g")),
        "32000|64000"
    );
    let one = format!("{both} HAVING id = {}", id_of_shard(5));
    assert_eq!(read_tables(&mut client, &one), "comments_1 posts_1");
}
