//! The logical clock: where a sequence's counter goes next.
//!
//! [`advance`] is the whole policy, a function of numbers: it knows no page, lock or clock. Uniqueness depends
//! on one rule: the counter only ever moves up. The clock decides how far.

use crate::clock::Now;
use crate::lease::Ticks;
use pg_snowflake_ids::layout::{Layout, Packed};

/// How far ahead a WAL record covers the counter: 100 ms at full rate, but fewer than 2^32 counters. So a sequence
/// writes about 10 records a second, however busy it is, and a crash skips at most this much.
const LOG_AHEAD_US: i64 = 100_000;

/// The shortest wait, or `max_lead` / 20 or `max_wait` if that is less. Without it, callers that compete for
/// the IDs of one millisecond wake up every millisecond and contend for the page's lock: 4 sessions at the
/// default layout's limit used 0.26 to 0.58 of a core more than without waiting, and at most 0.16 with 5 ms. The
/// rate is the same, since IDs that are not fetched while callers sleep are still within the lead when they
/// wake up.
const MIN_WAIT_US: i64 = 5_000;

/// How many values core's `nextval()` logs ahead: `SEQ_LOG_VALS` (commands/sequence.c).
const SEQ_LOG_VALS: i64 = 32;

/// A sequence that has not been called begins at the seq of its start value plus this number times the shard. Otherwise, shards that generate IDs
/// at the same rate would have the same seqs in each tick, and PostgreSQL's hash would fold 23 IDs of 100 shards into one
/// value. The number is odd, so consecutive shards have different beginnings, and near the golden ratio of 1024, so that they
/// are far apart.
const SEQ_BETWEEN_SHARDS: i64 = 617;

/// The state of a sequence, as in its tuple (`FormData_pg_sequence_data`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The last counter issued; the next one if `is_called` is false.
    pub last_value: i64,
    /// Whether `last_value` has been issued.
    pub is_called: bool,
}

impl State {
    /// The state after the counter has been issued.
    pub const fn after(last_issued: i64) -> State {
        State { last_value: last_issued, is_called: true }
    }

    /// The last counter issued.
    pub const fn last_issued(self) -> i64 {
        self.last_value.saturating_sub(!self.is_called as i64)
    }
}

/// How far a counter may run ahead of the clock, and how long a call may wait for the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `pg_snowflake.max_lead` in microseconds.
    pub max_lead_us: i64,
    /// `pg_snowflake.max_wait` in microseconds.
    pub max_wait_us: i64,
}

/// A clock reading in the ticks of a layout. Its divisions take 10 ns, which IDs of the same tick share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    layout: Packed,
    pub(crate) policy: Policy,
    pub(crate) ticks: Ticks,
    now: Now,
    /// The tick of the reading.
    now_tick: i64,
    /// The tick of the high-water mark, or of the reading if that is later.
    high_water_tick: i64,
    /// `max_lead` in ticks.
    max_lead_ticks: i64,
    /// A counter above `above` (from the cache: `cached_above`) and at most `up_to` is within the limits of clock, layout and lease.
    above: i64,
    cached_above: i64,
    up_to: i64,
    /// When the tick of the reading began, in microseconds since 1970.
    since_us: i64,
    /// For how long all but `now` stays as it is from then on: a tick, or 0 after a step back.
    valid_us: u64,
}

const fn lower(one: i64, other: i64) -> i64 {
    if one < other { one } else { other }
}

impl Reading {
    /// The reading in the ticks of this layout. Only `ticks` may be used: those of the lease, or [`Ticks::ALL`] if the server needs none.
    #[inline]
    pub const fn new(layout: Packed, policy: Policy, ticks: Ticks, now: Now) -> Self {
        let max_lead_ticks = layout.layout().ticks_in(policy.max_lead_us);
        let [now_tick, high_water_tick, above, cached_above, up_to, since_us] = [0; 6];
        let mut reading = Reading {
            layout,
            policy,
            ticks,
            now,
            now_tick,
            high_water_tick,
            max_lead_ticks,
            above,
            cached_above,
            up_to,
            since_us,
            valid_us: 0,
        };
        reading.set_ticks();
        reading
    }

