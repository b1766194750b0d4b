//! The SQL type `snowflake_layout`: a layout in 8 bytes, passed by value. An argument of it costs nothing, and
//! a typo raises an error where it is written, not when the first row is inserted.

use crate::postgres::report::Raise;
use crate::postgres::result_row::ResultRow;
use crate::postgres::timestamp::{interval, now_us, timestamptz};
use pg_snowflake_ids::layout::Layout;
use pg_snowflake_ids::layout_spec::{self, SpecError};
use pg_snowflake_ids::presets::PRESETS;
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pgrx_sql_entity_graph::metadata::{ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin};
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// A layout as an argument, a result or a column in SQL. A newtype, because both pgrx's traits and the core
/// crate's [`Layout`] are foreign to this crate.
#[derive(Clone, Copy)]
pub struct SqlLayout(pub Layout);

impl SqlLayout {
    /// The layout in a datum of type `snowflake_layout`; `None` if the datum is not a packed layout.
    pub fn of_datum(datum: pg_sys::Datum) -> Option<SqlLayout> {
        Layout::unpack(datum.value() as u64).map(SqlLayout)
    }
}

impl From<SqlLayout> for pg_sys::Datum {
    fn from(SqlLayout(layout): SqlLayout) -> Self {
        (layout.pack() as i64).into()
    }
}

// SAFETY: the SQL declarations use `snowflake_layout` for it, whose datum is the packed layout.
unsafe impl<'fcx> ArgAbi<'fcx> for SqlLayout {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the datum is 8 bytes by value, as an i64's is.
        let packed = unsafe { arg.unbox_arg_using_from_datum::<i64>() };
        packed.and_then(|packed| SqlLayout::of_datum(packed.into())).unwrap_or_else(|| messages::not_a_layout().raise())
    }
}

// SAFETY: as for the argument.
unsafe impl BoxRet for SqlLayout {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: the function is declared to return `snowflake_layout`.
        unsafe { fcinfo.return_raw_datum(self.into()) }
    }
}

// SAFETY: the SQL declarations are written by hand; this only names the type to pgrx.
unsafe impl SqlTranslatable for SqlLayout {
    const TYPE_IDENT: &'static str = "pg_snowflake::layout_type::SqlLayout";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("snowflake_layout"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("snowflake_layout")));
}

/// The layout of these bits. Raises the error if they are not a packed layout.
#[track_caller]
pub fn unpacked(bits: u64) -> Layout {
    Layout::unpack(bits).unwrap_or_else(|| messages::not_a_layout().raise())
}

/// Text to layout. STABLE, because an epoch must not be after the clock.
#[pg_extern(sql = false)]
fn snowflake_layout_in(text: &CStr) -> SqlLayout {
    // Read only as much as shows that a text is too long: it can have 1 GB.
    let text = text.to_bytes();
    let text = &text[..text.len().min(layout_spec::MAX_LENGTH + 1)];
    // A layout is ASCII. Anything else may be in another encoding, and is not repeated in the error.
    let ascii = str::from_utf8(text).ok().filter(|text| text.is_ascii()).unwrap_or("?");
    layout_spec::parse(ascii, now_us() / 1000)
        .map(SqlLayout)
        .unwrap_or_else(|SpecError { message, allowed }| messages::invalid_layout(message, allowed).raise())
}

/// Layout to text: the preset's name, or the spec.
#[pg_extern(sql = false)]
fn snowflake_layout_out(layout: SqlLayout) -> CString {
    CString::new(layout.0.to_string()).expect("a spec has no zero byte")
}

/// A packed layout from the binary protocol, with an epoch that the text form would accept.
#[pg_extern(sql = false)]
fn snowflake_layout_recv(mut buffer: pgrx::Internal) -> SqlLayout {
    // SAFETY: the server passes the message's buffer.
    let packed = unsafe {
        let buffer = buffer.get_mut::<pg_sys::StringInfoData>().expect("a receive function's buffer");
        call!(pq_getmsgint64(buffer))
    };
    SqlLayout::of_datum(packed.into())
        .filter(|SqlLayout(layout)| layout.epoch_ms <= now_us() / 1000)
        .unwrap_or_else(|| messages::not_a_layout().raise())
}

/// The presets, in their order.
#[pg_extern(sql = false)]
fn snowflake_presets() -> SetOfIterator<'static, SqlLayout> {
    SetOfIterator::new(PRESETS.iter().map(|&(_, layout)| SqlLayout(layout)))
}

/// How long IDs are generated whose folds `snowflake_layout_info` counts.
const FOLDED_US: i64 = 10 * 60 * 1_000_000;

/// The layout's spec and the figures that follow from it, as one row.
#[pg_extern(sql = false)]
fn snowflake_layout_info(layout: SqlLayout) -> ResultRow<11> {
    let layout = &layout.0;
    let ids_per_second = i128::from(layout.seqs()) * 1_000_000 / i128::from(layout.tick_us());
    ResultRow([
        layout_spec::spec(layout).into_datum().expect("a text is a datum"),
        i32::from(layout.time_bits).into(),
        i32::from(layout.shard_bits).into(),
        i32::from(layout.seq_bits).into(),
        interval(layout.tick_us()),
        timestamptz(layout.instant_of(0)),
        timestamptz(layout.end_us()),
        layout.shards().into(),
        (ids_per_second as i64).into(),
        (layout.distinct_folds(FOLDED_US) as i64).into(),
        layout.shard_formula("id").into_datum().expect("a text is a datum"),
    ])
}
