//! Short ways to ask a server something.

use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::refusal::{Refusal, assert_refused};
use postgres::{Client, SimpleQueryMessage};
use std::io::{Read, Write};

/// A server and a session.
pub fn server() -> (Cluster, Client) {
    let cluster = Cluster::new();
    let client = cluster.connect();
    (cluster, client)
}

/// What a query prints: a row a line, with `|` between columns, and nothing where a value is null.
pub fn printed(client: &mut Client, sql: &str) -> String {
    let messages = client.simple_query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let lines = rows.map(|row| {
        (0..row.len()).map(|i| row.get(i).unwrap_or_default()).collect::<Vec<_>>().join("|")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Copies rows into a table by way of the client, and gives their number. The source is a table, or a query in parentheses.
pub fn copy(client: &mut Client, source: &str, target: &str, format: &str) -> u64 {
    let mut rows = Vec::new();
    let mut reader =
        client.copy_out(&format!("COPY {source} TO STDOUT (FORMAT {format})")).unwrap();
    reader.read_to_end(&mut rows).unwrap();
    drop(reader);
    let mut writer =
        client.copy_in(&format!("COPY {target} FROM STDIN (FORMAT {format})")).unwrap();
    writer.write_all(&rows).unwrap();
    writer.finish().unwrap()
}

/// The plan of a statement without its costs.
pub fn plan(client: &mut Client, sql: &str) -> String {
    printed(client, &format!("EXPLAIN (COSTS OFF) {sql}"))
}

/// A statement that has to be refused, and what the error has to say.
#[derive(Clone, Copy, Debug)]
pub struct Bad<'a> {
    pub sql: &'a str,
    pub sqlstate: &'a str,
    /// A part of the message.
    pub message: &'a str,
    /// A part of the detail or the hint: what is allowed.
    pub allowed: &'a str,
}

/// Checks that each statement is refused as expected.
pub fn assert_each_refused(client: &mut Client, cases: &[Bad]) {
    for &Bad { sql, sqlstate, message, allowed } in cases {
        let error = assert_refused(client, sql, Refusal { sqlstate, message, hint: "" });
        let said = [error.detail(), error.hint()].map(Option::unwrap_or_default).join(" ");
        assert!(said.contains(allowed), "{sql}: {allowed:?} is not in {said:?}");
    }
}
