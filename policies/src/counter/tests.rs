//! The policy case by case, and against a model of a server that crashes and whose clock steps.

use super::*;
use crate::clock::Guard;
use crate::lease::{Span, Ticks};
use pg_snowflake_ids::layout::Unit;
use pg_snowflake_ids::presets::INSTAGRAM;
use proptest::prelude::*;
use std::collections::HashSet;

const MS: i64 = 1_000;
const HOUR: i64 = 3_600_000 * MS;

/// An instant in the layout's life, at the start of a tick.
const NOW_US: i64 = 1_800_000_000_000_000;
const NOW_TICK: i64 = INSTAGRAM.tick_at(NOW_US);

const DEFAULTS: Policy = Policy { max_lead_us: 100 * MS, max_wait_us: 1_000 * MS };

fn called(last_value: i64) -> State {
    State { last_value, is_called: true }
}

fn at(reading_us: i64) -> Now {
    Now { reading_us, high_water_us: reading_us }
}

fn ask(state: State, now: Now) -> Decision {
    ask_for(1, state, now)
}

fn ask_for(count: i64, state: State, now: Now) -> Decision {
    ask_under(DEFAULTS, count, state, now)
}

/// A reading in Instagram's layout.
fn reading(policy: Policy, now: Now) -> Reading {
    Reading::new(Packed::new(INSTAGRAM), policy, Ticks::ALL, now)
}

/// Of shard 0, in a session that has fetched nothing and needs no lease.
fn request(reading: &Reading) -> Request<'_> {
    Request { reading, shard: 0, highest_fetched: None }
}

fn ask_under(policy: Policy, count: i64, state: State, now: Now) -> Decision {
    advance(state, i64::MAX, count, request(&reading(policy, now)))
}

fn coverage(run: Run, covered: Option<i64>) -> Coverage {
    cover(run, covered, i64::MAX, &INSTAGRAM)
}

fn counter(tick: i64, seq: i64) -> i64 {
    (tick << 10) | seq
}

fn issued(decision: Decision) -> Run {
    match decision {
        Decision::Issue(run) => run,
        other => panic!("not issued: {other:?}"),
    }
}

#[test]
fn a_fresh_sequence_begins_at_a_seq_that_depends_on_the_shard() {
    let first_on = |shard, last_value| {
        let reading = reading(DEFAULTS, at(NOW_US));
        let request = Request { shard, ..request(&reading) };
        let fresh = State { last_value, is_called: false };
        issued(advance(fresh, i64::MAX, 1, request)).first
    };
    for shard in [0, 1, 2, 8191] {
        let seq = (1 + 617 * i64::from(shard)) % 1024;
        assert_eq!(first_on(shard, 1), counter(NOW_TICK, seq), "{shard}");
    }
    let seqs: HashSet<i64> = (0..1024).map(|shard| first_on(shard, 1)).collect();
    assert_eq!(seqs.len(), 1024);
    assert_eq!(first_on(5, 50), counter(NOW_TICK, (50 + 617 * 5) % 1024));
    // A counter that is not behind the clock is issued as it is.
    let ahead = counter(NOW_TICK, 3);
    assert_eq!(first_on(5, ahead), ahead);
}

