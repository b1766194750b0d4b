//! Why the sequence returns no counter.
//!
//! The enums are `Copy` because they cross frames that an ERROR may jump over, which hold nothing with a destructor. Names are looked up
//! when the error is raised.

use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::Refusal;
use pgrx::pg_sys;

/// Why a call returns no counter. `Denied` is what an [`Authority`](super::Authority) says.
#[derive(Clone, Copy, Debug)]
pub enum Failure<Denied> {
    /// The sequence has none now.
    NoCounter(NoCounter),
    /// No ID may be generated.
    Denied(Denied),
}

impl<Denied> From<NoCounter> for Failure<Denied> {
    fn from(reason: NoCounter) -> Self {
        Failure::NoCounter(reason)
    }
}

/// Why a sequence has no counter now, or cannot be read.
#[derive(Clone, Copy, Debug)]
pub enum NoCounter {
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
    /// The sequence's data type is not bigint.
    UnsupportedType(pg_sys::Oid),
    /// Its increment is not 1.
    UnsupportedIncrement(i64),
    /// It cycles.
    UnsupportedCycle,
    /// Citus has given it the range of a worker.
    RangeOfCitus {
        /// The worker's group.
        group: i64,
    },
    /// The sequence has not returned an ID in this session.
    CurrvalUndefined,
    /// The policy refuses to issue a counter of the layout.
    Refused {
        /// The reason.
        refusal: Refusal,
        /// The layout.
        layout: Layout,
        /// The shard that the ID would have, the first one of a class; 0 where nobody asks for one.
        shard: u32,
    },
}
