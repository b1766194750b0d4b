//! The generated columns of docs/time.md, with the expressions that its query prints.

use super::page::page;
use pg_snowflake_harness::installation::{bindir, has_major, major};
use pg_snowflake_harness::prelude::*;
use pg_snowflake_ids::PRESETS;
use pg_snowflake_ids::layout_spec::spec;

/// Each unit, both orders of the fields, and layouts without one of them.
const CUSTOM: [&str; 6] = [
    "time:48 seq:8 shard:4 epoch:2024-01-01 unit:10us",
    "time:48 shard:0 seq:15 epoch:1970-01-01 unit:100us",
    "time:40 shard:23 seq:0 epoch:2024-02-29T23:59:59.999Z unit:1ms",
    "time:39 shard:8 seq:16 epoch:2014-09-01 unit:10ms",
    "time:36 seq:6 shard:4 epoch:2024-01-01 unit:100ms",
    "time:33 shard:0 seq:0 epoch:2000-01-01 unit:1s",
];

/// 20,000 random numbers and the neighbours of each power of two, as IDs of the layout before the year 4253.
const IDS: &str = "
    SELECT DISTINCT id FROM snowflake_layout_info($1),
        LATERAL (SELECT least(time_bits + shard_bits + seq_bits, 63) AS bits) AS width,
        LATERAL (
            SELECT ('x' || md5(n::text))::bit(64)::bigint & (9223372036854775807 >> (63 - bits)) FROM generate_series(1, 20000) AS n
            UNION ALL SELECT ~(-1::bigint << bit) FROM generate_series(0, bits) AS bit
            UNION ALL SELECT 1::bigint << bit FROM generate_series(0, bits - 1) AS bit
        ) AS ids (id)
    WHERE snowflake_created_at(id, $1) < '4253-01-01Z'";

/// The expression of a layout, by the query of the page.
fn expression(client: &mut postgres::Client, layout: &str) -> String {
    let query = page("docs/time.md").block_with("AS expression").replace("SELECT name, ", "SELECT ");
    printed(client, &query.replace("FROM snowflake_layouts", &format!("FROM snowflake_layout_info('{layout}')")))
}

#[test]
fn the_generated_column_is_the_time_of_every_id_in_every_layout() {
    let (_database, mut client) = database();
    let kind = if major(bindir()) >= 18 { "VIRTUAL" } else { "STORED" };
    let presets = PRESETS.iter().map(|(_, layout)| spec(layout));
    for layout in presets.chain(CUSTOM.map(str::to_owned)) {
        let expression = expression(&mut client, &layout);
        let sql = format!(
            "DROP TABLE IF EXISTS posts; CREATE TABLE posts (id bigint PRIMARY KEY,
                      created_at timestamptz GENERATED ALWAYS AS ({expression}) {kind})"
        );
        run(&mut client, &sql);
        let ids = IDS.replace("$1", &format!("'{layout}'"));
        run(&mut client, &format!("INSERT INTO posts {ids}"));
        let wrong = format!(
            "SELECT id, created_at, snowflake_created_at(id, '{layout}') AS correct FROM posts
             WHERE created_at IS DISTINCT FROM snowflake_created_at(id, '{layout}') ORDER BY id LIMIT 3"
        );
        assert_eq!(printed(&mut client, &wrong), "", "{layout}: {expression}");
        let count: usize = printed(&mut client, "SELECT count(*) FROM posts").parse().unwrap();
        assert!(count > 1000, "{layout}: {count} IDs");
    }
}

#[test]
fn a_virtual_column_has_the_limits_that_the_page_names_and_no_others() {
    if !has_major(18, "the limits of virtual generated columns") {
        return;
    }
    let (_database, mut client) = database();
    let column = format!("created_at timestamptz GENERATED ALWAYS AS ({}) VIRTUAL", expression(&mut client, "postgres"));
    run(&mut client, &format!("CREATE TABLE times (at timestamptz PRIMARY KEY); CREATE TABLE posts (id bigint PRIMARY KEY, {column})"));
    for (sql, message) in [
        ("CREATE INDEX ON posts (created_at)", "indexes on virtual generated columns are not supported"),
        ("ALTER TABLE posts ADD UNIQUE (created_at)", "unique constraints on virtual generated columns are not supported"),
        (
            "ALTER TABLE posts ADD FOREIGN KEY (created_at) REFERENCES times",
            "foreign key constraints on virtual generated columns are not supported",
        ),
        (
            &format!("CREATE TABLE parts (id bigint, {column}) PARTITION BY RANGE (created_at)"),
            "cannot use generated column in partition key",
        ),
        (&format!("CREATE TABLE typed (id snowflake, {column})"), "generation expression uses user-defined type"),
        ("CREATE PUBLICATION pub FOR TABLE posts (id, created_at)", "cannot use virtual generated column \"created_at\""),
    ] {
        assert!(refused(&mut client, sql).message().contains(message), "{sql}: {}", refused(&mut client, sql).message());
    }
    run(&mut client, "ALTER TABLE posts ALTER created_at SET NOT NULL, ADD CHECK (created_at > '2010-01-01Z')");
}
