//! Converting while others write. `pg_test/specs/conversion_waits.spec` has the locks that it waits for.

use pg_snowflake_harness::prelude::*;
use std::thread::scope;

/// Inserts by a prepared statement until it is stopped, and returns the IDs that it got.
fn write(database: &Database, insert: &str, stop: &Stop) -> Vec<i64> {
    let mut client = database.connect();
    run(&mut client, &format!("PREPARE add AS {insert}"));
    stop.repeat(|| printed(&mut client, "EXECUTE add").parse().expect("an ID"))
}

#[test]
fn writers_lose_nothing_and_see_no_error() {
    let (database, mut client) = database();
    let tables = [
        ("wide", "id bigserial PRIMARY KEY, ref bigint"),
        ("narrow", "id serial PRIMARY KEY, ref int"),
        ("identity", "id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ref int"),
    ];
    for (table, columns) in tables {
        let sql = format!(
            "CREATE TABLE {table} ({columns});
             INSERT INTO {table} (ref) SELECT 1 FROM generate_series(1, 20000);
             CREATE TABLE of_{table} (id bigserial, ref int NOT NULL REFERENCES {table})"
        );
        run(&mut client, &sql);
        let posts = format!("INSERT INTO {table} (ref) VALUES (1) RETURNING id::bigint");
        let comments = format!("INSERT INTO of_{table} (ref) VALUES (1) RETURNING id::bigint");
        let stop = Stop::default();
        let (posts, comments) = scope(|scope| {
            let writers = [&posts, &posts, &posts, &comments].map(|insert| scope.spawn(|| write(&database, insert, &stop)));
            let at_the_end = StopAtEnd(&stop);
            wait_for_more_rows(&mut client, table, 1000);
            run(&mut client, &format!("SELECT snowflake_convert_column('{table}', 'id', 5)"));
            wait_for_more_rows(&mut client, table, 1000);
            drop(at_the_end);
            let mut ids = writers.map(|writer| writer.join().unwrap());
            let comments = std::mem::take(&mut ids[3]);
            (ids.concat(), comments)
        });

        let (old, new): (Vec<i64>, Vec<i64>) = posts.iter().partition(|&&id| id < 1 << 31);
        assert!(!old.is_empty() && !new.is_empty(), "{table}: {} and {}", old.len(), new.len());
        assert!(new.iter().all(|&id| split(id).shard == 5), "{table}");
        assert_holds(&database, table, &posts);
        assert_holds(&database, &format!("of_{table}"), &comments);
    }
}

/// Every acknowledged ID is in the table, once.
fn assert_holds(database: &Database, table: &str, acknowledged: &[i64]) {
    let mut client = database.connect();
    let mut stored = take(&mut client, &format!("SELECT id::bigint FROM {table}"));
    stored.sort_unstable();
    let missing = acknowledged.iter().filter(|id| stored.binary_search(id).is_err()).count();
    assert_eq!(missing, 0, "missing of {} in {table}", acknowledged.len());
    assert!(stored.is_sorted_by(|a, b| a < b), "a duplicate id in {table}");
}
