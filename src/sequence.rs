//! IDs from sequences: the safe interface of `src/sequence/`, the only code that touches pages and WAL.

// Mirrored and ported items keep their C names.
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
use crate::lease;
pub use backend_clock::{read as read_clock, read_with_steps as read_clock_with_steps};
pub use backend_local::BackendLocal;
use nextval::{Fetch, Outcome};
use pg_snowflake_core::Layout;
use pg_snowflake_core::counter::{Refusal, Run};
use pg_snowflake_core::homed::{Class, HashRange, Home, Homed};
use pgrx::{check_for_interrupts, pg_sys};
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

/// The most counters that [`IdBatch`] fetches from the page at once. A fetch costs a few hundred nanoseconds,
/// which is negligible over 1024 counters, and the rest of a run in an open cursor is soon used.
const LONGEST_RUN: i64 = 1024;

/// IDs from one sequence, in increasing order, fetched in runs.
pub struct IdBatch {
    relid: pg_sys::Oid,
    layout: Layout,
    shard: u32,
    /// The number of IDs still to return.
    remaining: i64,
    /// Counters fetched and not yet used; initially empty.
    run: Run,
}

impl IdBatch {
    /// An iterator over `count` IDs.
    pub fn new(relid: pg_sys::Oid, layout: Layout, shard: u32, count: i64) -> Self {
        IdBatch { relid, layout, shard, remaining: count, run: Run { first: 0, last: -1 } }
    }

    /// Whether there is a counter left that the lease of the shard still permits.
    #[inline(always)]
    fn has_counter(&self) -> bool {
        let Run { first, last } = self.run;
        let is_leased = |tick| {
            let class = Class::one(self.shard);
            lease::ticks_of(class, &self.layout).is_ok_and(|ticks| ticks.contains(tick))
        };
        first <= last && is_leased(self.layout.tick_of(first))
    }

    /// Fetches the next run.
    #[cold]
    fn fetch(&mut self) -> Result<(), Error> {
        let batch = Fetch::Batch(self.remaining.min(LONGEST_RUN));
        let class = Class::one(self.shard);
        self.run = fetch_counters(self.relid, self.layout, class, batch, |_, run, _| run)?;
        Ok(())
    }
}

impl Iterator for IdBatch {
    type Item = Result<i64, Error>;

    // Inlined, so that the result stays in registers.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        if !self.has_counter()
            && let Err(error) = self.fetch()
        {
            return Some(Err(error));
        }
        let id = self.layout.id(self.run.first, self.shard);
        self.run.first += 1;
        self.remaining -= 1;
        with_entry(self.relid, |elm| elm.set_last(id));
        Some(Ok(id))
    }
}

/// Homed IDs from one sequence, with increasing counters. The counters are fetched in runs; counters that yield no homed ID are dropped.
pub struct HomedBatch {
    relid: pg_sys::Oid,
    layout: Layout,
    homed: OwnedHomed,
    /// The number of IDs still to return.
    remaining: i64,
    /// Counters fetched and not yet used; initially empty.
    run: Run,
    /// How many counters in a row have made no homed ID.
    passed_over: i64,
}

/// A [`Homed`] that owns its ranges.
pub enum OwnedHomed {
    /// Without ranges.
    InPartition(Homed<'static>),
    /// With these ranges.
    InRanges(Class, Vec<HashRange>),
}

impl OwnedHomed {
    fn get(&self) -> Homed<'_> {
        match self {
            OwnedHomed::InPartition(homed) => *homed,
            OwnedHomed::InRanges(class, ranges) => Homed::new(*class, Home::Ranges(ranges)),
        }
    }
}

impl HomedBatch {
    /// An iterator over `count` IDs.
    pub fn new(relid: pg_sys::Oid, layout: Layout, homed: OwnedHomed, count: i64) -> Self {
        let run = Run { first: 0, last: -1 };
        HomedBatch { relid, layout, homed, remaining: count, run, passed_over: 0 }
    }

    /// The next ID, if a fetched counter yields one that the leases still permit.
    fn next_fetched(&mut self) -> Option<i64> {
        let homed = self.homed.get();
        while self.run.first <= self.run.last {
            let counter = self.run.first;
            let tick = self.layout.tick_of(counter);
            if !lease::ticks_of(homed.class, &self.layout).is_ok_and(|ticks| ticks.contains(tick)) {
                self.run.first = self.run.last + 1;
                return None;
            }
            self.run.first += 1;
            if let Some(shard) = homed.shard_of(&self.layout, counter) {
                self.passed_over = 0;
                return Some(self.layout.id(counter, shard));
            }
            self.passed_over += 1;
        }
        None
    }

    /// Fetches the next run.
    #[cold]
    fn fetch(&mut self) -> Result<(), Error> {
        check_for_interrupts!();
        let homed = self.homed.get();
        let counters = homed.most_counters();
        if self.passed_over > counters {
            let refusal = Refusal::NotHome { counters };
            return Err(Error::Refused { refusal, layout: self.layout, shard: homed.class.first });
        }
        let batch = Fetch::Batch(homed.counters_for(self.remaining).clamp(1, LONGEST_RUN));
        self.run = fetch_counters(self.relid, self.layout, homed.class, batch, |_, run, _| run)?;
        Ok(())
    }
}

impl Iterator for HomedBatch {
    type Item = Result<i64, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        let id = loop {
            if let Some(id) = self.next_fetched() {
                break id;
            }
            if let Err(error) = self.fetch() {
                return Some(Err(error));
            }
        };
        self.remaining -= 1;
        with_entry(self.relid, |elm| elm.set_last(id));
        Some(Ok(id))
    }
}

/// Returns the last ID that the sequence `relid` returned in this session.
pub fn currval(relid: pg_sys::Oid) -> Result<i64, Error> {
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
