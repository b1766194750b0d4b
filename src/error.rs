//! What can go wrong, and how it is told: SQLSTATE, message, detail and hint of every error in one place.
//!
//! The enum holds numbers only, so that it can be carried out of the code that runs under a single
//! `sigsetjmp` guard; names are looked up when the error is raised.

use crate::counter::{Ahead, Refusal};
use crate::fence::Barred;
use crate::layout::Layout;
use crate::settings;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::ffi::{CStr, c_char, c_int};

/// Everything that the extension refuses.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    /// The OID names no relation.
    NoSuchRelation,
    /// The relation is not a sequence.
    NotASequence,
    /// The user has none of the privileges that would do.
    PermissionDenied {
        /// The two privileges of which one is needed; the hint grants the second.
        either: [&'static str; 2],
    },
    /// The transaction is read-only.
    ReadOnlyTransaction,
    /// The server is a standby.
    DuringRecovery,
    /// The call is made by a parallel worker or its leader in parallel mode.
    ParallelMode,
    /// The sequence's page is not one.
    BadMagic(u32),
    /// The sequence is not `bigint INCREMENT 1 NO CYCLE`.
    UnfitSequence(Unfit),
    /// The shard id is outside the layout.
    ShardOutOfRange {
        /// The shard id that was given.
        shard: i32,
        /// The layout's number of shards.
        shards: i64,
    },
    /// `pg_snowflake.shard_id` is unset.
    ShardUnset,
    /// A fence stands in the way.
    Barred(Barred),
    /// This session has had no id from the sequence.
    NoIdYet,
    /// A negative number of ids was asked for.
    NegativeCount(i32),
    /// The policy refuses to issue a counter of the layout.
    Refused(Refusal, Layout),
}

/// What is wrong with a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Its data type is not bigint.
    DataType(pg_sys::Oid),
    /// Its increment is not 1.
    Increment(i64),
    /// It cycles.
    Cycle,
}

/// One error as PostgreSQL reports it.
pub struct Report {
    /// The SQLSTATE.
    pub code: PgSqlErrorCode,
    /// What is wrong.
    pub message: String,
    /// With which figures.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Report {
    /// Raises the error.
    pub fn raise(self) -> ! {
        let mut error = ErrorReport::new(self.code, sendable(self.message), function_name!());
        if let Some(detail) = self.detail {
            error = error.set_detail(sendable(detail));
        }
        if let Some(hint) = self.hint {
            error = error.set_hint(sendable(hint));
        }
        error.report(PgLogLevel::ERROR);
        unreachable!("ERROR does not return")
    }
}

impl Error {
    /// Raises the error. `function` is the SQL function that was called and `relid` the sequence that it
    /// was given.
    pub fn raise(self, function: &str, relid: pg_sys::Oid) -> ! {
        self.report(function, relid).raise()
    }

    /// The error in one line, for a row that shows it instead of raising it.
    pub fn summary(self, function: &str, relid: pg_sys::Oid) -> String {
        let Report { message, detail, .. } = self.report(function, relid);
        match detail {
            Some(detail) => format!("{message}: {detail}"),
            None => message,
        }
    }