#[test]
fn a_counter_is_the_next_one_or_that_of_the_clock_within_the_limits() {
    let one = |counter| Decision::Issue(Run { first: counter, last: counter });
    let before = |us| Now { reading_us: NOW_US - us, high_water_us: NOW_US };
    let epoch_us = INSTAGRAM.instant_of(0);
    let too_far = |last_value, lead_us| Refusal::TooFarAhead { lead_us, wait_us: lead_us - 100 * MS, last_value };
    let stepped = |lead_us, step_us| Refusal::SteppedBack { lead_us, wait_us: lead_us - 100 * MS, step_us };
    let (ahead, far_ahead) = (counter(NOW_TICK + 500, 7), counter(NOW_TICK + 3_600_000, 7));
    for (case, last_value, now, expected) in [
        ("behind the clock: its tick, and seq continues", 123_456, at(NOW_US), one(counter(NOW_TICK, 123_457 % 1024))),
        ("within a tick", counter(NOW_TICK, 7), at(NOW_US), one(counter(NOW_TICK, 8))),
        ("the last one of the tick before", counter(NOW_TICK - 1, 1022), at(NOW_US), one(counter(NOW_TICK, 1023))),
        ("in the mark's tick", counter(NOW_TICK, 7), before(50 * MS), one(counter(NOW_TICK + 1, 8))),
        ("a full tick", counter(NOW_TICK, 1023), at(NOW_US), one(counter(NOW_TICK + 1, 0))),
        ("a lead within the limit", counter(NOW_TICK + 100, 7), at(NOW_US), one(counter(NOW_TICK + 100, 8))),
        ("a lead above it", ahead, at(NOW_US), Decision::Wait { us: 400 * MS }),
        ("partway through a tick", ahead, at(NOW_US + 300), Decision::Wait { us: 400 * MS - 300 }),
        ("after the wait", ahead, at(NOW_US + 400 * MS), one(counter(NOW_TICK + 500, 8))),
        ("a longer wait", far_ahead, at(NOW_US), Decision::Refuse(too_far(far_ahead, HOUR))),
        ("reset after a step back: above the mark", 1, before(50 * MS), one(counter(NOW_TICK + 1, 2))),
        ("reset after a longer one", 1, before(HOUR), Decision::Refuse(stepped(HOUR + MS, HOUR))),
        ("the step is the cause", counter(NOW_TICK + 101, 7), before(HOUR), Decision::Refuse(stepped(HOUR + 101 * MS, HOUR))),
        ("it is not", counter(NOW_TICK + 102, 7), before(HOUR), Decision::Refuse(too_far(counter(NOW_TICK + 102, 7), HOUR + 102 * MS))),
        ("before the epoch", 1, at(epoch_us - 5), Decision::Refuse(Refusal::ClockBeforeEpoch { us: 5 })),
        ("the epoch", 1, at(epoch_us), one(2)),
    ] {
        assert_eq!(ask(called(last_value), now), expected, "{case}");
    }
    for last_value in [i64::MAX, i64::MAX - 1, INSTAGRAM.max_counter() + 1] {
        let decision = ask(called(last_value), at(NOW_US));
        assert!(matches!(decision, Decision::Refuse(Refusal::TooFarAhead { .. })), "{last_value}: {decision:?}");
    }
    let above = Refusal::AboveMaxValue { counter: counter(NOW_TICK, 2), max_value: 1000 };
    assert_eq!(advance(called(1), 1000, 1, request(&reading(DEFAULTS, at(NOW_US)))), Decision::Refuse(above));
    // A run ends at the limit of the lead.
    let last = |seq| counter(NOW_TICK + 100, seq);
    assert_eq!(ask_for(64, called(last(1000)), at(NOW_US)), Decision::Issue(Run { first: last(1001), last: last(1023) }));
}

#[test]
fn a_wait_has_a_minimum_unless_the_limits_are_lower() {
    let wait = |max_lead_us, max_wait_us| {
        let one_tick_too_far = called(counter(NOW_TICK + max_lead_us / MS + 1, 7));
        ask_under(Policy { max_lead_us, max_wait_us }, 1, one_tick_too_far, at(NOW_US))
    };
    assert_eq!(wait(HOUR, HOUR), Decision::Wait { us: 5 * MS });
    assert_eq!(wait(100 * MS, HOUR), Decision::Wait { us: 5 * MS });
    assert_eq!(wait(40 * MS, HOUR), Decision::Wait { us: 2 * MS });
    // Without a lead, every millisecond spent asleep is lost.
    assert_eq!(wait(0, HOUR), Decision::Wait { us: MS });
    assert_eq!(wait(100 * MS, 3 * MS), Decision::Wait { us: 3 * MS });
    // As long as the limit.
    assert_eq!(wait(100 * MS, MS), Decision::Wait { us: MS });
}

#[test]
fn a_sequence_reset_within_a_tick_continues_above_what_the_session_fetched() {
    let ask = |last_value, fetched| {
        let reading = reading(DEFAULTS, at(NOW_US));
        let request = Request { highest_fetched: Some(fetched), ..request(&reading) };
        issued(advance(called(last_value), i64::MAX, 1, request)).first
    };
    let clock = counter(NOW_TICK, 2);
    assert_eq!(ask(1, counter(NOW_TICK, 500)), counter(NOW_TICK, 501));
    assert_eq!(ask(1, counter(NOW_TICK + 100, 500)), counter(NOW_TICK + 100, 501));
    assert_eq!(ask(counter(NOW_TICK, 499), counter(NOW_TICK, 500)), counter(NOW_TICK, 501));
    // Fetched long ago, or so far ahead that the sequence was reset to undo it.
    assert_eq!(ask(1, counter(NOW_TICK - 1, 500)), clock);
    assert_eq!(ask(1, counter(NOW_TICK + 101, 500)), clock);
}

