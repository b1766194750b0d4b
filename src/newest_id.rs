//! The newest IDs of a column, read from the end of an index, and the refusal of those of another layout.
//!
//! A monitoring view reads it, as whoever queries the view. So this waits for no lock, runs no function of a user (neither a row
//! security policy nor the predicate or the operator class of an index), and visits a limited number of index entries and
//! partitions. `SELECT max(id)` would promise none of this.

use crate::postgres::relation::oids;
use crate::postgres::report::{Raise, Report};
use pg_snowflake_ids::likely::Mismatch;
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::prelude::*;
use std::cmp::Reverse;
use std::ffi::{CStr, c_int};

/// How many index entries are visited in one table. Rows at the end that were deleted, or are not yet committed, are not IDs.
const MAX_ENTRIES: usize = 1_000;

/// How many partitions are visited. Those of the future have no rows.
const MAX_PARTITIONS: usize = 100;

/// How many partitions with rows are compared: the newest ID of a table that is partitioned by hash is not in the first one.
const MAX_WITH_ROWS: usize = 3;

const SHARE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// Which IDs of a column are read. They cannot be read if the table has row security or rules, is on another server, or has no index that
/// begins with the column; if a lock is not available at once; or if too many index entries are not visible rows.
#[derive(Clone, Copy)]
pub struct Newest<'a> {
    /// The column.
    pub column: &'a CStr,
    /// How many distinct IDs.
    pub count: usize,
    /// The highest that is read.
    pub at_most: i64,
}

impl Newest<'_> {
    /// The newest of these IDs, the highest first.
    pub fn of(&self, mut ids: Vec<i64>) -> Vec<i64> {
        ids.sort_unstable_by_key(|&id| Reverse(id));
        ids.dedup();
        ids.truncate(self.count);
        ids
    }

    /// The newest IDs of a table, or of the last partitions of a partitioned table; the highest first, none if there is no row.
    ///
    /// `None` if they cannot be read, or if the current user may not read the column. For a partition, too: the newest ID of its table may
    /// be in another one.
    pub fn of_table(self, relid: pg_sys::Oid) -> Option<Vec<i64>> {
        // SAFETY: takes any OID.
        if unsafe { call!(get_rel_relispartition(relid)) } {
            return None;
        }
        let table = Locked::open(relid).filter(|table| table.may_be_read(self.column))?;
        if table.form().relkind as u8 != pg_sys::RELKIND_PARTITIONED_TABLE {
            return table.newest_ids(self);
        }
        let partitions = table.partitions();
        drop(table);
        self.of_last(partitions)
    }

    /// The newest IDs in one partition or those below it, whoever asks; `None` if one of these cannot be read: an older one
    /// does not have the newest ID, and its IDs would be taken for that.
    pub fn of_partition(self, relid: pg_sys::Oid) -> Option<Vec<i64>> {
        self.of_last(vec![relid])
    }

    /// The newest IDs in the last of these partitions and those below them.
    fn of_last(self, mut partitions: Vec<pg_sys::Oid>) -> Option<Vec<i64>> {
        let (mut ids, mut with_rows) = (Vec::new(), 0);
        for _ in 0..MAX_PARTITIONS {
            let Some(partition) = partitions.pop().filter(|_| with_rows < MAX_WITH_ROWS) else { break };
            pgrx::check_for_interrupts!();
            let partition = Locked::open(partition)?;
            match partition.form().relkind as u8 {
                pg_sys::RELKIND_PARTITIONED_TABLE => partitions.extend(partition.partitions()),
                _ => {
                    let newest = partition.newest_ids(self)?;
                    with_rows += usize::from(!newest.is_empty());
                    ids.extend(newest);
                }
            }
        }
        Some(self.of(ids))
    }
}

/// A relation, open and locked. After an ERROR, the end of the transaction closes and unlocks it.
struct Locked(pg_sys::Relation);

impl Locked {
    /// `None` if the relation does not exist, or if its lock is not available at once.
    fn open(relid: pg_sys::Oid) -> Option<Self> {
        // SAFETY: takes any OID; the relation is opened with its lock held.
        unsafe {
            if !call!(ConditionalLockRelationOid(relid, SHARE)) {
                return None;
            }
            if !can_be_opened(relid) {
                call!(UnlockRelationOid(relid, SHARE));
                return None;
            }
            Some(Locked(call!(relation_open(relid, pg_sys::NoLock as pg_sys::LOCKMODE))))
        }
    }