    fn report(self, function: &str, relid: pg_sys::Oid) -> Report {
        match self {
            Error::NoSuchRelation => Report {
                code: PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                message: format!("sequence with OID {} does not exist", relid.to_u32()),
                detail: None,
                hint: Some("Pass the sequence by name: its OID is gone once it is dropped.".into()),
            },
            Error::NotASequence => Report {
                code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                message: format!("{} is not a sequence", quoted(&relation_name(relid))),
                detail: None,
                hint: Some(format!(
                    "Pass a sequence to {function}(); CREATE SEQUENCE makes one, and \
                     pg_get_serial_sequence() names the one behind a column."
                )),
            },
            Error::PermissionDenied { either: [other, grant] } => {
                let sequence = relation_name(relid);
                Report {
                    code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                    message: format!("permission denied for sequence {sequence}"),
                    detail: Some(format!("{function}() needs {grant} or {other} on the sequence.")),
                    hint: Some(format!(
                        "GRANT {grant} ON SEQUENCE {sequence} TO {};",
                        current_user_name()
                    )),
                }
            }
            Error::ReadOnlyTransaction => Report {
                code: PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                message: format!("cannot execute {function}() in a read-only transaction"),
                detail: None,
                hint: Some("Start the transaction with BEGIN READ WRITE.".into()),
            },
            Error::DuringRecovery => Report {
                code: PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                message: format!("cannot execute {function}() during recovery"),
                detail: Some("This server is a standby; only the primary issues ids.".into()),
                hint: Some("Connect to the primary, or promote this server first.".into()),
            },
            Error::ParallelMode => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_TRANSACTION_STATE,
                message: format!("cannot execute {function}() during a parallel operation"),
                detail: None,
                hint: Some(format!(
                    "Mark the functions that call {function}() PARALLEL UNSAFE, as {function}() is."
                )),
            },
            Error::BadMagic(magic) => Report {
                code: PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                message: format!(
                    "bad magic number in sequence {}: {magic:08X}",
                    quoted(&relation_name(relid))
                ),
                detail: None,
                hint: None,
            },
            Error::UnfitSequence(unfit) => unfit.report(function, relid),
            Error::ShardOutOfRange { shard, shards } => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                message: format!("shard id {shard} is out of range"),
                detail: Some(format!("The layout has shards 0 to {}.", shards - 1)),
                hint: Some(match settings::shard_id() {
                    Some(set) if set == shard => format!(
                        "Set pg_snowflake.shard_id of database {} to a shard in that range.",
                        current_database_name()
                    ),
                    _ => "Pass a shard in that range.".into(),
                }),
            },
            Error::ShardUnset => Report {
                code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                message: "this database has no shard id".into(),
                detail: Some("The setting pg_snowflake.shard_id is -1, which means unset.".into()),
                hint: Some(format!(
                    "Set it as a superuser and reconnect: ALTER DATABASE {} SET \
                     pg_snowflake.shard_id = 5; or pass the shard to {function}().",
                    current_database_name()
                )),
            },
            Error::Barred(barred) => barred.report(),
            Error::NoIdYet => Report {
                code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                message: format!(
                    "{function} of sequence {} is not yet defined in this session",
                    quoted(&relation_name(relid))
                ),
                detail: None,
                hint: Some("It is the last id that snowflake_nextval() gave this session.".into()),
            },
            Error::NegativeCount(count) => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                message: format!("cannot issue {count} ids"),
                detail: None,
                hint: Some("Pass a count of 0 or more.".into()),
            },
            Error::Refused(refusal, layout) => refused(refusal, layout, function, relid),
        }
    }
}

impl Unfit {
    fn report(self, function: &str, relid: pg_sys::Oid) -> Report {
        let (fault, mend) = match self {
            Unfit::DataType(typid) => {
                (format!("Its data type is {}, not bigint.", type_name(typid)), "AS bigint")
            }
            Unfit::Increment(increment) => {
                (format!("Its increment is {increment}, not 1."), "INCREMENT 1")
            }
            Unfit::Cycle => ("It cycles, so that ids would come twice.".into(), "NO CYCLE"),
        };
        cannot_hold_the_counter(fault, mend, function, relid)
    }
}

fn cannot_hold_the_counter(
    fault: String,
    mend: &str,
    function: &str,
    relid: pg_sys::Oid,
) -> Report {
    let sequence = relation_name(relid);
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!(
            "{function}: sequence {} cannot hold the counter of ids",
            quoted(&sequence)
        ),
        detail: Some(fault),
        hint: Some(format!("ALTER SEQUENCE {sequence} {mend};")),
    }
}

fn refused(refusal: Refusal, layout: Layout, function: &str, relid: pg_sys::Oid) -> Report {
    match refusal {
        Refusal::ClockBeforeEpoch { us } => Report {
            code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message: "the server's clock is before the layout's epoch".into(),
            detail: Some(format!("It is {} too early.", duration(us))),
            hint: Some("Set the server's clock right.".into()),
        },
        Refusal::TooFarAhead { lead_us, wait_us, ahead } => {
            too_far_ahead(relid, lead_us, wait_us, ahead)
        }
        Refusal::AboveMaxValue { counter, max_value } => cannot_hold_the_counter(
            format!("Its MAXVALUE is {max_value}, and the counter that is due is {counter}."),
            "NO MAXVALUE",
            function,
            relid,
        ),
        Refusal::LayoutUsedUp => Report {
            code: PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            message: format!(
                "{function}: the layout's time field is used up for sequence {}",
                quoted(&relation_name(relid))
            ),
            detail: Some(format!(
                "The last id that is not negative has tick {}; a negative id would sort before \
                 all others.",
                layout.max_tick()
            )),
            hint: Some(
                "If the server's clock is right, move the column to a layout with a later end."
                    .into(),
            ),
        },
    }
}

/// The longest lead that `pg_snowflake.max_lead` can be set to bridge, in seconds: the setting is an `int` of
/// milliseconds, some 24 days.
const LONGEST_SETTABLE_LEAD_S: i64 = i32::MAX as i64 / 1000;

