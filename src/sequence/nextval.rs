//! A port of `nextval` and `currval` from PostgreSQL's `src/backend/commands/sequence.c` (15 to 19), in its
//! order and with its names.
//!
//! | C | file | here |
//! | --- | --- | --- |
//! | `nextval_oid` | `sequence.c` | `snowflake_nextval_wrapper` in `generate.rs` |
//! | `SeqTableData`, `seqhashtab`, `last_used_seq` | `sequence.c` | `seq_table.rs`; a `SeqTable` is a `&mut SeqTableData` |
//! | `nextval_internal` | `sequence.c` | [`nextval_internal`]; how far to fetch, the `while` loop, is [`counter::advance`] |
//! | – its change of the tuple, and its WAL record | `sequence.c` | `write_seq_tuple`, `log_seq_tuple` in `page.rs`; how far to log is [`counter::cover`] |
//! | `currval_oid` | `sequence.c` | [`currval_oid`] |
//! | `lastval`, `do_setval` | `sequence.c` | not ported |
//! | `lock_and_open_sequence` | `sequence.c` | [`lock_sequence`], [`lock_and_open_sequence`] |
//! | `create_seq_hashtable` | `sequence.c` | the initial value of `SEQHASHTAB` in `seq_table.rs` |
//! | `init_sequence` | `sequence.c` | [`init_sequence`]; the lookup in the hash table is `with_entry` in `seq_table.rs` |
//! | `read_seq_tuple` | `sequence.c` | `read_seq_tuple` in `page.rs` |
//! | `ResetSequenceCaches` | `sequence.c` | `reset_sequence_caches` in `seq_table.rs`, called in `discard.rs` |
//! | `pg_sequence_last_value` | `sequence.c` | `read_sequence_data` in `sequence_data.rs` |
//! | the lookup of `pg_sequence` | `sequence.c` | `Definition::look_up` in `definition.rs` |
//! | `sequence_open` | `access/sequence/sequence.c` from 17 on, `relation_open` before | [`sequence_open`] |
//! | `PreventCommandIfReadOnly`, `PreventCommandIfParallelMode` | `tcop/utility.c` | [`prevent_command_if_read_only`], [`prevent_command_if_parallel_mode`] |
//!
//! The differences:
//!
//! - [`nextval_fast`] returns IDs without opening the sequence: what its last opening found holds until an
//!   invalidation message says otherwise.
//! - An ERROR from the server jumps over these frames, to a `sigsetjmp` guard that the caller has set or to the
//!   server's own. So nothing here holds anything with a destructor, every value is `Copy`, and our own errors
//!   are returned, after the page and the relation have been released.
//! - Values carry a time. So a call may have to wait for the clock ([`Outcome::Wait`]), and cached values are
//!   dropped once the clock has passed them. They are also dropped when `pg_sequence` has changed, not only
//!   when the storage is new.
//! - With leases ([`crate::lease`]), values are within the span of the shard. Under the page lock, [`lease::confirm`] makes known how
//!   far the server has used it, before the page is written.
//! - A homed ID ([`pg_snowflake_policies::homed`]) takes the next counter that yields one, found under the page lock, and leaves the cache
//!   out.
//! - A session remembers the highest value that it has fetched, so that it repeats none after `setval` or
//!   RESTART.
//! - How far the WAL record reaches is stored on the page (see `page.rs`), not taken from `log_cnt`. The page
//!   is marked dirty before the redo pointer is read.

use super::definition::Definition;
use super::page::{lock_seq_tuple, read_seq_tuple, write_seq_tuple};
use super::seq_table::{PassedChecks, RecentPage, SeqTableData};
use super::{backend_clock, invalidation, sys};
use crate::error::Error;
use crate::{lease, settings};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::clock::Now;
use pg_snowflake_policies::counter::{self, Cached, Decision, Request, Run, State};
use pg_snowflake_policies::homed::{Class, Found, Homed};
use pg_snowflake_policies::lease::Ticks;
use pgrx::pg_sys;
use std::ffi::{c_char, c_int};