/// Asks for `count` counters in a lease that begins and ends that long after the clock's tick.
fn ask_in_lease(begins_us: i64, ends_us: i64, count: i64, state: State) -> Decision {
    let span = Span { starts_us: NOW_US + begins_us, ends_us: NOW_US + ends_us };
    let ticks = span.ticks(&INSTAGRAM);
    advance(state, i64::MAX, count, request(&Reading::new(Packed::new(INSTAGRAM), DEFAULTS, ticks, at(NOW_US))))
}

#[test]
fn a_counter_is_within_the_lease() {
    let ask = |begins_us, ends_us| issued(ask_in_lease(begins_us, ends_us, 50_000, called(7)));
    let last_of = |tick| counter(tick, 1023);
    let run = |first, last| Run { first, last };
    let first = counter(NOW_TICK, 8);
    assert_eq!(ask(-HOUR, HOUR), run(first, first + 49_999));
    // A run ends with the lease, whose end is exclusive.
    assert_eq!(ask(-HOUR, 20 * MS), run(first, last_of(NOW_TICK + 19)));
    assert_eq!(ask(-HOUR, 20 * MS + 1), run(first, last_of(NOW_TICK + 20)));
    // It begins in the first tick that begins in the lease.
    assert_eq!(ask(20 * MS, HOUR).first, counter(NOW_TICK + 20, 8));
    assert_eq!(ask(20 * MS + 1, HOUR).first, counter(NOW_TICK + 21, 8));
    let ahead_of_the_clock = called(counter(NOW_TICK + 5, 7));
    assert_eq!(issued(ask_in_lease(20 * MS, HOUR, 1, ahead_of_the_clock)).first, counter(NOW_TICK + 20, 8));
}

#[test]
fn a_lease_that_begins_later_or_ends_is_waited_for_or_refused() {
    let behind = counter(NOW_TICK + 5_000, 7);
    let refused = Decision::Refuse;
    for (begins_us, ends_us, last_value, expected) in [
        (500 * MS, HOUR, 7, Decision::Wait { us: 400 * MS }),
        (5_000 * MS, HOUR, 7, refused(Refusal::LeaseBeginsLater { us: 5_000 * MS })),
        // A sequence at the end of the lease waits for the renewal.
        (-HOUR, 10 * MS, counter(NOW_TICK + 10, 7), Decision::Wait { us: 5 * MS }),
        (-HOUR, 10 * MS, counter(NOW_TICK + 59, 7), Decision::Wait { us: 50 * MS }),
        (-HOUR, 10 * MS, behind, refused(Refusal::PastLease { lead_us: 5_000 * MS, last_value: behind })),
        (-HOUR, 1, 7, Decision::Issue(Run { first: counter(NOW_TICK, 8), last: counter(NOW_TICK, 8) })),
        (-HOUR, 0, 7, refused(Refusal::LeaseEnded { us: 0 })),
        (-HOUR, -3 * MS, 7, refused(Refusal::LeaseEnded { us: 3 * MS })),
    ] {
        assert_eq!(ask_in_lease(begins_us, ends_us, 1, called(last_value)), expected, "{begins_us} {ends_us} {last_value}");
    }
}

#[test]
fn no_counter_is_issued_after_the_last_of_the_layout() {
    let end_us = INSTAGRAM.instant_of(INSTAGRAM.max_tick());
    let last = INSTAGRAM.max_counter();
    let run = issued(ask_for(64, called(last - 1), at(end_us)));
    assert_eq!(run, Run { first: last, last });
    assert_eq!(coverage(run, None), Coverage { last, is_new: true });
    assert_eq!(coverage(run, None).log_cnt(run), 0);
    assert_eq!(ask(called(last), at(end_us)), Decision::Refuse(Refusal::LayoutUsedUp));
    assert_eq!(ask(called(1), at(end_us + MS)), Decision::Refuse(Refusal::LayoutUsedUp));
}

