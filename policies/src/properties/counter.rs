//! An issued counter is above every earlier one, within the permitted lead, and covered by what is logged. A wait ends in
//! time. A refusal states its reason.

use crate::clock::Now;
use crate::counter::{Cached, Decision, Policy, Reading, Refusal, Request, Run, State, advance, advance_to_limits, cover};
use crate::lease::{Span, Ticks};
use arbitrary::Arbitrary;
use pg_snowflake_ids::layout::{Layout, Packed};
use pg_snowflake_ids::properties::inputs::{AnyInstant, AnyLayout, tick_at};

/// The input of the target.
#[derive(Debug, Arbitrary)]
pub struct Input {
    layout: AnyLayout,
    shard: u32,
    last_value: AnyCounter,
    is_called: bool,
    covered: Option<AnyCounter>,
    max_value: Option<i64>,
    count: u32,
    max_lead_ms: u32,
    max_wait_ms: u32,
    clock: AnyInstant,
    stepped_back_us: u32,
    /// How much later the reading was that a session had before.
    updated_after_us: i16,
    highest_fetched: Option<AnyCounter>,
    lease: Option<AnyLease>,
}

/// Any ticks, or a lease that begins that long after the clock's reading, or before it.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum AnyLease {
    Of { first: i64, last: i64 },
    NearClock { begins_us: i32, length_us: u32 },
}

impl AnyLease {
    fn ticks(self, layout: &Layout, unix_us: i64) -> Ticks {
        match self {
            AnyLease::Of { first, last } => Ticks { first, last },
            AnyLease::NearClock { begins_us, length_us } => {
                let starts_us = unix_us.saturating_add(begins_us.into());
                Span { starts_us, ends_us: starts_us.saturating_add(length_us.into()) }.ticks(layout)
            }
        }
    }
}

/// A counter anywhere, near the clock, or near the layout's last one.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum AnyCounter {
    At(i64),
    NearClock(i32),
    NextToClock(i8),
    NearLast(i32),
}

impl AnyCounter {
    fn value(self, layout: &Layout, unix_us: i64) -> i64 {
        match self {
            AnyCounter::At(counter) => counter,
            AnyCounter::NearClock(off) => layout.last_counter_in(layout.tick_at(unix_us)).saturating_add(off.into()),
            AnyCounter::NextToClock(off) => AnyCounter::NearClock(off.into()).value(layout, unix_us),
            AnyCounter::NearLast(off) => layout.max_counter().saturating_add(off.into()),
        }
    }
}

/// The highest reading of a clock, in the year 148108: an i64 of microseconds has room for the time soon after it.
const LATEST_US: i64 = 1 << 62;

