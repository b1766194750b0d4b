//! Result rows of functions, single or in sets.

use crate::postgres::report::Raise;
use pg_snowflake_policies::messages::server as messages;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin};

/// A row without nulls. Its columns have the order and the types of the function's SQL declaration.
pub struct ResultRow<const N: usize>(pub [pg_sys::Datum; N]);

// SAFETY: as for the row with nulls.
unsafe impl<const N: usize> BoxRet for ResultRow<N> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: as the caller promises.
        unsafe { NullableResultRow(self.0.map(Some)).box_into(fcinfo) }
    }
}

/// A column that may be null.
pub type Nullable = Option<pg_sys::Datum>;

/// A row whose columns may be null.
pub struct NullableResultRow<const N: usize>(pub [Nullable; N]);

// SAFETY: the row becomes a datum of the composite type that the function is declared to return.
unsafe impl<const N: usize> BoxRet for NullableResultRow<N> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        let mut nulls = self.0.map(|column| column.is_none());
        let mut values = self.0.map(|column| column.unwrap_or(pg_sys::Datum::null()));
        // SAFETY: the descriptor has N columns.
        unsafe {
            let descriptor = result_descriptor(fcinfo.as_mut_ptr(), N);
            let tuple = call!(heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr()));
            fcinfo.return_raw_datum(call!(HeapTupleHeaderGetDatum((*tuple).t_data)))
        }
    }
}

// access/htup_details.h, without pgrx's guard, which costs as much as the row. An ERROR of the server passes over the caller's frames.
unsafe extern "C-unwind" {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    fn heap_form_tuple(descriptor: pg_sys::TupleDesc, values: *mut pg_sys::Datum, nulls: *mut bool) -> pg_sys::HeapTuple;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    fn heap_form_tuple(descriptor: pg_sys::TupleDesc, values: *const pg_sys::Datum, nulls: *const bool) -> pg_sys::HeapTuple;
}

/// A row without nulls, for a function that is called without pgrx's wrapper.
///
/// # Safety
/// Called by such a function, in frames that hold nothing with a destructor. The columns have the order and the types of its SQL
/// declaration, and are passed by value.
pub unsafe fn result_row<const N: usize>(fcinfo: pg_sys::FunctionCallInfo, mut columns: [pg_sys::Datum; N]) -> pg_sys::Datum {
    // SAFETY: as the caller promises. heap_form_tuple() fills in the header of the datum, too; HeapTupleHeaderGetDatum() would only
    // inline what is stored elsewhere, which no column is.
    unsafe {
        let call_site = (*fcinfo).flinfo;
        if (*call_site).fn_extra.is_null() {
            pg_sys::panic::pgrx_extern_c_guard(|| result_descriptor(fcinfo, N));
        }
        let descriptor = (*call_site).fn_extra.cast();
        let tuple = heap_form_tuple(descriptor, columns.as_mut_ptr(), [false; N].as_mut_ptr());
        (*tuple).t_data.into()
    }
}

/// The descriptor of the function's result row. It is looked up once per query and kept with the call site, or
/// once per set if the function returns sets.
unsafe fn result_descriptor(fcinfo: pg_sys::FunctionCallInfo, columns: usize) -> pg_sys::TupleDesc {
    // SAFETY: the server passes a valid fcinfo whose flinfo lives as long as its fn_mcxt. If the function
    // returns sets, pgrx has stored the set's FuncCallContext there before the first row.
    unsafe {
        let call_site = (*fcinfo).flinfo;
        if (*call_site).fn_retset {
            let set = (*call_site).fn_extra.cast::<pg_sys::FuncCallContext>();
            if (*set).tuple_desc.is_null() {
                (*set).tuple_desc = look_up_descriptor(fcinfo, columns, (*set).multi_call_memory_ctx);
            }
            return (*set).tuple_desc;
        }
        if (*call_site).fn_extra.is_null() {
            (*call_site).fn_extra = look_up_descriptor(fcinfo, columns, (*call_site).fn_mcxt).cast();
        }
        (*call_site).fn_extra.cast()
    }
}

/// The descriptor, allocated in `context`.
unsafe fn look_up_descriptor(fcinfo: pg_sys::FunctionCallInfo, columns: usize, context: pg_sys::MemoryContext) -> pg_sys::TupleDesc {
    // SAFETY: as for the caller. The descriptor returned may be null.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let mut descriptor: pg_sys::TupleDesc = std::ptr::null_mut();
        call!(get_call_result_type(fcinfo, std::ptr::null_mut(), &raw mut descriptor));
        let declared = descriptor.as_ref().map_or(0, |descriptor| descriptor.natts);
        if declared as usize != columns {
            raise_version_mismatch(declared, columns);
        }
        let blessed = call!(BlessTupleDesc(descriptor));
        pg_sys::MemoryContextSwitchTo(caller);
        blessed
    }
}

/// Raises an error instead of reading beyond the row that the SQL declares. The library serves the SQL objects
/// of older versions, but it can meet those of a newer one if it was downgraded after an update. So a function
/// whose row changes in a later version gets a new C symbol, and the old symbol stays for SQL objects created
/// before.
#[track_caller]
fn raise_version_mismatch(declared: i32, columns: usize) -> ! {
    messages::wrong_version(declared, env!("CARGO_PKG_VERSION"), columns).raise()
}

/// Declares to pgrx that a type is a row, and nothing else: the SQL declarations are written by hand.
macro_rules! declare_row {
    ($row:ident) => {
        // SAFETY: no SQL is generated from it.
        unsafe impl<const N: usize> SqlTranslatable for $row<N> {
            const TYPE_IDENT: &'static str = concat!("pg_snowflake::result_row::", stringify!($row));
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::NotValidAsArgument(stringify!($row)));
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("record")));
        }
    };
}

declare_row!(ResultRow);
declare_row!(NullableResultRow);
