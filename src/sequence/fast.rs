//! The fast path: the next ID, after a session's first from the sequence, without opening the sequence, as long as the checks that
//! `nextval_internal()` made in this or an earlier transaction still hold.

use super::interface::{Authority, Permit};
use super::page::{LockedPage, lock_seq_tuple, write_seq_tuple};
use super::seq_table::{PassedChecks, RecentPage, SeqTableData, with_found_entry};
use super::sequence_data::Definition;
use super::{backend_clock, sys};
use crate::postgres::backend_local::BackendLocal;
use pg_snowflake_ids::layout::Packed;
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::clock::Now;
use pg_snowflake_policies::counter::{self, Decision, Policy, Reading, Run, State};
use pg_snowflake_policies::homed::{self, Found, Homed};
use pgrx::pg_sys;

/// Returns the next ID: with a cached counter, or with one from the page if that is still in its buffer. Returns `None`, with nothing
/// fetched, if [`next`](super::next) must be called instead.
///
/// # Safety
/// Called in a transaction on the backend's only thread, as SQL functions are. No guard is needed: an ERROR of the server passes over
/// frames that hold nothing with a destructor. The callers' frames must not hold any either.
pub unsafe fn next_fast<A: Authority>(relid: pg_sys::Oid, layout: &Packed, authority: A) -> Option<i64> {
    let next = |elm: &mut SeqTableData| {
        // Not for a cached ID. Only cached counters that turn out unusable go without.
        if elm.cached.is_none() {
            sys::prefetch_sequence(elm.recent_page.buffer);
        }
        // SAFETY: as the caller promises.
        let (permit, reading) = unsafe { repeat_checks(elm, layout, authority) }?;
        let counter = match elm.next_cached(reading, permit) {
            Some(counter) => counter,
            None => {
                let request = elm.request(reading, permit);
                // SAFETY: after repeat_checks().
                let page = unsafe { lock_recent_page(elm) }?;
                let Definition { max_value, cache, .. } = page.definition;
                let issued = match counter::advance(page.state(), max_value, cache, request) {
                    Decision::Issue(run) => Some(run),
                    _ => None,
                };
                let run = page.write(issued, permit, reading, authority)?;
                elm.save_in_cache(run, layout, permit)
            }
        };
        let id = layout.id(counter, permit.class.first);
        elm.set_last(id);
        Some(id)
    };
    // SAFETY: neither a permit, reading the clock, locking the sequence nor fetching from a page runs SQL.
    unsafe { with_found_entry(relid, next) }
}

/// [`next_fast`] for a homed ID, which is always from the page. It drops the cached counters, since those are below.
///
/// # Safety
/// As for [`next_fast`].
pub unsafe fn next_homed_fast<A: Authority>(relid: pg_sys::Oid, layout: &Packed, homed: &Homed<'_>, authority: A) -> Option<i64> {
    let next = |elm: &mut SeqTableData| {
        sys::prefetch_sequence(elm.recent_page.buffer);
        // SAFETY: as the caller promises.
        let (permit, reading) = unsafe { repeat_checks(elm, layout, authority) }?;
        let request = elm.request(reading, permit);
        // SAFETY: after repeat_checks().
        let page = unsafe { lock_recent_page(elm) }?;
        let found = match homed::advance(page.state(), page.definition.max_value, request, homed) {
            Decision::Issue(found) => Some(found),
            _ => None,
        };
        page.write(found.map(Found::run), permit, reading, authority)?;
        let found = found?;
        elm.cached = None;
        elm.highest_fetched = Some((layout.bits(), found.counter));
        let id = layout.id(found.counter, found.shard);
        elm.set_last(id);
        Some(id)
    };
    // SAFETY: as in next_fast().
    unsafe { with_found_entry(relid, next) }
}

/// Repeats the checks of the fast path, asks for a permit, and reads the clock; `None` if the slow path must be taken. The next call
/// replaces the reading.
///
/// # Safety
/// As for [`next_fast`].
#[inline(always)]
unsafe fn repeat_checks<'a, A: Authority>(
    elm: &mut SeqTableData,
    layout: &'a Packed,
    authority: A,
) -> Option<(&'static Permit, &'a Reading)> {
    // In a transaction that has not locked the sequence, a change of it may not be known yet.
    let would_pass = |elm: &SeqTableData| {
        let PassedChecks { user, catalog_version } = elm.passed_checks;
        // SAFETY: plain functions and globals of the server.
        unsafe { catalog_version == elm.catalog_version() && user == sys::GetUserId() && !pg_sys::XactReadOnly && !sys::IsInParallelMode() }
    };
    // SAFETY: as the caller promises.
    if !would_pass(elm) || (unsafe { elm.lock() } && !would_pass(elm)) {
        return None;
    }
    // After the lock, which may have been waited for.
    let permit = authority.permit(layout).ok()?;
    let now = backend_clock::recent()?;
    // SAFETY: whoever had an earlier reference has returned, or was left by an ERROR.
    let reading = unsafe { READING.get() };
    reading.update(layout, permit.policy, now);
    Some((permit, reading))
}

/// The reading that the last ID used.
static READING: BackendLocal<Reading> = BackendLocal::new(Reading::new(
    Packed::new(DEFAULT),
    Policy { max_lead_us: 0, max_wait_us: 0 },
    Now { reading_us: 0, high_water_us: 0 },
));

/// The page that [`lock_recent_page`] has locked. Nothing may return before [`write`](LockedRecentPage::write) has released it.
#[must_use]
struct LockedRecentPage {
    page: LockedPage,
    locator: sys::RelFileLocator,
    definition: Definition,
}

/// Locks the page, if it is still in its buffer.
///
/// # Safety
/// As for [`next_fast`], after [`repeat_checks`].
#[inline(always)]
unsafe fn lock_recent_page(elm: &mut SeqTableData) -> Option<LockedRecentPage> {
    let RecentPage { catalog_version, visits_left, locator, buffer, definition } = elm.recent_page;
    elm.recent_page.visits_left = visits_left.checked_sub(1)?;
    // SAFETY: the transaction holds the lock on the relation, so its storage exists.
    unsafe {
        if catalog_version != elm.passed_checks.catalog_version
            || !sys::ReadRecentBuffer(locator, pg_sys::ForkNumber::MAIN_FORKNUM, 0, buffer)
        {
            return None;
        }
        let page = lock_seq_tuple(buffer).ok()?;
        Some(LockedRecentPage { page, locator, definition })
    }
}

impl LockedRecentPage {
    #[inline(always)]
    fn state(&self) -> State {
        // SAFETY: the page is locked.
        unsafe { self.page.state() }
    }

    /// Writes the counters, if there are any and the authority confirms them, and releases the page. Returns the counters that are written.
    #[inline(always)]
    fn write(self, run: Option<Run>, permit: &Permit, reading: &Reading, authority: impl Authority) -> Option<Run> {
        let LockedRecentPage { page, locator, definition } = self;
        // SAFETY: the page is locked until release(). Checks are kept only for a sequence that every transaction logs.
        unsafe {
            let written = match run {
                Some(run)
                    if authority.confirm(permit, reading.layout(), run)
                        && write_seq_tuple(page, run, definition.max_value, reading.layout(), Some(locator)) =>
                {
                    backend_clock::note_issued(reading.now());
                    Some(run)
                }
                _ => None,
            };
            page.release();
            written
        }
    }
}
