//! Waiting for what other sessions do: for the thing itself and not for a time in which it ought to be done.

use postgres::Client;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than any of it may take on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a query gives true.
///
/// # Panics
/// Where the query fails, or `what` it asks for takes two minutes.
pub fn wait_for(client: &mut Client, query: &str, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    let is_true = |client: &mut Client| {
        let row = client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        row.get::<_, Option<bool>>(0) == Some(true)
    };
    while !is_true(client) {
        assert!(Instant::now() < deadline, "it takes too long until {what}");
        sleep(Duration::from_millis(1));
    }
}

/// Waits until other sessions have put that many more rows into the table.
///
/// # Panics
/// Where the table cannot be read, or they take two minutes.
pub fn wait_for_more_rows(client: &mut Client, table: &str, rows: i64) {
    let count = format!("SELECT count(*) FROM {table}");
    let row = client.query_one(&count, &[]).unwrap_or_else(|error| panic!("{count}: {error:?}"));
    let wanted = row.get::<_, i64>(0) + rows;
    let has_them = format!("SELECT count(*) >= {wanted} FROM {table}");
    wait_for(client, &has_them, &format!("{table} has {rows} more rows"));
}
