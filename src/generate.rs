//! The SQL functions that generate IDs. Those of homed IDs are in `nextval_homed.rs`, batches in `batch.rs`.

mod batch;
mod nextval_homed;

use crate::authority::{self, Asked};
use crate::error::Error;
use crate::layout_type::{SqlLayout, unpacked};
use crate::postgres::arguments::{arguments, function_info_v1, oid};
use crate::postgres::report::Raise;
use crate::sequence;
use batch::IdBatch;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::messages::sequence as messages;
use pgrx::prelude::*;

/// `snowflake_nextval(seq regclass, shard_id int, layout snowflake_layout) → bigint`
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_nextval_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: three arguments, none of them NULL: the function is STRICT.
    let [seq, shard_id, layout] = unsafe { arguments(fcinfo) };
    next_id(oid(seq), Some(shard_id.value.value() as i32), layout.value.value() as u64)
}

/// `snowflake_nextval(seq regclass) → bigint`: the shard is `pg_snowflake.shard_id`, the layout the default.
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_nextval_of_this_shard_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: one argument, which is not NULL: the function is STRICT.
    let [seq] = unsafe { arguments(fcinfo) };
    next_id(oid(seq), None, DEFAULT.pack())
}

function_info_v1!(pg_finfo_snowflake_nextval_wrapper, pg_finfo_snowflake_nextval_of_this_shard_wrapper);

/// Takes the fast path and, if that returns no ID, the guarded one, which raises the errors. The callers of this function are not
/// `pg_extern`, whose guard and argument handling would cost more than the fast path does.
#[inline(always)]
fn next_id(seq: pg_sys::Oid, shard_id: Option<i32>, packed: u64) -> pg_sys::Datum {
    // SAFETY: called by an SQL function, and no frame up to the server's holds anything with a destructor.
    match unsafe { sequence::next_fast(seq, packed, Asked::shard(shard_id)) } {
        Some(id) => id.into(),
        None => next_id_guarded(seq, shard_id, packed).into(),
    }
}

/// The slow path: a session's first ID from a sequence, and every ID that the fast path cannot return.
#[cold]
fn next_id_guarded(seq: pg_sys::Oid, shard: Option<i32>, packed: u64) -> i64 {
    let call = || sequence::next(seq, unpacked(packed), Asked::shard(shard)).unwrap_or_else(|error| error.raise("snowflake_nextval", seq));
    // SAFETY: called directly from the server, at the bottom of Rust's frames.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(call) }
}

/// `snowflake_nextvals(seq regclass, shard_id int, count int, layout) → setof bigint`
#[pg_extern(sql = false)]
fn snowflake_nextvals(seq: pg_sys::Oid, shard_id: i32, count: i32, layout: SqlLayout) -> SetOfIterator<'static, i64> {
    batch(seq, Asked::Shard(shard_id), count, layout.0)
}

/// `snowflake_nextvals(seq regclass, count int) → setof bigint`: the shard is that of this database, the layout the default.
#[pg_extern(sql = false)]
fn snowflake_nextvals_of_this_shard(seq: pg_sys::Oid, count: i32) -> SetOfIterator<'static, i64> {
    batch(seq, Asked::ThisDatabase, count, DEFAULT)
}

fn batch(seq: pg_sys::Oid, asked: Asked, count: i32, layout: Layout) -> SetOfIterator<'static, i64> {
    let name = "snowflake_nextvals";
    if count < 0 {
        messages::negative_count(count).raise();
    }
    asked.class(layout).unwrap_or_else(|denied| Error::from(denied).raise(name, seq));
    SetOfIterator::new(IdBatch::new(name, seq, layout, asked, count.into()))
}

/// `snowflake_currval(seq regclass) → bigint`
#[pg_extern(sql = false)]
fn snowflake_currval(seq: pg_sys::Oid) -> i64 {
    sequence::currval(seq).unwrap_or_else(|error| Error::from(error).raise("snowflake_currval", seq))
}

/// `snowflake_current_shard() → int`: the shard of this database. The error if it is unset refers to
/// `snowflake_nextval`, which also accepts a shard as an argument.
#[pg_extern(sql = false)]
pub fn snowflake_current_shard() -> i32 {
    authority::shard_of_this_database().unwrap_or_else(|denied| Error::from(denied).raise("snowflake_nextval", pg_sys::InvalidOid))
}
