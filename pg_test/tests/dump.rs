//! A dump restores each row to its partition.

use pg_snowflake_harness::prelude::*;

/// The partition of each row, for each operator class. In a dump, a row is of the root of its table.
#[test]
fn a_restored_table_that_is_partitioned_by_shard_has_each_row_in_its_partition() {
    let (source, mut client) = database();
    let classes = "SELECT opcname FROM pg_opclass WHERE opcname LIKE 'snowflake\\_shard%' AND NOT opcdefault ORDER BY 1";
    let classes = printed(&mut client, classes);
    let mut placed = Vec::new();
    for class in classes.lines() {
        let partitions = (0..3).map(|remainder| {
            format!("CREATE TABLE t_{class}_{remainder} PARTITION OF t_{class} FOR VALUES WITH (MODULUS 3, REMAINDER {remainder});")
        });
        let create = format!("CREATE TABLE t_{class} (id bigint) PARTITION BY HASH (id {class});");
        let fill = "INSERT INTO t_{class} SELECT hashint8extended(n, 1) FROM generate_series(1, 5000) AS n";
        let fill = fill.replace("{class}", class);
        run(&mut client, &[create, partitions.collect(), fill].concat());
        placed.push(format!("SELECT tableoid::regclass, id FROM t_{class}"));
    }
    assert!(!placed.is_empty());
    let expected = 5000 * placed.len();
    let placed = format!("{} ORDER BY 1, 2", placed.join(" UNION ALL "));

    let restored = Database::restored(&source.dump());

    let rows = printed(&mut restored.connect(), &placed);
    assert_eq!(rows.lines().count(), expected);
    assert!(rows == printed(&mut client, &placed), "another partition than before");
}
