//! Users' objects that refer to the names of 0.1.0 keep working: `ALTER EXTENSION … UPDATE` renames the extension's objects
//! in place.

use super::version_of;
use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::ask::printed;
use pg_snowflake_servertest::release;

/// Everything that depends on a name which the update changes, and privileges that it must keep.
const SCHEMA: &str = "
    CREATE ROLE monitor;
    CREATE SEQUENCE s;
    CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', snowflake_shard_id()));
    CREATE VIEW columns AS SELECT tab, col, ends, fault, shard_id FROM snowflake_columns;
    CREATE VIEW layouts AS SELECT name, ends FROM snowflake_layouts;
    CREATE VIEW infos AS SELECT info.ends, (snowflake_layout_info('js53')).ends AS last FROM snowflake_layout_info() AS info;
    CREATE VIEW whole_info AS SELECT * FROM snowflake_layout_info('js53');
    CREATE VIEW status AS SELECT ends, fault FROM snowflake_sequence_status('s');
    CREATE VIEW calls AS SELECT call.ends, call.fault FROM pg_attrdef, snowflake_generator_calls(adbin) AS call;
    CREATE VIEW places AS SELECT partition FROM snowflake_locate('posts', 7);
    CREATE VIEW places_by_name AS SELECT partition FROM snowflake_locate(tab => 'posts', id => 7);
    CREATE FUNCTION shard() RETURNS int LANGUAGE sql RETURN snowflake_shard_id();
    REVOKE SELECT ON snowflake_columns FROM PUBLIC;
    REVOKE EXECUTE ON FUNCTION snowflake_adopt, snowflake_sequence_status, snowflake_shard_id() FROM PUBLIC;
    GRANT SELECT ON snowflake_columns TO monitor;
    GRANT EXECUTE ON FUNCTION snowflake_sequence_status TO monitor";

/// Queries after the update, and after the updated database was dumped and restored.
const QUERIES: [(&str, &str); 11] = [
    ("INSERT INTO posts DEFAULT VALUES RETURNING snowflake_shard_id(id)", "5"),
    ("SELECT tab, col, ends, fault, shard_id FROM columns", "posts|id|2046-06-27 17:00:49.497+00||5"),
    ("SELECT ends FROM layouts WHERE name = 'twitter'", "2080-07-10 17:30:30.209+00"),
    ("TABLE infos", "2046-06-27 17:00:49.497+00|2089-09-06 15:47:35.552+00"),
    (
        "TABLE whole_info",
        "time:41 shard:7 seq:5 epoch:2020-01-01 unit:1ms|41|7|5|00:00:00.001|2020-01-01 00:00:00+00|2089-09-06 15:47:35.552+00|128|32000",
    ),
    ("TABLE status", "2046-06-27 17:00:49.497+00|"),
    ("TABLE calls", "2046-06-27 17:00:49.497+00|"),
    ("TABLE places", "posts"),
    ("TABLE places_by_name", "posts"),
    ("SELECT shard()", "5"),
    (
        "SELECT has_table_privilege('monitor', 'snowflake_columns', 'SELECT'),
             has_function_privilege('monitor', 'snowflake_sequence_status(regclass, snowflake_layout)', 'EXECUTE'),
             has_function_privilege('monitor', 'snowflake_current_shard()', 'EXECUTE'),
             has_function_privilege('monitor',
                 'snowflake_convert_column(regclass, name, int, snowflake_layout, boolean)', 'EXECUTE')",
        "t|t|f|f",
    ),
];

#[test]
fn objects_that_use_the_names_of_0_1_0_work_after_an_update_and_are_dumped_with_the_new_ones() {
    let cluster = Cluster::builder().release("0.1.0").setting("pg_snowflake.shard_id", "5").start();
    let mut client = cluster.connect();
    client.batch_execute(SCHEMA).unwrap();

    client.batch_execute("ALTER EXTENSION pg_snowflake UPDATE").unwrap();

    for (query, answer) in QUERIES {
        assert_eq!(printed(&mut client, query), answer, "updated: {query}");
    }
    // As docs/install.md says: the view has kept the argument's name.
    let by_name = "CREATE OR REPLACE VIEW places_by_name AS SELECT partition FROM snowflake_locate(table_name => 'posts', id => 7)";
    client.batch_execute(by_name).unwrap();
    let target = Cluster::builder().setting("pg_snowflake.shard_id", "5").start();
    target.connect().batch_execute("CREATE ROLE monitor").unwrap();
    let mut restored = target.restored_database("restored", &cluster.dump("postgres"));
    assert_eq!(version_of(&mut restored), release::head());
    for (query, answer) in QUERIES {
        assert_eq!(printed(&mut restored, query), answer, "restored: {query}");
    }
}
