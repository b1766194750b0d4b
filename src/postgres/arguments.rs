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

/// The arguments of a call.
///
/// # Safety
/// The call has `N` arguments.
#[inline(always)]
pub unsafe fn arguments<'a, const N: usize>(fcinfo: pg_sys::FunctionCallInfo) -> &'a [pg_sys::NullableDatum; N] {
    // SAFETY: as the caller promises.
    unsafe { &*(&raw const (*fcinfo).args).cast() }
}

/// The OID in an argument: `PG_GETARG_OID()`.
pub fn oid(argument: &pg_sys::NullableDatum) -> pg_sys::Oid {
    pg_sys::Oid::from(argument.value.value() as u32)
}

/// An argument of a function that is not STRICT. `hint` says what can be null.
#[track_caller]
pub fn required<T>(name: &str, argument: Option<T>, hint: &str) -> T {
    let Some(argument) = argument else { messages::null_argument(name, hint).raise() };
    argument
}
