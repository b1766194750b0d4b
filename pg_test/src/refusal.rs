//! What a refused statement says.

use postgres::Client;
use postgres::error::DbError;

/// What is expected of an error.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The five characters.
    pub sqlstate: &'a str,
    /// A part of the message.
    pub message: &'a str,
    /// A part of the hint.
    pub hint: &'a str,
}

/// The error that a statement ends in.
///
/// # Panics
/// Where the statement succeeds.
pub fn refused(client: &mut Client, sql: &str) -> DbError {
    let error = match client.simple_query(sql) {
        Ok(_) => panic!("not refused: {sql}"),
        Err(error) => error,
    };
    error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}")).clone()
}

/// Checks the error that a statement ends in, and gives it.
pub fn assert_refused(client: &mut Client, sql: &str, expected: Refusal) -> DbError {
    let error = refused(client, sql);
    let hint = error.hint().unwrap_or_default();
    let as_expected = error.code().code() == expected.sqlstate
        && error.message().contains(expected.message)
        && hint.contains(expected.hint);
    assert!(
        as_expected,
        "{sql}\nexpected {expected:?}\nfound    {} {:?}, detail {:?}, hint {hint:?}",
        error.code().code(),
        error.message(),
        error.detail()
    );
    error
}
