//! What is refused, with which error, and that a refusal consumes nothing.

use pg_snowflake_harness::ask::{Refusal, assert_refused, refused, server_with_sequence};
use pg_snowflake_harness::sequence::{state, take};
use postgres::Client;

#[test]
fn an_object_that_is_not_a_sequence_is_refused() {
    let (_cluster, mut client) = server_with_sequence();
    client
        .batch_execute(
            "CREATE TABLE posts (id bigint CONSTRAINT posts_index PRIMARY KEY);
             CREATE VIEW recent AS SELECT * FROM posts;
             CREATE MATERIALIZED VIEW archived AS SELECT * FROM posts;
             CREATE TABLE parted (id bigint) PARTITION BY HASH (id);
             CREATE TYPE pair AS (a bigint, b bigint);
             CREATE TABLE \"Odd Name\" ()",
        )
        .unwrap();
    let cases = [
        ("posts", "\"posts\" is not a sequence"),
        ("posts_index", "\"posts_index\" is not a sequence"),
        ("recent", "\"recent\" is not a sequence"),
        ("archived", "\"archived\" is not a sequence"),
        ("parted", "\"parted\" is not a sequence"),
        ("pair", "\"pair\" is not a sequence"),
        ("\"Odd Name\"", "\"Odd Name\" is not a sequence"),
        ("pg_class", "\"pg_class\" is not a sequence"),
    ];
    for (name, message) in cases {
        let wrong_type = Refusal { sqlstate: "42809", message, hint: "snowflake_nextval()" };
        assert_refused(&mut client, &format!("SELECT snowflake_nextval('{name}', 5)"), wrong_type);
    }
}

#[test]
fn an_unknown_oid_is_refused() {
    let (_cluster, mut client) = server_with_sequence();
    let dropped = oid_of_s(&mut client);
    client.batch_execute("DROP SEQUENCE s").unwrap();

    for oid in [dropped, 99_999, 0, u32::MAX] {
        let message = oid.to_string();
        let unknown = Refusal { sqlstate: "42P01", message: &message, hint: "by name" };
        assert_refused(&mut client, &format!("SELECT snowflake_nextval({oid}::oid, 5)"), unknown);
    }
}

#[test]
fn a_sequence_that_the_transaction_itself_used_and_dropped_is_refused() {
    let (_cluster, mut client) = server_with_sequence();
    let dropped = oid_of_s(&mut client);
    client.batch_execute("BEGIN; SELECT snowflake_nextval('s', 5); DROP SEQUENCE s").unwrap();

    let unknown = Refusal { sqlstate: "42P01", message: "does not exist", hint: "by name" };
    assert_refused(&mut client, &format!("SELECT snowflake_nextval({dropped}::oid, 5)"), unknown);
}

#[test]
fn a_shard_outside_the_layout_is_refused() {
    let (_cluster, mut client) = server_with_sequence();
    for shard in [-1, 4096, i32::MIN, i32::MAX] {
        let message = format!("shard ID {shard} is out of range");
        let expected = Refusal { sqlstate: "22023", message: &message, hint: "shard" };
        let sql = format!("SELECT snowflake_nextval('s', {shard})");
        assert_refused_and_unconsumed(&mut client, &sql, expected);
    }
}

#[test]
fn a_shard_outside_the_layout_is_refused_from_the_setting_too() {
    let (_cluster, mut client) = server_with_sequence();
    assert_refused_and_unconsumed(
        &mut client,
        "SET pg_snowflake.shard_id = 4096; SELECT snowflake_nextval('s')",
        Refusal { sqlstate: "22023", message: "shard ID 4096 is out of range", hint: "shard" },
    );
}

#[test]
fn an_unset_shard_is_refused_and_the_hint_sets_it() {
    let (cluster, mut client) = server_with_sequence();
    let before = state(&mut client, "s");
    let unset = Refusal {
        sqlstate: "55000",
        message: "pg_snowflake.shard_id is not set",
        hint: "ALTER DATABASE postgres SET pg_snowflake.shard_id",
    };

    let error = assert_refused(&mut client, "SELECT snowflake_nextval('s')", unset);
    assert_eq!(state(&mut client, "s"), before);

    client.batch_execute(command_in(error.hint().unwrap(), "ALTER DATABASE")).unwrap();
    assert_eq!(take(&mut cluster.connect(), "SELECT snowflake_nextval('s')").len(), 1);
}

#[test]
fn a_read_only_transaction_is_refused() {
    let (_cluster, mut client) = server_with_sequence();
    let expected = Refusal {
        sqlstate: "25006",
        message: "cannot execute snowflake_nextval() in a read-only transaction",
        hint: "READ WRITE",
    };
    assert_refused_and_unconsumed(
        &mut client,
        "BEGIN READ ONLY; SELECT snowflake_nextval('s', 5)",
        expected,
    );
}

#[test]
fn a_read_only_transaction_may_take_ids_from_its_own_temporary_sequence() {
    let (_cluster, mut client) = server_with_sequence();
    client.batch_execute("CREATE TEMPORARY SEQUENCE t; BEGIN READ ONLY").unwrap();

    assert_eq!(take(&mut client, "SELECT snowflake_nextval('t', 5)").len(), 1);
}

