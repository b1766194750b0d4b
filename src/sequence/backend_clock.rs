//! The clock of this backend, and the wait for it. Every reading goes through its guard, and steps go to the server log.

use super::sys;
use crate::postgres::backend_local::BackendLocal;
use crate::postgres::report::{Raise, duration};
use pg_snowflake_policies::clock::{Clock, Guard, Now, Step};
use pg_snowflake_policies::messages::sequence as messages;
use pgrx::{PgLogLevel, check_for_interrupts, pg_sys};
use std::ffi::{c_int, c_long};

struct BackendClock {
    clock: Clock,
    /// A step that has not been reported yet.
    unreported: Option<Step>,
    /// The last reading, with the cycle counter and the statement at that time.
    recent: Now,
    cycles: u64,
    statement: pg_sys::TimestampTz,
    /// Whether the cycle counter is reliable; `None` until the first reading.
    has_steady_cycles: Option<bool>,
}

static BACKEND_CLOCK: BackendLocal<BackendClock> = BackendLocal::new(BackendClock {
    clock: Clock::unread(),
    unreported: None,
    recent: Now { reading_us: 0, high_water_us: 0 },
    cycles: 0,
    statement: 0,
    has_steady_cycles: None,
});

/// Reuse a clock reading for this many CPU cycles: 1 to 4 microseconds, no more than may pass between any
/// reading and its use. Reading the clock is more than half of the cost of a cached ID, and reading the cycle
/// counter costs half as much: a CACHE 64 ID took 24 ns instead of 39, and a CACHE 1 ID 118 instead of 129.
const RECENT_CYCLES: u64 = 4096;

impl BackendClock {
    /// Reads the clock. Every reading is made here, so that none that is used is older than one used before. `cycles` have been read
    /// before, so that the reading is never older than it seems.
    #[inline(always)]
    fn read(&mut self, cycles: Option<u64>) -> (Now, Option<Step>) {
        self.cycles = cycles.unwrap_or_default();
        self.statement = statement_start();
        let (now, step) = self.clock.read(sys::unix_us());
        self.recent = now;
        (now, step)
    }

    /// Whether this statement made the last reading, within [`RECENT_CYCLES`] of these cycles.
    #[inline(always)]
    fn is_recent(&self, cycles: u64) -> bool {
        cycles.wrapping_sub(self.cycles) < RECENT_CYCLES && statement_start() == self.statement
    }

    #[inline(always)]
    fn cycles(&mut self) -> Option<u64> {
        // Without a write for each ID.
        let is_steady = self.has_steady_cycles == Some(true) || *self.has_steady_cycles.get_or_insert_with(sys::has_steady_cycles);
        is_steady.then(sys::cycles)
    }
}

/// When the client sent the current statement.
#[inline(always)]
pub fn statement_start() -> pg_sys::TimestampTz {
    // SAFETY: a plain function of the server.
    unsafe { sys::GetCurrentStatementStartTimestamp() }
}

/// Reads the clock of this backend, and reports steps in the server log.
pub fn read() -> Now {
    let now = read_silently();
    report_step();
    now
}

/// Reports in the server log the step that a silent reading has seen, if any.
pub fn report_step() {
    // SAFETY: a plain write.
    if let Some(step) = unsafe { BACKEND_CLOCK.get() }.unreported.take() {
        report(step);
    }
}

/// Reads the clock. The next call of [`report_step`] or [`read`] reports a step. Raises no error.
pub fn read_silently() -> Now {
    // SAFETY: reading a clock runs no SQL.
    let clock = unsafe { BACKEND_CLOCK.get() };
    let cycles = clock.cycles();
    let (now, step) = clock.read(cycles);
    clock.unreported = step.or(clock.unreported);
    now
}

/// Reads the clock, or reuses a recent reading of this statement. Returns `None` if the clock has stepped;
/// [`read`] then reports the step. Raises no error.
#[inline(always)]
pub fn recent() -> Option<Now> {
    // SAFETY: reading a clock runs no SQL.
    let clock = unsafe { BACKEND_CLOCK.get() };
    let cycles = clock.cycles();
    if cycles.is_some_and(|cycles| clock.is_recent(cycles)) {
        return Some(clock.recent);
    }
    let (now, step) = clock.read(cycles);
    if step.is_some() {
        clock.unreported = step;
        return None;
    }
    Some(now)
}

/// Records that counters were issued with a reading.
#[inline(always)]
pub fn note_issued(now: Now) {
    // SAFETY: a plain write.
    unsafe { BACKEND_CLOCK.get() }.clock.note_issued(now)
}

/// Reads the clock of this backend. Returns the reading, and the steps that the backend has seen.
pub fn read_with_steps() -> (Now, Guard) {
    let now = read();
    // SAFETY: a plain read.
    (now, *unsafe { BACKEND_CLOCK.get() }.clock.guard())
}

fn report(step: Step) {
    match step {
        Step::Backward(us) => messages::clock_stepped_back(duration(us)),
        Step::Forward(us) => messages::clock_jumped_forward(duration(us)),
    }
    .log(PgLogLevel::LOG);
}

/// The longest single sleep, so that a clock that is corrected meanwhile is noticed.
const MAX_SLEEP_US: i64 = 1_000_000;

/// Sleeps for about `us` microseconds, rounded up to whole milliseconds, without the page. A cancel or a terminate ends the sleep.
pub fn wait(us: i64) {
    let timeout_ms = (us.clamp(0, MAX_SLEEP_US) as u64).div_ceil(1000);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is this backend's own latch.
    unsafe {
        call!(WaitLatch(pg_sys::MyLatch, events as c_int, timeout_ms as c_long, wait_event()));
        call!(ResetLatch(pg_sys::MyLatch));
    }
    check_for_interrupts!();
}

/// The wait event in `pg_stat_activity`: `Extension` / `SnowflakeClock`. Before PostgreSQL 17, an extension has
/// no wait event of its own, and it is `Extension` / `Extension`.
fn wait_event() -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return pg_sys::PG_WAIT_EXTENSION;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        static EVENT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        // SAFETY: a C string; the server gives the same number to the same name in every backend.
        *EVENT.get_or_init(|| unsafe { call!(WaitEventExtensionNew(c"SnowflakeClock".as_ptr())) })
    }
}
