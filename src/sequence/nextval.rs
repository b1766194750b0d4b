//! A port of `nextval` and `currval` from PostgreSQL's `src/backend/commands/sequence.c` (15 to 19), in its order and with its names.
//!
//! | C | file | here |
//! | --- | --- | --- |
//! | `nextval_oid` | `sequence.c` | `snowflake_nextval_wrapper` in `generate.rs` |
//! | `SeqTableData`, `seqhashtab`, `last_used_seq` | `sequence.c` | `seq_table.rs`; a `SeqTable` is a `&mut SeqTableData` |
//! | `nextval_internal` | `sequence.c` | [`nextval_internal`]; how far to fetch, the `while` loop, is [`counter::advance`] |
//! | – its change of the tuple, and its WAL record | `sequence.c` | `write_seq_tuple`, `log_seq_tuple` in `page.rs`; how far to log is [`counter::cover`] |
//! | `currval_oid` | `sequence.c` | [`currval_oid`] |
//! | `lastval`, `do_setval` | `sequence.c` | not ported |
//! | `lock_and_open_sequence` | `sequence.c` | [`lock_and_open_sequence`]; `SeqTableData::lock` in `seq_table.rs` |
//! | `create_seq_hashtable` | `sequence.c` | the initial value of `SEQHASHTAB` in `seq_table.rs` |
//! | `init_sequence` | `sequence.c` | [`init_sequence`]; the lookup in the hash table is `with_entry` in `seq_table.rs` |
//! | `read_seq_tuple` | `sequence.c` | `read_seq_tuple` in `page.rs` |
//! | `ResetSequenceCaches` | `sequence.c` | `reset_sequence_caches` in `seq_table.rs` |
//! | `pg_sequence_last_value` | `sequence.c` | `read_sequence_data` in `sequence_data.rs` |
//! | the lookup of `pg_sequence` | `sequence.c` | `Definition::look_up` in `sequence_data.rs` |
//! | `sequence_open` | `access/sequence/sequence.c` from 17 on, `relation_open` before | [`sequence_open`] |
//! | `PreventCommandIfReadOnly`, `PreventCommandIfParallelMode` | `tcop/utility.c` | [`prevent_command_if_read_only`], [`prevent_command_if_parallel_mode`] |
//!
//! The differences:
//!
//! - `next_fast` in `fast.rs` returns IDs without opening the sequence: what its last opening found holds until an
//!   invalidation message says otherwise.
//! - An ERROR from the server jumps over these frames, to a `sigsetjmp` guard that the caller has set or to the
//!   server's own. So nothing here holds anything with a destructor, every value is `Copy`, and our own errors
//!   are returned, after the page and the relation have been released.
//! - Values carry a time. So a call may have to wait for the clock ([`Outcome::Wait`]), and cached values are
//!   dropped once the clock has passed them. They are also dropped when `pg_sequence` or what is permitted has changed, not only
//!   when the storage is new.
//! - Values are within what an [`Authority`] permits, such as the span of a lease. Under the page lock, [`Authority::confirm`] makes known
//!   how far they are used, before the page is written.
//! - A homed ID ([`pg_snowflake_policies::homed`]) takes the next counter that yields one, found under the page lock, and leaves the cache
//!   out.
//! - A session remembers the highest value that it has fetched, so that it repeats none after `setval` or
//!   RESTART.
//! - A sequence that was set back goes on after the last counter that was issued ([`SetBack`]).
//! - How far the WAL record reaches is stored on the page (see `page.rs`), not taken from `log_cnt`. The page
//!   is marked dirty before the redo pointer is read.

use super::interface::{Authority, Failure, NoCounter, Permit};
use super::page::{SetBack, read_seq_tuple, write_seq_tuple};
use super::seq_table::{Basis, PassedChecks, RecentPage, SeqTableData, forget_dropped_sequences, request_after, with_entry};
use super::sequence_data::{Definition, has_privilege};
use super::{backend_clock, invalidation, sys};
use crate::postgres::call::guarded;
use crate::postgres::report::Raise;
use pg_snowflake_ids::layout::{Layout, Packed};
use pg_snowflake_policies::counter::{self, Decision, Run, State};
use pg_snowflake_policies::homed::{self, Homed};
use pgrx::{PgLogLevel, pg_sys};
use std::ffi::{c_char, c_int};

