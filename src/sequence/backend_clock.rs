//! The clock as this backend reads it: each reading goes through its guard, and steps go to the server log.

use super::backend_local::BackendLocal;
use super::sys;
use crate::report::duration;
use pg_snowflake_core::clock::{Clock, Guard, Now, Step};
use pgrx::{PgLogLevel, PgSqlErrorCode, ereport, pg_sys};

/// The clock of this backend.
struct BackendClock {
    clock: Clock,
    /// A step that is still to be reported.
    unreported: Option<Step>,
    /// The last reading, the cycle counter at that time, and the statement.
    recent: Now,
    cycles: u64,
    statement: pg_sys::TimestampTz,
    /// Whether the cycle counter can be relied on; unknown until the first reading.
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

/// Reuse a clock reading for this many CPU cycles: 1 to 4 microseconds, no more than may pass between any reading and
/// its use. Reading the clock is the better half of the cost of a cached id, and reading the cycle counter costs half of
/// that: a CACHE 64 id takes 24 ns instead of 39, and a CACHE 1 id 118 instead of 129.
const RECENT_CYCLES: u64 = 4096;

impl BackendClock {
    /// Every reading goes through here: none that is used may be older than one that was.
    fn read(&mut self) -> (Now, Option<Step>) {
        // Before the clock is read, so that the reading is no older than it seems.
        self.cycles = self.cycles().unwrap_or_default();
        // SAFETY: inside a transaction, as every SQL function.
        self.statement = unsafe { sys::GetCurrentStatementStartTimestamp() };
        let (now, step) = self.clock.read(sys::unix_us());
        self.recent = now;
        (now, step)
    }

    /// The last reading, if this statement has taken it a moment ago.
    fn recent(&mut self) -> Option<Now> {
        let since = self.cycles()?.wrapping_sub(self.cycles);
        // SAFETY: as in read().
        let statement = unsafe { sys::GetCurrentStatementStartTimestamp() };
        (since < RECENT_CYCLES && statement == self.statement).then_some(self.recent)
    }

    fn cycles(&mut self) -> Option<u64> {
        self.has_steady_cycles.get_or_insert_with(sys::has_steady_cycles).then(sys::cycles)
    }
}

/// Reads the clock of this backend, and reports in the server log where it has stepped.
pub fn read() -> Now {
    // SAFETY: reading a clock runs no SQL.
    let (now, steps) = unsafe {
        BACKEND_CLOCK.with(|clock| {
            let (now, step) = clock.read();
            (now, [clock.unreported.take(), step])
        })
    };
    steps.into_iter().flatten().for_each(report);
    now
}

/// Reads the clock, unless this statement has done so a moment ago; `None` where it has stepped, which [`read`]
/// then reports. Raises nothing.
pub fn recent() -> Option<Now> {
    // SAFETY: reading a clock runs no SQL.
    unsafe {
        BACKEND_CLOCK.with(|clock| {
            if let Some(now) = clock.recent() {
                return Some(now);
            }
            let (now, step) = clock.read();
            clock.unreported = step;
            step.is_none().then_some(now)
        })
    }
}

/// Reads the clock of this backend, and returns with the reading the steps that the backend has seen.
pub fn read_with_steps() -> (Now, Guard) {
    let now = read();
    // SAFETY: nothing is called.
    (now, unsafe { BACKEND_CLOCK.with(|clock| *clock.clock.guard()) })
}

fn report(step: Step) {
    match step {
        Step::Backward(us) => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("pg_snowflake: the clock stepped back by {}", duration(us)),
            "IDs stay unique: this session generates none below its highest reading."
        ),
        Step::Forward(us) => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("pg_snowflake: the clock jumped forward by {}", duration(us)),
            "If the clock steps back again, sequences that were used in the meantime are ahead of it."
        ),
    }
}
