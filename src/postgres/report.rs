//! Errors as PostgreSQL reports them, and the figures and names in them.

use crate::postgres::call::guarded;
use pg_snowflake_ids::excerpt::truncated;
pub use pg_snowflake_policies::messages::Report;
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::Location;
use std::ptr;

/// The maximum number of characters of a message, a detail or a hint. A text that the server cannot allocate
/// would end the server process. User texts are shortened where a message repeats them; this limit catches any
/// that are not.
const MAX_PART: usize = 10_000;

/// How the server gets a report.
pub trait Raise {
    /// Raises the error. `\errverbose` of psql shows the line that called this.
    #[track_caller]
    fn raise(self) -> !;

    /// Sends the report to the server log, and a WARNING to the client, too, with the line that called this.
    #[track_caller]
    fn log(self, level: PgLogLevel);
}

impl Raise for Report {
    #[track_caller]
    fn raise(self) -> ! {
        emit(&self, PgLogLevel::ERROR, Location::caller());
        unreachable!("ERROR does not return")
    }

    #[track_caller]
    fn log(self, level: PgLogLevel) {
        emit(&self, level, Location::caller());
    }
}

/// As a message of the server, and not by pgrx, which raises errors at the end of a function, where it cannot handle a lack of
/// memory: PostgreSQL reports such an error from its own reserve.
fn emit(report: &Report, level: PgLogLevel, place: &'static Location<'static>) {
    let part = |text: &String| {
        let text = ascii_unless_utf8(truncated(text, MAX_PART).into_owned());
        CString::new(text.replace('\0', "")).unwrap_or_default()
    };
    let Report { code, message, detail, hint } = report;
    let [message, detail, hint] = [Some(message), detail.as_ref(), hint.as_ref()].map(|text| text.map(part));
    // SAFETY: C strings that live until the guard has returned; the closure owns nothing.
    unsafe {
        guarded(|| {
            if errstart(level as c_int, ptr::null()) {
                errcode(*code);
                for (part, text) in [(errmsg as ErrorPart, &message), (errdetail, &detail), (errhint, &hint)] {
                    if let Some(text) = text {
                        part(c"%s".as_ptr(), text.as_ptr());
                    }
                }
                // Which function it is in, Rust does not say.
                errfinish(place.file_as_c_str().as_ptr(), place.line() as c_int, ptr::null());
            }
        });
    }
}

/// `errmsg()`, `errdetail()` or `errhint()`.
type ErrorPart = unsafe extern "C-unwind" fn(*const c_char, ...) -> c_int;

// utils/elog.h, without pgrx's guards.
unsafe extern "C-unwind" {
    pub fn errstart(elevel: c_int, domain: *const c_char) -> bool;
    pub fn errcode(sqlerrcode: c_int) -> c_int;
    pub fn errmsg(fmt: *const c_char, ...) -> c_int;
    pub fn errdetail(fmt: *const c_char, ...) -> c_int;
    fn errhint(fmt: *const c_char, ...) -> c_int;
    pub fn errfinish(filename: *const c_char, lineno: c_int, funcname: *const c_char);
}

/// Raises the error for an OID of no table. Shared by the functions that take a table.
#[track_caller]
pub fn no_such_table(relid: pg_sys::Oid) -> ! {
    messages::no_such_table(relid.to_u32()).raise()
}

/// A duration in the largest unit of which it has at least 1, for people.
pub fn duration(us: i64) -> String {
    const UNITS: [(i64, &str); 5] =
        [(86_400_000_000, "days"), (3_600_000_000, "hours"), (60_000_000, "minutes"), (1_000_000, "s"), (1_000, "ms")];
    match UNITS.into_iter().find(|&(unit, _)| us >= unit) {
        Some((unit, name)) => format!("{:.3} {name}", us as f64 / unit as f64),
        None => format!("{us} us"),
    }
}

/// The name in quotes, unless it already has quotes.
pub fn quoted(name: &str) -> String {
    if name.contains('"') { name.to_owned() } else { format!("\"{name}\"") }
}

