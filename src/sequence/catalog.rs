//! Whether the catalog of sequences has changed since a session last looked.

use super::sys;
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

/// Goes up with every change of a row of `pg_sequence` that this backend hears of.
static VERSION: AtomicU32 = AtomicU32::new(0);

/// Has the server tell this backend of changes. Called once, at library load.
pub fn watch() {
    // SAFETY: the callback touches nothing but an atomic.
    unsafe {
        pg_sys::CacheRegisterSyscacheCallback(sys::SEQRELID, Some(changed), pg_sys::Datum::null());
    }
}

/// The number of changes so far, wrapping. A backend hears of others' changes when it takes the lock, which
/// keeps further ones out until the transaction ends.
pub fn version() -> u32 {
    VERSION.load(Ordering::Relaxed)
}

unsafe extern "C-unwind" fn changed(_: pg_sys::Datum, _cache: c_int, _hash: u32) {
    VERSION.fetch_add(1, Ordering::Relaxed);
}
