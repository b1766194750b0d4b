//! Queries a server: what a query prints, its plan, and the error that a statement raises.

use crate::{Cluster, Database};
use postgres::error::DbError;
use postgres::{Client, SimpleQueryMessage};
use std::io::{Read, Write};

pub fn database() -> (Database, Client) {
    let database = Database::new();
    let client = database.connect();
    (database, client)
}

/// A database in which `setup` has run, and a session.
pub fn database_with(setup: &str) -> (Database, Client) {
    let (database, mut client) = database();
    run(&mut client, setup);
    (database, client)
}

pub fn server() -> (Cluster, Client) {
    let cluster = Cluster::new();
    let client = cluster.connect();
    (cluster, client)
}

/// A server in whose database `postgres` `setup` has run, and a session.
pub fn server_with(setup: &str) -> (Cluster, Client) {
    let (cluster, mut client) = server();
    run(&mut client, setup);
    (cluster, client)
}

pub fn run(client: &mut Client, sql: &str) {
    client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Changes the configuration of a server, which reads it again.
pub fn reload_with(superuser: &mut Client, change: &str) {
    run(superuser, change);
    run(superuser, "SELECT pg_reload_conf()");
}

/// What a query prints: one row per line, `|` between columns, nothing for a null.
pub fn printed(client: &mut Client, sql: &str) -> String {
    let messages = client.simple_query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let lines = rows.map(|row| (0..row.len()).map(|i| row.get(i).unwrap_or_default()).collect::<Vec<_>>().join("|"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Copies rows into a table through the client, and returns their number. The source is a table, or a query in parentheses.
pub fn copy(client: &mut Client, source: &str, target: &str, format: &str) -> u64 {
    let mut rows = Vec::new();
    let mut reader = client.copy_out(&format!("COPY {source} TO STDOUT (FORMAT {format})")).expect("a valid query");
    reader.read_to_end(&mut rows).expect("a valid query");
    drop(reader);
    let mut writer = client.copy_in(&format!("COPY {target} FROM STDIN (FORMAT {format})")).expect("a valid query");
    writer.write_all(&rows).expect("a valid query");
    writer.finish().expect("a valid query")
}

pub fn plan(client: &mut Client, sql: &str) -> String {
    printed(client, &format!("EXPLAIN (COSTS OFF) {sql}"))
}

/// The error that is expected.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    pub sqlstate: &'a str,
    /// A part of the message.
    pub message: &'a str,
    /// A part of the hint.
    pub hint: &'a str,
}

/// An error with any hint or none.
pub const fn refusal<'a>(sqlstate: &'a str, message: &'a str) -> Refusal<'a> {
    Refusal { sqlstate, message, hint: "" }
}

/// The error that a statement raises.
pub fn refused(client: &mut Client, sql: &str) -> DbError {
    let error = match client.simple_query(sql) {
        Ok(_) => panic!("not refused: {sql}"),
        Err(error) => error,
    };
    error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}")).clone()
}

/// Checks the error that a statement raises, and returns it.
pub fn assert_refused(client: &mut Client, sql: &str, expected: Refusal) -> DbError {
    let error = refused(client, sql);
    let hint = error.hint().unwrap_or_default();
    let as_expected =
        error.code().code() == expected.sqlstate && error.message().contains(expected.message) && hint.contains(expected.hint);
    assert!(
        as_expected,
        "{sql}\nexpected {expected:?}\nfound    {} {:?}, detail {:?}, hint {hint:?}",
        error.code().code(),
        error.message(),
        error.detail()
    );
    error
}

/// The SQL in a hint: from its first command to the end of the last.
pub fn commands_in(hint: &str) -> &str {
    let start = hint.find("LOAD").or_else(|| hint.find("ALTER")).expect("a command");
    let end = hint.rfind(';').expect("a command ends in a semicolon");
    &hint[start..=end]
}
