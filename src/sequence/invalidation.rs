//! Whether the catalogs have changed since a session last looked: counts of the invalidation messages that it has processed.

use super::sys;
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Goes up with every invalidation of a row of `pg_sequence`.
static PG_SEQUENCE_VERSION: AtomicU64 = AtomicU64::new(1);

/// Goes up with every invalidation in the catalogs that say what relations there are, who may use them, and which
/// sequence they are. Of roles they are those that core's own cache of memberships watches, `initialize_acl()`; what is
/// granted on a sequence, its owner and its storage are in `pg_class`.
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

/// The number of changes of sequences so far. A backend processes the messages about others' changes when it takes the
/// lock, which keeps further ones out until the transaction ends.
pub fn pg_sequence_version() -> u64 {
    PG_SEQUENCE_VERSION.load(Ordering::Relaxed)
}

/// The number of changes so far of all that decides whether and how a session may use a sequence; never 0.
/// A backend processes the messages about its own when a command ends or is rolled back, and those about others' where the
/// server looks for them: exactly when the caches that core's `nextval()` reads are renewed.
pub fn catalog_version() -> u64 {
    CATALOG_VERSION.load(Ordering::Relaxed)
}

unsafe extern "C-unwind" fn syscache_callback(_: pg_sys::Datum, cache: c_int, _hash: u32) {
    CATALOG_VERSION.fetch_add(1, Ordering::Relaxed);
    if cache == sys::SEQRELID {
        PG_SEQUENCE_VERSION.fetch_add(1, Ordering::Relaxed);
    }
}
