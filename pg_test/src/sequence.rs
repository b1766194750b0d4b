//! A sequence's state, as core keeps it.

use postgres::Client;

/// The three columns of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The last value taken; the next one, where `is_called` is false.
    pub last_value: i64,
    /// How many more values the last WAL record covers.
    pub log_cnt: i64,
    /// Whether `last_value` has been taken.
    pub is_called: bool,
}

/// Reads the state of the sequence of that name, quoted where it must be.
pub fn state(client: &mut Client, sequence: &str) -> State {
    let row = client
        .query_one(&format!("SELECT last_value, log_cnt, is_called FROM {sequence}"), &[])
        .unwrap_or_else(|error| panic!("{sequence} cannot be read: {error:?}"));
    State { last_value: row.get(0), log_cnt: row.get(1), is_called: row.get(2) }
}

/// Takes ids with a query that gives one bigint a row.
pub fn take(client: &mut Client, query: &str) -> Vec<i64> {
    let rows = client.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows.iter().map(|row| row.get(0)).collect()
}

/// Takes one id.
pub fn take_one(client: &mut Client, query: &str) -> i64 {
    let ids = take(client, query);
    assert_eq!(ids.len(), 1, "{query} gives one row");
    ids[0]
}
