//! The operator classes: remainder = shard mod modulus, and nothing else in the database changes.

use super::class::{CLASSES, Class};
use super::{id_of_shard, ids_of_shards, other_id_of_shard, partition_by_hash, partition_by_shard};
use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{database, plan, printed};

#[test]
fn the_remainder_is_the_shard_modulo_the_modulus_for_every_shard() {
    let (_database, mut client) = database();
    for class in CLASSES {
        let Class { name, bits, .. } = class;
        client
            .batch_execute(&format!("CREATE TABLE t (id bigint) PARTITION BY HASH (id {name})"))
            .unwrap();
        let found = printed(
            &mut client,
            &format!(
                "SELECT modulus, count(*) FILTER (
                     WHERE satisfies_hash_partition('t'::regclass, modulus, (shard % modulus)::int, id))
                 FROM ({}) AS ids, unnest(ARRAY[1, 2, 3, 4, 7, 16, 1000, 8192]) AS modulus
                 GROUP BY modulus ORDER BY modulus",
                class.ids()
            ),
        );
        let ids = 4 << bits;
        let expected = [1, 2, 3, 4, 7, 16, 1000, 8192].map(|modulus| format!("{modulus}|{ids}"));
        assert_eq!(found, expected.join("\n"), "{name}");
        client.batch_execute("DROP TABLE t").unwrap();
    }
}

#[test]
fn rows_land_in_the_partition_of_their_shard_and_are_found_there() {
    let (_database, mut client) = database();
    for class in CLASSES {
        for modulus in [1, 3, 16] {
            let Class { name, bits, .. } = class;
            client
                .batch_execute(&format!(
                    "DROP TABLE IF EXISTS t;
                     CREATE TABLE t (shard int, id bigint PRIMARY KEY) PARTITION BY HASH (id {name})"
                ))
                .unwrap();
            for remainder in 0..modulus {
                client
                    .batch_execute(&format!(
                        "CREATE TABLE t_{remainder} PARTITION OF t
                         FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})"
                    ))
                    .unwrap();
            }
            client.batch_execute(&format!("INSERT INTO t {}", class.ids())).unwrap();
            let in_place = format!(
                "SELECT count(*), count(DISTINCT tableoid) FROM t
                 WHERE tableoid = ('t_' || shard % {modulus})::regclass"
            );
            let expected = format!("{}|{modulus}", 4 << bits);
            assert_eq!(printed(&mut client, &in_place), expected, "{name} modulus {modulus}");
        }
    }
}

#[test]
fn a_hash_index_of_the_class_serves_equality() {
    let (_database, mut client) = database();
    client
        .batch_execute(&format!(
            "CREATE TABLE t (id bigint);
             INSERT INTO t SELECT {} FROM generate_series(1, 10000) AS g;
             CREATE INDEX t_hash ON t USING hash (id snowflake_shard_ops);
             ANALYZE t",
            CLASSES[0].sql_of_id("5", "g")
        ))
        .unwrap();
    let id = CLASSES[0].id_of_shard(5, 777);
    let query = format!("SELECT count(*) FROM t WHERE id = {id}");
    let plan = plan(&mut client, &query);
    assert!(plan.contains("t_hash"), "{plan}");
    assert_eq!(printed(&mut client, &query), "1");
}

#[test]
fn the_hash_with_any_seed_but_that_of_partitioning_is_cores() {
    let (_database, mut client) = database();
    for Class { name, .. } in CLASSES {
        let hash = format!("_{}", name.replace("_ops", "_hash"));
        let wrong = format!(
            "SELECT count(*) FROM (VALUES (0::bigint), (1), (-1), (9223372036854775807), ({})) AS ids (id),
                 (VALUES (0::bigint), (1), (-1), (42)) AS seeds (seed)
             WHERE {hash}(id, seed) <> hashint8extended(id, seed)
                OR ({hash}(id, 0) & 4294967295) <> (hashint8(id)::bigint & 4294967295)",
            id_of_shard(5)
        );
        assert_eq!(printed(&mut client, &wrong), "0", "{name}");
        // 0x7A5B22367996DCFD, the seed of partitioning.
        let of_integers = format!(
            "SELECT count(*) FROM (VALUES (0), (1), (-1), (2147483647), (3 << 12 | 5)) AS ids (id),
                 (VALUES (0::bigint), (42), (8816678312871386365)) AS seeds (seed)
             WHERE {hash}(id, seed) <> {hash}(id::bigint, seed)"
        );
        assert_eq!(printed(&mut client, &of_integers), "0", "{name}");
    }
}

