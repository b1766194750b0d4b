//! IDs from sequences: the safe interface of `src/sequence/`, the only code that touches pages and WAL.

// Mirrored and ported items keep their C names.
#[allow(nonstandard_style)]
mod sys;

mod backend_clock;
mod backend_local;
mod definition;
mod discard;
mod dropped;
mod invalidation;
mod nextval;
mod page;
mod seq_table;
mod sequence_data;

use crate::error::Error;
use crate::lease;
pub use backend_clock::{
    read as read_clock, read_with_steps as read_clock_with_steps, statement_start_us,
};
pub use backend_local::BackendLocal;
pub use invalidation::{changes, note_change};
use nextval::{Fetch, Outcome};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::Run;
use pg_snowflake_policies::homed::{Class, Homed};
use pgrx::{check_for_interrupts, pg_sys};
pub use seq_table::Basis;
use seq_table::SeqTableData;
pub use sequence_data::SequenceData;
use std::ffi::{c_int, c_long};
use std::ops::ControlFlow;

/// Registers the hooks that reset a session's sequence state. Called once, at library load.
pub fn register_hooks() {
    invalidation::register_callbacks();
    discard::install_hook();
}

/// Returns the next ID of the sequence `relid`. Waits for the clock if the ID would be too far ahead of it and
/// `pg_snowflake.max_wait` allows the wait.
pub fn nextval(relid: pg_sys::Oid, layout: Layout, shard: u32) -> Result<i64, Error> {
    fetch_one(relid, layout, Class::one(shard), Fetch::One)
}

/// [`nextval()`] for a homed ID.
pub fn nextval_homed(relid: pg_sys::Oid, layout: Layout, homed: &Homed<'_>) -> Result<i64, Error> {
    fetch_one(relid, layout, homed.class, Fetch::Homed(homed))
}

fn fetch_one(
    relid: pg_sys::Oid,
    layout: Layout,
    class: Class,
    fetch: Fetch<'_>,
) -> Result<i64, Error> {
    fetch_counters(relid, layout, class, fetch, |elm, run, shard| {
        let id = layout.id(run.first, shard);
        elm.set_last(id);
        id
    })
}

/// The fast path: returns the next ID, after the session's first from the sequence, from the session's cache
/// or from the page, without opening the sequence. Returns `None`, with nothing fetched, if [`nextval()`] must
/// be called instead.
///
/// # Safety
/// Called in a transaction on the backend's only thread, as SQL functions are. No guard is needed: an ERROR of
/// the server passes over frames that hold nothing with a destructor. The callers' frames must not hold any
/// either.
pub unsafe fn nextval_fast(relid: pg_sys::Oid, layout: &Layout, shard: u32) -> Option<i64> {
    let ticks = lease::recent_ticks(Class::one(shard), layout)?;
    // SAFETY: neither reading the clock, locking the sequence nor fetching from a page runs SQL.
    unsafe {
        seq_table::with_found_entry(relid, |elm| {
            let id = layout.id(nextval::nextval_fast(elm, layout, shard, ticks)?, shard);
            elm.set_last(id);
            Some(id)
        })
    }
}

/// [`nextval_fast`] for a homed ID.
///
/// # Safety
/// As for [`nextval_fast`].
pub unsafe fn nextval_homed_fast(
    relid: pg_sys::Oid,
    layout: &Layout,
    homed: &Homed<'_>,
) -> Option<i64> {
    let ticks = lease::recent_ticks(homed.class, layout)?;
    // SAFETY: as in nextval_fast().
    unsafe {
        seq_table::with_found_entry(relid, |elm| {
            let found = nextval::nextval_homed_fast(elm, layout, homed, ticks)?;
            let id = layout.id(found.counter, found.shard);
            elm.set_last(id);
            Some(id)
        })
    }
}

/// Fetches counters for a batch: `count` of them, or fewer near the limit of the lead or an end. Returns also what the checks of this
/// fetch depended on. Waits as [`nextval()`] does.
pub fn fetch_run(
    relid: pg_sys::Oid,
    layout: Layout,
    class: Class,
    count: i64,
) -> Result<(Run, Basis), Error> {
    fetch_counters(relid, layout, class, Fetch::Batch(count), |elm, run, _| (run, elm.basis()))
}

/// Records the last ID that a batch returned from the sequence `relid`.
#[inline(always)]
pub fn set_last(relid: pg_sys::Oid, id: i64) {
    with_entry(relid, |elm| elm.set_last(id));
}

/// Returns the last ID that the sequence `relid` returned in this session.
pub fn currval(relid: pg_sys::Oid) -> Result<i64, Error> {
    // SAFETY: as in fetch_counters().
    unsafe { dropped::forget_dropped_sequences() };
    with_entry(relid, |elm| {
        // SAFETY: as for nextval_internal() in fetch_counters().
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| nextval::currval_oid(elm)) }
    })
}

/// Reads the definition and the state of the sequence `relid`, without fetching from it, and releases the lock.
pub fn read_data(relid: pg_sys::Oid) -> Result<SequenceData, Error> {
    // SAFETY: as for nextval_internal() in fetch_counters().
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| sequence_data::read_sequence_data(relid)) }
}

/// Fetches counters, waits for the clock if necessary, and returns what `issue` makes of the counters and their
/// shard.
fn fetch_counters<T>(
    relid: pg_sys::Oid,
    layout: Layout,
    class: Class,
    fetch: Fetch<'_>,
    issue: impl Fn(&mut SeqTableData, Run, u32) -> T,
) -> Result<T, Error> {
    // SAFETY: SQL functions run in a transaction on the backend's only thread, and no entry is in use yet.
    unsafe { dropped::forget_dropped_sequences() };
    loop {
        // What the fast path has seen, before the next reading.
        backend_clock::report_step();
        let outcome = with_entry(relid, |elm| {
            // SAFETY: SQL functions run in a transaction on the backend's only thread; nextval_internal() owns
            // nothing that an ERROR could leak.
            let outcome = unsafe {
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    nextval::nextval_internal(elm, fetch, layout, class)
                })
            };
            match outcome {
                Ok(Outcome::Fetched { run, shard }) => {
                    Ok(ControlFlow::Break(issue(elm, run, shard)))
                }
                Ok(Outcome::Wait { us }) => Ok(ControlFlow::Continue(us)),
                Ok(Outcome::LeaseChanged) => Ok(ControlFlow::Continue(0)),
                Err(error) => {
                    // After an error, such as a lost privilege or an altered sequence, a later call must not
                    // find cached counters.
                    elm.cached = None;
                    Err(error)
                }
            }
        });
        backend_clock::report_step();
        match outcome? {
            ControlFlow::Break(issued) => return Ok(issued),
            ControlFlow::Continue(us) => wait(us),
        }
    }
}

/// Looks the entry up once per call: with 100,000 sequences in a backend, the lookup is a cache miss.
fn with_entry<T>(relid: pg_sys::Oid, f: impl FnOnce(&mut SeqTableData) -> T) -> T {
    // SAFETY: the callers do no more with an entry than fetch from its sequence, which runs no SQL.
    unsafe { seq_table::with_entry(relid, f) }
}

/// The longest single sleep, so that a clock that is corrected meanwhile is noticed.
const LONGEST_SLEEP_US: i64 = 1_000_000;

/// Sleeps for about `us` microseconds, rounded up to whole milliseconds, without the page. A cancel or a
/// terminate ends the sleep.
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

/// The wait event in `pg_stat_activity`: `Extension` / `SnowflakeClock`. Before PostgreSQL 17, an extension has
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