#[test]
fn the_end_of_bigint_is_issued_once() {
    // A layout without a shard whose last counter is the last bigint, as preset mastodon's is.
    let layout = Layout { time_bits: 48, shard_bits: 0, seq_bits: 16, ..INSTAGRAM };
    assert_eq!(layout.max_counter(), i64::MAX);
    let ask = |last_value, highest_fetched| {
        let now = at(layout.instant_of(layout.max_tick()));
        let reading = Reading::new(Packed::new(layout), DEFAULTS, Ticks::ALL, now);
        let request = Request { highest_fetched, ..request(&reading) };
        advance(called(last_value), i64::MAX, 1, request)
    };
    assert_eq!(issued(ask(i64::MAX - 1, None)).first, i64::MAX);
    assert_eq!(ask(i64::MAX, None), Decision::Refuse(Refusal::LayoutUsedUp));
    assert_eq!(ask(1, Some(i64::MAX)), Decision::Refuse(Refusal::LayoutUsedUp));
}

#[test]
fn log_cnt_is_what_is_covered_but_at_most_what_core_logs_ahead() {
    for (covered, log_cnt) in [(7, 0), (8, 1), (39, 32), (40, 32), (102_407, 32)] {
        let coverage = Coverage { last: covered, is_new: false };
        assert_eq!(coverage.log_cnt(Run { first: 5, last: 7 }), log_cnt, "{covered}");
    }
}

/// Otherwise, the page of a layout with many counters in 100 ms would show a higher counter than the last one that was issued.
#[test]
fn what_is_left_of_a_record_is_exact_in_every_layout() {
    let most = Layout { unit: Unit::Us10, time_bits: 33, shard_bits: 0, seq_bits: 31, ..INSTAGRAM };
    for layout in [INSTAGRAM, most] {
        let run = Run { first: 41, last: 50 };
        let coverage = cover(run, None, i64::MAX, &layout);
        assert_eq!(coverage.last - i64::from(coverage.left(run)), run.last, "{layout:?}");
    }
}

#[test]
fn an_updated_reading_equals_a_new_one() {
    let before = |us| Now { reading_us: NOW_US - us, high_water_us: NOW_US };
    let mut updated = reading(DEFAULTS, at(NOW_US));
    for now in [at(NOW_US + MS - 1), at(NOW_US + MS), before(1), at(NOW_US), before(5 * MS), at(NOW_US - 5 * MS), at(NOW_US - 1)] {
        updated.update(now);
        assert_eq!(updated, reading(DEFAULTS, now), "{now:?}");
    }
}

#[test]
fn a_cached_counter_is_used_while_its_tick_is_neither_behind_the_clock_nor_too_far_ahead() {
    let cached = |tick| Cached { layout: INSTAGRAM.pack(), next: counter(tick, 7), last: counter(tick, 9) };
    let usable = |cached: Cached, now| cached.is_usable(&reading(DEFAULTS, now));
    assert!(usable(cached(NOW_TICK), at(NOW_US)));
    assert!(usable(cached(NOW_TICK), at(NOW_US + MS - 1)));
    assert!(!usable(cached(NOW_TICK), at(NOW_US + MS)));
    assert!(usable(cached(NOW_TICK + 100), at(NOW_US)));
    assert!(!usable(cached(NOW_TICK + 101), at(NOW_US)));
    let stepped_back = Now { reading_us: NOW_US - MS, high_water_us: NOW_US };
    assert!(usable(cached(NOW_TICK), stepped_back));
    assert!(!usable(cached(NOW_TICK - 1), stepped_back));
}

/// An event on the modelled server.
#[derive(Clone, Debug)]
enum Event {
    /// A backend asks for one counter from its cache or, if that is empty or stale, for `count` from the page.
    Ask { backend: usize, count: i64 },
    /// A session calls core's `nextval` on the sequence.
    CoreNextval,
    /// Time passes, or the clock steps.
    Clock { us: i64 },
    /// A checkpoint completes.
    Checkpoint,
    /// A command copies the tuple, including `log_cnt`, to storage whose WAL holds the tuple as it is.
    Copy,
    /// The server is killed and recovers. All backends are new.
    Crash,
    /// The sequence is reset to 1, which voids cached counters.
    Reset,
    /// The sessions discard their caches.
    Discard,
}