/// Joins and aggregates take the hash of the family that core finds first: the one with the lowest OID, which is its own.
#[test]
fn hash_joins_of_bigints_stay_good_even_if_core_took_the_hash_from_this_class() {
    let (_database, mut client) = database();
    client
        .batch_execute(&format!(
            "CREATE TABLE t AS SELECT {} AS id FROM generate_series(1, 500000) AS g;
             ANALYZE t;
             SET allow_system_table_mods = on;
             UPDATE pg_amop SET amopfamily = 1500 WHERE amopfamily =
                 (SELECT oid FROM pg_opfamily WHERE opfname = 'snowflake_shard_ops');
             UPDATE pg_amproc SET amprocfamily = 1500 WHERE amprocfamily =
                 (SELECT oid FROM pg_opfamily WHERE opfname = 'snowflake_shard_ops');
             UPDATE pg_opfamily SET oid = 1500 WHERE opfname = 'snowflake_shard_ops';
             SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_sort = off;
             SET statement_timeout = '10min'",
            CLASSES[0].sql_of_id("5", "g")
        ))
        .unwrap();
    let join = "SELECT count(*) FROM t AS a JOIN t AS b USING (id)";
    assert!(plan(&mut client, join).contains("Hash Join"));
    // With one hash for a whole shard, every row would be compared with every other one, which takes half an hour on a fast
    // machine. With a good hash it takes a moment on any.
    assert_eq!(printed(&mut client, join), "500000");
    assert_eq!(
        printed(&mut client, "SELECT count(*) FROM (SELECT id FROM t GROUP BY id) AS g"),
        "500000"
    );
    let mixed =
        "SELECT count(*) FROM t JOIN generate_series(0, 9) AS n (n) ON n = id % 4096 - 4096";
    assert_eq!(printed(&mut client, mixed), "0");
}

#[test]
fn a_snowflake_column_or_a_domain_can_be_a_key_like_a_bigint() {
    let (_database, mut client) = database();
    client.batch_execute("CREATE DOMAIN post_id AS bigint CHECK (VALUE >= 0)").unwrap();
    for key_type in ["snowflake", "post_id"] {
        client.batch_execute("DROP TABLE IF EXISTS t").unwrap();
        partition_by_shard(&mut client, "t", &format!("id {key_type} PRIMARY KEY"), "id", 4);
        client.batch_execute(&format!("INSERT INTO t {}", ids_of_shards(0..=4095))).unwrap();
        let in_place = "SELECT count(*) FROM t WHERE tableoid = ('t_' || snowflake_shard_id(id) % 4)::regclass";
        assert_eq!(printed(&mut client, in_place), "4096", "{key_type}");
        let id = id_of_shard(7);
        for condition in [
            format!("id = {id}"),
            format!("id = '{id}'"),
            format!("id IN ({id}, {})", other_id_of_shard(7)),
            format!("id = {id}::{key_type}"),
            format!("id = {}", CLASSES[0].id_of_shard(7, 1)),
        ] {
            let plan = plan(&mut client, &format!("SELECT * FROM t WHERE {condition}"));
            let pruned = plan.contains("t_3") && !plan.contains("t_0");
            assert!(pruned, "{key_type} {condition}:\n{plan}");
        }
        let located = format!("SELECT partition FROM snowflake_locate('t', {id})");
        assert_eq!(printed(&mut client, &located), "t_3", "{key_type}");
    }
}

#[test]
fn a_restored_table_of_each_class_has_each_row_in_its_partition() {
    let source = Database::new();
    let mut client = source.connect();
    for class in CLASSES {
        let table = class.name.replace("snowflake_shard_ops", "posts");
        let key = format!("id {}", class.name);
        partition_by_hash(&mut client, &table, "shard int, id bigint PRIMARY KEY", &key, 3);
        client.batch_execute(&format!("INSERT INTO {table} {}", class.ids())).unwrap();
    }

    let restored = Database::restored(&source.dump());
    let mut restored = restored.connect();

    for class in CLASSES {
        let table = class.name.replace("snowflake_shard_ops", "posts");
        let in_place = format!(
            "SELECT count(*) FROM {table} WHERE tableoid = ('{table}_' || shard % 3)::regclass"
        );
        assert_eq!(printed(&mut restored, &in_place), (4 << class.bits).to_string(), "{table}");
    }
}