    /// Makes this what [`Reading::new`] would return with this reading of the clock, and computes only what differs.
    #[inline(always)]
    pub fn update(&mut self, now: Now) {
        self.now = now;
        if now.high_water_us > now.reading_us || now.reading_us.wrapping_sub(self.since_us) as u64 >= self.valid_us {
            self.set_ticks();
        }
    }

    const fn set_ticks(&mut self) {
        let (layout, Now { reading_us, high_water_us }) = (self.layout.layout(), self.now);
        self.now_tick = layout.tick_at(reading_us);
        (self.since_us, self.valid_us) = (layout.instant_of(self.now_tick), layout.tick_us() as u64);
        self.high_water_tick = self.now_tick;
        if high_water_us > reading_us {
            self.high_water_tick = layout.tick_at(high_water_us);
            self.valid_us = 0;
        }
        let limit = lower(lower(self.lead_limit(), layout.max_tick()), self.ticks.last);
        self.above = self.last_before(self.floor_tick());
        self.cached_above = self.last_before(self.high_water_tick);
        self.up_to = if self.now_tick < 0 || limit < 0 { i64::MIN } else { layout.last_counter_in(limit) };
    }

    /// The last counter before the tick, and before the first tick that may be used.
    const fn last_before(&self, tick: i64) -> i64 {
        let first = if tick < self.ticks.first { self.ticks.first } else { tick };
        self.layout.layout().last_counter_in(first.saturating_sub(1))
    }

    /// The highest tick that may be issued, by the limit of the lead.
    const fn lead_limit(&self) -> i64 {
        self.now_tick + self.max_lead_ticks
    }

    /// The layout of the counters.
    #[inline(always)]
    pub const fn layout(&self) -> &Packed {
        &self.layout
    }

    /// The clock reading.
    #[inline(always)]
    pub const fn now(&self) -> Now {
        self.now
    }

    /// The lowest tick that may be issued: the clock's. After a step back, it is the tick after the high-water
    /// mark's, in which IDs may have been issued.
    const fn floor_tick(&self) -> i64 {
        let has_stepped_back = self.now.high_water_us > self.now.reading_us;
        self.high_water_tick + has_stepped_back as i64
    }
}

/// The input of one call, apart from the state of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The layout, the clock and the limits.
    pub reading: &'a Reading,
    /// The shard of the IDs, or the first of several. It determines where a fresh sequence begins, and nothing else.
    pub shard: u32,
    /// The highest counter of this layout that the session has fetched from the sequence.
    pub highest_fetched: Option<i64>,
}

/// What [`advance`] decides. For homed IDs, `T` is not a run but a counter and its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<T = Run> {
    /// Issue these counters.
    Issue(T),
    /// The lead is above the limit: try again in `us` microseconds.
    Wait {
        /// The time until the lead is within the limit, or a little more.
        us: i64,
    },
    /// No counter can be issued.
    Refuse(Refusal),
}

/// Consecutive counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first counter.
    pub first: i64,
    /// The last counter, which becomes the tuple's `last_value`.
    pub last: i64,
}

/// The WAL coverage of a sequence after a run has been issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The last counter covered: replay sets the sequence to it.
    pub last: i64,
    /// Whether this needs a new WAL record.
    pub is_new: bool,
}

impl Coverage {
    /// The tuple's new `log_cnt`: how many values plain `nextval` may fetch before it writes a record.
    ///
    /// At most as many as core itself logs ahead. Commands that rewrite a sequence may copy `log_cnt` to
    /// storage that no record covers, and plain `nextval` trusts it there.
    #[inline]
    pub fn log_cnt(self, run: Run) -> i64 {
        (self.last - run.last).min(SEQ_LOG_VALS)
    }

    /// How many of the covered counters are left after the run: fewer than 2^32.
    #[inline]
    pub fn left(self, run: Run) -> u32 {
        (self.last - run.last) as u32
    }
}