/// Returns the next ID of the sequence `relid`. Waits for the clock if the ID would be too far ahead of it and the permit allows the wait.
pub fn next<A: Authority>(relid: pg_sys::Oid, layout: Layout, authority: A) -> Result<i64, Failure<A::Denied>> {
    next_wanted(relid, layout, Wanted::One, authority, issue_one(layout))
}

/// [`next()`] for a homed ID.
pub fn next_homed<A: Authority>(relid: pg_sys::Oid, layout: Layout, homed: &Homed<'_>, authority: A) -> Result<i64, Failure<A::Denied>> {
    next_wanted(relid, layout, Wanted::Homed(homed), authority, issue_one(layout))
}

/// The next counters for a batch: `count` of them, or fewer near the limit of the lead or an end. Returns also the permit, and what the
/// other checks of this fetch depended on. Waits as [`next()`] does.
pub fn next_run<A: Authority>(
    relid: pg_sys::Oid,
    layout: Layout,
    count: i64,
    authority: A,
) -> Result<(Run, Permit, Basis), Failure<A::Denied>> {
    next_wanted(relid, layout, Wanted::Run(count), authority, |elm, issued| (issued.run, issued.permit, elm.basis()))
}

/// Returns the ID of the one counter, and records it.
fn issue_one(layout: Layout) -> impl Fn(&mut SeqTableData, Issued) -> i64 {
    move |elm, issued| {
        let id = layout.id(issued.run.first, issued.shard);
        elm.set_last(id);
        id
    }
}

/// Has [`nextval_internal`] fetch what is wanted, waits for the clock if necessary, and returns what `issue` makes of it.
fn next_wanted<A: Authority, T>(
    relid: pg_sys::Oid,
    layout: Layout,
    wanted: Wanted<'_>,
    authority: A,
    issue: impl Fn(&mut SeqTableData, Issued) -> T,
) -> Result<T, Failure<A::Denied>> {
    let layout = Packed::new(layout);
    // SAFETY: SQL functions run in a transaction on the backend's only thread, and no entry is in use yet.
    unsafe { forget_dropped_sequences() };
    loop {
        authority.prepare(&layout).map_err(Failure::Denied)?;
        // What the fast path has seen, before the next reading.
        backend_clock::report_step();
        let attempt = |elm: &mut SeqTableData| {
            // SAFETY: SQL functions run in a transaction on the backend's only thread; nextval_internal() owns
            // nothing that an ERROR could leak.
            let outcome = unsafe { guarded(|| nextval_internal(elm, wanted, layout, authority)) };
            match outcome {
                Ok(Outcome::Issued(issued)) => Ok(Ok((issue(elm, issued), issued.set_back))),
                Ok(Outcome::Wait { us }) => Ok(Err(us)),
                Err(failure) => {
                    // After an error, such as a lost privilege or an altered sequence, a later call must not find cached counters.
                    elm.cached = None;
                    Err(failure)
                }
            }
        };
        // SAFETY: fetching from a sequence runs no SQL.
        let issued = unsafe { with_entry(relid, attempt) };
        backend_clock::report_step();
        match issued? {
            Ok((issued, set_back)) => {
                if let Some(set_back) = set_back {
                    set_back.report(relid).log(PgLogLevel::LOG);
                }
                return Ok(issued);
            }
            Err(us) => backend_clock::wait(us),
        }
    }
}

/// What a call wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted<'a> {
    /// One counter, from the cache if there is any. If not, as many from the page as the sequence's CACHE; the rest are cached.
    One,
    /// This many from the page, or fewer near the limit of the lead or an end.
    Run(i64),
    /// From the page, the next one that makes a homed ID.
    Homed(&'a Homed<'a>),
}

/// The result of a call that raises no error.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// The caller may use these counters.
    Issued(Issued),
    /// The clock must catch up first, or what was checked has changed; nothing was fetched.
    Wait {
        /// The time to wait, in microseconds.
        us: i64,
    },
}

/// Counters that the caller may use.
#[derive(Clone, Copy, Debug)]
struct Issued {
    run: Run,
    /// The permit that they were fetched with.
    permit: Permit,
    /// The shard number of a homed ID; otherwise the first one of the permit.
    shard: u32,
    /// That somebody had set the sequence back.
    set_back: Option<SetBack>,
}

