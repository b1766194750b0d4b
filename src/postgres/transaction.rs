//! The transaction of a function that changes tables: whether it may, and parts of it that can fail alone.

use crate::postgres::query::{execute, text};
use crate::postgres::report::{Raise, Report, c_text};
use pg_snowflake_policies::messages::server as messages;
use pgrx::PgTryBuilder;
use pgrx::pg_sys::panic::{CaughtError, ErrorReportWithLevel};
use pgrx::prelude::*;
use pgrx::spi::quote_identifier;
use std::panic::AssertUnwindSafe;

/// Refuses a standby and a read-only transaction. `only` says what only the primary does.
#[track_caller]
pub fn check_writable(function: &str, only: &str) {
    // SAFETY: these only read the server's state.
    let (is_standby, is_read_only) = unsafe { (call!(RecoveryInProgress()), pg_sys::XactReadOnly) };
    if is_standby {
        messages::during_recovery(function, only).raise();
    }
    if is_read_only {
        messages::read_only(function).raise();
    }
}

/// Refuses a transaction whose snapshot may be older than a lock that it takes. `why` says what the function could miss.
#[track_caller]
pub fn check_read_committed(function: &str, why: &str) {
    // SAFETY: reads the server's state.
    if unsafe { pg_sys::XactIsoLevel } as u32 >= pg_sys::XACT_REPEATABLE_READ {
        messages::not_read_committed(function, why).raise();
    }
}

/// How long a lock is waited for if the session sets no `lock_timeout`: longer than `deadlock_timeout`, after which autovacuum
/// gives way to a waiter, and so short that those who wait behind it hardly notice.
const DEFAULT_LOCK_TIMEOUT_MS: i32 = 2_000;

/// Calls `run` with a `lock_timeout`, and restores that of the session. After an ERROR, the end of the transaction or of the
/// savepoint restores it.
pub fn with_lock_timeout<T>(run: impl FnOnce() -> T) -> T {
    with_lock_timeout_of(DEFAULT_LOCK_TIMEOUT_MS, |current_ms| current_ms > 0, run)
}

/// Calls `run` with a `lock_timeout` of at most that many milliseconds, in the same way.
pub fn with_brief_lock_timeout<T>(ms: i32, run: impl FnOnce() -> T) -> T {
    with_lock_timeout_of(ms, |current_ms| (1..=ms).contains(&current_ms), run)
}

fn with_lock_timeout_of<T>(ms: i32, keeps: impl FnOnce(i32) -> bool, run: impl FnOnce() -> T) -> T {
    // SAFETY: reads a setting; the level is left below, or by the end of the transaction or savepoint.
    unsafe {
        if keeps(pg_sys::LockTimeout) {
            return run();
        }
        let level = call!(NewGUCNestLevel());
        execute("SELECT set_config('lock_timeout', $1, true)", &[text(&ms.to_string())]);
        let value = run();
        call!(AtEOXact_GUC(false, level));
        value
    }
}

/// An error that was rolled back.
pub struct Failure {
    /// The SQLSTATE.
    pub code: PgSqlErrorCode,
    /// The message and the detail in one line.
    pub message: String,
}

impl Failure {
    fn of(error: &ErrorReportWithLevel, raiser: Option<Raiser>) -> Self {
        let mut line = error.message().to_owned();
        if let Some(detail) = error.detail() {
            line += &format!(": {}", detail.trim_end_matches('.').replace('\n', "; "));
        }
        let code = error.sql_error_code();
        if let Some(raiser) = raiser {
            line += &format!("; raised by {}", raiser.frame);
            if let Some(cure) = raiser.cure().filter(|_| is_undefined(code)) {
                line += &format!(". {cure}");
            }
        }
        Failure { code, message: line }
    }
}

/// The function of a user that raised an error in a statement of ours, such as that of an event trigger or an index expression.
struct Raiser {
    /// What the error's context says of it, in the language of the server.
    frame: String,
}

impl Raiser {
    /// From the error that is being handled, which is still on PostgreSQL's stack of errors, and from its context outside of the
    /// statement. `None` if the statement itself raised it.
    fn of(error: &CaughtError, outside: &str) -> Option<Self> {
        let CaughtError::PostgresError(report) = error else { return None };
        // There may be no memory for a copy.
        if is_of_the_statement(report.sql_error_code()) {
            return None;
        }
        // SAFETY: the stack has the error, and the current context is not that of errors.
        let context = unsafe {
            let data = call!(CopyErrorData());
            let context = (*data).context;
            let context = (!context.is_null()).then(|| c_text(context));
            call!(FreeErrorData(data));
            context?
        };
        // The outermost frame is the statement, which is one line. The one within is the function that core called.
        let (within, _statement) = context.strip_suffix(outside)?.trim_end().rsplit_once('\n')?;
        // A frame without a name is that of a parallel worker.
        let mut frames = within.lines().rev();
        let frame = frames.clone().find(|frame| frame.contains(['"', '('])).or(frames.next())?;
        Some(Raiser { frame: frame.to_owned() })
    }

