//! Core's choice of a partition, for a table that is partitioned by a single bigint column.

use super::operator_class::OperatorClass;
use crate::postgres::call::guarded;
use crate::postgres::report::{c_text, no_such_table};
use pgrx::PgRelation;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_int};
use std::mem::offset_of;

/// The head of `PartitionKeyData` (utils/partcache.h).
#[repr(C)]
struct PartitionKeyData {
    strategy: Strategy,
    partnatts: i16,
    partattrs: *mut pg_sys::AttrNumber,
    partexprs: *mut pg_sys::List,
    partopfamily: *mut pg_sys::Oid,
    partopcintype: *mut pg_sys::Oid,
    partsupfunc: *mut pg_sys::FmgrInfo,
    partcollation: *mut pg_sys::Oid,
    parttypid: *mut pg_sys::Oid,
}

/// A character until 15, an enum of characters from 16 on.
#[cfg(feature = "pg15")]
type Strategy = std::ffi::c_char;
#[cfg(not(feature = "pg15"))]
type Strategy = pg_sys::PartitionStrategy::Type;

const _: () = assert!(offset_of!(PartitionKeyData, partattrs) == 8);

unsafe extern "C-unwind" {
    fn RelationGetPartitionKey(rel: pg_sys::Relation) -> *mut PartitionKeyData;
}

/// A partitioned table, open and locked against a change of its partitions.
pub struct PartitionedTable(PgRelation);

impl PartitionedTable {
    /// Opens the table, which another session may have dropped while this one waited for the lock.
    pub fn open(relid: pg_sys::Oid) -> Self {
        const ACCESS_SHARE_LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: with_lock() raises an internal error if there is no such table, so it opens one that is open.
        unsafe {
            let opened = call!(try_relation_open(relid, ACCESS_SHARE_LOCK));
            if opened.is_null() {
                no_such_table(relid);
            }
            let table = PartitionedTable(PgRelation::with_lock(relid, ACCESS_SHARE_LOCK));
            call!(relation_close(opened, ACCESS_SHARE_LOCK));
            table
        }
    }

    /// The partition key, if it is a single column.
    ///
    /// Any other key is not even read: core evaluates constant expressions in it when it builds the key, and
    /// they are the work of the table's owner.
    pub fn key(&self) -> Option<PartitionKey<'_>> {
        if !self.is_partitioned_by_one_column() {
            return None;
        }
        let relation = self.0.as_ptr();
        // SAFETY: the relation is open, and partitioned, so it has a key, which lives as long as it is open.
        let data = unsafe { &*guarded(|| RelationGetPartitionKey(relation)) };
        Some(PartitionKey { table: self, data })
    }

    /// Whether the catalog has a key of one column, not an expression.
    fn is_partitioned_by_one_column(&self) -> bool {
        let cache_id = pg_sys::SysCacheIdentifier::PARTRELID as c_int;
        // SAFETY: the row is read between lookup and release; a key has at least one attribute, 0 for an expression.
        unsafe {
            let tuple = call!(SearchSysCache1(cache_id, self.0.oid().into()));
            if tuple.is_null() {
                return false;
            }
            let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_partitioned_table>();
            let first = (*form).partattrs.values.as_ptr();
            let is_column = (*form).partnatts == 1 && *first != 0;
            call!(ReleaseSysCache(tuple));
            is_column
        }
    }
}

/// A partition key that is a single column.
pub struct PartitionKey<'a> {
    table: &'a PartitionedTable,
    data: &'a PartitionKeyData,
}

impl PartitionKey<'_> {
    /// The name of the column, if it can hold IDs.
    pub fn id_column(&self) -> Option<CString> {
        // SAFETY: the arrays have an element for the column, and the column is there.
        unsafe {
            let attribute = *self.data.partattrs;
            let is_bigint = call!(IsBinaryCoercible(*self.data.parttypid, pg_sys::INT8OID));
            is_bigint.then(|| CStr::from_ptr(call!(get_attname(self.table.0.oid(), attribute, false))).to_owned())
        }
    }

    /// The operator class, if it is one of ours.
    pub fn class(&self) -> Option<&'static OperatorClass> {
        // SAFETY: the array has an element for each column of the key.
        unsafe { OperatorClass::of(&*self.data.partsupfunc) }
    }

    /// The partition for a row with this ID: `get_partition_for_tuple` (executor/execPartition.c) for a key that is one bigint.
    pub fn partition_of(&self, id: i64) -> Option<pg_sys::Oid> {
        // SAFETY: the relation is open and partitioned; what the descriptor points to lives as long as it is open.
        unsafe {
            let descriptor = &*call!(RelationGetPartitionDesc(self.table.0.as_ptr(), true));
            if descriptor.nparts == 0 {
                return None;
            }
            let found = self.index_of(id, descriptor.boundinfo);
            let index = if found < 0 { (*descriptor.boundinfo).default_index } else { found };
            usize::try_from(index).ok().map(|index| *descriptor.oids.add(index))
        }
    }

    /// The index of the partition in the descriptor; negative if only the default partition is left.
    ///
    /// # Safety
    /// The key is a single bigint, and the bounds are those of its table.
    unsafe fn index_of(&self, id: i64, bounds: pg_sys::PartitionBoundInfo) -> c_int {
        let PartitionKeyData { partsupfunc, partcollation, .. } = *self.data;
        let (mut values, mut nulls, mut equal) = ([pg_sys::Datum::from(id)], [false], false);
        // SAFETY: as the caller promises; the offsets are within the arrays as in core.
        unsafe {
            let indexes = (*bounds).indexes;
            let index_at = |offset: c_int| *indexes.offset(offset as isize);
            match self.data.strategy as u8 {
                b'h' => {
                    let hash = call!(compute_partition_hash_value(1, partsupfunc, partcollation, values.as_mut_ptr(), nulls.as_mut_ptr()));
                    index_at((hash % (*bounds).nindexes as u64) as c_int)
                }
                b'l' => {
                    let offset = call!(partition_list_bsearch(partsupfunc, partcollation, bounds, values[0], &raw mut equal));
                    if offset >= 0 && equal { index_at(offset) } else { -1 }
                }
                // The bound at the offset is the last that is not above the ID. The next bound is the upper bound of the partition.
                _ => index_at(
                    1 + call!(partition_range_datum_bsearch(partsupfunc, partcollation, bounds, 1, values.as_mut_ptr(), &raw mut equal)),
                ),
            }
        }
    }
}

/// The columns and expressions of a partition key as SQL.
pub fn partition_key_sql(relid: pg_sys::Oid) -> String {
    // SAFETY: the table is partitioned; the function returns a C string.
    unsafe { c_text(call!(pg_get_partkeydef_columns(relid, true))) }
}