/// Fetches counters from a sequence, with core's checks in core's order.
///
/// # Safety
/// Called inside a `sigsetjmp` guard, in a transaction.
unsafe fn nextval_internal<A: Authority>(
    elm: &mut SeqTableData,
    wanted: Wanted<'_>,
    layout: Packed,
    authority: A,
) -> Result<Outcome, Failure<A::Denied>> {
    // SAFETY: the transaction holds the lock on the relation, which is open until relation_close().
    unsafe {
        let sequence = init_sequence(elm)?;
        let outcome = nextval_of_open_sequence(sequence, elm, wanted, layout, authority);
        sys::relation_close(sequence.rel, NO_LOCK);
        outcome
    }
}

/// The part of `nextval_internal()` between opening and closing the sequence.
unsafe fn nextval_of_open_sequence<A: Authority>(
    sequence: OpenSequence,
    elm: &mut SeqTableData,
    wanted: Wanted<'_>,
    layout: Packed,
    authority: A,
) -> Result<Outcome, Failure<A::Denied>> {
    let OpenSequence { rel: seqrel, catalog_version } = sequence;
    // SAFETY: the relation is open and locked; the buffer is pinned and locked exclusively from read_seq_tuple() to release().
    unsafe {
        if !has_privilege(seqrel, pg_sys::ACL_USAGE | pg_sys::ACL_UPDATE) {
            return Err(NoCounter::PermissionDenied { either: ["UPDATE", "USAGE"] }.into());
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
        // An earlier permit is of a call that has returned.
        let permit = match authority.permit(layout.bits()) {
            Ok(permit) => permit,
            Err(Some(denied)) => return Err(Failure::Denied(denied)),
            Err(None) => return Ok(Outcome::Wait { us: 0 }),
        };
        permit.reading.update(now);
        let permit = &*permit;
        let first_shard = permit.class.first;
        let request = request_after(elm.highest_fetched, permit);

        if wanted == Wanted::One
            && let Some(counter) = elm.next_cached(permit)
        {
            let run = Run { first: counter, last: counter };
            return Ok(Outcome::Issued(Issued { run, permit: *permit, shard: first_shard, set_back: None }));
        }
        elm.cached = None;

        let definition = Definition::look_up(elm.relid)?;
        definition.check()?;
        let locked = read_seq_tuple(seqrel)?;
        let locator = sys::relation_locator(seqrel);
        elm.recent_page = RecentPage { catalog_version, visits_left: RECENT_PAGE_VISITS, locator, buffer: locked.buffer, definition };
        let max_value = definition.max_value;
        let set_back = locked.set_back(sys::storage_numbers(locator));
        let state = set_back.map_or(locked.state(), |set_back| State::after(set_back.from));
        let advance = |count| {
            let decision = counter::advance(state, max_value, count, request);
            decision.map(|run| (run, first_shard))
        };
        let decision = match wanted {
            Wanted::One => advance(definition.cache),
            Wanted::Run(count) => advance(count),
            Wanted::Homed(homed) => {
                let decision = homed::advance(state, max_value, request, homed);
                decision.map(|found| (found.run(), found.shard))
            }
        };
        if let Decision::Issue((run, _)) = decision {
            let wal_locator = sys::RelationNeedsWAL(seqrel).then_some(&locator);
            if !authority.confirm(permit, run) || !write_seq_tuple(locked, run, max_value, &layout, wal_locator) {
                locked.release();
                // What was permitted has changed; the next attempt learns of it.
                return Ok(Outcome::Wait { us: 0 });
            }
            backend_clock::note_issued(now);
        }
        locked.release();

        match decision {
            Decision::Wait { us } => Ok(Outcome::Wait { us }),
            Decision::Refuse(refusal) => {
                Err(NoCounter::Refused { refusal, layout: *layout, shard: first_shard, is_set_back: set_back.is_some() }.into())
            }
            Decision::Issue((run, shard)) if wanted == Wanted::One => {
                let first = elm.save_in_cache(run, permit);
                Ok(Outcome::Issued(Issued { run: Run { first, last: first }, permit: *permit, shard, set_back }))
            }
            Decision::Issue((run, shard)) => {
                elm.highest_fetched = (layout.bits(), run.last);
                Ok(Outcome::Issued(Issued { run, permit: *permit, shard, set_back }))
            }
        }
    }
}

/// Open the sequence and read its page by `ReadBuffer()` after this many visits by `ReadRecentBuffer()`. Up to PostgreSQL 18, that does not
/// raise the buffer's usage count, and a page that is read by nothing else is evicted while it is in use. This counts visits and not time,
/// so that a session that uses many sequences in turn, and returns to each late, still finds them fast.
const RECENT_PAGE_VISITS: u32 = 1_000;

/// Returns the last ID that the sequence `relid` returned in this session.
pub fn currval(relid: pg_sys::Oid) -> Result<i64, NoCounter> {
    // SAFETY: as in next_wanted().
    unsafe {
        forget_dropped_sequences();
        with_entry(relid, |elm| guarded(|| currval_oid(elm)))
    }
}

/// The last ID of the sequence in this session, with core's checks.
///
/// # Safety
/// Called inside a `sigsetjmp` guard, in a transaction.
unsafe fn currval_oid(elm: &mut SeqTableData) -> Result<i64, NoCounter> {
    // SAFETY: the relation is locked, and open from init_sequence() to relation_close().
    unsafe {
        let OpenSequence { rel: seqrel, .. } = init_sequence(elm)?;
        let may_read = has_privilege(seqrel, pg_sys::ACL_SELECT | pg_sys::ACL_USAGE);
        sys::relation_close(seqrel, NO_LOCK);
        if !may_read {
            return Err(NoCounter::PermissionDenied { either: ["USAGE", "SELECT"] });
        }
    }
    if elm.last_valid { Ok(elm.last) } else { Err(NoCounter::CurrvalUndefined) }
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
unsafe fn lock_and_open_sequence(elm: &mut SeqTableData) -> Result<OpenSequence, NoCounter> {
    // SAFETY: as the caller promises.
    unsafe {
        elm.lock();
        elm.hash = invalidation::hash(elm.relid);
        let catalog_version = elm.catalog_version();
        Ok(OpenSequence { rel: sequence_open(elm.relid)?, catalog_version })
    }
}

/// Locks and opens the sequence of a hash table entry.
unsafe fn init_sequence(elm: &mut SeqTableData) -> Result<OpenSequence, NoCounter> {
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

/// Opens a sequence that is already locked. Returns our own error if the relation does not exist or is not a sequence.
unsafe fn sequence_open(relid: pg_sys::Oid) -> Result<pg_sys::Relation, NoCounter> {
    // SAFETY: the relation is locked, and open until it is closed here or, where it is returned, by the caller.
    unsafe {
        let relation = relation_open(relid)?;
        if (*(*relation).rd_rel).relkind != pg_sys::RELKIND_SEQUENCE as c_char {
            sys::relation_close(relation, NO_LOCK);
            return Err(NoCounter::NotASequence);
        }
        Ok(relation)
    }
}

/// `relation_open()` (`access/common/relation.c`), except that a missing relation is not an internal error: an
/// OID may be stale, and the transaction itself may have dropped the sequence.
unsafe fn relation_open(relid: pg_sys::Oid) -> Result<pg_sys::Relation, NoCounter> {
    // SAFETY: the lock keeps the relation from being dropped.
    unsafe {
        let relation = sys::RelationIdGetRelation(relid);
        if relation.is_null() {
            return Err(NoCounter::NoSuchRelation);
        }
        if (*(*relation).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_TEMP as c_char {
            pg_sys::MyXactFlags |= pg_sys::XACT_FLAGS_ACCESSEDTEMPNAMESPACE as c_int;
        }
        sys::pgstat_init_relation(relation);
        Ok(relation)
    }
}

unsafe fn prevent_command_if_read_only() -> Result<(), NoCounter> {
    // SAFETY: a global and a plain function of the server.
    unsafe {
        if !pg_sys::XactReadOnly {
            Ok(())
        } else if sys::RecoveryInProgress() {
            // PreventCommandDuringRecovery(): a transaction on a standby is always read-only.
            Err(NoCounter::DuringRecovery)
        } else {
            Err(NoCounter::ReadOnlyTransaction)
        }
    }
}

unsafe fn prevent_command_if_parallel_mode() -> Result<(), NoCounter> {
    // SAFETY: a plain function of the server.
    if unsafe { sys::IsInParallelMode() } { Err(NoCounter::ParallelMode) } else { Ok(()) }
}

const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;
