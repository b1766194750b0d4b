//! Counters from a sequence: the safe face of the only place that touches pages and WAL.

// The names of what is mirrored and ported from C are C's.
#[allow(nonstandard_style)]
mod sys;

mod page;

use crate::clock::{Clock, Now, Step};
use crate::counter::{Decision, Refusal, Request};
use crate::error::{Error, Unfit, duration};
use crate::layout::Layout;
use crate::settings;
use page::Session;
use pgrx::{PgLogLevel, PgSqlErrorCode, check_for_interrupts, ereport, pg_sys};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ffi::{c_int, c_long};

thread_local! {
    /// What this backend remembers of each sequence it has used, for the backend's life, as core's
    /// `seqhashtab`.
    static SESSIONS: RefCell<FxHashMap<pg_sys::Oid, Session>> = RefCell::default();
    static CLOCK: RefCell<Clock> = RefCell::default();
}

/// Takes the next counter of the sequence `relid` for ids of `layout`. Waits for the clock where the counter
/// is too far ahead of it and `pg_snowflake.max_wait` allows.
pub fn next_counter(relid: pg_sys::Oid, layout: Layout) -> Result<i64, Error> {
    loop {
        let request = Request { layout, count: 1, policy: settings::policy(), now: read_clock() };
        match visit(relid, request)? {
            Decision::Issue(run) => return Ok(run.first),
            Decision::Wait { us } => wait(us),
            Decision::Refuse(refusal) => return Err(refused(refusal, request)),
        }
    }
}

fn visit(relid: pg_sys::Oid, request: Request) -> Result<Decision, Error> {
    let mut session = SESSIONS.with_borrow(|all| all.get(&relid).copied()).unwrap_or_default();
    // SAFETY: SQL functions run in a transaction on the backend's only thread; page::visit() owns nothing
    // that an ERROR could leak.
    let decision =
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| page::visit(relid, &mut session, request)) };
    if decision.is_ok() {
        SESSIONS.with_borrow_mut(|all| all.insert(relid, session));
    }
    decision
}

/// Reads the clock, and tells the server log where it has stepped.
fn read_clock() -> Now {
    let (now, step) = CLOCK.with_borrow_mut(Clock::read);
    match step {
        None => {}
        Some(Step::Backward(us)) => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("pg_snowflake: the clock stepped back by {}", duration(us)),
            "Ids stay unique: this session issues none below the highest reading it has seen."
        ),
        Some(Step::Forward(us)) => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("pg_snowflake: the clock jumped forward by {}", duration(us)),
            "If it is set back, sequences that were used meanwhile will be ahead of it."
        ),
    }
    now
}

/// The longest sleep at a time, so that a clock that is set right meanwhile is seen.
const LONGEST_SLEEP_US: i64 = 1_000_000;

/// Sleeps for about `us` microseconds, in whole milliseconds, without the page; a cancel or a terminate
/// ends it.
fn wait(us: i64) {
    let timeout_ms = (us.clamp(0, LONGEST_SLEEP_US) as u64).div_ceil(1000);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is this backend's own latch.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, timeout_ms as c_long, wait_event());
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}

/// What `pg_stat_activity` shows during the wait: `Extension` / `SnowflakeClock`. Before 17 an extension has
/// no wait event of its own, and it is `Extension` / `Extension`.
fn wait_event() -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return pg_sys::PG_WAIT_EXTENSION;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        thread_local!(static EVENT: std::cell::OnceCell<u32> = const { std::cell::OnceCell::new() });
        // SAFETY: a C string; the server gives the same number to the same name in every backend.
        EVENT.with(|event| {
            *event.get_or_init(|| unsafe {
                pg_sys::WaitEventExtensionNew(c"SnowflakeClock".as_ptr())
            })
        })
    }
}

/// A refusal of the policy as the error that tells of it.
fn refused(refusal: Refusal, request: Request) -> Error {
    match refusal {
        Refusal::ClockBeforeEpoch { us } => Error::ClockBeforeEpoch { us },
        Refusal::TooFarAhead { lead_us, wait_us, ahead } => {
            Error::TooFarAhead { lead_us, wait_us, ahead }
        }
        Refusal::AboveMaxValue { counter, max_value } => {
            Error::UnfitSequence(Unfit::MaxValue { max_value, counter })
        }
        Refusal::LayoutUsedUp => Error::LayoutUsedUp(request.layout),
    }
}
