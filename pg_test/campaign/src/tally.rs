//! What is counted in the rounds of a fault.

use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub returned: u64,
    /// Of these, the ones that are promised never to be returned again.
    pub promised: u64,
    /// How often a promised one was returned again. Must be 0.
    pub repeats: u64,
    /// IDs that are not above what was committed before the fault, or not above the session's last from the same sequence. Must be 0.
    pub out_of_order: u64,
    /// How often one that is not promised was returned again.
    pub repeats_unpromised: u64,
    /// Calls that were refused because the sequence was too far ahead of the clock, or the server had no lease.
    pub refused: u64,
    /// Where servers share a shard: IDs of all servers but the one that returned most. 0 would prove nothing.
    pub by_others: u64,
    /// IDs of ticks in which two servers returned IDs for one shard. Must be 0.
    pub in_shared_ticks: u64,
    /// Advisory locks that idle sessions held after the SQL edition. Must be 0.
    pub locks_left: u64,
    /// How often the function that the SQL edition replaces returned an ID again. The long form fails with 0, which would prove nothing.
    pub copied_repeats: u64,
    /// Steps beside core's functions.
    pub steps: u64,
    /// Of these, the ones that did something else than with core's functions. Must be 0.
    pub unlike_core: u64,
}

impl Tally {
    pub fn is_sound(&self) -> bool {
        let Tally { repeats, out_of_order, in_shared_ticks, locks_left, unlike_core, .. } = *self;
        [repeats, out_of_order, in_shared_ticks, locks_left, unlike_core] == [0; 5]
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.returned += other.returned;
        self.promised += other.promised;
        self.repeats += other.repeats;
        self.out_of_order += other.out_of_order;
        self.repeats_unpromised += other.repeats_unpromised;
        self.refused += other.refused;
        self.by_others += other.by_others;
        self.in_shared_ticks += other.in_shared_ticks;
        self.locks_left += other.locks_left;
        self.copied_repeats += other.copied_repeats;
        self.steps += other.steps;
        self.unlike_core += other.unlike_core;
    }
}
