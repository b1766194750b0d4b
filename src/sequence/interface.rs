//! What the sequence and its callers pass each other: who may generate IDs, and why there is no counter.
//!
//! The enums are `Copy` because they cross frames that an ERROR may jump over, which hold nothing with a destructor. Names are looked up
//! when the error is raised.

use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::{Policy, Refusal, Run};
use pg_snowflake_policies::homed::Class;
use pg_snowflake_policies::lease::Ticks;
use pgrx::pg_sys;

/// Who may generate IDs of which ticks now, and how far ahead of the clock. Each call passes it.
///
/// Its functions are called for each ID without a guard, and [`confirm`](Authority::confirm) while the page is locked. So they raise no
/// error, and hold nothing with a destructor.
pub trait Authority: Copy {
    /// Why no ID may be generated.
    type Denied: Copy;

    /// How far IDs may run ahead of the clock, and how long a call waits for it.
    fn policy(self) -> Policy;

    /// The ticks in which IDs of each shard of the class may be generated now.
    fn ticks_of(self, class: Class, layout: &Layout) -> Result<Ticks, Self::Denied>;

    /// The same as of now or of an earlier call. [`is_current`](Authority::is_current) or [`confirm`](Authority::confirm) says whether
    /// they still apply.
    fn recent_ticks(self, class: Class, layout: &Layout) -> Option<Ticks>;

    /// Whether the ticks that the session knows of the class still apply.
    fn is_current(self, class: Class) -> bool;

    /// Makes known that the counters are used, and returns whether the ticks that they were cut to still apply: only then may they be
    /// written. Called under the lock of the page, after [`ticks_of`](Authority::ticks_of) or
    /// [`recent_ticks`](Authority::recent_ticks) for the same class and layout.
    fn confirm(self, class: Class, layout: &Layout, run: Run) -> bool;
}

/// Why a call returns no counter. `Denied` is what an [`Authority`] says.
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
    /// It has the range of a node of a distributed database.
    RangeOfNode {
        /// The node's group.
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
        /// The refusal is of the counter of the last ID, from before somebody set the sequence back, not of its `last_value`.
        is_set_back: bool,
    },
}