const BACKENDS: usize = 3;

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => (0..BACKENDS, prop_oneof![4 => Just(1_i64), 2 => 2..64_i64, 1 => 64..300_000_i64])
            .prop_map(|(backend, count)| Event::Ask { backend, count }),
        2 => Just(Event::CoreNextval),
        6 => (0..20 * MS).prop_map(|us| Event::Clock { us }),
        2 => (-300 * MS..300 * MS).prop_map(|us| Event::Clock { us }),
        1 => (-24 * HOUR..24 * HOUR).prop_map(|us| Event::Clock { us }),
        1 => Just(Event::Checkpoint),
        1 => Just(Event::Copy),
        1 => Just(Event::Crash),
        1 => Just(Event::Discard),
    ]
}

/// A sequence's page.
#[derive(Clone, Copy, Debug)]
struct Page {
    state: State,
    log_cnt: i64,
    /// The last counter that the page's last record covers; stored beside the tuple.
    covered: Option<i64>,
}

/// A server with one sequence, reduced to what uniqueness depends on.
struct Model {
    clock_us: i64,
    policy: Policy,
    page: Page,
    /// The page as the last checkpoint wrote it.
    page_on_disk: Page,
    /// The page after replay of the last record after the redo pointer, if there is such a record.
    replayed: Option<Page>,
    /// Whether the page's `log_cnt` was copied, so that no record covers the values that it counts.
    is_copied: bool,
    guards: [Guard; BACKENDS],
    caches: [Option<Cached>; BACKENDS],
    highest_fetched: [Option<i64>; BACKENDS],
    /// The highest counter issued since the sequence was reset.
    highest: Option<i64>,
    /// Every counter returned to a caller.
    returned: HashSet<i64>,
}

impl Model {
    fn new(policy: Policy) -> Self {
        let fresh = Page { state: State { last_value: 1, is_called: false }, log_cnt: 0, covered: None };
        Model {
            clock_us: NOW_US,
            policy,
            page: fresh,
            page_on_disk: fresh,
            replayed: None,
            is_copied: false,
            guards: Default::default(),
            caches: Default::default(),
            highest_fetched: Default::default(),
            highest: None,
            returned: HashSet::new(),
        }
    }