/// What a call fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch<'a> {
    /// One counter, from the cache if there is any. If not, as many from the page as the sequence's CACHE; the
    /// rest are cached.
    One,
    /// This many from the page, or fewer near the limit of the lead or an end.
    Batch(i64),
    /// From the page, the next one that makes a homed ID.
    Homed(&'a Homed<'a>),
}

/// The result of a call that raises no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The caller may use these counters.
    Fetched {
        /// The counters.
        run: Run,
        /// The shard number of a homed ID; otherwise the first one of the class.
        shard: u32,
    },
    /// The clock must catch up first; nothing was fetched.
    Wait {
        /// The time to wait, in microseconds.
        us: i64,
    },
    /// The lease changed meanwhile; nothing was fetched.
    LeaseChanged,
}

/// Fetches counters from a sequence, with core's checks in core's order. The IDs will have a shard of the class.
///
/// # Safety
/// Called inside a `sigsetjmp` guard, in a transaction.
pub unsafe fn nextval_internal(
    elm: &mut SeqTableData,
    fetch: Fetch<'_>,
    layout: Layout,
    class: Class,
) -> Result<Outcome, Error> {
    // SAFETY: the transaction holds the lock on the relation, which is open until relation_close().
    unsafe {
        let sequence = init_sequence(elm)?;
        let outcome = nextval_of_open_sequence(sequence, elm, fetch, layout, class);
        sys::relation_close(sequence.rel, NO_LOCK);
        outcome
    }
}

/// The part of `nextval_internal()` between opening and closing the sequence.
unsafe fn nextval_of_open_sequence(
    sequence: OpenSequence,
    elm: &mut SeqTableData,
    fetch: Fetch<'_>,
    layout: Layout,
    class: Class,
) -> Result<Outcome, Error> {
    let OpenSequence { rel: seqrel, catalog_version } = sequence;
    // SAFETY: the relation is open and locked; the buffer is pinned and locked exclusively from read_seq_tuple() to
    // release().
    unsafe {
        if !has_privilege(seqrel, pg_sys::ACL_USAGE | pg_sys::ACL_UPDATE) {
            return Err(Error::PermissionDenied { either: ["UPDATE", "USAGE"] });
        }
        // Read-only transactions may only modify temporary sequences.
        if !(*seqrel).rd_islocaltemp {
            prevent_command_if_read_only()?;
        }
        // In parallel mode, the backends would have to share the cached counters.
        prevent_command_if_parallel_mode()?;
        // Only an open relation says whether to log an unlogged or temporary sequence, or one that skips WAL.
        if sys::is_logged_always(seqrel) {
            elm.passed_checks = PassedChecks { user: sys::GetUserId(), catalog_version };
        }
        // Not before the lock, which may be waited for: whoever held it may have used the time since, and reset the sequence, and
        // the lease may have been renewed.
        let now = backend_clock::read_silently();
        let ticks = lease::ticks_of(class, &layout).map_err(Error::Lease)?;
        let request = elm.request(layout, class.first, now, ticks);

        if fetch == Fetch::One
            && let Some(counter) = next_cached(elm, &layout, request.now, class, ticks)
        {
            let run = Run { first: counter, last: counter };
            return Ok(Outcome::Fetched { run, shard: class.first });
        }
        elm.cached = None;

        let definition = Definition::look_up(elm.relid)?;
        definition.check()?;
        let locked = read_seq_tuple(seqrel)?;
        let locator = sys::relation_locator(seqrel);
        elm.recent_page = RecentPage {
            catalog_version,
            visits_left: RECENT_PAGE_VISITS,
            locator,
            buffer: locked.buffer,
            definition,
        };
        let max_value = definition.max_value;
        let advance = |count| {
            let decision = counter::advance(locked.state(), max_value, count, request);
            decision.map(|run| (run, class.first))
        };
        let decision = match fetch {
            Fetch::One => advance(definition.cache),
            Fetch::Batch(count) => advance(count),
            Fetch::Homed(homed) => {
                let decision = counter::advance_homed(locked.state(), max_value, request, homed);
                decision.map(|found| (run_of(found), found.shard))
            }
        };
        if let Decision::Issue((run, _)) = decision {
            if !lease::confirm(class, &request.layout, run) {
                locked.release();
                return Ok(Outcome::LeaseChanged);
            }
            let wal_locator = sys::RelationNeedsWAL(seqrel).then_some(locator);
            write_seq_tuple(locked, run, max_value, request.layout, wal_locator);
            backend_clock::note_issued(now);
        }
        locked.release();

        match decision {
            Decision::Wait { us } => Ok(Outcome::Wait { us }),
            Decision::Refuse(refusal) => {
                Err(Error::Refused { refusal, layout: request.layout, shard: class.first })
            }
            Decision::Issue((run, shard)) if fetch == Fetch::One => {
                let first = save_in_cache(elm, run, request.layout);
                Ok(Outcome::Fetched { run: Run { first, last: first }, shard })
            }
            Decision::Issue((run, shard)) => {
                elm.highest_fetched = Some((request.layout, run.last));
                Ok(Outcome::Fetched { run, shard })
            }
        }
    }
}

