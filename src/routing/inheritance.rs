//! Children by `INHERITS`: any of them may have a row, and no rule says which.

use pgrx::prelude::*;

unsafe extern "C-unwind" {
    // catalog/pg_inherits.h
    fn has_subclass(relation: pg_sys::Oid) -> bool;
    fn find_inheritance_children(parent: pg_sys::Oid, lockmode: pg_sys::LOCKMODE) -> *mut pg_sys::List;
}

/// Whether other tables inherit from this one.
pub fn has_children(relid: pg_sys::Oid) -> bool {
    // SAFETY: the relation exists. The children are not used, so they need no lock. has_subclass() is fast, but
    // may be true for a table whose children are gone; the list is accurate.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| has_subclass(relid) && !find_inheritance_children(relid, pg_sys::NoLock as i32).is_null())
    }
}
