//! The SQL functions for columns of distributed tables.

use super::node::{group, is_installed, listen};
use super::table::{Table, is_distributed_sequence, is_managed};
use crate::postgres::arguments::{arguments, function_info_v1, oid};
use crate::postgres::backend_local::BackendLocal;
use crate::postgres::query::Multirange;
use crate::postgres::report::{Raise, quoted, relation_name};
use crate::settings::{self, Setting};
use pg_snowflake_policies::messages::{arguments as messages, server};
use pgrx::pg_sys::GucSource;
use pgrx::prelude::*;

/// What a session keeps of a table. A column's default asks for the same ranges for each row.
struct Kept {
    relid: pg_sys::Oid,
    /// The messages about the table that the session has processed since it knows the table.
    changes: u64,
    read: Option<Read>,
}

/// The ranges as last read; dropped by the next message.
struct Read {
    group: i32,
    /// The multirange, with its header.
    ranges: Vec<u8>,
}

/// How many tables a session keeps.
const MAX_KEPT: usize = 64;

static KEPT: BackendLocal<Vec<Kept>> = BackendLocal::new(Vec::new());

/// Drops the ranges of a relation, or of all: OID 0. Citus sends a message about a table whose shards have moved.
fn forget(relid: pg_sys::Oid) {
    let is_concerned = |kept: &&mut Kept| relid == pg_sys::InvalidOid || kept.relid == relid;
    // SAFETY: whoever has the variable processes no messages meanwhile.
    for kept in unsafe { KEPT.get() }.iter_mut().filter(is_concerned) {
        kept.changes += 1;
        kept.read = None;
    }
}

/// `snowflake_citus_ranges(table_name regclass) → int8multirange`: the hash ranges of the table's shards on this node.
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_citus_ranges_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: one argument, which is not NULL: the function is STRICT.
    let [table_name] = unsafe { arguments(fcinfo) };
    // SAFETY: called directly from the server, at the bottom of Rust's frames.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(|| ranges_on_this_node(oid(table_name))) }
}

function_info_v1!(pg_finfo_snowflake_citus_ranges_wrapper);

fn ranges_on_this_node(relid: pg_sys::Oid) -> pg_sys::Datum {
    listen(forget);
    let group = group();
    // SAFETY: copying the ranges runs no SQL.
    let kept = entry(unsafe { KEPT.get() }, relid);
    let changes = kept.changes;
    let read = kept.read.as_ref().filter(|read| Some(read.group) == group);
    read.map(|read| copy(&read.ranges)).unwrap_or_else(|| {
        let table = Table::read(relid).filter(Table::is_distributed_by_bigint);
        let (Some(group), Some(table)) = (group, table) else { not_distributed(relid) };
        let Multirange(ranges) = table.hashes_of_group(group);
        let datum = copy(&ranges);
        // SAFETY: replaces a value; the reference above is not used again.
        let kept = entry(unsafe { KEPT.get() }, relid);
        if kept.changes == changes {
            kept.read = Some(Read { group, ranges });
        }
        datum
    })
}

/// The table's entry, a new one if there is none.
fn entry(kept: &mut Vec<Kept>, relid: pg_sys::Oid) -> &mut Kept {
    let place = kept.iter().position(|kept| kept.relid == relid).unwrap_or_else(|| {
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        kept.push(Kept { relid, changes: 0, read: None });
        kept.len() - 1
    });
    &mut kept[place]
}

/// The multirange in memory of the caller's context.
fn copy(ranges: &[u8]) -> pg_sys::Datum {
    // SAFETY: palloc() returns memory of the size asked for, or does not return.
    unsafe {
        let datum = call!(palloc(ranges.len())).cast::<u8>();
        datum.copy_from_nonoverlapping(ranges.as_ptr(), ranges.len());
        datum.into()
    }
}

#[track_caller]
fn not_distributed(relid: pg_sys::Oid) -> ! {
    let table = quoted(&relation_name(relid));
    match is_installed() {
        true => messages::not_distributed(table),
        false => messages::not_distributed_here(table),
    }
    .raise()
}

/// `_snowflake_citus_error(table_name regclass, sequence regclass, shard_id int, uses_current_shard boolean) → text`
///
/// The reason why a column default returns duplicates or fails on other nodes; null for a table that Citus does not manage.
#[pg_extern(sql = false)]
fn snowflake_citus_error(
    table_name: Option<pg_sys::Oid>,
    sequence: Option<pg_sys::Oid>,
    shard_id: Option<i32>,
    uses_current_shard: Option<bool>,
) -> Option<String> {
    if !is_managed(table_name?) {
        return None;
    }
    if uses_current_shard == Some(false) && shard_id.is_some() {
        return Some(server::same_shard_on_nodes().summary());
    }
    if uses_current_shard == Some(true) && is_propagated_setting() {
        return Some(server::same_setting_on_nodes().summary());
    }
    sequence.is_some_and(is_distributed_sequence).then(|| server::distributed_sequence().summary())
}

/// Whether this session has `pg_snowflake.shard_id` from the database or the role.
fn is_propagated_setting() -> bool {
    let source = Setting::ShardId.source();
    settings::shard_id().is_some() && (GucSource::PGC_S_GLOBAL..=GucSource::PGC_S_DATABASE_USER).contains(&source)
}