/// The next counter without opening the sequence, as long as the checks that [`nextval_internal`] made in this
/// or an earlier transaction still hold: a cached counter, or one from the page if that is still in its buffer.
/// Returns `None`, with nothing fetched, if [`nextval_internal`] must be called instead.
///
/// # Safety
/// Called in a transaction. An ERROR passes over the callers' frames, which must hold nothing with a
/// destructor.
pub unsafe fn nextval_fast(
    elm: &mut SeqTableData,
    layout: &Layout,
    shard: u32,
    ticks: Ticks,
) -> Option<i64> {
    let class = Class::one(shard);
    // SAFETY: as the caller promises.
    unsafe {
        let now = repeat_checks(elm)?;
        if let Some(counter) = next_cached(elm, layout, now, class, ticks) {
            return Some(counter);
        }
        let request = elm.request(*layout, shard, now, ticks);
        let run = visit_recent_page(elm, class, request, |state, definition| {
            counter::advance(state, definition.max_value, definition.cache, request)
                .map(|run| (run, run))
        })?;
        Some(save_in_cache(elm, run, *layout))
    }
}

/// [`nextval_fast`] for a homed ID, which is always from the page. It drops the cached counters, since those are below.
///
/// # Safety
/// As for [`nextval_fast`].
pub unsafe fn nextval_homed_fast(
    elm: &mut SeqTableData,
    layout: &Layout,
    homed: &Homed<'_>,
    ticks: Ticks,
) -> Option<Found> {
    // SAFETY: as the caller promises.
    unsafe {
        let now = repeat_checks(elm)?;
        let request = elm.request(*layout, homed.class.first, now, ticks);
        let found = visit_recent_page(elm, homed.class, request, |state, definition| {
            counter::advance_homed(state, definition.max_value, request, homed)
                .map(|found| (run_of(found), found))
        })?;
        elm.cached = None;
        elm.highest_fetched = Some((*layout, found.counter));
        Some(found)
    }
}

/// Repeats the checks of the fast path, and reads the clock; `None` if the slow path must be taken.
///
/// # Safety
/// As for [`nextval_fast`].
#[inline(always)]
unsafe fn repeat_checks(elm: &mut SeqTableData) -> Option<Now> {
    // Prefetch the page while the checks are made and the clock is read: 258 -> 218 ns of CPU time per ID with
    // 100,000 sequences in turn where no record is written, 168 -> 147 with 1,000.
    sys::prefetch_sequence(elm.recent_page.buffer);
    if !elm.passes_checks() {
        return None;
    }
    // SAFETY: as the caller promises.
    if unsafe { lock_sequence(elm) } && !elm.passes_checks() {
        return None;
    }
    backend_clock::recent()
}

