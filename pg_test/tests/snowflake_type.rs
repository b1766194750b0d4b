//! The type `snowflake` is copied and sent like a bigint.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{copy, database, printed};
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
fn it_round_trips_through_every_copy_format() {
    let (_database, mut client) = posts();
    for format in ["text", "csv", "binary"] {
        client.batch_execute("CREATE TABLE target (id snowflake, ids snowflake[])").unwrap();
        let select = "SELECT id, ARRAY[id, n::bigint::snowflake] FROM posts UNION ALL SELECT NULL, NULL";
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
    assert_eq!(printed(&mut client, "SELECT count(*) FROM posts JOIN target ON posts.id = target.id"), "10000");
}