/// The relation's name as `regclass` prints it: quoted and with its schema where that is needed.
pub fn relation_name(relid: pg_sys::Oid) -> String {
    // SAFETY: regclassout takes an OID, known or not, and returns a palloc'd C string.
    unsafe {
        let out = pgrx::direct_function_call_as_datum(pg_sys::regclassout, &[Some(relid.into())]);
        out.map_or_else(String::new, |name| c_text(name.cast_mut_ptr()))
    }
}

/// The type's name as `format_type` prints it.
pub fn type_name(typid: pg_sys::Oid) -> String {
    // SAFETY: format_type_be() takes any OID and returns a palloc'd C string.
    unsafe { c_text(call!(format_type_be(typid))) }
}

/// The role, quoted where SQL needs it; empty if there is none.
pub fn role_name(role: pg_sys::Oid) -> String {
    // SAFETY: takes any OID, and returns a C string or null.
    unsafe { quote_identifier(call!(GetUserNameFromId(role, true))) }
}

/// The current role, quoted where SQL needs it.
pub fn current_user_name() -> String {
    // SAFETY: the user ID is valid inside a transaction.
    role_name(unsafe { call!(GetUserId()) })
}

/// The role that logged in, quoted where SQL needs it.
pub fn session_user_name() -> String {
    // SAFETY: as for current_user_name().
    role_name(unsafe { call!(GetSessionUserId()) })
}

/// The session's database, quoted where SQL needs it.
pub fn current_database_name() -> String {
    // SAFETY: MyDatabaseId is set in every backend that runs SQL.
    unsafe { quote_identifier(call!(get_database_name(pg_sys::MyDatabaseId))) }
}

/// # Safety
/// `name` is null or a C string.
unsafe fn quote_identifier(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: not null, and a C string as the caller promises.
    unsafe { c_text(call!(quote_identifier(name))) }
}

/// A server's C string, safe for a message.
///
/// # Safety
/// `c_string` is a C string.
pub unsafe fn c_text(c_string: *const c_char) -> String {
    // SAFETY: as the caller promises.
    ascii_unless_utf8(unsafe { CStr::from_ptr(c_string) }.to_string_lossy().into_owned())
}

/// A message is sent unconverted, so in a database with another encoding it must be ASCII.
pub fn ascii_unless_utf8(text: String) -> String {
    // SAFETY: the encoding is set in every backend that runs SQL.
    if unsafe { call!(GetDatabaseEncoding()) } == pg_sys::pg_enc::PG_UTF8 as c_int {
        text
    } else {
        text.replace(|c: char| !c.is_ascii(), "?")
    }
}

/// The server's host name, as the command `hostname` prints it; empty if it is longer than POSIX allows.
pub fn host_name() -> String {
    // Linux has at most 64 bytes, POSIX at least 255.
    let mut buffer: [c_char; 256] = [0; 256];
    // SAFETY: the last byte of the buffer is not passed, and remains the terminator of a C string.
    unsafe {
        let failed = libc::gethostname(buffer.as_mut_ptr(), buffer.len() - 1) != 0;
        if failed { String::new() } else { c_text(buffer.as_ptr()) }
    }
}

#[cfg(feature = "pg_test")]
#[pg_schema]
mod tests {
    use super::{MAX_PART, Raise, Report};
    use pgrx::pg_sys::panic::CaughtError;
    use pgrx::prelude::*;

    #[pg_test]
    fn every_part_of_a_report_is_truncated() {
        let part = || "a".repeat(2 * MAX_PART);
        let report =
            Report { code: PgSqlErrorCode::ERRCODE_DATA_EXCEPTION as i32, message: part(), detail: Some(part()), hint: Some(part()) };
        let parts = PgTryBuilder::new(|| report.raise())
            .catch_others(|error| match error {
                CaughtError::PostgresError(error) => {
                    [Some(error.message()), error.detail(), error.hint()].map(|part| part.map_or(0, str::len))
                }
                other => other.rethrow(),
            })
            .execute();
        assert_eq!(parts, [MAX_PART + "...".len(); 3]);
    }
}