/// Has `advance` decide on the state of the page, if that is still in its buffer. If it issues counters, writes them, and returns
/// what else it returned.
///
/// # Safety
/// As for [`nextval_fast`], after [`repeat_checks`].
#[inline(always)]
unsafe fn visit_recent_page<T>(
    elm: &mut SeqTableData,
    class: Class,
    request: Request,
    advance: impl FnOnce(State, &Definition) -> Decision<(Run, T)>,
) -> Option<T> {
    let RecentPage { catalog_version, visits_left, locator, buffer, definition } = elm.recent_page;
    elm.recent_page.visits_left = visits_left.checked_sub(1)?;
    // SAFETY: the transaction holds the lock on the relation, so its storage exists; the buffer is pinned and
    // locked exclusively between ReadRecentBuffer() and release().
    unsafe {
        if catalog_version != elm.passed_checks.catalog_version
            || !sys::ReadRecentBuffer(locator, pg_sys::ForkNumber::MAIN_FORKNUM, 0, buffer)
        {
            return None;
        }
        let locked = lock_seq_tuple(buffer).ok()?;
        let issued = match advance(locked.state(), &definition) {
            Decision::Issue((run, issued)) if lease::confirm(class, &request.layout, run) => {
                // Checks are kept only for a sequence that every transaction logs.
                let max_value = definition.max_value;
                write_seq_tuple(locked, run, max_value, request.layout, Some(locator));
                backend_clock::note_issued(request.now);
                Some(issued)
            }
            _ => None,
        };
        locked.release();
        issued
    }
}

fn run_of(found: Found) -> Run {
    Run { first: found.counter, last: found.counter }
}

/// Open the sequence and read its page by `ReadBuffer()` after this many visits by `ReadRecentBuffer()`. Up to
/// PostgreSQL 18, that does not raise the buffer's usage count, and a page that is read by nothing else is evicted
/// while it is in use. This counts visits and not time, so that a session that uses many sequences in turn, and
/// returns to each late, still finds them fast.
const RECENT_PAGE_VISITS: u32 = 1_000;

/// The next cached counter. Drops the cached counters if they may not be used.
#[inline(always)]
fn next_cached(
    elm: &mut SeqTableData,
    layout: &Layout,
    now: Now,
    class: Class,
    ticks: Ticks,
) -> Option<i64> {
    let cached = elm.cached?;
    if !cached.is_usable(layout, settings::policy(), now, ticks) {
        elm.cached = None;
        return None;
    }
    if !lease::is_current(class) {
        return None;
    }
    elm.cached = cached.rest();
    backend_clock::note_issued(now);
    Some(cached.next)
}

/// Returns the first counter of the run, and caches the rest for later calls.
fn save_in_cache(elm: &mut SeqTableData, run: Run, layout: Layout) -> i64 {
    let Run { first, last, .. } = run;
    elm.highest_fetched = Some((layout, last));
    elm.cached = Cached { layout, next: first, last }.rest();
    first
}

/// The last ID of the sequence in this session, with core's checks.
///
/// # Safety
/// Called inside a `sigsetjmp` guard, in a transaction.
pub unsafe fn currval_oid(elm: &mut SeqTableData) -> Result<i64, Error> {
    // SAFETY: the relation is locked, and open from init_sequence() to relation_close().
    unsafe {
        let OpenSequence { rel: seqrel, .. } = init_sequence(elm)?;
        let may_read = has_privilege(seqrel, pg_sys::ACL_SELECT | pg_sys::ACL_USAGE);
        sys::relation_close(seqrel, NO_LOCK);
        if !may_read {
            return Err(Error::PermissionDenied { either: ["USAGE", "SELECT"] });
        }
    }
    if elm.last_valid { Ok(elm.last) } else { Err(Error::CurrvalUndefined) }
}

/// A locked and open sequence.
#[derive(Clone, Copy)]
struct OpenSequence {
    rel: pg_sys::Relation,
    /// [`invalidation::catalog_version`] after the lock was taken and before anything was looked up: a change
    /// since then invalidates what was found.
    catalog_version: u64,
}

/// Locks the sequence and opens it.
unsafe fn lock_and_open_sequence(elm: &mut SeqTableData) -> Result<OpenSequence, Error> {
    // SAFETY: as the caller promises.
    unsafe {
        lock_sequence(elm);
        elm.hash = invalidation::hash(elm.relid);
        let catalog_version = elm.catalog_version();
        Ok(OpenSequence { rel: sequence_open(elm.relid)?, catalog_version })
    }
}

