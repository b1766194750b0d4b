//! This node of Citus: its number, from the metadata. Citus passes a column's default to other nodes and evaluates it there, so a server
//! of Citus needs a shard and a sequence of its own.
//!
//! The metadata are tables in `pg_catalog`, where only a superuser can create one.

use crate::settings;
use pgrx::PgRelation;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};

/// The node's group as last read, or -1; atomic because a mutable static must be, to be safe.
static GROUP: AtomicI32 = AtomicI32::new(-1);

/// The OIDs of the tables that it was read from.
static GROUP_TABLES: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Whether this database has Citus.
pub fn is_installed() -> bool {
    // SAFETY: a C string.
    unsafe { call!(get_extension_oid(c"citus".as_ptr(), true)) != pg_sys::InvalidOid }
}

/// Who else keeps what it has read from the metadata.
static LISTENER: OnceLock<fn(pg_sys::Oid)> = OnceLock::new();

/// Has each message about a relation passed on to `listener`, once the metadata have been read; OID 0 stands for all relations.
/// `listener` is called where no error may be raised.
pub fn listen(listener: fn(pg_sys::Oid)) {
    LISTENER.get_or_init(|| listener);
}

fn notify(relid: pg_sys::Oid) {
    LISTENER.get().inspect(|listener| listener(relid));
}

/// Citus sends this message for a table whose metadata change, and for its own tables. For all relations, the OID is 0.
unsafe extern "C-unwind" fn relation_callback(_: pg_sys::Datum, relid: pg_sys::Oid) {
    let is_read = |table: &AtomicU32| table.load(Relaxed) == relid.to_u32();
    if relid == pg_sys::InvalidOid || GROUP_TABLES.iter().any(is_read) {
        GROUP.store(-1, Relaxed);
        settings::note_change();
    }
    notify(relid);
}

/// Makes the session read the metadata again. Called at the abort of a transaction or savepoint: an error can interrupt the processing
/// of messages.
pub fn forget() {
    if GROUP.swap(-1, Relaxed) >= 0 {
        settings::note_change();
    }
    notify(pg_sys::InvalidOid);
}

/// The node's group, if the session has read it. For a caller that must not read a table.
#[inline]
pub fn known_group() -> Option<i32> {
    Some(GROUP.load(Relaxed)).filter(|&group| group >= 0)
}

/// The node's group: its number among the nodes of Citus, 0 for the coordinator. `None` without Citus, on a server that is not one of
/// its nodes, and while a major upgrade has emptied the table. As in Citus's `GetLocalGroupId()`, it is read once and after a change.
pub fn group() -> Option<i32> {
    known_group().or_else(read_group)
}

fn read_group() -> Option<i32> {
    let tables = [metadata_table(c"pg_dist_local_group")?, metadata_table(c"pg_dist_node")?];
    // From here on, a message about one of them is noticed.
    for (table, is_read) in tables.iter().zip(&GROUP_TABLES) {
        is_read.store(table.to_u32(), Relaxed);
    }
    let changes = settings::changes();
    let group = first_of_a_row(tables[0]).filter(|&group| group >= 0)?;
    // A server that was removed, or was never added, has the coordinator's group, and knows no node.
    if group == 0 && first_of_a_row(tables[1]).is_none() {
        return None;
    }
    // Otherwise, the group may have changed while the session waited for the other table.
    if settings::changes() == changes {
        GROUP.store(group, Relaxed);
    }
    Some(group)
}

/// The first column, an `int`, of one of the table's rows; `None` if it has none.
fn first_of_a_row(table: pg_sys::Oid) -> Option<i32> {
    const FIRST: NonZeroUsize = NonZeroUsize::MIN;
    let (no_snapshot, no_keys) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the table is open and locked from with_lock() on, and the tuple is the scan's until its end.
    unsafe {
        let table = PgRelation::with_lock(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let relation = table.as_ptr();
        if call!(get_atttype(table.oid(), 1)) != pg_sys::INT4OID {
            return None;
        }
        let scan = call!(systable_beginscan(relation, pg_sys::InvalidOid, false, no_snapshot, 0, no_keys));
        let tuple = call!(systable_getnext(scan));
        let first = (!tuple.is_null())
            .then(|| pgrx::htup::heap_getattr_raw(tuple, FIRST, table.rd_att))
            .flatten()
            .map(|first| first.value() as i32);
        call!(systable_endscan(scan));
        first
    }
}

/// The commands that give a column of a distributed table its default. Citus does not see a sequence that is named in a text, so it
/// leaves the sequence of each node as it is.
pub fn recipe(alter_column: &str) -> String {
    with_sequence("public.ids", alter_column)
}

/// The commands for columns whose sequence cannot be used, and can be neither altered under Citus nor restarted on all nodes.
pub fn recipe_with_another_sequence() -> String {
    format!(
        "Every column that uses this sequence needs a different sequence. {}",
        with_sequence("public.node_ids", "ALTER TABLE ... ALTER COLUMN ...")
    )
}

fn with_sequence(sequence: &str, alter_column: &str) -> String {
    format!(
        "Run on the coordinator: SELECT run_command_on_all_nodes('CREATE SEQUENCE {sequence}'); {alter_column} SET DEFAULT \
         snowflake_nextval('{sequence}'::text::regclass); If the table is distributed by the column, lock the table, call \
         undistribute_table() before the ALTER TABLE, and create_distributed_table() after it, all in one transaction. See \
         docs/engines.md."
    )
}

/// The OID of a table of Citus's metadata; `None` without Citus.
pub fn metadata_table(name: &CStr) -> Option<pg_sys::Oid> {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    // SAFETY: a C string; get_rel_relkind() takes any OID; the callback touches variables of the backend only.
    unsafe {
        let catalog = pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
        let relid = call!(get_relname_relid(name.as_ptr(), catalog));
        if call!(get_rel_relkind(relid)) as u8 != pg_sys::RELKIND_RELATION {
            return None;
        }
        // Not at library load: a session has few places for such callbacks, and most databases do not have Citus.
        if !IS_REGISTERED.swap(true, Relaxed) {
            call!(CacheRegisterRelcacheCallback(Some(relation_callback), pg_sys::Datum::null()));
        }
        Some(relid)
    }
}