/// Why no counter can be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The clock is before the layout's epoch.
    ClockBeforeEpoch {
        /// How far it is before the epoch, in microseconds.
        us: i64,
    },
    /// The next counter is so far ahead of the clock that the wait would exceed `max_wait`: the last one was issued before the clock
    /// stepped back, or with another layout, or the sequence was set to a number that is not a counter.
    TooFarAhead {
        /// How far its tick is ahead of the clock, in microseconds.
        lead_us: i64,
        /// How long the clock needs to come within `max_lead` of it, in microseconds.
        wait_us: i64,
        /// What the sequence holds.
        last_value: i64,
    },
    /// The same, because this backend has seen the clock step back below its high-water mark.
    SteppedBack {
        /// As of [`Refusal::TooFarAhead`].
        lead_us: i64,
        /// As of [`Refusal::TooFarAhead`].
        wait_us: i64,
        /// How far the mark is above the clock, in microseconds.
        step_us: i64,
    },
    /// The next counter is above the sequence's MAXVALUE.
    AboveMaxValue {
        /// The next counter.
        counter: i64,
        /// MAXVALUE.
        max_value: i64,
    },
    /// The layout's time field is used up.
    LayoutUsedUp,
    /// The lease has ended.
    LeaseEnded {
        /// How long ago by the clock, in microseconds.
        us: i64,
    },
    /// The lease begins so far ahead of the clock that the wait would exceed `max_wait`.
    LeaseBeginsLater {
        /// The time until it begins, in microseconds.
        us: i64,
    },
    /// The sequence is past the end of the lease, and the wait until the lease reaches it would exceed `max_wait`.
    PastLease {
        /// How far the sequence is ahead of the clock, in microseconds.
        lead_us: i64,
        /// What the sequence holds.
        last_value: i64,
    },
    /// This backend's high-water mark is past the end of the lease: the clock was past it when the backend issued its last ID.
    SteppedBackToLease {
        /// How far the mark is above the clock, in microseconds.
        step_us: i64,
    },
    /// None of this many counters makes an ID that is at home.
    NotHome {
        /// How many were tried.
        counters: i64,
    },
}

impl<T> Decision<T> {
    /// The same decision, with what `f` makes of the counters.
    #[inline(always)]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Decision<U> {
        match self {
            Decision::Issue(counters) => Decision::Issue(f(counters)),
            Decision::Wait { us } => Decision::Wait { us },
            Decision::Refuse(refusal) => Decision::Refuse(refusal),
        }
    }
}

/// Counters that a session has fetched and not yet used: the rest of a run of `CACHE n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The [`bits`](Packed::bits) of the counters' layout.
    pub layout: u64,
    /// The next counter to use.
    pub next: i64,
    /// The last counter fetched.
    pub last: i64,
}

impl Cached {
    /// Whether the next cached counter may be used. It must be of the same layout, not behind the clock (its ID
    /// would carry a time in the past, and sort below those of other sessions), and not further ahead of the
    /// clock than the policy allows. It must be in the lease of the shard that the ID will have.
    #[inline(always)]
    pub fn is_usable(&self, reading: &Reading) -> bool {
        self.layout == reading.layout.bits() && reading.cached_above < self.next && self.next <= reading.up_to
    }

    /// The rest after the next counter has been used.
    #[inline]
    pub fn rest(self) -> Option<Cached> {
        (self.next < self.last).then_some(Cached { next: self.next + 1, ..self })
    }
}

/// The next counter, before the limits are checked.
fn first_counter(state: State, floor_tick: i64, request: Request<'_>) -> i64 {
    let Request { reading, shard, highest_fetched } = request;
    let Reading { layout, .. } = reading;
    // A sequence at the end of bigint has no next value. Saturating keeps it there, far ahead of the clock or
    // at the end of the layout.
    let next = state.last_value.saturating_add(i64::from(state.is_called));
    let first = if floor_tick > layout.tick_of(next) {
        let spread = if state.is_called { 0 } else { SEQ_BETWEEN_SHARDS * i64::from(shard) };
        layout.at_tick(next.wrapping_add(spread), floor_tick)
    } else {
        next
    };
    // At or below the counters that this session has fetched, the sequence was reset. The session continues above
    // them, unless they are so far in the future that the reset was meant to undo that.
    let is_within_lead = |counter| layout.tick_of(counter) <= reading.high_water_tick + reading.max_lead_ticks;
    match highest_fetched {
        Some(fetched) if first <= fetched && is_within_lead(fetched) => fetched.saturating_add(1),
        _ => first,
    }
}

