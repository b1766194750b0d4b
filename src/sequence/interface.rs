//! What the sequence and its callers pass each other: who may generate IDs, and why there is no counter.
//!
//! The enums are `Copy` because they cross frames that an ERROR may jump over, which hold nothing with a destructor. Names are looked up
//! when the error is raised.

use pg_snowflake_ids::layout::{Layout, Packed};
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::clock::Now;
use pg_snowflake_policies::counter::{Policy, Reading, Refusal, Run};
use pg_snowflake_policies::homed::Class;
use pg_snowflake_policies::lease::Ticks;
use pgrx::pg_sys;

/// What an [`Authority`] has permitted.
#[derive(Clone, Copy, Debug)]
pub struct Permit {
    /// The shards of the IDs: one, or those of homed IDs.
    pub class: Class,
    /// The last reading of the clock, with the layout, `max_lead`, `max_wait` and the ticks of the lease, which are permitted.
    /// [`update`](Reading::update) makes it a current one.
    pub reading: Reading,
    /// As long as it is the same, so is the permit.
    pub version: u64,
}

impl Permit {
    /// For no IDs, and of no version.
    pub const NONE: Permit =
        Permit::new(Class::one(0), Packed::new(DEFAULT), Policy { max_lead_us: 0, max_wait_us: 0 }, Ticks::NONE, u64::MAX);

    /// For IDs of these shards in these ticks.
    pub const fn new(class: Class, layout: Packed, policy: Policy, ticks: Ticks, version: u64) -> Permit {
        let reading = Reading::new(layout, policy, ticks, Now { reading_us: 0, high_water_us: 0 });
        Permit { class, reading, version }
    }
}

/// Who may generate which IDs. Each call passes what it asks for.
pub trait Authority: Copy {
    /// Why no ID may be generated.
    type Denied: Copy;

    /// Reads what [`permit`](Authority::permit) needs to know, and refuses a shard that the layout lacks or a fence forbids. Called
    /// where errors may be raised.
    fn prepare(self, layout: &Packed) -> Result<(), Self::Denied>;

    /// What may be generated now with the layout of these [bits](Packed::bits), until the next call; `Err(None)` if
    /// [`prepare`](Authority::prepare) must be called again, or no layout has these bits. Called for each ID without a guard, so it
    /// raises no error, and holds nothing with a destructor.
    ///
    /// # Safety
    /// The permit of an earlier call is not used any more.
    unsafe fn permit(self, layout: u64) -> Result<&'static mut Permit, Option<Self::Denied>>;

    /// Makes known that the counters are used, and returns whether the permit still applies: only then may they be written. Called under
    /// the lock of the page, so it raises no error either.
    fn confirm(self, permit: &Permit, run: Run) -> bool;
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
