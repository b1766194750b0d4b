//! Why the sequence returns no counter, and the errors for that.
//!
//! The enums are `Copy` because they cross frames that an ERROR may jump over, which hold nothing with a destructor. Names are looked up
//! when the error is raised.

use super::backend_clock;
use crate::postgres::report::{Report, current_user_name, quoted, relation_name, type_name};
use crate::postgres::transaction::{during_recovery, read_only};
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::held::{Held, instead_of_counter};
use pg_snowflake_policies::counter::Refusal;
use pgrx::prelude::*;

/// Why a call returns no counter. `Denied` is what an [`Authority`](super::Authority) says.
#[derive(Clone, Copy, Debug)]
pub enum Failure<Denied> {
    /// The sequence cannot be used.
    Sequence(Error),
    /// The policy refuses to issue a counter of the layout.
    Refused {
        /// The reason.
        refusal: Refusal,
        /// The layout.
        layout: Layout,
        /// The shard that the ID would have; the first one of a class.
        shard: u32,
    },
    /// No ID may be generated.
    Denied(Denied),
}

impl<Denied> From<Error> for Failure<Denied> {
    fn from(error: Error) -> Self {
        Failure::Sequence(error)
    }
}

/// Why a sequence cannot be used or read.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    /// The OID names no relation.
    NoSuchRelation,
    /// The relation is not a sequence.
    NotASequence,
    /// The user has neither of two privileges, one of which is needed.
    PermissionDenied {
        /// The two privileges; the hint grants the second.
        either: [&'static str; 2],
    },
    /// The transaction is read-only.
    ReadOnlyTransaction,
    /// The server is a standby.
    DuringRecovery,
    /// The transaction is in parallel mode.
    ParallelMode,
    /// The page is not a sequence's; it has this magic number.
    BadMagic(u32),
    /// The sequence cannot hold a counter: it is not `bigint INCREMENT 1 NO CYCLE`.
    UnusableSequence(UnsupportedOption),
    /// The sequence has not returned an ID in this session.
    CurrvalUndefined,
}

/// The option of a sequence that keeps it from holding a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedOption {
    /// Its data type is not bigint.
    DataType(pg_sys::Oid),
    /// Its increment is not 1.
    Increment(i64),
    /// It cycles.
    Cycle,
    /// Citus has given it the range of a worker.
    CitusRange {
        /// The worker's group.
        group: i64,
    },
}

impl Error {
    /// The error to raise. `function` is the SQL function called, and `relid` the sequence passed to it.
    pub fn report(self, function: &str, relid: pg_sys::Oid) -> Report {
        match self {
            Error::NoSuchRelation => Report {
                code: PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                message: format!("sequence with OID {} does not exist", relid.to_u32()),
                detail: None,
                hint: Some("Pass the sequence by name. Dropping a sequence invalidates its OID.".into()),
            },
            Error::NotASequence => Report {
                code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                message: format!("{} is not a sequence", quoted(&relation_name(relid))),
                detail: None,
                hint: Some(format!(
                    "Pass a sequence to {function}(). CREATE SEQUENCE creates one, and \
                     pg_get_serial_sequence() returns the one that a column owns."
                )),
            },
            Error::PermissionDenied { either: [other, grant] } => {
                let sequence = relation_name(relid);
                Report {
                    code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                    message: format!("permission denied for sequence {sequence}"),
                    detail: Some(format!("{function}() requires the privilege {grant} or {other} on the sequence.")),
                    hint: Some(format!(
                        "Run: GRANT {grant} ON SEQUENCE {sequence} TO {};",
                        current_user_name()
                    )),
                }
            }
            Error::ReadOnlyTransaction => read_only(function),
            Error::DuringRecovery => during_recovery(function, "Only the primary generates IDs."),
            Error::ParallelMode => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_TRANSACTION_STATE,
                message: format!("cannot execute {function}() during a parallel operation"),
                detail: None,
                hint: Some(format!(
                    "Mark every function that calls {function}() as PARALLEL UNSAFE."
                )),
            },
            Error::BadMagic(magic) => Report {
                code: PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                message: format!(
                    "bad magic number in sequence {}: {magic:08X}",
                    quoted(&relation_name(relid))
                ),
                detail: Some("The file of the sequence is damaged.".into()),
                hint: Some(
                    "Look for the cause in the server log and on the disk. Then, in one transaction, drop the column's \
                     default and the sequence, and call snowflake_convert_column() with the shard and the layout of that \
                     default."
                        .into(),
                ),
            },
            Error::UnusableSequence(option) => option.report(relid),
            Error::CurrvalUndefined => Report {
                code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                message: format!(
                    "{function} of sequence {} is not yet defined in this session",
                    quoted(&relation_name(relid))
                ),
                detail: None,
                hint: Some("Call snowflake_nextval() in this session first, or use INSERT ... RETURNING.".into()),
            },
        }
    }
}

impl UnsupportedOption {
    fn report(self, relid: pg_sys::Oid) -> Report {
        let (detail, fix) = match self {
            UnsupportedOption::DataType(typid) => {
                (format!("Its data type is {}, not bigint.", type_name(typid)), "AS bigint")
            }
            UnsupportedOption::Increment(increment) => {
                (format!("Its increment is {increment}, not 1."), "INCREMENT 1")
            }
            UnsupportedOption::Cycle => {
                ("It is defined with CYCLE, which would repeat IDs.".into(), "NO CYCLE")
            }
            // Whoever knows Citus has a hint.
            UnsupportedOption::CitusRange { group } => {
                let detail = format!(
                    "Citus manages it, and has limited it to the numbers of node group {group}, because the default of a distributed \
                     table refers to it."
                );
                return Report { hint: None, ..unusable(detail, "", relid) };
            }
        };
        unusable(detail, fix, relid)
    }
}

/// The error for a sequence that cannot hold the counter. `fix` is the option to change.
pub fn unusable(detail: String, fix: &str, relid: pg_sys::Oid) -> Report {
    let sequence = relation_name(relid);
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {} cannot be used to generate IDs", quoted(&sequence)),
        detail: Some(detail),
        hint: Some(format!("Run: ALTER SEQUENCE {sequence} {fix};")),
    }
}

/// What a sequence that is far ahead of the clock holds instead of its counter, as the end of a detail, and the hint; `None` if it is not
/// recognized.
pub fn not_its_counter(last_value: i64, layout: Layout) -> Option<(String, String)> {
    let held = instead_of_counter(last_value, &layout, backend_clock::read().reading_us)?;
    let cause = format!("its last_value, {last_value}, is {held}");
    Some(match held {
        Held::OtherCounter { .. } => (cause, after_another_layout()),
        Held::Id { .. } | Held::OtherId { .. } | Held::UnixTime(_) => (
            format!("{cause}, not a counter"),
            format!("Call {RESTART} Do not set the sequence with setval() or RESTART."),
        ),
    })
}

/// The hint for a sequence that was used with another layout.
pub fn after_another_layout() -> String {
    format!(
        "Correct the call or the column default that named the wrong layout. Then call {RESTART}"
    )
}

const RESTART: &str = "snowflake_convert_column() with the shard and the layout of the column, which restarts the sequence above its \
                       IDs.";
