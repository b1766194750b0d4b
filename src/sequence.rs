//! Counters from a sequence: the safe face of the only place that touches pages and WAL.

// The names of what is mirrored and ported from C are C's.
#[allow(nonstandard_style)]
mod sys;

mod backend_clock;
mod backend_local;
mod definition;
mod discard;
mod invalidation;
mod nextval;
mod page;
mod seq_table;
mod sequence_data;

use crate::error::Error;
pub use backend_clock::clock;
pub use backend_local::OfBackend;
use nextval::{Visit, Want};
use pg_snowflake_core::Layout;
use pgrx::{check_for_interrupts, pg_sys};
use seq_table::Session;
pub use sequence_data::Reading;
use std::ffi::{c_int, c_long};
use std::ops::ControlFlow;

/// Has the server tell of what changes sequences behind a session's back. Called once, at library load.
pub fn watch() {
    invalidation::watch();
    discard::watch();
}

/// The next id from the sequence `relid`. Waits for the clock where the id would be too far ahead of it and
/// `pg_snowflake.max_wait` allows.
pub fn next_id(relid: pg_sys::Oid, layout: Layout, shard: u32) -> Result<i64, Error> {
    take(relid, layout, Want::Next, |session, counter, _| {
        let id = layout.id(counter, shard);
        session.last_id = Some(id);
        id
    })
}

/// The next id, where that takes nothing but a cached counter or the page, as for all but the first id of a
/// transaction. `None` where [`next_id`] has to see to it: nothing is taken then.
///
/// # Safety
/// SQL functions run in a transaction on the backend's only thread. No guard is needed: an ERROR of the server
/// passes over frames that hold nothing with a destructor, as those of the callers must.
pub unsafe fn next_known_id(relid: pg_sys::Oid, layout: &Layout, shard: u32) -> Option<i64> {
    // SAFETY: neither the clock nor the visit of a page runs SQL.
    unsafe {
        seq_table::with_known_session(relid, |session| {
            nextval::prefetch(session);
            if !nextval::may_revisit(session) {
                return None;
            }
            let now = backend_clock::recent()?;
            let id = layout.id(nextval::revisit(session, layout, now)?, shard);
            session.last_id = Some(id);
            Some(id)
        })
    }
}

/// The most counters that [`Ids`] takes from the page at once. A visit costs a few hundred nanoseconds, which
/// over 1024 counters is nothing, and a run that waits in an open cursor is soon used.
const LONGEST_RUN: i64 = 1024;

/// A number of ids from one sequence, in increasing order, taken in runs: one visit of the page for each.
pub struct Ids {
    relid: pg_sys::Oid,
    layout: Layout,
    shard: u32,
    /// Ids still to return.
    remaining: i64,
    /// The next counter of the run, and its last; an empty run to begin with.
    next: i64,
    last: i64,
}

impl Ids {
    /// `count` ids; none where it is 0.
    pub fn new(relid: pg_sys::Oid, layout: Layout, shard: u32, count: i64) -> Self {
        Ids { relid, layout, shard, remaining: count, next: 0, last: -1 }
    }
}

impl Iterator for Ids {
    type Item = Result<i64, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        if self.next > self.last {
            let want = Want::Run(self.remaining.min(LONGEST_RUN));
            match take(self.relid, self.layout, want, |_, first, last| (first, last)) {
                Ok(run) => (self.next, self.last) = run,
                Err(error) => return Some(Err(error)),
            }
        }
        let id = self.layout.id(self.next, self.shard);
        self.next += 1;
        self.remaining -= 1;
        with_session(self.relid, |session| session.last_id = Some(id));
        Some(Ok(id))
    }
}

/// The last id that the sequence `relid` returned in this session.
pub fn last_id(relid: pg_sys::Oid) -> Result<i64, Error> {
    with_session(relid, |session| {
        // SAFETY: as for nextval::visit() in take().
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| nextval::may_read(relid, session)) }?;
        session.last_id.ok_or(Error::NoIdYet)
    })
}

/// What the sequence `relid` is and holds. Takes nothing from it, and the lock is let go.
pub fn read(relid: pg_sys::Oid) -> Result<Reading, Error> {
    // SAFETY: as for nextval::visit() in take().
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| sequence_data::read(relid)) }
}

/// Takes counters, and returns what `issue` makes of the first and the last of them.
fn take<T>(
    relid: pg_sys::Oid,
    layout: Layout,
    want: Want,
    issue: impl Fn(&mut Session, i64, i64) -> T,
) -> Result<T, Error> {
    loop {
        let now = backend_clock::read();
        let outcome = with_session(relid, |session| {
            let request = session.request(layout, now);
            // SAFETY: SQL functions run in a transaction on the backend's only thread; nextval::visit() owns
            // nothing that an ERROR could leak.
            let visit = unsafe {
                pg_sys::ffi::pg_guard_ffi_boundary(|| nextval::visit(relid, session, want, request))
            };
            match visit {
                Ok(Visit::Took { first, last }) => {
                    Ok(ControlFlow::Break(issue(session, first, last)))
                }
                Ok(Visit::Wait { us }) => Ok(ControlFlow::Continue(us)),
                Err(error) => {
                    // A caller that was refused, for a lost privilege or an unfit sequence, leaves no
                    // counters behind for a later one.
                    session.cached = None;
                    Err(error)
                }
            }
        })?;
        match outcome {
            ControlFlow::Break(issued) => return Ok(issued),
            ControlFlow::Continue(us) => wait(us),
        }
    }
}

/// Looks the session up once a call: with 100,000 sequences in a backend the look-up is a cache miss.
fn with_session<T>(relid: pg_sys::Oid, f: impl FnOnce(&mut Session) -> T) -> T {
    // SAFETY: what is done with a session is to visit its page, which runs no SQL.
    unsafe { seq_table::with_session(relid, f) }
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
        static EVENT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        // SAFETY: a C string; the server gives the same number to the same name in every backend.
        *EVENT.get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(c"SnowflakeClock".as_ptr()) })
    }
}
