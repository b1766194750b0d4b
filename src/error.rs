//! The errors of generating IDs and of reading sequences: SQLSTATE, message, detail and hint in one place for all functions.

mod homed;
mod refusal;

use crate::citus;
use crate::lease::Unleased;
use crate::postgres::report::Report;
use crate::sequence::{self, Failure, UnsupportedOption};
use crate::shard::Denied;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::Refusal;
use pg_snowflake_policies::homed::Invalid;
use pgrx::prelude::*;

/// Why an ID cannot be generated, or a sequence cannot be read.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    /// The sequence cannot be used.
    Sequence(sequence::Error),
    /// The policy refuses to issue a counter of the layout.
    Refused {
        /// The reason.
        refusal: Refusal,
        /// The layout.
        layout: Layout,
        /// The shard that the ID would have; 0 where nobody asks for one.
        shard: u32,
    },
    /// This server may not generate the ID.
    Denied(Denied),
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
}

impl From<sequence::Error> for Error {
    fn from(error: sequence::Error) -> Self {
        Error::Sequence(error)
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        Error::Denied(denied)
    }
}

impl From<Failure<Unleased>> for Error {
    fn from(failure: Failure<Unleased>) -> Self {
        match failure {
            Failure::Sequence(error) => error.into(),
            Failure::Refused { refusal, layout, shard } => {
                Error::Refused { refusal, layout, shard }
            }
            Failure::Denied(unleased) => Denied::Lease(unleased).into(),
        }
    }
}

impl Error {
    /// Raises the error. `function` is the SQL function called, and `relid` the sequence passed to it.
    #[track_caller]
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
            Error::Sequence(error) => {
                let report = error.report(function, relid);
                match error {
                    sequence::Error::UnusableSequence(UnsupportedOption::CitusRange { .. }) => {
                        Report { hint: Some(citus::recipe_with_another_sequence()), ..report }
                    }
                    _ => report,
                }
            }
            Error::Refused { refusal, layout, shard } => {
                refusal::refused(refusal, layout, shard, relid)
            }
            Error::Denied(denied) => denied.report(function),
            Error::NegativeCount(count) => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                message: "number of IDs must not be negative".into(),
                detail: Some(format!("The number requested is {count}.")),
                hint: Some("Pass a count of 0 or more.".into()),
            },
            Error::NotHomed { invalid, layout } => homed::invalid_arguments(invalid, layout),
            Error::TooManyRanges { count, limit } => Report {
                code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                message: "too many hash ranges".into(),
                detail: Some(format!("The multirange has {count} ranges; the limit is {limit}.")),
                hint: Some(
                    "Pass the hash ranges of the shards on this server, not single hashes.".into(),
                ),
            },
        }
    }
}
