//! `snowflake_citus_ranges`: the hashes of the shards that a node has of a distributed table.

use super::{Table, group, is_installed};
use crate::generate::{arguments, function_info_v1, oid};
use crate::report::{Report, quoted, relation_name};
use crate::sequence::BackendLocal;
use pgrx::prelude::*;
use std::ffi::CString;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many messages the session has processed that may concern the table whose ranges it keeps.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// The ranges of one table, since a column's default asks for the same ones for each row.
struct Kept {
    relid: pg_sys::Oid,
    /// `None` while they are being read.
    read: Option<Read>,
}

struct Read {
    group: i32,
    /// [`CHANGES`] before they were read.
    changes: u64,
    /// The multirange, with its header.
    ranges: Vec<u8>,
}

static KEPT: BackendLocal<Kept> = BackendLocal::new(Kept { relid: pg_sys::InvalidOid, read: None });

/// Counts a message about a relation, or about all: OID 0. Citus sends one for a table whose shards have moved.
pub fn count_change(relid: pg_sys::Oid) {
    // SAFETY: reads one field; whoever has the variable processes no messages meanwhile.
    if relid == pg_sys::InvalidOid || unsafe { KEPT.with(|kept| kept.relid == relid) } {
        CHANGES.fetch_add(1, Relaxed);
    }
}

/// `snowflake_citus_ranges(table_name regclass) → int8multirange`
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_citus_ranges_wrapper(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: one argument, which is not NULL: the function is STRICT.
    let [table] = unsafe { arguments(fcinfo) };
    // SAFETY: called directly from the server, at the bottom of Rust's frames.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(|| ranges_on_this_node(oid(table))) }
}

function_info_v1!(pg_finfo_snowflake_citus_ranges_wrapper);

fn ranges_on_this_node(relid: pg_sys::Oid) -> pg_sys::Datum {
    let group = group();
    // SAFETY: copying the ranges runs no SQL.
    let kept = unsafe {
        KEPT.with(|kept| {
            let read = kept.read.as_ref().filter(|read| {
                (kept.relid, Some(read.group)) == (relid, group)
                    && read.changes == CHANGES.load(Relaxed)
            });
            read.map(|read| copy(&read.ranges))
        })
    };
    kept.unwrap_or_else(|| {
        // From here on, messages about this table are counted.
        // SAFETY: replaces a value.
        unsafe { KEPT.with(|kept| *kept = Kept { relid, read: None }) }
        let changes = CHANGES.load(Relaxed);
        let table = Table::read_now(relid).filter(Table::is_distributed_by_bigint);
        let (Some(group), Some(table)) = (group, table) else { not_distributed(relid) };
        let ranges = multirange(&table.hashes_of_group(group));
        let datum = copy(&ranges);
        // SAFETY: replaces a value.
        unsafe { KEPT.with(|kept| kept.read = Some(Read { group, changes, ranges })) }
        datum
    })
}

/// The multirange in memory of the caller's context.
fn copy(ranges: &[u8]) -> pg_sys::Datum {
    // SAFETY: palloc() returns memory of the size asked for, or does not return.
    unsafe {
        let datum = pg_sys::palloc(ranges.len()).cast::<u8>();
        datum.copy_from_nonoverlapping(ranges.as_ptr(), ranges.len());
        datum.into()
    }
}

/// The ranges as an `int8multirange`. A node that has no shard, such as a coordinator, gets all hashes: every node is as far.
fn multirange(ranges: &[(i64, i64)]) -> Vec<u8> {
    let everywhere = [(i32::MIN.into(), i32::MAX.into())];
    let ranges = if ranges.is_empty() { &everywhere } else { ranges };
    let mut text = String::from("{");
    for (n, (first, last)) in ranges.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        write!(text, "{comma}[{first},{last}]").expect("a String takes all");
    }
    text.push('}');
    let text = CString::new(text).expect("digits and brackets");
    // SAFETY: the type's own input function; the result is a varlena that is not toasted.
    unsafe {
        let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        pg_sys::getTypeInputInfo(pg_sys::INT8MULTIRANGEOID, &mut input, &mut parameter);
        let text = text.as_ptr().cast_mut();
        let datum = pg_sys::OidInputFunctionCall(input, text, pg_sys::INT8MULTIRANGEOID, -1);
        let varlena = datum.cast_mut_ptr::<pg_sys::varlena>();
        let size = pgrx::varlena::varsize_any(varlena);
        std::slice::from_raw_parts(varlena.cast::<u8>(), size).to_vec()
    }
}

fn not_distributed(relid: pg_sys::Oid) -> ! {
    let detail =
        (!is_installed()).then(|| "This database does not have the extension citus.".into());
    Report {
        code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message: format!(
            "table {} is not distributed by the hash of a bigint",
            quoted(&relation_name(relid))
        ),
        detail,
        hint: Some("Distribute it by its ID with create_distributed_table().".into()),
    }
    .raise()
}