fn too_far_ahead(relid: pg_sys::Oid, lead_us: i64, wait_us: i64, ahead: Ahead) -> Report {
    let sequence = relation_name(relid);
    let message = match ahead {
        Ahead::Sequence => format!(
            "sequence {} is ahead of the server's clock by {}",
            quoted(&sequence),
            duration(lead_us)
        ),
        Ahead::HighWater { step_us } => {
            format!("the server's clock stepped back by {}", duration(step_us))
        }
    };
    let bridge_s = lead_us / 1_000_000 + 1;
    let (cause, hint) = if bridge_s > LONGEST_SETTABLE_LEAD_S {
        (
            "So long a lead has another cause than a clock: the sequence was used under another layout, or \
             holds another extension's whole ids.",
            "Give the column a new sequence, or set this one to its counter with setval()."
                .to_owned(),
        )
    } else {
        let cause = match ahead {
            Ahead::Sequence => {
                "Its last ids were taken when the clock stood higher, or faster than the clock runs."
            }
            Ahead::HighWater { .. } => {
                "This session saw it higher, and issues no id below what it saw."
            }
        };
        let hint = format!(
            "If the clock is wrong, set it right, and ids go on by themselves. If it is right, have a \
             superuser let new sessions run ahead until it has caught up, where ids stay unique: ALTER \
             DATABASE {} SET pg_snowflake.max_lead = '{bridge_s}s';",
            current_database_name()
        );
        (cause, hint)
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message,
        detail: Some(format!(
            "{cause} The next id is due in {}, which is longer than pg_snowflake.max_wait.",
            duration(wait_us)
        )),
        hint: Some(hint),
    }
}

/// A length of time in the largest unit that leaves a figure of at least 1, for people.
pub fn duration(us: i64) -> String {
    const UNITS: [(i64, &str); 5] = [
        (86_400_000_000, "days"),
        (3_600_000_000, "hours"),
        (60_000_000, "minutes"),
        (1_000_000, "s"),
        (1_000, "ms"),
    ];
    for (unit, name) in UNITS {
        if us >= unit {
            return format!("{:.3} {name}", us as f64 / unit as f64);
        }
    }
    format!("{us} us")
}

/// The name in quotes, unless it has some already.
pub fn quoted(name: &str) -> String {
    if name.contains('"') { name.to_owned() } else { format!("\"{name}\"") }
}

/// The relation's name as `regclass` prints it: quoted and with its schema where that is needed.
pub fn relation_name(relid: pg_sys::Oid) -> String {
    // SAFETY: regclassout takes an OID, known or not, and returns a palloc'd C string.
    unsafe {
        let out = pgrx::direct_function_call_as_datum(pg_sys::regclassout, &[Some(relid.into())]);
        out.map_or_else(String::new, |name| text(name.cast_mut_ptr()))
    }
}

fn type_name(typid: pg_sys::Oid) -> String {
    // SAFETY: format_type_be() takes any OID and returns a palloc'd C string.
    unsafe { text(pg_sys::format_type_be(typid)) }
}

/// The current role, quoted where SQL needs it.
pub fn current_user_name() -> String {
    // SAFETY: the user id is valid inside a transaction, and both functions return C strings.
    unsafe { quote_identifier(pg_sys::GetUserNameFromId(pg_sys::GetUserId(), true)) }
}

/// The role that logged in, quoted where SQL needs it.
pub fn session_user_name() -> String {
    // SAFETY: as for current_user_name().
    unsafe { quote_identifier(pg_sys::GetUserNameFromId(pg_sys::GetSessionUserId(), true)) }
}

/// The session's database, quoted where SQL needs it.
pub fn current_database_name() -> String {
    // SAFETY: MyDatabaseId is set in every backend that runs SQL.
    unsafe { quote_identifier(pg_sys::get_database_name(pg_sys::MyDatabaseId)) }
}

/// # Safety
/// `name` is null or a C string.
unsafe fn quote_identifier(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: not null, and a C string as the caller promises.
    unsafe { text(pg_sys::quote_identifier(name)) }
}

/// A server's C string, fit for a message.
///
/// # Safety
/// `c_string` is a C string.
pub unsafe fn text(c_string: *const c_char) -> String {
    // SAFETY: as the caller promises.
    sendable(unsafe { CStr::from_ptr(c_string) }.to_string_lossy().into_owned())
}

/// Messages go out as they are, so in a database of another encoding they must be ASCII.
fn sendable(text: String) -> String {
    // SAFETY: the encoding is set in every backend that runs SQL.
    if unsafe { pg_sys::GetDatabaseEncoding() } == pg_sys::pg_enc::PG_UTF8 as c_int {
        text
    } else {
        text.replace(|c: char| !c.is_ascii(), "?")
    }
}
