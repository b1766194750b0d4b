//! Detects catalog changes, by counting the invalidation messages that the session has processed.

use super::sys;
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Incremented by every invalidation of a row of `pg_sequence`.
static PG_SEQUENCE_VERSION: AtomicU64 = AtomicU64::new(1);

/// Incremented by every invalidation in the catalogs that define which relations exist, who may use them, and
/// how they are sequences. For roles, these are the syscaches that core's own cache of memberships watches
/// (`initialize_acl()`). The privileges on a sequence, its owner and its storage are in `pg_class`.
static CATALOG_VERSION: AtomicU64 = AtomicU64::new(1);

/// The syscaches behind [`catalog_version`].
const SYSCACHES: [c_int; 5] =
    [sys::SEQRELID, sys::RELOID, sys::AUTHOID, sys::AUTHMEMROLEMEM, sys::DATABASEOID];

/// Registers the callback. Called once, at library load.
pub fn register_callbacks() {
    // SAFETY: the callback touches nothing but atomics.
    unsafe {
        for cache in SYSCACHES {
            pg_sys::CacheRegisterSyscacheCallback(
                cache,
                Some(syscache_callback),
                pg_sys::Datum::null(),
            );
        }
    }
}

/// The number of changes of sequences so far. A backend processes the messages of other sessions when it takes
/// the lock, which prevents further changes until the transaction ends.
pub fn pg_sequence_version() -> u64 {
    PG_SEQUENCE_VERSION.load(Ordering::Relaxed)
}

/// The number of changes so far of anything that decides whether and how a session may use a sequence; never 0.
/// A backend processes its own messages when a command ends or is rolled back, and those of other sessions
/// where the server checks for them: exactly when the caches that core's `nextval()` reads are refreshed.
pub fn catalog_version() -> u64 {
    CATALOG_VERSION.load(Ordering::Relaxed)
}

unsafe extern "C-unwind" fn syscache_callback(_: pg_sys::Datum, cache: c_int, _hash: u32) {
    CATALOG_VERSION.fetch_add(1, Ordering::Relaxed);
    if cache == sys::SEQRELID {
        PG_SEQUENCE_VERSION.fetch_add(1, Ordering::Relaxed);
    }
}
