//! Wrong use costs speed or is refused, and never returns a wrong answer.

use super::{id_of_shard, ids_of_shards, partition_by_shard, posts_and_comments};
use pg_snowflake_harness::ask::{database, plan, printed};
use postgres::Client;

/// IDs of 64 shards.
fn ids() -> String {
    ids_of_shards(0..=63)
}

/// Checks that a query for each ID finds it once.
fn assert_each_is_found(client: &mut Client, table: &str) {
    client.batch_execute("SET plan_cache_mode = force_custom_plan").unwrap();
    let statement = client.prepare(&format!("SELECT count(*) FROM {table} WHERE id = $1")).unwrap();
    for shard in 0..64 {
        let found: i64 = client.query_one(&statement, &[&id_of_shard(shard)]).unwrap().get(0);
        assert_eq!(found, 1, "{table}, shard {shard}");
    }
}

#[test]
fn a_key_of_two_columns_is_not_pruned_by_the_id_alone_and_finds_all_rows() {
    let (_database, mut client) = database();
    let key = "id snowflake_shard_ops, tenant";
    client
        .batch_execute(&format!(
            "CREATE TABLE two (id bigint, tenant int) PARTITION BY HASH ({key});
             CREATE TABLE two_0 PARTITION OF two FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE two_1 PARTITION OF two FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             INSERT INTO two {}",
            ids().replace(" FROM", ", shard % 3 FROM")
        ))
        .unwrap();
    assert_each_is_found(&mut client, "two");
    let id = id_of_shard(5);
    let by_id = plan(&mut client, &format!("SELECT * FROM two WHERE id = {id}"));
    assert!(by_id.contains("two_0") && by_id.contains("two_1"), "{by_id}");
    let by_both = format!("SELECT * FROM two WHERE id = {id} AND tenant = 2");
    assert!(!plan(&mut client, &by_both).contains("Append"));
    assert_eq!(printed(&mut client, &by_both), format!("{id}|2"));
}

#[test]
fn another_layouts_class_puts_rows_elsewhere_and_finds_them_there() {
    let (_database, mut client) = database();
    for class in ["_instagram", "_twitter", "_sonyflake", "_js53"] {
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS t;
                 CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY HASH (id snowflake_shard_ops{class});
                 CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
                 CREATE TABLE t_1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);
                 INSERT INTO t {}",
                ids()
            ))
            .unwrap();
        assert_each_is_found(&mut client, "t");
    }
}

#[test]
fn tables_that_are_partitioned_in_different_ways_join_to_the_same_rows() {
    let (_database, mut client) = posts_and_comments();
    partition_by_shard(&mut client, "by_three", "id bigint", "id", 3);
    client
        .batch_execute(&format!(
            "CREATE TABLE by_core (id bigint) PARTITION BY HASH (id);
             CREATE TABLE by_twitter (id bigint) PARTITION BY HASH (id snowflake_shard_ops_twitter);
             DO $$ BEGIN
                 FOR remainder IN 0 .. 3 LOOP
                     EXECUTE format('CREATE TABLE by_core_%s PARTITION OF by_core
                         FOR VALUES WITH (MODULUS 4, REMAINDER %s)', remainder, remainder);
                     EXECUTE format('CREATE TABLE by_twitter_%s PARTITION OF by_twitter
                         FOR VALUES WITH (MODULUS 4, REMAINDER %s)', remainder, remainder);
                 END LOOP;
             END $$;
             INSERT INTO by_three {ids}; INSERT INTO by_core {ids}; INSERT INTO by_twitter {ids};
             ANALYZE;
             SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on",
            ids = ids()
        ))
        .unwrap();
    for other in ["by_three", "by_core", "by_twitter"] {
        let join =
            format!("SELECT count(*), count(DISTINCT id) FROM posts JOIN {other} USING (id)");
        assert_eq!(printed(&mut client, &join), "64|64", "{other}");
        let joined = plan(&mut client, &join);
        assert_eq!(joined.matches("Join").count(), 1, "{joined}");
        let group = format!(
            "SELECT count(*), sum(n) FROM (SELECT id, count(*) AS n FROM {other} JOIN comments ON post_id = id GROUP BY id) AS g"
        );
        assert_eq!(printed(&mut client, &group), "64|128", "{other}");
    }
}
