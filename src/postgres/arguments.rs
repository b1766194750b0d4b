//! Arguments of functions that are called without pgrx's wrapper, whose guard and argument handling would cost more than they do;
//! and arguments of functions that are not STRICT.

use crate::postgres::report::Raise;
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::prelude::*;

/// Declares to the server that the functions use version 1 of its calling convention: `PG_FUNCTION_INFO_V1`.
macro_rules! function_info_v1 {
    ($($name:ident),+) => {$(
        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> &'static pg_sys::Pg_finfo_record {
            const { &pg_sys::Pg_finfo_record { api_version: 1 } }
        }
    )+};
}

pub(crate) use function_info_v1;

/// The arguments of a call: `PG_GETARG_DATUM()`.
///
/// # Safety
/// The call has `N` arguments.
pub unsafe fn arguments<const N: usize>(fcinfo: pg_sys::FunctionCallInfo) -> [pg_sys::Datum; N] {
    // SAFETY: as the caller promises.
    unsafe {
        let first = (&raw const (*fcinfo).args).cast::<pg_sys::NullableDatum>();
        std::array::from_fn(|n| (*first.add(n)).value)
    }
}

/// The OID in a datum: `DatumGetObjectId()`.
pub fn oid(datum: pg_sys::Datum) -> pg_sys::Oid {
    pg_sys::Oid::from(datum.value() as u32)
}

/// An argument of a function that is not STRICT. `hint` says what can be null.
#[track_caller]
pub fn required<T>(name: &str, argument: Option<T>, hint: &str) -> T {
    let Some(argument) = argument else { messages::null_argument(name, hint).raise() };
    argument
}
