//! Waiting for servers and sessions: for the event itself, never for a time within which it should happen. And stopping
//! clients in other threads.

use crate::process::backend_pid;
use postgres::{CancelToken, Client, NoTls};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Longer than anything that a test waits for, on however busy a machine. It ends a test that hangs.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The pause between two checks, which spares a busy machine.
const REST: Duration = Duration::from_millis(5);

/// Waits until `is_so` returns true. Returns false if that takes longer than [`PATIENCE`].
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

/// Waits until a query returns true.
pub fn wait_for(client: &mut Client, query: &str, what: &str) {
    let is_true = || {
        let row = client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        row.get::<_, Option<bool>>(0) == Some(true)
    };
    assert!(comes_true(is_true), "it takes too long until {what}");
}

/// Waits until other sessions have inserted this many more rows into the table.
pub fn wait_for_more_rows(client: &mut Client, table: &str, rows: i64) {
    let count = format!("SELECT count(*) FROM {table}");
    let row = client.query_one(&count, &[]).unwrap_or_else(|error| panic!("{count}: {error:?}"));
    let wanted = row.get::<_, i64>(0) + rows;
    wait_for(client, &format!("SELECT count(*) >= {wanted} FROM {table}"), &format!("{table} has {rows} more rows"));
}

/// What a call of the session `other` returns that waits for a lock, and what this session does as soon as it waits, such as to release
/// the lock.
pub fn while_it_waits<T: Send, U>(
    client: &mut Client,
    other: &mut Client,
    call: impl FnOnce(&mut Client) -> T + Send,
    meanwhile: impl FnOnce(&mut Client) -> U,
) -> (T, U) {
    let pid = backend_pid(other);
    let token = other.cancel_token();
    scope(|scope| {
        let waiting = scope.spawn(|| call(other));
        let _cancel = CancelAtPanic(token);
        wait_until_it_waits_for_a_lock(client, pid);
        let done = meanwhile(client);
        (waiting.join().expect("the call returns"), done)
    })
}

/// Cancels the call of a session that waits for another one, which a panic has kept from releasing the lock.
struct CancelAtPanic(CancelToken);

impl Drop for CancelAtPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // It may have ended.
            let _ = self.0.cancel_query(NoTls);
        }
    }
}

pub fn wait_until_it_waits_for_a_lock(observer: &mut Client, pid: i32) {
    let waits = format!("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted)");
    wait_for(observer, &waits, "the call waits for a lock");
}

/// Waits until that session waits for the clock. It holds no page meanwhile.
pub fn wait_until_it_waits_for_the_clock(observer: &mut Client, pid: i32) {
    // From PostgreSQL 17 on an extension names its waits.
    let waits = format!(
        "SELECT wait_event_type = 'Extension' AND wait_event IN ('Extension', 'SnowflakeClock') FROM pg_stat_activity WHERE pid = {pid}"
    );
    wait_for(observer, &waits, "the call waits for the clock");
}

/// Stops clients in other threads, at the latest when [`StopAtEnd`] goes out of scope: a panic in the test would otherwise
/// wait for them forever.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    pub fn is_called(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does something again and again until then, and returns all that it got.
    pub fn repeat<T>(&self, mut once: impl FnMut() -> T) -> Vec<T> {
        std::iter::from_fn(|| (!self.is_called()).then(&mut once)).collect()
    }
}

pub struct StopAtEnd<'a>(pub &'a Stop);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
