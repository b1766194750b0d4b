//! The SQL functions that decode and encode IDs. They read no setting, and only `snowflake_explain(id)` reads a clock.

use crate::layout_type::{SqlLayout, unpacked};
use crate::postgres::arguments::{arguments, function_info_v1};
use crate::postgres::backend_local::BackendLocal;
use crate::postgres::report::Raise;
use crate::postgres::result_row::result_row;
use crate::postgres::timestamp::{statement_start_us, timestamptz, unix_us_of};
use pg_snowflake_ids::excerpt::ascii_excerpt;
use pg_snowflake_ids::layout::{Fields, Layout, OutOfRange, Packed};
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_ids::{base32, explain, instant, uuid};
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::pg_sys::NullableDatum;
use pgrx::prelude::*;

/// `snowflake_decode(id bigint, layout) → (created_at timestamptz, shard_id int, seq int)`
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_decode_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: two arguments, none of them NULL: the function is STRICT.
    let [id, layout] = unsafe { arguments(fcinfo) };
    with_fields(id, layout, |layout, Fields { tick, shard, seq }| {
        let columns = [timestamptz(layout.instant_of(tick)), (shard as i32).into(), (seq as i32).into()];
        // SAFETY: the columns of the declaration. The frames hold nothing with a destructor.
        unsafe { result_row(fcinfo, columns) }
    })
}

/// `snowflake_created_at(id bigint, layout) → timestamptz`
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_created_at_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: two arguments, none of them NULL: the function is STRICT.
    let [id, layout] = unsafe { arguments(fcinfo) };
    with_fields(id, layout, |layout, fields| timestamptz(layout.instant_of(fields.tick)))
}

/// `snowflake_shard_id(id bigint, layout) → int`
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_shard_id_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: two arguments, none of them NULL: the function is STRICT.
    let [id, layout] = unsafe { arguments(fcinfo) };
    with_fields(id, layout, |_, fields| (fields.shard as i32).into())
}

/// `snowflake_seq(id bigint, layout) → int`
///
/// # Safety
/// Called by the server with the declared arguments.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn snowflake_seq_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: two arguments, none of them NULL: the function is STRICT.
    let [id, layout] = unsafe { arguments(fcinfo) };
    with_fields(id, layout, |_, fields| (fields.seq as i32).into())
}

function_info_v1!(
    pg_finfo_snowflake_decode_wrapper,
    pg_finfo_snowflake_created_at_wrapper,
    pg_finfo_snowflake_shard_id_wrapper,
    pg_finfo_snowflake_seq_wrapper
);

/// What `f` returns for the fields of the ID. A value that is not an ID of the layout is refused. The callers of this function are not
/// `pg_extern`, whose guard and argument handling would take three times as long as reading the fields.
#[inline(always)]
fn with_fields(id: &NullableDatum, layout: &NullableDatum, f: impl FnOnce(&Layout, Fields) -> pg_sys::Datum) -> pg_sys::Datum {
    // The layout is usually that of the last call, and comparing costs less than unpacking.
    static LAST: BackendLocal<Packed> = BackendLocal::new(Packed::new(DEFAULT));
    let (id, bits) = (id.value.value() as i64, layout.value.value() as u64);
    // SAFETY: reading fields runs no SQL.
    let last = unsafe { LAST.get() };
    if last.bits() != bits {
        *last = Packed::unpack(bits).unwrap_or_else(|| refuse(id, bits));
    }
    if last.is_id(id) { f(last, last.split(id)) } else { refuse(id, bits) }
}

/// Raises the error of [`with_fields`].
#[cold]
fn refuse(id: i64, bits: u64) -> ! {
    let raise = || not_an_id(id, unpacked(bits));
    // SAFETY: called directly from the server, at the bottom of Rust's frames.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(raise) }
}

/// `snowflake_encode(created_at timestamptz, shard_id int, seq int, layout) → bigint`
#[pg_extern(sql = false)]
fn snowflake_encode(created_at: pg_sys::TimestampTz, shard_id: i32, seq: i32, layout: SqlLayout) -> i64 {
    let SqlLayout(layout) = layout;
    layout.encode(unix_us_of(created_at), shard_id, seq).unwrap_or_else(|field| out_of_range(field, shard_id, seq, layout))
}

/// `snowflake_min_id(at timestamptz, layout) → bigint`
#[pg_extern(sql = false)]
fn snowflake_min_id(at: pg_sys::TimestampTz, layout: SqlLayout) -> i64 {
    layout.0.min_id(unix_us_of(at))
}

/// `snowflake_explain(id bigint, layout) → text`
#[pg_extern(sql = false)]
fn snowflake_explain(id: i64, layout: SqlLayout) -> String {
    let SqlLayout(layout) = layout;
    explain::explain(id, split(id, layout), &layout)
}

/// `snowflake_explain(id bigint) → text`
#[pg_extern(sql = false)]
fn snowflake_explain_presets(id: i64) -> String {
    explain::candidates(id, statement_start_us())
}

/// `snowflake_to_base32(id bigint) → text`
#[pg_extern(sql = false)]
fn snowflake_to_base32(id: i64) -> String {
    base32::encode(id)
}

/// `snowflake_from_base32(base32 text) → bigint`
#[pg_extern(sql = false)]
fn snowflake_from_base32(base32: &[u8]) -> i64 {
    base32::decode(base32).unwrap_or_else(|error| {
        let text = ascii_excerpt(base32).map_or_else(String::new, |text| format!(": \"{text}\""));
        messages::not_base32(text, error).raise()
    })
}

/// `snowflake_to_uuid(id bigint, layout) → uuid`
#[pg_extern(sql = false)]
fn snowflake_to_uuid(id: i64, layout: SqlLayout) -> pgrx::Uuid {
    let SqlLayout(layout) = layout;
    split(id, layout);
    let uuid = uuid::from_id(id, &layout).unwrap_or_else(|| messages::beyond_uuid(id).raise());
    pgrx::Uuid::from_bytes(uuid.to_be_bytes())
}

/// `snowflake_from_uuid(uuid, layout) → bigint`
#[pg_extern(sql = false)]
fn snowflake_from_uuid(uuid: pgrx::Uuid, layout: SqlLayout) -> i64 {
    let SqlLayout(layout) = layout;
    uuid::to_id(u128::from_be_bytes(*uuid.as_bytes()), &layout).unwrap_or_else(|| messages::not_of_an_id(uuid, layout).raise())
}

/// The fields of an ID. Refuses a value that is not an ID of the layout.
fn split(id: i64, layout: Layout) -> Fields {
    if !layout.is_id(id) {
        not_an_id(id, layout);
    }
    layout.split(id)
}

#[track_caller]
fn not_an_id(id: i64, layout: Layout) -> ! {
    messages::not_an_id(id, layout, layout.bits(), (1_u64 << layout.bits()) - 1).raise()
}

#[track_caller]
fn out_of_range(field: OutOfRange, shard_id: i32, seq: i32, layout: Layout) -> ! {
    match field {
        OutOfRange::Time => {
            let [first, end] = [0, layout.max_tick() + 1].map(|tick| instant::text(&layout, tick));
            messages::time_out_of_range(layout, first, end)
        }
        OutOfRange::Shard => messages::shard_out_of_range(shard_id, layout, layout.shards() - 1),
        OutOfRange::Seq => messages::seq_out_of_range(seq, layout, layout.seqs() - 1),
    }
    .raise()
}
