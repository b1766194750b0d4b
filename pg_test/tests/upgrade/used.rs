//! Users' rows, and their objects that refer to what an update changes, survive it: the upgrade script changes the extension's
//! objects in place.

use super::{server_of, update, version_of};
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::release::{self, EXTENSIONS};

/// Everything that depends on what the rehearsal's update changes, and privileges that it must keep.
const SCHEMA: &str = "
    CREATE ROLE monitor;
    CREATE SEQUENCE s;
    CREATE TABLE posts (
        id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5),
        parent text DEFAULT snowflake_base32(7),
        key text GENERATED ALWAYS AS (snowflake_base32(id)) STORED,
        public_id snowflake DEFAULT 5,
        CHECK (snowflake_base32(id) = key));
    CREATE UNIQUE INDEX posts_by_key ON posts (snowflake_base32(id));
    CREATE VIEW presets AS SELECT preset FROM snowflake_layouts WHERE preset = 'twitter';
    CREATE VIEW layouts AS SELECT * FROM snowflake_layouts;
    CREATE TABLE parted (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE FUNCTION partitions() RETURNS bigint LANGUAGE sql
        RETURN (SELECT count(*) FROM snowflake_create_partitions('parted', interval '1 year'));
    REVOKE SELECT ON snowflake_layouts FROM PUBLIC;
    REVOKE EXECUTE ON FUNCTION snowflake_base32, snowflake_create_partitions FROM PUBLIC;
    GRANT SELECT ON snowflake_layouts TO monitor;
    GRANT EXECUTE ON FUNCTION snowflake_base32, snowflake_create_partitions TO monitor;
    SELECT snowflake_registry.claim(NULL, 'db-1', gen_random_uuid(), NULL, gen_random_uuid(),
        clock_timestamp() + interval '10 s', interval '10 s');
    CREATE VIEW nodes AS SELECT node FROM snowflake_registry.leases WHERE status <> 'reserved';
    GRANT SELECT ON snowflake_registry.leases TO monitor;
    INSERT INTO posts SELECT FROM generate_series(1, 3)";

const ROWS: &str = "SELECT * FROM posts ORDER BY id LIMIT 3";

/// Queries after the update, and after the updated database was dumped and restored.
const QUERIES: [(&str, &str); 8] = [
    (
        "INSERT INTO posts DEFAULT VALUES RETURNING snowflake_shard_id(id), parent, snowflake_from_base32(key) = id, public_id",
        "5|0000000000007|t|5",
    ),
    ("SELECT count(*) > 3 FROM posts", "t"),
    ("TABLE presets", "twitter"),
    ("SELECT spec FROM layouts WHERE preset = 'js53'", "time:41 shard:7 seq:5 epoch:2020-01-01 unit:1ms"),
    ("SELECT partitions()", "5"),
    (
        "SELECT has_table_privilege('monitor', 'snowflake_layouts', 'SELECT'),
             has_table_privilege('public', 'snowflake_layouts', 'SELECT'),
             bool_and(has_function_privilege('monitor', f, 'EXECUTE')), bool_or(has_function_privilege('public', f, 'EXECUTE'))
         FROM (VALUES ('snowflake_to_base32(bigint)'),
             ('snowflake_create_partitions(regclass, interval, integer, snowflake_layout)')) AS functions (f)",
        "t|f|t|f",
    ),
    ("TABLE nodes", "db-1"),
    ("SELECT has_table_privilege('monitor', 'snowflake_registry.leases', 'SELECT')", "t"),
];

#[test]
fn rows_and_objects_that_use_what_an_update_changes_survive_it_and_are_dumped_with_the_new_names() {
    let (cluster, mut client) = server_of(release::REHEARSED);
    run(&mut client, SCHEMA);
    assert_eq!(printed(&mut client, "SELECT partitions()"), "3");
    let rows = printed(&mut client, ROWS);

    EXTENSIONS.iter().for_each(|extension| update(&mut client, extension));

    assert_eq!(printed(&mut client, ROWS), rows);
    for (query, answer) in QUERIES {
        assert_eq!(printed(&mut client, query), answer, "updated: {query}");
    }
    let target = Cluster::new();
    run(&mut target.connect(), "CREATE ROLE monitor");
    let mut restored = target.restored_database("restored", &cluster.dump("postgres"));
    for extension in EXTENSIONS {
        assert_eq!(version_of(&mut restored, &extension), release::head());
    }
    assert_eq!(printed(&mut restored, ROWS), rows);
    for (query, answer) in QUERIES {
        assert_eq!(printed(&mut restored, query), answer, "restored: {query}");
    }
}