    fn relid(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*self.0).rd_id }
    }

    fn form(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: the relation is open, and its lock keeps the row as it is.
        unsafe { &*(*self.0).rd_rel }
    }

    /// Whether the current user may read the column by the table's name.
    fn may_be_read(&self, column: &CStr) -> bool {
        let (relid, select) = (self.relid(), pg_sys::AclMode::from(pg_sys::ACL_SELECT));
        let ok = pg_sys::AclResult::ACLCHECK_OK;
        // SAFETY: the relation and the column exist.
        unsafe {
            let user = call!(GetUserId());
            let column = call!(get_attnum(relid, column.as_ptr()));
            namespace_aclcheck(self.form().relnamespace, user) == ok
                && (call!(pg_class_aclcheck(relid, user, select)) == ok
                    || column > 0 && call!(pg_attribute_aclcheck(relid, column, user, select)) == ok)
        }
    }

    /// The partitions, the latest created last. The order of their bounds would be better, but core compares bounds with functions of
    /// the partition key's operator class.
    fn partitions(&self) -> Vec<pg_sys::Oid> {
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        // SAFETY: a list of OIDs, in their order.
        unsafe { oids(call!(find_inheritance_children(self.relid(), no_lock))) }
    }

    /// Whether rows can be read: an unlogged table has none on a standby, and a temporary one only in its own session.
    fn has_readable_rows(&self) -> bool {
        let form = self.form();
        // SAFETY: reads the server's state.
        let is_standby = unsafe { call!(RecoveryInProgress()) };
        form.relkind as u8 == pg_sys::RELKIND_RELATION
            && match form.relpersistence as u8 {
                pg_sys::RELPERSISTENCE_PERMANENT => true,
                // SAFETY: the relation is open.
                pg_sys::RELPERSISTENCE_TEMP => unsafe { (*self.0).rd_islocaltemp },
                _ => !is_standby,
            }
    }

    /// The newest IDs in this table.
    fn newest_ids(&self, newest: Newest) -> Option<Vec<i64>> {
        if !self.has_readable_rows() {
            return None;
        }
        // SAFETY: the relation is open.
        let column = unsafe { call!(get_attnum(self.relid(), newest.column.as_ptr())) };
        // An expression in an index is column 0.
        if column <= 0 {
            return None;
        }
        // SAFETY: a list of the OIDs of its indexes.
        let indexes = unsafe { oids(call!(RelationGetIndexList(self.0))) };
        let index = indexes.into_iter().filter_map(Locked::open).find(|index| index.orders(column))?;
        self.last_visible(&index, column, newest)
    }

    /// Whether this is an index whose entries are all rows, in the order of a column of IDs.
    fn orders(&self, column: pg_sys::AttrNumber) -> bool {
        if self.form().relkind as u8 != pg_sys::RELKIND_INDEX || self.form().relam != pg_sys::BTREE_AM_OID {
            return false;
        }
        // SAFETY: an open index has these, with an element for each of its key columns. RelationGetIndexPredicate() would simplify the
        // predicate, which calls its functions.
        unsafe {
            let Some(index) = (*self.0).rd_index.as_ref() else { return false };
            let predicate = pg_sys::Anum_pg_index_indpred as i32;
            index.indisvalid
                && index.indisready
                && !index.indcheckxmin
                && index.indkey.values.as_slice(1) == [column]
                && *(*self.0).rd_opfamily == pg_sys::INTEGER_BTREE_FAM_OID
                && *(*self.0).rd_opcintype == pg_sys::INT8OID
                && call!(heap_attisnull((*self.0).rd_indextuple, predicate, std::ptr::null_mut()))
        }
    }

    /// The column of the last rows of this table in the order of the index that the current statement sees.
    fn last_visible(&self, index: &Locked, column: pg_sys::AttrNumber, newest: Newest) -> Option<Vec<i64>> {
        let mut ids = Vec::new();
        // SAFETY: both are open and locked, and a function runs with a snapshot. The index has at least one column, and its operator class
        // is core's, whose function for `<=` is the key's.
        unsafe {
            let is_descending = *(*index.0).rd_indoption & pg_sys::INDOPTION_DESC as i16 != 0;
            let towards_lower =
                if is_descending { pg_sys::ScanDirection::ForwardScanDirection } else { pg_sys::ScanDirection::BackwardScanDirection };
            let mut key = pg_sys::ScanKeyData::default();
            call!(ScanKeyInit(
                &mut key,
                1,
                pg_sys::BTLessEqualStrategyNumber as pg_sys::StrategyNumber,
                pg_sys::F_INT8LE.into(),
                newest.at_most.into(),
            ));
            let slot = call!(table_slot_create(self.0, std::ptr::null_mut()));
            let scan = begin_scan(self.0, index.0);
            call!(index_rescan(scan, &mut key, 1, std::ptr::null_mut(), 0));
            let mut is_end = false;
            for _ in 0..MAX_ENTRIES {
                pgrx::check_for_interrupts!();
                if call!(index_getnext_tid(scan, towards_lower)).is_null() {
                    is_end = true;
                    break;
                }
                if !call!(index_fetch_heap(scan, slot)) {
                    continue;
                }
                // The key excludes nulls.
                call!(slot_getsomeattrs_int(slot, column.into()));
                let id = (*(*slot).tts_values.add(column as usize - 1)).value() as i64;
                if ids.last() != Some(&id) {
                    ids.push(id);
                }
                if ids.len() == newest.count {
                    break;
                }
            }
            call!(index_endscan(scan));
            call!(ExecDropSingleTupleTableSlot(slot));
            // A part of the newest could be only the odd ones.
            if is_end || ids.len() == newest.count { Some(ids) } else { None }
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // After an ERROR, PostgreSQL does it.
        if std::thread::panicking() {
            return;
        }
        let relid = self.relid();
        // SAFETY: opened and locked above.
        unsafe {
            call!(relation_close(self.0, pg_sys::NoLock as pg_sys::LOCKMODE));
            call!(UnlockRelationOid(relid, SHARE));
        }
    }
}