    /// `None` if no function is recognized, as in the context of an error of another server.
    fn cure(&self) -> Option<String> {
        let function = self.function()?;
        Some(format!(
            "Its search_path was pg_catalog, pg_temp. Set the schemas of the objects that it uses: \
             ALTER FUNCTION {function} SET search_path = ...;"
        ))
    }

    /// PL/pgSQL prints the signature; SQL only the name, in quotes.
    fn function(&self) -> Option<String> {
        let frame = &self.frame;
        let first = frame.find(['"', '('])?;
        let begin = frame[..first].rfind(' ')? + 1;
        if let Some(end) = frame.rfind(')') {
            let signature = frame.get(begin..=end)?;
            let (name, arguments) = signature.split_once('(')?;
            let is_of_types = !arguments[..arguments.len() - 1].contains(['(', '*', '=', '<', '>']);
            return (!name.is_empty() && is_of_types).then(|| signature.to_owned());
        }
        let (name, _) = frame[begin..].strip_prefix('"')?.rsplit_once('"')?;
        Some(quote_identifier(name))
    }
}

/// Whether an error says that something does not exist, as it does of a name without its schema that is not in the `search_path`.
fn is_undefined(code: PgSqlErrorCode) -> bool {
    matches!(
        code,
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE
            | PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION
            | PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT
            | PgSqlErrorCode::ERRCODE_INVALID_SCHEMA_NAME
    )
}

/// Calls `run`. If a function of a user raises in it that something does not exist, the error names the function and the cure.
pub fn naming_the_function<T>(run: impl FnOnce() -> T) -> T {
    let outside = context_outside();
    let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(run())))
        .catch_others(|error| match (Raiser::of(&error, &outside), &error) {
            (Some(raiser), CaughtError::PostgresError(report)) if is_undefined(report.sql_error_code()) => {
                let detail = report.detail().map_or_else(String::new, |detail| format!("{detail} "));
                Err(Report {
                    code: report.sql_error_code() as i32,
                    message: report.message().to_owned(),
                    detail: Some(format!("{detail}Raised by {}.", raiser.frame)),
                    hint: raiser.cure(),
                })
            }
            _ => error.rethrow(),
        })
        .execute();
    result.unwrap_or_else(|report| report.raise())
}

/// What the context of an error would say of the functions and statements that are running.
fn context_outside() -> String {
    // SAFETY: returns a C string, or null.
    unsafe {
        let context = call!(GetErrorContextStack());
        if context.is_null() { String::new() } else { c_text(context) }
    }
}

/// Calls `run` in a subtransaction, as a block of PL/pgSQL with an EXCEPTION clause. An error rolls back what it did, and is
/// returned. A cancellation and a bug are raised.
pub fn attempt<T>(run: impl FnOnce() -> T) -> Result<T, Failure> {
    in_subtransaction(run, true)
}

/// Calls `run`, which only reads, in the same way, and releases the locks that it took.
pub fn attempt_and_roll_back<T>(run: impl FnOnce() -> T) -> Result<T, Failure> {
    in_subtransaction(run, false)
}

fn in_subtransaction<T>(run: impl FnOnce() -> T, keeps: bool) -> Result<T, Failure> {
    // SAFETY: as in exec_stmt_block() of pl_exec.c: the subtransaction is released or rolled back, and then the memory context
    // and the resource owner are those of before. The result lives in Rust's memory.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        call!(BeginInternalSubTransaction(std::ptr::null()));
        pg_sys::MemoryContextSwitchTo(context);
        let outside = context_outside();
        let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(run())))
            .catch_others(|error| {
                pg_sys::MemoryContextSwitchTo(context);
                let raiser = Raiser::of(&error, &outside);
                Err((Box::new(error), raiser))
            })
            .catch_rust_panic(|error| Err((Box::new(error), None)))
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        match result {
            Ok(_) if keeps => call!(ReleaseCurrentSubTransaction()),
            _ => call!(RollbackAndReleaseCurrentSubTransaction()),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        result.map_err(|(error, raiser)| match *error {
            CaughtError::PostgresError(error) | CaughtError::ErrorReport(error) if !is_of_the_statement(error.sql_error_code()) => {
                Failure::of(&error, raiser)
            }
            // It is no longer on PostgreSQL's error stack, and pgrx would replace the detail by a backtrace.
            CaughtError::PostgresError(error) => Report {
                code: error.sql_error_code() as i32,
                message: error.message().to_owned(),
                detail: error.detail().map(str::to_owned),
                hint: error.hint().map(str::to_owned),
            }
            .raise(),
            other => other.rethrow(),
        })
    }
}

/// Whether an error ends the whole statement: a cancellation, a lack of memory or disk space, an internal error.
fn is_of_the_statement(code: PgSqlErrorCode) -> bool {
    matches!(
        code,
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED
            | PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY
            | PgSqlErrorCode::ERRCODE_DISK_FULL
            | PgSqlErrorCode::ERRCODE_INTERNAL_ERROR
            | PgSqlErrorCode::ERRCODE_DATA_CORRUPTED
            | PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED
    )
}
