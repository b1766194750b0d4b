//! The lock of a relation, and the role of its owner.

use crate::postgres::memory;
use pgrx::prelude::*;

/// Locks the relation and all that inherit from it until the end of the transaction, and returns them. It leaves out partitions that are
/// being detached. It locks each relation before it reads those below, so nothing is attached to it meanwhile. Returns nothing if another
/// session has dropped the relation while this one waited.
pub fn lock_tree(relid: pg_sys::Oid, mode: u32) -> Vec<pg_sys::Oid> {
    lock(relid, mode);
    // SAFETY: these take any OID; the list is one of OIDs.
    unsafe {
        // find_all_inheritors() raises an internal error if the relation itself is gone.
        if call!(get_rel_relkind(relid)) == 0 {
            return Vec::new();
        }
        let mode = mode as pg_sys::LOCKMODE;
        oids(call!(find_all_inheritors(relid, mode, std::ptr::null_mut())))
    }
}

/// Locks the relation until the end of the transaction.
pub fn lock(relid: pg_sys::Oid, mode: u32) {
    // SAFETY: takes any OID; the callers check afterwards whether the relation still exists.
    unsafe { call!(LockRelationOid(relid, mode as pg_sys::LOCKMODE)) }
}

/// Locks the function until the end of the transaction against others that lock it so. ALTER ROUTINE does not: it fails with "tuple
/// concurrently updated" once the other has committed.
pub fn lock_function(oid: pg_sys::Oid) {
    let mode = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: takes any OID; the callers check afterwards whether the function still exists.
    unsafe { call!(LockDatabaseObject(pg_sys::ProcedureRelationId, oid, 0, mode)) }
}

/// Calls `run` as the owner of the table, as core does to build an index. A CHECK or an index predicate that
/// the owner wrote must not gain the caller's privileges, nor leave settings behind. After an ERROR, the end of
/// the transaction or of the savepoint restores the caller.
pub fn as_owner<T>(owner: pg_sys::Oid, run: impl FnOnce() -> T) -> T {
    // SAFETY: reads the server's state.
    if unsafe { call!(GetUserId()) } == owner { run() } else { as_restricted_owner(owner, run) }
}

/// Calls `run` in a security-restricted operation, also if the caller is the owner: what it evaluates may not change the session.
pub fn as_restricted_owner<T>(owner: pg_sys::Oid, run: impl FnOnce() -> T) -> T {
    let caller = UserContext::switch_to(owner);
    let value = run();
    caller.restore();
    value
}

/// The user, the security context and the level of settings from before a security-restricted operation. It is not part of the generic
/// function, so that it is compiled once. Nothing is dropped: after an ERROR, the end of the transaction or of the savepoint restores them.
struct UserContext {
    user: pg_sys::Oid,
    security_context: i32,
    settings_level: i32,
}

impl UserContext {
    fn switch_to(owner: pg_sys::Oid) -> UserContext {
        let (mut user, mut security_context) = (pg_sys::InvalidOid, 0);
        // SAFETY: writes to two local variables; the owner is a role of the catalog; restore() or an abort undoes it.
        unsafe {
            call!(GetUserIdAndSecContext(&mut user, &mut security_context));
            let mut restricted = security_context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
            // A caller who may bypass row security still may as the owner, even of a table that FORCEs it on the
            // owner.
            if call!(has_bypassrls_privilege(user)) {
                restricted |= pg_sys::SECURITY_NOFORCE_RLS as i32;
            }
            call!(SetUserIdAndSecContext(owner, restricted));
            UserContext { user, security_context, settings_level: call!(NewGUCNestLevel()) }
        }
    }

    fn restore(self) {
        // SAFETY: the user and the context are those of before, and the level is that of switch_to().
        unsafe {
            call!(AtEOXact_GUC(false, self.settings_level));
            call!(SetUserIdAndSecContext(self.user, self.security_context));
        }
    }
}

/// The elements of a list of OIDs.
///
/// # Safety
/// The list is one of OIDs, or null.
pub unsafe fn oids(list: *const pg_sys::List) -> Vec<pg_sys::Oid> {
    // SAFETY: as the caller promises; a List has `length` elements; the empty list is null.
    unsafe {
        let Some(list) = list.as_ref() else { return Vec::new() };
        let elements = std::slice::from_raw_parts(list.elements, list.length as usize);
        let mut oids = Vec::new();
        memory::reserve(&mut oids, elements.len());
        oids.extend(elements.iter().map(|element| element.oid_value));
        oids
    }
}
