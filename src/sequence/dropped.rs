//! Finds the sequences that have been dropped, so that a session forgets them. Core keeps its `seqhashtab` for the session's life, but a
//! pooled session can use a new temporary table in each transaction.

use super::seq_table::{self, SeqTableData};
use pgrx::pg_sys;

/// Removes the entries of dropped sequences, if the session has used so many since the last time that looking is worth its cost.
///
/// # Safety
/// In a transaction, while no entry is in use. May raise an ERROR.
pub unsafe fn forget_dropped_sequences() {
    // SAFETY: the closures do not access the table again.
    unsafe {
        if !seq_table::is_due() {
            return;
        }
        let changed = seq_table::relids_of(may_be_dropped);
        let dropped = if changed.is_empty() { changed } else { dropped(changed) };
        seq_table::forget(&dropped);
    }
}

/// Whether the session has processed a message about the sequence since it last read the page, as it does when it notices a DROP.
fn may_be_dropped(elm: &SeqTableData) -> bool {
    elm.recent_page.catalog_version != elm.catalog_version()
}

/// The relations that no longer exist, even if the current transaction is rolled back.
unsafe fn dropped(mut relids: Vec<pg_sys::Oid>) -> Vec<pg_sys::Oid> {
    const ACCESS_SHARE_LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: the catalog is open until table_close(), or until the abort after an ERROR.
    unsafe {
        let pg_class = pg_sys::table_open(pg_sys::RelationRelationId, ACCESS_SHARE_LOCK);
        relids.retain(|&relid| !has_row(pg_class, relid) && !is_being_dropped(relid));
        pg_sys::table_close(pg_class, ACCESS_SHARE_LOCK);
    }
    relids
}

/// Whether the relation is in `pg_class`. Unlike a lookup in the syscache, this leaves no negative entry behind.
unsafe fn has_row(pg_class: pg_sys::Relation, relid: pg_sys::Oid) -> bool {
    // SAFETY: the scan and its key live until systable_endscan().
    unsafe {
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            pg_sys::Anum_pg_class_oid as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::Oid::from(pg_sys::F_OIDEQ),
            relid.into(),
        );
        let index = pg_sys::Oid::from(pg_sys::ClassOidIndexId);
        let scan = pg_sys::systable_beginscan(pg_class, index, true, std::ptr::null_mut(), 1, &mut key);
        let has_row = !pg_sys::systable_getnext(scan).is_null();
        pg_sys::systable_endscan(scan);
        has_row
    }
}

/// Whether the current transaction has dropped the relation, and could still be rolled back: it then holds the lock of a DROP.
unsafe fn is_being_dropped(relid: pg_sys::Oid) -> bool {
    // SAFETY: as SET_LOCKTAG_RELATION() (storage/lock.h); a plain function of the server.
    unsafe {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: pg_sys::MyDatabaseId.to_u32(),
            locktag_field2: relid.to_u32(),
            locktag_field3: 0,
            locktag_field4: 0,
            locktag_type: pg_sys::LockTagType::LOCKTAG_RELATION as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        };
        let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return pg_sys::LockHeldByMe(&tag, mode);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return pg_sys::LockHeldByMe(&tag, mode, false);
    }
}
