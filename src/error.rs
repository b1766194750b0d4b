//! The errors of generating IDs and of reading sequences: which message each has. The texts are in `pg_snowflake_policies::messages`.

mod denied;
mod no_counter;

pub use denied::report as denied;

use crate::denied::Denied;
use crate::postgres::report::{Raise, Report};
use crate::sequence::Failure;
use pgrx::pg_sys;

/// Why an ID cannot be generated, or a sequence cannot be read.
pub type Error = Failure<Denied>;

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        Failure::Denied(denied)
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
        self.report(function, relid).summary()
    }

    fn report(self, function: &str, relid: pg_sys::Oid) -> Report {
        match self {
            Failure::NoCounter(reason) => no_counter::report(reason, function, relid),
            Failure::Denied(reason) => denied::report(reason, function),
        }
    }
}
