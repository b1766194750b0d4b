//! Waiting for what servers and sessions do: for the event itself, never for a time in which it ought to have come; and
//! telling the clients in other threads to stop.

use postgres::Client;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nothing that a test waits for takes so long, on however busy a machine. It is there so that a test that hangs ends.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// How long to rest between two looks: a busy machine has better things to do than to answer.
const REST: Duration = Duration::from_millis(5);

/// Waits until `is_so` gives true. Gives false where that takes longer than [`PATIENCE`].
#[must_use]
pub fn comes_true(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        sleep(REST);
    }
    true
}

/// Waits until a query gives true.
///
/// # Panics
/// Where the query fails, or `what` it asks for takes [`PATIENCE`].
pub fn wait_for(client: &mut Client, query: &str, what: &str) {
    let is_true = || {
        let row = client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        row.get::<_, Option<bool>>(0) == Some(true)
    };
    assert!(comes_true(is_true), "it takes too long until {what}");
}

/// Waits until other sessions have put that many more rows into the table.
///
/// # Panics
/// Where the table cannot be read, or they take [`PATIENCE`].
pub fn wait_for_more_rows(client: &mut Client, table: &str, rows: i64) {
    let count = format!("SELECT count(*) FROM {table}");
    let row = client.query_one(&count, &[]).unwrap_or_else(|error| panic!("{count}: {error:?}"));
    let wanted = row.get::<_, i64>(0) + rows;
    let has_them = format!("SELECT count(*) >= {wanted} FROM {table}");
    wait_for(client, &has_them, &format!("{table} has {rows} more rows"));
}

/// Waits until that session waits for the clock. It holds no page meanwhile.
///
/// # Panics
/// Where it does not within [`PATIENCE`].
pub fn wait_until_it_waits_for_the_clock(observer: &mut Client, pid: i32) {
    // From PostgreSQL 17 on an extension names its waits.
    let waits = format!(
        "SELECT wait_event_type = 'Extension' AND wait_event IN ('Extension', 'SnowflakeClock')
         FROM pg_stat_activity WHERE pid = {pid}"
    );
    wait_for(observer, &waits, "the call waits for the clock");
}

/// Tells clients in other threads to stop, at the latest when [`StopAtEnd`] goes out of scope: a panic beside them would
/// wait for them.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether they are told to.
    pub fn is_called(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Calls the stop when dropped.
pub struct StopAtEnd<'a>(pub &'a Stop);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
