//! Whether the catalog has changed since a session last looked.

use super::sys;
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Goes up with every change of a row of `pg_sequence` that this backend hears of.
static SEQUENCES: AtomicU64 = AtomicU64::new(1);

/// Goes up with every change, of which this backend hears, in the catalogs that say what relations there are,
/// who may use them, and which sequence they are. Of roles they are those that core's own cache of memberships
/// watches, `initialize_acl()`; what is granted on a sequence, its owner and its storage are in `pg_class`.
static ALL: AtomicU64 = AtomicU64::new(1);

/// The catalogs behind [`version`].
const WATCHED: [c_int; 5] =
    [sys::SEQRELID, sys::RELOID, sys::AUTHOID, sys::AUTHMEMROLEMEM, sys::DATABASEOID];

/// Has the server tell this backend of changes. Called once, at library load.
pub fn watch() {
    // SAFETY: the callback touches nothing but atomics.
    unsafe {
        for cache in WATCHED {
            pg_sys::CacheRegisterSyscacheCallback(cache, Some(changed), pg_sys::Datum::null());
        }
    }
}

/// The number of changes of sequences so far. A backend hears of others' changes when it takes the lock, which
/// keeps further ones out until the transaction ends.
pub fn sequences_version() -> u64 {
    SEQUENCES.load(Ordering::Relaxed)
}

/// The number of changes so far of all that decides whether and how a session may use a sequence; never 0.
/// A backend hears of its own when a command ends or is rolled back, and of others' where the server looks for
/// them: exactly when the caches that core's `nextval()` reads are renewed.
pub fn version() -> u64 {
    ALL.load(Ordering::Relaxed)
}

unsafe extern "C-unwind" fn changed(_: pg_sys::Datum, cache: c_int, _hash: u32) {
    ALL.fetch_add(1, Ordering::Relaxed);
    if cache == sys::SEQRELID {
        SEQUENCES.fetch_add(1, Ordering::Relaxed);
    }
}
