//! A dump contains everything that IDs need to continue.

use pg_snowflake_harness::prelude::*;

#[test]
fn a_restored_table_goes_on_above_the_dumped_ids() {
    let source = Database::new().setting("pg_snowflake.max_lead", "2h");
    let mut client = source.connect();
    // Ahead of the clock, which would otherwise hide a counter that fell back.
    let in_an_hour = counter_in_an_hour();
    let sql = format!(
        "CREATE TABLE posts (id bigint PRIMARY KEY, body text);
         CREATE SEQUENCE posts_id_seq START {in_an_hour} OWNED BY posts.id;
         ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5);
         INSERT INTO posts (body) SELECT 'old' FROM generate_series(1, 1000)"
    );
    run(&mut client, &sql);
    let last = take_one(&mut client, "SELECT max(id) FROM posts");

    let target = Database::restored(&source.dump()).setting("pg_snowflake.max_lead", "2h");
    let mut restored = target.connect();
    restored.batch_execute("INSERT INTO posts (body) VALUES ('new')").unwrap();

    let next = take_one(&mut restored, "SELECT id FROM posts WHERE body = 'new'");
    assert!(next > last, "{:?} after {:?}", split(next), split(last));
    assert_eq!(split(next).shard, 5);
    assert_eq!(take_one(&mut restored, "SELECT count(*) FROM posts"), 1001);
}

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
