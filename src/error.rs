//! The errors of generating IDs and of reading sequences: SQLSTATE, message, detail and hint in one place.
//!
//! The enum is `Copy` because it crosses frames that an ERROR may jump over, which hold nothing with a
//! destructor. Names are looked up when the error is raised.

use crate::citus;
use crate::fence::FenceError;
use crate::lease::{self, Unleased};
use crate::report::{
    Report, current_user_name, duration, quoted, relation_name, set_for_this_database, type_name,
};
use crate::{generate, settings};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::{Ahead, LeaseRefusal, Refusal};
use pg_snowflake_policies::homed::Invalid;
use pgrx::prelude::*;

/// Why an ID cannot be generated, or a sequence cannot be read.
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
    /// The layout does not have the shard.
    ShardOutOfRange {
        /// The shard ID.
        shard: i32,
        /// The layout.
        layout: Layout,
    },
    /// `pg_snowflake.shard_id` is unset.
    ShardUnset,
    /// A fence refuses the shard or this server.
    Fence(FenceError),
    /// This server has no lease for the shard.
    Lease(Unleased),
    /// The sequence has not returned an ID in this session.
    CurrvalUndefined,
    /// The number of IDs requested is negative.
    NegativeCount(i32),
    /// There are no homed IDs with these arguments.
    NotHomed {
        /// The reason.
        invalid: Invalid,
        /// The layout.
        layout: Layout,
    },
    /// The multirange has more ranges than a session reads.
    TooManyRanges {
        /// The number of its ranges.
        count: usize,
        /// The highest number.
        limit: usize,
    },
    /// The policy refuses to issue a counter of the layout.
    Refused {
        /// The reason.
        refusal: Refusal,
        /// The layout.
        layout: Layout,
        /// The shard that the ID would have; 0 where nobody asks for one.
        shard: u32,
    },
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
    /// Raises the error. `function` is the SQL function called, and `relid` the sequence passed to it.
    pub fn raise(self, function: &str, relid: pg_sys::Oid) -> ! {
        self.report(function, relid).raise()
    }

    /// The error in one line, for a row that shows it.
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
            Error::ReadOnlyTransaction => Report {
                code: PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                message: format!("cannot execute {function}() in a read-only transaction"),
                detail: None,
                hint: Some("Start the transaction with BEGIN READ WRITE.".into()),
            },
            Error::DuringRecovery => Report {
                code: PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                message: format!("cannot execute {function}() during recovery"),
                detail: Some("This server is a standby. Only the primary generates IDs.".into()),
                hint: Some("Connect to the primary. If it is lost, promote this server.".into()),
            },
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
            Error::ShardOutOfRange { shard, layout } => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                message: format!(
                    "shard ID {shard} is out of range for layout {}",
                    quoted(&layout.to_string())
                ),
                detail: Some(format!("The layout has shard IDs from 0 to {}.", layout.shards() - 1)),
                hint: Some(match settings::shard_id() {
                    Some(set) if set == shard => {
                        "Set pg_snowflake.shard_id to a shard ID in that range.".into()
                    }
                    None if citus::known_group() == Some(shard) => format!(
                        "This server's group in Citus is not in that range. On each node, have a superuser run this command with a \
                         different number: {}",
                        set_for_this_database("pg_snowflake.shard_id", "5")
                    ),
                    _ => "Pass a shard ID in that range.".into(),
                }),
            },
            Error::ShardUnset => Report {
                code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                message: "pg_snowflake.shard_id is not set".into(),
                detail: Some(if citus::is_installed() {
                    "The call names no shard, this database has no shard ID, and this server is not a node of Citus. \
                     citus_set_coordinator_host() makes it the coordinator, and citus_add_node() a worker."
                        .into()
                } else {
                    "The call names no shard, and this database has no shard ID.".to_owned()
                }),
                hint: Some(format!(
                    "Pass a shard ID to {function}(), or have a superuser run this command and reconnect: {}",
                    set_for_this_database("pg_snowflake.shard_id", "5")
                )),
            },
            Error::Fence(error) => error.report(),
            Error::Lease(unleased) => unleased.report(),
            Error::CurrvalUndefined => Report {
                code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                message: format!(
                    "{function} of sequence {} is not yet defined in this session",
                    quoted(&relation_name(relid))
                ),
                detail: None,
                hint: Some("Call snowflake_nextval() in this session first, or use INSERT ... RETURNING.".into()),
            },
            Error::NegativeCount(count) => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                message: "number of IDs must not be negative".into(),
                detail: Some(format!("The number requested is {count}.")),
                hint: Some("Pass a count of 0 or more.".into()),
            },
            Error::NotHomed { invalid, layout } => generate::invalid_arguments(invalid, layout),
            Error::TooManyRanges { count, limit } => Report {
                code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                message: "too many hash ranges".into(),
                detail: Some(format!("The multirange has {count} ranges; the limit is {limit}.")),
                hint: Some("Pass the hash ranges of the shards on this server, not single hashes.".into()),
            },
            Error::Refused { refusal, layout, shard } => refusal_report(refusal, layout, shard, relid),
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
            UnsupportedOption::CitusRange { group } => return citus_sequence(group, relid),
        };
        unusable_sequence(detail, fix, relid)
    }
}

/// Citus refuses every change of such a sequence, so there must be another one.
fn citus_sequence(group: i64, relid: pg_sys::Oid) -> Report {
    let sequence = relation_name(relid);
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {} cannot be used to generate IDs", quoted(&sequence)),
        detail: Some(format!(
            "Citus manages it, and has limited it to the numbers of node group {group}, because the default of a distributed table \
             refers to it."
        )),
        hint: Some(citus::recipe("ALTER TABLE ... ALTER COLUMN ...")),
    }
}

