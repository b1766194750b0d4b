//! Logical decoding reads the WAL that the extension writes. Subscribers that receive the rows are in `active_active` and
//! `docs::large_tables`.

use pg_snowflake_harness::installation::has_contrib;
use pg_snowflake_harness::prelude::*;

#[test]
fn test_decoding_outputs_the_rows_with_their_ids() {
    if !has_contrib("test_decoding", "decoding to text") {
        return;
    }
    let cluster = Cluster::builder().setting("wal_level", "logical").start();
    let mut client = cluster.connect();
    run(&mut client, "CREATE SEQUENCE s; CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5))");
    run(&mut client, "SELECT pg_create_logical_replication_slot('slot', 'test_decoding')");

    let ids = insert_in_every_way(&mut client);

    let changes = "SELECT data FROM pg_logical_slot_get_changes('slot', NULL, NULL) WHERE data LIKE 'table public.posts: INSERT: %'";
    let decoded: Vec<String> = client.query(changes, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let expected: Vec<String> = ids.iter().map(|id| format!("table public.posts: INSERT: id[bigint]:{id}")).collect();
    assert_eq!(decoded, expected);
}

/// Inserts IDs among everything that changes a sequence, and returns the committed ones in order.
fn insert_in_every_way(client: &mut Client) -> Vec<i64> {
    let insert = "INSERT INTO posts DEFAULT VALUES RETURNING id";
    let mut ids = vec![take_one(client, insert)];
    ids.extend(take(client, "INSERT INTO posts SELECT snowflake_nextvals('s', 5, 2000) RETURNING id"));
    // Transactions that change only a sequence.
    for sql in ["SELECT snowflake_nextval('s', 5)", "CHECKPOINT", "SELECT snowflake_nextval('s', 5)"] {
        client.batch_execute(sql).unwrap();
    }
    client.batch_execute("ALTER SEQUENCE s CACHE 10").unwrap();
    ids.push(take_one(client, insert));
    client.batch_execute(&format!("BEGIN; {insert}; ROLLBACK")).unwrap();
    // A transaction that rolls back a part, and creates and alters sequences.
    client.batch_execute(&format!("BEGIN; SAVEPOINT p; {insert}; ROLLBACK TO p")).unwrap();
    ids.push(take_one(client, insert));
    client.batch_execute("CREATE SEQUENCE t; SELECT snowflake_nextval('t', 5); ALTER SEQUENCE s RESTART").unwrap();
    ids.push(take_one(client, insert));
    client.batch_execute("COMMIT").unwrap();
    ids.push(take_one(client, "INSERT INTO posts VALUES (snowflake_nextval('t', 6)) RETURNING id"));
    ids
}