#[test]
fn a_standby_refuses() {
    let (primary, mut client) = server_with_sequence();
    let standby = primary.standby();
    let before = state(&mut client, "s");
    let expected = Refusal {
        sqlstate: "25006",
        message: "cannot execute snowflake_nextval() during recovery",
        hint: "primary",
    };

    assert_refused(&mut standby.connect(), "SELECT snowflake_nextval('s', 5)", expected);

    assert_eq!(state(&mut client, "s"), before);
}

#[test]
fn an_unfit_sequence_is_refused_and_the_hint_fixes_it() {
    let (_cluster, mut client) = server_with_sequence();
    client
        .batch_execute(
            "CREATE SCHEMA \"Blog\"; CREATE TABLE serials (id serial, small smallserial)",
        )
        .unwrap();
    // How it is created, its name, and the command that fixes it.
    let cases = [
        ("SELECT", "serials_id_seq", "ALTER SEQUENCE serials_id_seq AS bigint"),
        ("SELECT", "serials_small_seq", "ALTER SEQUENCE serials_small_seq AS bigint"),
        ("CREATE SEQUENCE five INCREMENT 5", "five", "ALTER SEQUENCE five INCREMENT 1"),
        ("CREATE SEQUENCE down INCREMENT -1", "down", "ALTER SEQUENCE down "),
        ("CREATE SEQUENCE round CYCLE", "round", "ALTER SEQUENCE round NO CYCLE"),
        (
            "CREATE SEQUENCE full_up MAXVALUE 1000000",
            "full_up",
            "ALTER SEQUENCE full_up NO MAXVALUE",
        ),
        (
            "CREATE SEQUENCE \"Blog\".\"Posts\" AS int",
            "\"Blog\".\"Posts\"",
            "ALTER SEQUENCE \"Blog\".\"Posts\" AS bigint",
        ),
        (
            "CREATE SEQUENCE all_wrong AS int INCREMENT 5 MAXVALUE 1000 CYCLE",
            "all_wrong",
            "ALTER SEQUENCE all_wrong ",
        ),
    ];
    for (make, name, hint) in cases {
        client.batch_execute(make).unwrap();
        let before = state(&mut client, name);
        let take_one = format!("SELECT snowflake_nextval('{name}', 5)");
        let unfit = Refusal { sqlstate: "55000", message: "cannot be used to generate IDs", hint };

        assert_refused(&mut client, &take_one, unfit);
        assert_eq!(state(&mut client, name), before, "{name}");
        follow_hints_until_accepted(&mut client, &take_one);
    }
}

#[test]
fn null_returns_null_and_consumes_nothing() {
    let (_cluster, mut client) = server_with_sequence();
    let before = state(&mut client, "s");
    let cases = [
        "snowflake_nextval(NULL, 5)",
        "snowflake_nextval('s', NULL)",
        "snowflake_nextval(NULL, NULL)",
        "snowflake_nextval(NULL)",
        "snowflake_shard_id(NULL)",
        "snowflake_decode(NULL)",
    ];
    for call in cases {
        let is_null: bool =
            client.query_one(&format!("SELECT {call} IS NULL"), &[]).unwrap().get(0);
        assert!(is_null, "{call}");
    }
    assert_eq!(state(&mut client, "s"), before);
}

#[test]
fn a_session_continues_after_a_refusal() {
    let (_cluster, mut client) = server_with_sequence();
    client.batch_execute("CREATE SEQUENCE five INCREMENT 5; BEGIN").unwrap();
    for sql in ["SELECT snowflake_nextval('five', 5)", "SELECT snowflake_nextval('pg_class', 5)"] {
        client.batch_execute("SAVEPOINT p").unwrap();
        refused(&mut client, sql);
        client.batch_execute("ROLLBACK TO p").unwrap();
        assert_eq!(take(&mut client, "SELECT snowflake_nextval('s', 5)").len(), 1, "after {sql}");
    }
    client.batch_execute("COMMIT").unwrap();
}

fn oid_of_s(client: &mut Client) -> u32 {
    client.query_one("SELECT 's'::regclass::oid", &[]).unwrap().get(0)
}

/// Checks the error of a statement on the sequence `s`, and that the sequence does not change.
fn assert_refused_and_unconsumed(client: &mut Client, sql: &str, expected: Refusal) {
    let before = state(client, "s");
    assert_refused(client, sql, expected);
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(state(client, "s"), before, "{sql}");
}

/// Runs the command of each hint, as a reader would, until the statement succeeds.
fn follow_hints_until_accepted(client: &mut Client, sql: &str) {
    for _ in 0..5 {
        let Err(error) = client.simple_query(sql) else { return };
        let hint = error
            .as_db_error()
            .and_then(|error| error.hint())
            .unwrap_or_else(|| panic!("{error:?}"));
        client
            .batch_execute(command_in(hint, "ALTER SEQUENCE"))
            .unwrap_or_else(|error| panic!("{hint}: {error:?}"));
    }
    panic!("still refused after five hints: {sql}");
}

/// The command that begins with these words and ends with the next semicolon.
fn command_in<'a>(hint: &'a str, first_words: &str) -> &'a str {
    let command = &hint[hint.find(first_words).unwrap()..];
    &command[..command.find(';').unwrap()]
}