/// Moves the counter forward: to the clock's tick if the clock is ahead, else by one.
///
/// `max_value` is the sequence's MAXVALUE. `count` is the number of counters wanted, at least 1; fewer are
/// issued near the limit of the lead or an end.
///
/// ```
/// use pg_snowflake_policies::clock::Now;
/// use pg_snowflake_policies::counter::{Decision, Reading, Policy, Request, Run, State, advance};
/// use pg_snowflake_policies::lease::Ticks;
/// use pg_snowflake_ids::layout::Packed;
/// use pg_snowflake_ids::presets::TWITTER;
///
/// let reading_us = 1_800_000_000_000_000;
/// let policy = Policy { max_lead_us: 100_000, max_wait_us: 1_000_000 };
/// let now = Now { reading_us, high_water_us: reading_us };
/// let reading = Reading::new(Packed::new(TWITTER), policy, Ticks::ALL, now);
/// let request = Request { reading: &reading, shard: 0, highest_fetched: None };
/// let now_tick = TWITTER.tick_at(reading_us);
///
/// // Behind the clock: the counter jumps to the clock's tick, and seq continues.
/// let behind = State { last_value: TWITTER.at_tick(6, now_tick - 1000), is_called: true };
/// let first = TWITTER.at_tick(7, now_tick);
/// assert_eq!(advance(behind, i64::MAX, 1, request), Decision::Issue(Run { first, last: first }));
///
/// // 100 ms and a tick ahead: within the limit in a millisecond, but a wait is at least 5 ms.
/// let ahead = State { last_value: TWITTER.at_tick(0, now_tick + 101), is_called: true };
/// assert_eq!(advance(ahead, i64::MAX, 1, request), Decision::Wait { us: 5_000 });
/// ```
#[inline(always)]
pub fn advance(state: State, max_value: i64, count: i64, request: Request<'_>) -> Decision {
    let Request { reading, shard, highest_fetched } = request;
    // Most often, the next counters are within every limit.
    let first = state.last_value.wrapping_add(state.is_called.into());
    let last = if count == 1 { first } else { first.saturating_add(count - 1) };
    let is_within = reading.above < first && last <= reading.up_to && last <= max_value;
    if is_within && highest_fetched.is_none_or(|fetched| fetched < first) {
        return Decision::Issue(Run { first, last });
    }
    advance_to_limits(state, max_value, count, reading, shard, highest_fetched)
}

/// [`advance`] where the clock is ahead, a limit is near, or the session has fetched the counter. A whole request would be stored for each
/// ID, so its fields are arguments.
#[inline(never)]
pub(crate) fn advance_to_limits(
    state: State,
    max_value: i64,
    count: i64,
    reading: &Reading,
    shard: u32,
    highest_fetched: Option<i64>,
) -> Decision {
    let request = Request { reading, shard, highest_fetched };
    let &Reading { ref layout, ticks, now, now_tick, .. } = reading;
    if now_tick < 0 {
        let us = layout.instant_of(0).saturating_sub(now.reading_us);
        return Decision::Refuse(Refusal::ClockBeforeEpoch { us });
    }
    if now_tick > ticks.last {
        let us = now.reading_us.saturating_sub(layout.instant_of(ticks.last.saturating_add(1)));
        return Decision::Refuse(Refusal::LeaseEnded { us });
    }
    let floor_tick = reading.floor_tick().max(ticks.first);
    if floor_tick > layout.max_tick() {
        return Decision::Refuse(Refusal::LayoutUsedUp);
    }
    let first = first_counter(state, floor_tick, request);
    if first > max_value {
        return Decision::Refuse(Refusal::AboveMaxValue { counter: first, max_value });
    }

    let lead_limit = reading.lead_limit().min(ticks.last);
    let first_tick = layout.tick_of(first);
    if first_tick > lead_limit {
        return wait_or_refuse(state.last_value, first_tick, lead_limit, reading);
    }

    let end = max_value.min(layout.max_counter());
    // At the end of bigint there is no next counter: saturating would issue the last one again.
    let has_no_next = (state.is_called && first <= state.last_value) || highest_fetched == Some(first);
    if first > end || has_no_next {
        return Decision::Refuse(Refusal::LayoutUsedUp);
    }
    // The first one is within both limits.
    let last = first.saturating_add(count - 1).min(layout.last_counter_in(lead_limit)).min(end);
    Decision::Issue(Run { first, last })
}