/// Panics if a property does not hold.
pub fn check(input: Input) {
    let AnyLayout(layout) = input.layout;
    let reading_us = input.clock.unix_us(&layout).min(LATEST_US);
    let high_water_us = reading_us.saturating_add(input.stepped_back_us.into());
    let state = State { last_value: input.last_value.value(&layout, high_water_us), is_called: input.is_called };
    let max_value = input.max_value.unwrap_or(i64::MAX);
    let policy = Policy { max_lead_us: setting_us(input.max_lead_ms), max_wait_us: setting_us(input.max_wait_ms) };
    let (packed, now) = (Packed::new(layout), Now { reading_us, high_water_us });
    let ticks = input.lease.map_or(Ticks::ALL, |lease| lease.ticks(&layout, reading_us));
    let reading = Reading::new(packed, policy, ticks, now);
    let before_us = reading_us.saturating_add(input.updated_after_us.into());
    let mut updated = Reading::new(packed, policy, ticks, Now { reading_us: before_us, high_water_us: before_us });
    updated.update(now);
    assert_eq!(updated, reading);
    let request = Request {
        reading: &reading,
        shard: input.shard,
        highest_fetched: input.highest_fetched.map(|counter| counter.value(&layout, high_water_us)),
    };
    let count = i64::from(input.count) + 1;
    // Whatever a session has cached.
    let cached = Cached { layout: layout.pack(), next: state.last_value, last: state.last_value };
    assert_eq!(cached.is_usable(&reading), is_usable(state.last_value, request));

    let decision = advance(state, max_value, count, request);
    assert_eq!(decision, advance_to_limits(state, max_value, count, &reading, request.shard, request.highest_fetched));
    match decision {
        Decision::Issue(run) => {
            is_above_earlier_counters(run, state, request);
            is_within_the_limits(run, max_value, count, request);
            let covered = input.covered.map(|counter| counter.value(&layout, high_water_us));
            is_covered(run, covered, max_value, layout);
        }
        Decision::Wait { us } => {
            assert!(us > 0 && us <= policy.max_wait_us, "{us}");
            let reading_us_later = reading_us.saturating_add(us);
            let later = Now { reading_us: reading_us_later, high_water_us: high_water_us.max(reading_us_later) };
            // A lease is renewed as the clock moves.
            let passed = layout.tick_at(later.reading_us) - layout.tick_at(reading_us);
            let ticks = Ticks { last: ticks.last.saturating_add(passed), ..ticks };
            let reading = Reading::new(packed, policy, ticks, later);
            let request = Request { reading: &reading, ..request };
            let decision = advance(state, max_value, count, request);
            // A counter that the session has fetched may come within the lead meanwhile: it goes on above it.
            let lead_at = |unix_us| lead_limit_at(&reading, unix_us);
            let comes_within =
                |fetched| (lead_at(high_water_us) + 1..=lead_at(later.high_water_us)).contains(&layout.tick_of(fetched).into());
            let is_held = match decision {
                Decision::Issue(_)
                | Decision::Refuse(
                    Refusal::ClockBeforeEpoch { .. } | Refusal::AboveMaxValue { .. } | Refusal::LayoutUsedUp | Refusal::NotHome { .. },
                ) => false,
                // Again, or for longer than it may.
                Decision::Wait { .. } | Decision::Refuse(_) => !request.highest_fetched.is_some_and(comes_within),
            };
            assert!(!is_held, "after {us} us: {decision:?}");
        }
        Decision::Refuse(refusal) => has_cause(refusal, state, max_value, request),
    }
}

/// Whether the tick of a cached counter is neither behind the clock nor too far ahead, and in the lease.
fn is_usable(counter: i64, request: Request<'_>) -> bool {
    let Request { reading, .. } = request;
    let (layout, _, now) = parts(reading);
    let tick = layout.tick_of(counter);
    let ticks = 0.max(reading.ticks.first)..=layout.max_tick().min(reading.ticks.last);
    tick_at(layout, now.reading_us) >= 0
        && ticks.contains(&tick)
        && (tick_at(layout, now.high_water_us)..=lead_limit(request)).contains(&tick.into())
}

/// A setting is an `int` of milliseconds that is not negative.
fn setting_us(ms: u32) -> i64 {
    i64::from(ms >> 1) * 1_000
}

fn parts(reading: &Reading) -> (&Layout, Policy, Now) {
    (reading.layout(), reading.policy, reading.now())
}

/// The last tick that is within the permitted lead.
fn lead_limit(request: Request<'_>) -> i128 {
    lead_limit_at(request.reading, request.reading.now().reading_us)
}

/// The same if the clock reads `unix_us`.
fn lead_limit_at(reading: &Reading, unix_us: i64) -> i128 {
    let (layout, policy, _) = parts(reading);
    tick_at(layout, unix_us) + i128::from(policy.max_lead_us / layout.tick_us())
}