/// Whether this is a table or an index, and opening it reads no stored expression. That of a rule or a row security policy may be nested
/// too deeply, and the error would end the statement.
fn can_be_opened(relid: pg_sys::Oid) -> bool {
    // SAFETY: a tuple of pg_class, which is released.
    unsafe {
        let cache_id = pg_sys::SysCacheIdentifier::RELOID as c_int;
        let tuple = call!(SearchSysCache1(cache_id, relid.into()));
        if tuple.is_null() {
            return false;
        }
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>();
        let can_be = match form.relkind as u8 {
            pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE => !form.relhasrules && !form.relrowsecurity,
            relkind => relkind == pg_sys::RELKIND_INDEX,
        };
        call!(ReleaseSysCache(tuple));
        can_be
    }
}

/// Whether the user has USAGE on the schema.
unsafe fn namespace_aclcheck(namespace: pg_sys::Oid, user: pg_sys::Oid) -> pg_sys::AclResult::Type {
    let usage = pg_sys::AclMode::from(pg_sys::ACL_USAGE);
    // SAFETY: the schema exists, as its table is locked.
    unsafe {
        #[cfg(feature = "pg15")]
        return call!(pg_namespace_aclcheck(namespace, user, usage));
        #[cfg(not(feature = "pg15"))]
        return call!(object_aclcheck(pg_sys::NamespaceRelationId, namespace, user, usage));
    }
}

/// A scan of the index, with one key, for what the current statement sees.
unsafe fn begin_scan(table: pg_sys::Relation, index: pg_sys::Relation) -> pg_sys::IndexScanDesc {
    // SAFETY: as for the caller.
    unsafe {
        let snapshot = call!(GetActiveSnapshot());
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        return call!(index_beginscan(table, index, snapshot, 1, 0));
        #[cfg(feature = "pg18")]
        return call!(index_beginscan(table, index, snapshot, std::ptr::null_mut(), 1, 0));
        #[cfg(feature = "pg19")]
        return call!(index_beginscan(table, index, snapshot, std::ptr::null_mut(), 1, 0, 0));
    }
}

/// Refuses IDs that are probably not of the layout that a function would use. If the caller has passed the layout, returns a warning
/// instead. `ids` names the newest, `undo` says how to undo the call, and `hint` how to use the likely layout.
#[track_caller]
pub fn other_layout(ids: String, mismatch: &Mismatch, is_explicit: bool, undo: &str, hint: impl FnOnce(&str) -> String) -> Report {
    let Mismatch { layout, likely, .. } = mismatch;
    let hint = hint(likely.name);
    let hint = match is_explicit {
        true => messages::undo(undo, hint),
        false => messages::confirm_layout(hint, layout),
    };
    let report = messages::likely_other_layout(ids, likely.name, mismatch, hint);
    if is_explicit { report } else { report.raise() }
}