/// The lead is above the limit: wait if the wait is short enough, else refuse. The end of a lease is a limit that is expected to
/// move with the clock: the lease is renewed.
#[cold]
fn wait_or_refuse(last_value: i64, first_tick: i64, limit: i64, reading: &Reading) -> Decision {
    let &Reading { ref layout, policy, ticks, now, now_tick, .. } = reading;
    let due_us = layout.instant_of(now_tick.saturating_add(first_tick - limit));
    let wait_us = due_us.saturating_sub(now.reading_us);
    if wait_us <= policy.max_wait_us {
        let min_wait_us = MIN_WAIT_US.min(policy.max_lead_us / 20).min(policy.max_wait_us);
        return Decision::Wait { us: wait_us.max(min_wait_us) };
    }
    let lead_us = layout.instant_of(first_tick).saturating_sub(now.reading_us);
    if first_tick == ticks.first {
        return Decision::Refuse(Refusal::LeaseBeginsLater { us: lead_us });
    }
    // If the counter is hardly above the limit at the high-water mark, the step back that this backend saw is
    // the only cause.
    let step_us = now.high_water_us.saturating_sub(now.reading_us);
    let is_step = step_us > 0 && first_tick <= reading.high_water_tick + reading.max_lead_ticks + 1;
    if first_tick > ticks.last {
        let is_mark_past_end = reading.high_water_tick >= ticks.last;
        return Decision::Refuse(match is_step && is_mark_past_end {
            true => Refusal::SteppedBackToLease { step_us },
            false => Refusal::PastLease { lead_us, last_value },
        });
    }
    Decision::Refuse(match is_step {
        true => Refusal::SteppedBack { lead_us, wait_us, step_us },
        false => Refusal::TooFarAhead { lead_us, wait_us, last_value },
    })
}

/// Decides whether the run needs a WAL record, as `nextval_internal()` does. `covered` is the last counter
/// covered by a record that replay would find; `None` if there is no such record.
#[inline(always)]
pub fn cover(run: Run, covered: Option<i64>, max_value: i64, layout: &Layout) -> Coverage {
    if let Some(last) = covered.filter(|&last| run.last <= last) {
        return Coverage { last, is_new: false };
    }
    // With more, `left` would not be exact.
    let ahead = layout.counters_in(LOG_AHEAD_US).min(u32::MAX.into());
    let last = run.last.saturating_add(ahead);
    Coverage { last: last.min(max_value).min(layout.max_counter()), is_new: true }
}

/// The group of the node of Citus to whose range a sequence with these bounds is limited: `AlterSequenceMinMax()` in its
/// `worker/worker_data_fetch_protocol.c`. Citus does so on each worker if a default of a distributed table uses the sequence.
pub fn group_of_range(min_value: i64, max_value: i64) -> Option<i64> {
    const NUMBERS_OF_A_GROUP: i64 = 1 << 48;
    let group = min_value.saturating_sub(1) / NUMBERS_OF_A_GROUP;
    let is_range = min_value == group * NUMBERS_OF_A_GROUP + 1 && max_value.checked_sub(min_value) == Some(NUMBERS_OF_A_GROUP);
    (group > 0 && is_range).then_some(group)
}

#[cfg(test)]
mod tests;
