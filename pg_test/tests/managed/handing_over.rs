//! A column moves from the managed functions to the extension and back. Both generators on one sequence could repeat IDs, so a call
//! that waits for the sequence during the change must fail.

use super::{INSTAGRAM, UNINSTALL, file_for, managed};
use pg_snowflake_harness::prelude::*;
use postgres::error::DbError;

const TABLE: &str = "
    CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_managed.snowflake_nextval('s', 5), n int);
    INSERT INTO posts (n) SELECT generate_series(1, 100)";

/// As `docs/managed.md` has it.
const BACK: &str = "
    LOCK TABLE posts;
    ALTER TABLE posts ALTER COLUMN id DROP DEFAULT;
    ALTER SEQUENCE s RENAME TO s_native;
    CREATE SEQUENCE s OWNED BY posts.id;
    SELECT setval('s', last_value) FROM s_native;
    DROP SEQUENCE s_native;
    ALTER TABLE posts ALTER COLUMN id SET DEFAULT snowflake_managed.snowflake_nextval('s', 5)";

const ORDERED: &str = "SELECT bool_and(coalesce(id > before, true)), count(*) FROM (
    SELECT id, lag(id) OVER (ORDER BY n) AS before FROM posts) AS posts";

/// The error of a call that waits for the sequence while this session's transaction commits.
fn parked(database: &Database, client: &mut Client, call: &str, change: &[&str]) -> DbError {
    let mut other = database.connect();
    // Its plans are cached from here on.
    run(&mut other, call);
    run(client, "BEGIN");
    run(client, change[0]);
    let commit = |client: &mut Client| run(client, &format!("{}; COMMIT", change[1..].concat()));
    while_it_waits(client, &mut other, |other| refused(other, call), commit).0
}

#[test]
fn a_column_is_converted_to_the_extension_and_a_waiting_call_fails() {
    for call in ["snowflake_nextval('s', 5)", "snowflake_nextvals('s', 5, 10)"] {
        let (database, mut client) = managed();
        run(&mut client, TABLE);
        let call = format!("SELECT snowflake_managed.{call}");
        let error = parked(&database, &mut client, &call, &["SELECT snowflake_convert_column('posts', 'id', 5)", UNINSTALL]);
        assert_eq!(error.code().code(), "3F000", "{error:?}");
        run(&mut client, "INSERT INTO posts (n) SELECT generate_series(101, 200)");
        assert_eq!(printed(&mut client, ORDERED), "t|200");
        assert_eq!(printed(&mut client, "SELECT DISTINCT (id # (id >> 12)) & 4095 FROM posts"), "5");
        let default = printed(&mut client, "SELECT function, sequence FROM snowflake_columns");
        assert!(default.contains("|s"), "{default}");
        assert_eq!(printed(&mut client, "SELECT to_regnamespace('snowflake_managed') IS NULL"), "t");
    }
}

#[test]
fn a_column_of_another_layout_is_converted_with_its_layout() {
    let (database, mut client) = database();
    database.psql(&file_for(INSTAGRAM));
    run(&mut client, "CREATE SEQUENCE s");
    run(&mut client, TABLE);
    run(&mut client, "BEGIN; SELECT snowflake_convert_column('posts', 'id', 5, 'instagram')");
    run(&mut client, UNINSTALL);
    run(&mut client, "COMMIT; INSERT INTO posts (n) SELECT generate_series(101, 200)");
    assert_eq!(printed(&mut client, ORDERED), "t|200");
    assert_eq!(printed(&mut client, "SELECT DISTINCT id >> 10 & 8191 FROM posts"), "5");
}

#[test]
fn a_column_goes_back_to_the_managed_functions_and_a_waiting_call_fails() {
    let (database, mut client) = managed();
    run(&mut client, TABLE);
    run(&mut client, "SELECT snowflake_convert_column('posts', 'id', 5)");
    run(&mut client, "INSERT INTO posts (n) SELECT generate_series(101, 200)");
    let (rename, rest) = ("ALTER SEQUENCE s RENAME TO s_native;", BACK);
    let (before, after) = rest.split_once(rename).unwrap();
    let error = parked(&database, &mut client, "SELECT snowflake_nextval('s', 5)", &[&format!("{before}{rename}"), after]);
    assert_eq!(error.code().code(), "42P01", "{error:?}");

    run(&mut client, "INSERT INTO posts (n) SELECT generate_series(201, 300)");
    assert_eq!(printed(&mut client, ORDERED), "t|300");
    run(&mut client, "DROP EXTENSION pg_snowflake; INSERT INTO posts (n) SELECT generate_series(301, 400)");
    assert_eq!(printed(&mut client, ORDERED), "t|400");
}
