//! Children by `INHERITS`: tables that a row may be in without a rule that says which.

use pgrx::prelude::*;

unsafe extern "C-unwind" {
    // catalog/pg_inherits.h
    fn has_subclass(relation: pg_sys::Oid) -> bool;
    fn find_inheritance_children(
        parent: pg_sys::Oid,
        lockmode: pg_sys::LOCKMODE,
    ) -> *mut pg_sys::List;
}

/// Whether tables inherit from this one.
pub fn has_children(relid: pg_sys::Oid) -> bool {
    // SAFETY: the relation exists. Nothing is done with the children, so they need no lock. has_subclass() is quick and
    // may be true of a table whose children are gone; the list is the truth.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            has_subclass(relid)
                && !find_inheritance_children(relid, pg_sys::NoLock as i32).is_null()
        })
    }
}