fn unusable_sequence(detail: String, fix: &str, relid: pg_sys::Oid) -> Report {
    let sequence = relation_name(relid);
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {} cannot be used to generate IDs", quoted(&sequence)),
        detail: Some(detail),
        hint: Some(format!("Run: ALTER SEQUENCE {sequence} {fix};")),
    }
}

fn refusal_report(refusal: Refusal, layout: Layout, shard: u32, relid: pg_sys::Oid) -> Report {
    match refusal {
        Refusal::ClockBeforeEpoch { us } => Report {
            code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message: format!(
                "server clock is before the epoch of layout {}",
                quoted(&layout.to_string())
            ),
            detail: Some(format!("The clock is {} behind the epoch.", duration(us))),
            hint: Some("Correct the server's clock.".into()),
        },
        Refusal::TooFarAhead { lead_us, wait_us, ahead } => {
            too_far_ahead(relid, lead_us, wait_us, ahead)
        }
        Refusal::NotHome { counters } => Report {
            code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message: format!("could not find a homed ID of shard {shard}"),
            detail: Some(format!("None of the next {counters} counters yields one.")),
            hint: Some("Pass a lower modulus, fewer generators or larger hash ranges.".into()),
        },
        Refusal::Lease(refusal) => lease_refusal(refusal, shard, relid),
        Refusal::AboveMaxValue { counter, max_value } => unusable_sequence(
            format!("Its MAXVALUE is {max_value}, below the next counter, {counter}."),
            "NO MAXVALUE",
            relid,
        ),
        Refusal::LayoutUsedUp => Report {
            code: PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            message: format!(
                "sequence {} has reached the end of layout {}",
                quoted(&relation_name(relid)),
                quoted(&layout.to_string())
            ),
            detail: Some(format!(
                "The last tick of the layout is {}. A later ID would be negative or would not fit.",
                layout.max_tick()
            )),
            hint: Some(
                "If the server's clock is right, convert the column to a layout that ends later."
                    .into(),
            ),
        },
    }
}

fn lease_refusal(refusal: LeaseRefusal, shard: u32, relid: pg_sys::Oid) -> Report {
    let (message, cause, hint) = match refusal {
        LeaseRefusal::Ended { us } => (
            format!("lease of shard {shard} has ended"),
            format!("It ended {} ago.", duration(us)),
            "Make the registry reachable; the server then renews its lease automatically. See the server log and \
             snowflake_lease_status().",
        ),
        LeaseRefusal::BeginsLater { us } => (
            format!("lease of shard {shard} has not begun"),
            format!(
                "It begins in {}, when the shard's former span or the registry's quiet time has ended.",
                duration(us)
            ),
            "Try again then. If the time is long, compare the clocks of this server and the registry.",
        ),
        LeaseRefusal::SequencePastEnd { lead_us } => (
            format!(
                "sequence {} is past the end of the lease of shard {shard}",
                quoted(&relation_name(relid))
            ),
            format!("It is {} ahead of the clock.", duration(lead_us)),
            "Try again when the clock has caught up with the sequence.",
        ),
        LeaseRefusal::HighWaterPastEnd { step_us } => (
            "server clock stepped back too far".to_owned(),
            format!(
                "It is {} behind its reading at the last ID of this session, which generates no IDs below that reading. The lease of \
                 shard {shard} ends before.",
                duration(step_us)
            ),
            "If the clock is wrong, correct it; no other action is needed. If it is right, reconnect.",
        ),
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message,
        detail: Some(lease::with_last_answer(cause)),
        hint: Some(hint.into()),
    }
}

fn too_far_ahead(relid: pg_sys::Oid, lead_us: i64, wait_us: i64, ahead: Ahead) -> Report {
    let sequence = relation_name(relid);
    let message = match ahead {
        Ahead::Sequence => {
            format!("sequence {} is too far ahead of the server clock", quoted(&sequence))
        }
        Ahead::HighWater { .. } => "server clock stepped back too far".to_owned(),
    };
    let needed_lead_s = lead_us / 1_000_000 + 1;
    let is_within_longest_lead = needed_lead_s <= settings::LONGEST_LEAD_US / 1_000_000;
    let cause = match ahead {
        Ahead::Sequence if is_within_longest_lead => format!(
            "It is {} ahead: its last IDs were generated before the clock stepped back, or faster than the layout \
             allows.",
            duration(lead_us)
        ),
        Ahead::Sequence => format!(
            "It is {} ahead: it was used with another layout, holds another extension's IDs, or was used while the \
             clock was wrong by that much.",
            duration(lead_us)
        ),
        Ahead::HighWater { step_us } => format!(
            "It is {} behind its reading at the last ID of this session, which generates no IDs below that reading.",
            duration(step_us)
        ),
    };
    let hint = match ahead {
        _ if is_within_longest_lead => format!(
            "If the clock is wrong, correct it; no other action is needed. If it is right, have a superuser let new \
             sessions run ahead of it, with IDs still unique: {}",
            set_for_this_database("pg_snowflake.max_lead", &format!("'{needed_lead_s}s'"))
        ),
        Ahead::Sequence => "Create a new sequence for the column, or set this one to its counter with setval().".into(),
        Ahead::HighWater { .. } => {
            "If the clock is wrong, correct it; no other action is needed. If it is right, reconnect.".into()
        }
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message,
        detail: Some(format!(
            "{cause} The next ID is due in {}, which is longer than pg_snowflake.max_wait.",
            duration(wait_us)
        )),
        hint: Some(hint),
    }
}