/// Locks the sequence if this transaction has not locked it yet, and returns whether it did. Locking processes the
/// invalidation messages of other sessions. The lock is owned by the transaction and not by the (sub)statement, so
/// that neither a rolled-back savepoint nor the end of a portal releases it.
unsafe fn lock_sequence(elm: &mut SeqTableData) -> bool {
    let lxid = sys::current_lxid();
    if elm.lxid == lxid {
        return false;
    }
    // SAFETY: the resource owner is restored before anything else can run; if the lock fails, the transaction
    // aborts and restores it itself, as in core.
    unsafe {
        let current_owner = pg_sys::CurrentResourceOwner;
        pg_sys::CurrentResourceOwner = pg_sys::TopTransactionResourceOwner;
        sys::LockRelationOid(elm.relid, ROW_EXCLUSIVE_LOCK);
        pg_sys::CurrentResourceOwner = current_owner;
    }
    elm.lxid = lxid;
    true
}

/// Locks and opens the sequence of a hash table entry.
unsafe fn init_sequence(elm: &mut SeqTableData) -> Result<OpenSequence, Error> {
    // SAFETY: the relation is locked and open.
    unsafe {
        let sequence = lock_and_open_sequence(elm)?;
        // Counters cached before an ALTER, or from storage that a transaction has replaced, are void.
        let filenumber = (*(*sequence.rel).rd_rel).relfilenode;
        let pg_sequence_version = invalidation::pg_sequence_version(elm.hash);
        if (elm.filenumber, elm.pg_sequence_version) != (filenumber, pg_sequence_version) {
            elm.filenumber = filenumber;
            elm.pg_sequence_version = pg_sequence_version;
            elm.cached = None;
        }
        Ok(sequence)
    }
}

/// Opens a sequence that is already locked. Returns our own error if the relation does not exist or is not a
/// sequence.
unsafe fn sequence_open(relid: pg_sys::Oid) -> Result<pg_sys::Relation, Error> {
    // SAFETY: the relation is locked, and open until it is closed here or, where it is returned, by the caller.
    unsafe {
        let relation = relation_open(relid)?;
        if (*(*relation).rd_rel).relkind != pg_sys::RELKIND_SEQUENCE as c_char {
            sys::relation_close(relation, NO_LOCK);
            return Err(Error::NotASequence);
        }
        Ok(relation)
    }
}

/// `relation_open()` (`access/common/relation.c`), except that a missing relation is not an internal error: an
/// OID may be stale, and the transaction itself may have dropped the sequence.
unsafe fn relation_open(relid: pg_sys::Oid) -> Result<pg_sys::Relation, Error> {
    // SAFETY: the lock keeps the relation from being dropped.
    unsafe {
        let relation = sys::RelationIdGetRelation(relid);
        if relation.is_null() {
            return Err(Error::NoSuchRelation);
        }
        if (*(*relation).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_TEMP as c_char {
            pg_sys::MyXactFlags |= pg_sys::XACT_FLAGS_ACCESSEDTEMPNAMESPACE as c_int;
        }
        sys::pgstat_init_relation(relation);
        Ok(relation)
    }
}

unsafe fn prevent_command_if_read_only() -> Result<(), Error> {
    // SAFETY: a global and a plain function of the server.
    unsafe {
        if !pg_sys::XactReadOnly {
            Ok(())
        } else if sys::RecoveryInProgress() {
            // PreventCommandDuringRecovery(): a transaction on a standby is always read-only.
            Err(Error::DuringRecovery)
        } else {
            Err(Error::ReadOnlyTransaction)
        }
    }
}

unsafe fn prevent_command_if_parallel_mode() -> Result<(), Error> {
    // SAFETY: a plain function of the server.
    if unsafe { sys::IsInParallelMode() } { Err(Error::ParallelMode) } else { Ok(()) }
}

/// Whether the current user has at least one of the privileges.
///
/// # Safety
/// `relation` is open, in a transaction.
pub unsafe fn has_privilege(relation: pg_sys::Relation, one_of: u32) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let mode = pg_sys::AclMode::from(one_of);
        sys::pg_class_aclcheck((*relation).rd_id, sys::GetUserId(), mode)
            == pg_sys::AclResult::ACLCHECK_OK
    }
}

const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;
const ROW_EXCLUSIVE_LOCK: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
