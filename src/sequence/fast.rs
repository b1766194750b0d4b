//! The fast path: the next ID, after a session's first from the sequence, without opening the sequence, as long as the checks that
//! `nextval_internal()` made in this or an earlier transaction still hold.

use super::interface::{Authority, Permit};
use super::page::{LockedPage, lock_seq_tuple, write_seq_tuple};
use super::seq_table::{PassedChecks, RecentPage, SeqTableData, found_entry, request_after};
use super::sequence_data::Definition;
use super::{backend_clock, sys};
use pg_snowflake_policies::counter::{self, Decision, Run, State};
use pg_snowflake_policies::homed::{self, Found, Homed};
use pgrx::pg_sys;

/// Returns the next ID: with a cached counter, or with one from the page if that is still in its buffer. Returns `None`, with nothing
/// fetched, if [`next`](super::next) must be called instead. `layout` is packed.
///
/// # Safety
/// Called in a transaction on the backend's only thread, as SQL functions are. No guard is needed: an ERROR of the server passes over
/// frames that hold nothing with a destructor. The callers' frames must not hold any either.
#[inline(always)]
pub unsafe fn next_fast<A: Authority>(relid: pg_sys::Oid, layout: u64, authority: A) -> Option<i64> {
    // SAFETY: as the caller promises. Neither a permit, reading the clock, locking the sequence nor fetching from a page runs SQL.
    unsafe {
        let elm = found_entry(relid)?;
        let permit = repeat_checks(elm, layout, authority)?;
        let counter = match elm.next_cached(permit) {
            Some(counter) => counter,
            None => {
                let page = lock_recent_page(&mut elm.recent_page, elm.passed_checks.catalog_version)?;
                let &Definition { max_value, cache, .. } = page.definition;
                let issued = match counter::advance(page.state(), max_value, cache, request_after(elm.highest_fetched, permit)) {
                    Decision::Issue(run) => Some(run),
                    _ => None,
                };
                let run = page.write(issued, permit, authority)?;
                elm.save_in_cache(run, permit)
            }
        };
        let id = permit.reading.layout().id(counter, permit.class.first);
        elm.set_last(id);
        Some(id)
    }
}

/// [`next_fast`] for a homed ID, which is always from the page. It drops the cached counters, since those are below.
///
/// # Safety
/// As for [`next_fast`].
pub unsafe fn next_homed_fast<A: Authority>(relid: pg_sys::Oid, layout: u64, homed: &Homed<'_>, authority: A) -> Option<i64> {
    // SAFETY: as in next_fast().
    unsafe {
        let elm = found_entry(relid)?;
        let permit = repeat_checks(elm, layout, authority)?;
        let page = lock_recent_page(&mut elm.recent_page, elm.passed_checks.catalog_version)?;
        let request = request_after(elm.highest_fetched, permit);
        let found = match homed::advance(page.state(), page.definition.max_value, request, homed) {
            Decision::Issue(found) => Some(found),
            _ => None,
        };
        page.write(found.map(Found::run), permit, authority)?;
        let found = found?;
        elm.cached = None;
        elm.highest_fetched = (layout, found.counter);
        let id = permit.reading.layout().id(found.counter, found.shard);
        elm.set_last(id);
        Some(id)
    }
}

/// Repeats the checks of the fast path, asks for a permit, and reads the clock; `None` if the slow path must be taken. The next call
/// replaces the permit.
///
/// # Safety
/// As for [`next_fast`].
#[inline(always)]
unsafe fn repeat_checks<A: Authority>(elm: &mut SeqTableData, layout: u64, authority: A) -> Option<&'static Permit> {
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
    // SAFETY: whoever had an earlier permit has returned, or was left by an ERROR.
    let permit = unsafe { authority.permit(layout) }.ok()?;
    permit.reading.update(backend_clock::recent()?);
    Some(permit)
}

/// The page that [`lock_recent_page`] has locked. Nothing may return before [`write`](LockedRecentPage::write) has released it.
#[must_use]
struct LockedRecentPage<'a> {
    page: LockedPage,
    locator: &'a sys::RelFileLocator,
    definition: &'a Definition,
}

/// Locks the page, if it is still in its buffer, and was read with this version of the catalogs.
///
/// # Safety
/// As for [`next_fast`], after [`repeat_checks`].
#[inline(always)]
unsafe fn lock_recent_page(recent: &mut RecentPage, catalog_version: u64) -> Option<LockedRecentPage<'_>> {
    recent.visits_left = recent.visits_left.checked_sub(1)?;
    let RecentPage { locator, buffer, definition, .. } = &*recent;
    // SAFETY: the transaction holds the lock on the relation, so its storage exists.
    unsafe {
        if recent.catalog_version != catalog_version || !sys::ReadRecentBuffer(*locator, pg_sys::ForkNumber::MAIN_FORKNUM, 0, *buffer) {
            return None;
        }
        let page = lock_seq_tuple(*buffer).ok()?;
        Some(LockedRecentPage { page, locator, definition })
    }
}

impl LockedRecentPage<'_> {
    #[inline(always)]
    fn state(&self) -> State {
        // SAFETY: the page is locked.
        unsafe { self.page.state() }
    }

    /// Writes the counters, if there are any and the authority confirms them, and releases the page. Returns the counters that are written.
    #[inline(always)]
    fn write(self, run: Option<Run>, permit: &Permit, authority: impl Authority) -> Option<Run> {
        let LockedRecentPage { page, locator, definition } = self;
        let reading = &permit.reading;
        // SAFETY: the page is locked until release(). Checks are kept only for a sequence that every transaction logs.
        unsafe {
            let written = match run {
                Some(run)
                    if authority.confirm(permit, run)
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