    fn apply(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Ask { backend, count } => self.ask(backend, count)?,
            Event::CoreNextval => self.core_nextval()?,
            Event::Clock { us } => self.clock_us += us,
            Event::Checkpoint => {
                self.page_on_disk = self.page;
                self.replayed = None;
            }
            Event::Copy => {
                self.page.covered = None;
                self.replayed = Some(self.page);
                self.is_copied = true;
            }
            Event::Crash => {
                self.page = self.replayed.unwrap_or(self.page_on_disk);
                self.guards = Default::default();
                self.caches = Default::default();
                self.highest_fetched = Default::default();
            }
            Event::Discard => self.caches = Default::default(),
            Event::Reset => {
                self.log(1);
                self.caches = Default::default();
                self.highest = None;
            }
        }
        self.wal_covers_what_was_issued()
    }

    fn ask(&mut self, backend: usize, count: i64) -> Result<(), TestCaseError> {
        // The monotonic clock matters only to the log, so it stands still here.
        let (now, _) = self.guards[backend].observe(self.clock_us, || 0);
        let at_once = reading(self.policy, now);
        let request = Request { highest_fetched: self.highest_fetched[backend], ..request(&at_once) };
        if let Some(cached) = self.caches[backend].take()
            && cached.is_usable(&at_once)
        {
            let counter = cached.next;
            self.caches[backend] = cached.rest();
            self.guards[backend].note_issued(now);
            self.is_within_the_lead(counter)?;
            prop_assert!(INSTAGRAM.tick_of(counter) >= INSTAGRAM.tick_at(self.clock_us));
            return self.return_to_caller(counter);
        }

        match advance(self.page.state, i64::MAX, count, request) {
            Decision::Issue(run) => {
                prop_assert!(run.first <= run.last && run.last - run.first < count);
                self.is_within_the_lead(run.last)?;
                let covered = self.page.covered.filter(|_| self.replayed.is_some());
                let coverage = coverage(run, covered);
                if coverage.is_new {
                    self.log(coverage.last);
                    self.page.covered = Some(coverage.last);
                }
                self.page.state = called(run.last);
                self.page.log_cnt = coverage.log_cnt(run);
                let fetched = Cached { layout: INSTAGRAM.pack(), next: run.first, last: run.last };
                self.caches[backend] = fetched.rest();
                self.highest_fetched[backend] = Some(run.last);
                self.guards[backend].note_issued(now);
                self.issue(run.first, run.last)?;
                self.return_to_caller(run.first)
            }
            // What these mean is a property of any decision: `crate::properties::counter`.
            Decision::Wait { .. } | Decision::Refuse(_) => Ok(()),
        }
    }

    /// `nextval_internal()` with CACHE 1 and INCREMENT 1, which logs 32 values ahead.
    fn core_nextval(&mut self) -> Result<(), TestCaseError> {
        // Core trusts a copied log_cnt, and may repeat the values that it counts.
        if self.is_copied {
            return Ok(());
        }
        let Page { state: State { last_value, is_called }, log_cnt, .. } = self.page;
        let next = last_value + i64::from(is_called);
        if !is_called || log_cnt < 1 || self.replayed.is_none() {
            self.log(next + 32);
            self.page.log_cnt = 32;
        } else {
            self.page.log_cnt -= 1;
        }
        self.page.state = called(next);
        self.issue(next, next)?;
        self.return_to_caller(next)
    }

    /// Writes a record, and leaves the page as replay does.
    fn log(&mut self, last_value: i64) {
        self.page = Page { state: called(last_value), log_cnt: 0, covered: None };
        self.replayed = Some(self.page);
        self.is_copied = false;
    }

    fn issue(&mut self, first: i64, last: i64) -> Result<(), TestCaseError> {
        prop_assert!(self.highest.is_none_or(|highest| first > highest), "repeated or lower");
        self.highest = Some(last);
        Ok(())
    }

    fn return_to_caller(&mut self, counter: i64) -> Result<(), TestCaseError> {
        prop_assert!(self.returned.insert(counter), "returned twice");
        Ok(())
    }

    fn is_within_the_lead(&self, counter: i64) -> Result<(), TestCaseError> {
        let lead = INSTAGRAM.tick_of(counter) - INSTAGRAM.tick_at(self.clock_us);
        prop_assert!(lead <= self.policy.max_lead_us / INSTAGRAM.tick_us(), "lead {}", lead);
        Ok(())
    }

    /// If the server crashed now, recovery would restore a page at or above every issued counter; and `log_cnt` counts only covered values.
    fn wal_covers_what_was_issued(&self) -> Result<(), TestCaseError> {
        let recovered = self.replayed.unwrap_or(self.page_on_disk).state;
        if let Some(highest) = self.highest {
            prop_assert!(recovered.is_called && recovered.last_value >= highest);
        }
        let Page { state, log_cnt, .. } = self.page;
        prop_assert!((0..=32).contains(&log_cnt));
        if self.replayed.is_some() && !self.is_copied {
            prop_assert!(state.last_value + log_cnt <= recovered.last_value);
        }
        Ok(())
    }
}

/// Events of a session that uses a sequence alone.
fn event_in_one_session() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => prop_oneof![Just(1_i64), 2..64_i64, 64..300_000_i64]
            .prop_map(|count| Event::Ask { backend: 0, count }),
        3 => (0..2 * MS).prop_map(|us| Event::Clock { us }),
        1 => (-120 * MS..120 * MS).prop_map(|us| Event::Clock { us }),
        1 => (-2 * HOUR..2 * HOUR).prop_map(|us| Event::Clock { us }),
        2 => Just(Event::Reset),
        1 => Just(Event::Discard),
    ]
}

proptest! {
    // Miri needs a minute for a second's work.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 4096 }))]

    #[test]
    fn no_counter_is_issued_twice_whatever_the_clock_and_the_server_do(
        events in prop::collection::vec(event(), 1..200),
        max_lead_ms in prop_oneof![Just(100_i64), Just(0), 0..100_000_i64],
    ) {
        let mut model =
            Model::new(Policy { max_lead_us: max_lead_ms * MS, max_wait_us: 1_000 * MS });
        for event in events {
            model.apply(event)?;
        }
    }

    #[test]
    fn a_session_never_repeats_a_counter_however_the_sequence_is_reset(
        events in prop::collection::vec(event_in_one_session(), 1..200),
    ) {
        let mut model = Model::new(DEFAULTS);
        for event in events {
            model.apply(event)?;
        }
    }
}
