//! Detects catalog changes, by counting the invalidation messages that the session has processed.
//!
//! A message names the row that changed by the hash of its key. The changes of `pg_class` and `pg_sequence` are
//! counted by that hash, so that the changes of other relations, such as new temporary tables, do not concern a
//! sequence. `pg_class` and `pg_sequence` both have the relation's OID as their key, and so the same hash.

use super::sys;
use pgrx::pg_sys;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The changes of rows that concern every sequence, and the aborts of transactions and subtransactions. The rows
/// are those of the syscaches that core's own cache of memberships watches (`initialize_acl()`).
static EVERYWHERE: AtomicU64 = AtomicU64::new(1);

/// All changes that are counted here: as long as it is the same, none has to be looked at.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// The changes of rows of `pg_sequence`.
static PG_SEQUENCE: Changes = Changes::none();

/// The changes of rows of `pg_sequence` and of relations in `pg_class`, which has the privileges on a sequence, its owner and its storage.
static SEQUENCE: Changes = Changes::none();

/// The number of changes of rows, by the hash of their key. Rows of the same slot are not distinguished, so a change of one counts for all
/// of them: with 1024 slots, 1 of 1024 changes of another relation concerns a sequence.
struct Changes([AtomicU64; 1024]);

impl Changes {
    const fn none() -> Self {
        Changes([const { AtomicU64::new(0) }; 1024])
    }

    fn slot(&self, hash: u32) -> &AtomicU64 {
        &self.0[hash as usize % self.0.len()]
    }

    fn count(&self, hash: u32) {
        if hash == EVERY_ROW {
            self.0.iter().for_each(increment);
        } else {
            increment(self.slot(hash));
        }
    }

    fn of(&self, hash: u32) -> u64 {
        self.slot(hash).load(Ordering::Relaxed)
    }
}

/// The hash in a message that concerns all rows (utils/inval.h).
const EVERY_ROW: u32 = 0;

/// What else is called at an abort.
static AT_ABORT: OnceLock<fn()> = OnceLock::new();

/// Registers the callbacks. Called once, at library load. `at_abort` is called at the abort of each transaction and savepoint.
pub fn register_callbacks(at_abort: fn()) {
    AT_ABORT.get_or_init(|| at_abort);
    let register = |cache, callback: pg_sys::SyscacheCallbackFunction| {
        // SAFETY: the callbacks touch nothing but atomics.
        unsafe { call!(CacheRegisterSyscacheCallback(cache, callback, pg_sys::Datum::null())) }
    };
    register(sys::RELOID, Some(pg_class_callback));
    register(sys::SEQRELID, Some(pg_sequence_callback));
    for cache in [sys::AUTHOID, sys::AUTHMEMROLEMEM, sys::DATABASEOID] {
        register(cache, Some(everywhere_callback));
    }
    // A session that has missed too many messages resets all caches (`InvalidateSystemCachesExtended()`): core's own
    // first, then it rebuilds the open relations, and calls the callbacks last. An ERROR in between loses the calls,
    // and nothing repeats them, but it ends in an abort.
    // SAFETY: as above.
    unsafe {
        call!(RegisterXactCallback(Some(xact_callback), std::ptr::null_mut()));
        call!(RegisterSubXactCallback(Some(subxact_callback), std::ptr::null_mut()));
    }
}

/// The number of changes so far of the sequence with that hash. A backend processes the messages of other sessions
/// when it takes the lock, which prevents further changes until the transaction ends.
pub fn pg_sequence_version(hash: u32) -> u64 {
    PG_SEQUENCE.of(hash)
}

/// The number of changes so far of anything that decides whether and how a session may use the sequence with that hash; never 0. A backend
/// processes its own messages when a command ends or is rolled back, and those of other sessions where the server checks for them: exactly
/// when the caches that core's `nextval()` reads are refreshed.
pub fn catalog_version(hash: u32) -> u64 {
    // Each count only grows, so equal sums are equal counts.
    EVERYWHERE.load(Ordering::Relaxed) + SEQUENCE.of(hash)
}

/// The hash of a relation in the messages about it.
///
/// # Safety
/// In a transaction. May raise an ERROR.
pub unsafe fn hash(relid: pg_sys::Oid) -> u32 {
    let unused = pg_sys::Datum::null();
    // SAFETY: as the caller promises.
    unsafe { sys::GetSysCacheHashValue(sys::RELOID, relid.into(), unused, unused, unused) }
}

unsafe extern "C-unwind" fn pg_class_callback(_: pg_sys::Datum, _cache: c_int, hash: u32) {
    SEQUENCE.count(hash);
}

unsafe extern "C-unwind" fn pg_sequence_callback(_: pg_sys::Datum, _cache: c_int, hash: u32) {
    PG_SEQUENCE.count(hash);
    SEQUENCE.count(hash);
}

unsafe extern "C-unwind" fn everywhere_callback(_: pg_sys::Datum, _cache: c_int, _hash: u32) {
    increment(&EVERYWHERE);
}

unsafe extern "C-unwind" fn xact_callback(event: pg_sys::XactEvent::Type, _: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        increment(&EVERYWHERE);
        AT_ABORT.get().inspect(|at_abort| at_abort());
    }
}

unsafe extern "C-unwind" fn subxact_callback(
    event: pg_sys::SubXactEvent::Type,
    _: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        increment(&EVERYWHERE);
        AT_ABORT.get().inspect(|at_abort| at_abort());
    }
}

fn increment(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// As long as it is the same, there has been no change or abort.
#[inline(always)]
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}