fn is_above_earlier_counters(run: Run, state: State, request: Request<'_>) {
    let Request { reading, highest_fetched, .. } = request;
    let (layout, _, now) = parts(reading);
    let is_next = !state.is_called && run.first == state.last_value;
    assert!(run.first > state.last_value || is_next, "{run:?} after {state:?}");
    let first_tick = i128::from(layout.tick_of(run.first));
    assert!(first_tick >= tick_at(layout, now.reading_us), "behind the clock");
    if now.high_water_us > now.reading_us {
        assert!(first_tick > tick_at(layout, now.high_water_us), "in a tick that was used");
    }
    if let Some(fetched) = highest_fetched
        && i128::from(layout.tick_of(fetched)) <= lead_limit(request)
    {
        assert!(run.first > fetched, "{run:?} after {fetched}");
    }
}

fn is_within_the_limits(run: Run, max_value: i64, count: i64, request: Request<'_>) {
    let layout = request.reading.layout();
    assert!(run.first <= run.last && run.last - run.first < count, "{run:?} of {count}");
    assert!(run.last <= max_value && run.last <= layout.max_counter());
    assert!(i128::from(layout.tick_of(run.last)) <= lead_limit(request), "{run:?}");
    let [first_tick, last_tick] = [run.first, run.last].map(|counter| layout.tick_of(counter));
    let ticks = request.reading.ticks;
    assert!(ticks.first <= first_tick && last_tick <= ticks.last, "{run:?}");
    assert!(layout.id(run.first, 0) >= 0 && layout.id(run.last, 0) >= 0);
}

fn is_covered(run: Run, covered: Option<i64>, max_value: i64, layout: Layout) {
    let coverage = cover(run, covered, max_value, &layout);
    assert!(coverage.last >= run.last, "{run:?} {coverage:?}");
    assert!((0..=32).contains(&coverage.log_cnt(run)), "{run:?} {coverage:?}");
    if coverage.is_new {
        assert!(coverage.last <= max_value, "{coverage:?}");
        assert!(covered.is_none_or(|covered| run.last > covered), "already covered");
    } else {
        assert_eq!(covered, Some(coverage.last), "not covered after replay");
    }
}

fn has_cause(refusal: Refusal, state: State, limit: i64, request: Request<'_>) {
    let Request { reading, highest_fetched, .. } = request;
    let ticks = reading.ticks;
    let (layout, policy, now) = parts(reading);
    let now_tick = tick_at(layout, now.reading_us);
    let highest = state.last_value.max(highest_fetched.unwrap_or(i64::MIN));
    match refusal {
        Refusal::ClockBeforeEpoch { us } => assert!(now_tick < 0 && us > 0),
        Refusal::TooFarAhead { lead_us, wait_us, .. } | Refusal::SteppedBack { lead_us, wait_us, .. } => {
            assert!(wait_us > policy.max_wait_us && lead_us >= wait_us, "{refusal:?}");
        }
        Refusal::LeaseEnded { us } => {
            assert!(now_tick > ticks.last.into() && us >= 0);
        }
        Refusal::LeaseBeginsLater { us } => {
            assert!(now_tick < ticks.first.into() && us > policy.max_wait_us, "{refusal:?}");
        }
        Refusal::PastLease { lead_us, .. } => {
            assert!(i128::from(layout.tick_of(highest)) >= ticks.last.into() && lead_us > 0, "{refusal:?}");
        }
        Refusal::SteppedBackToLease { step_us } => {
            assert!(step_us > 0 && now.high_water_us - step_us == now.reading_us, "{refusal:?}");
            assert!(tick_at(layout, now.high_water_us) >= ticks.last.into(), "{refusal:?}");
        }
        Refusal::AboveMaxValue { counter, max_value } => {
            assert!(counter > max_value && max_value == limit);
        }
        Refusal::NotHome { .. } => panic!("no homed ID was wanted"),
        Refusal::LayoutUsedUp => {
            let after_end = tick_at(layout, now.high_water_us) >= layout.max_tick().into();
            let begins_after_end = ticks.first > layout.max_tick();
            assert!(after_end || begins_after_end || highest >= layout.max_counter(), "{state:?} {request:?}");
        }
    }
}
