//! Homes and their searches, and the decisions of [`advance`].

use super::home::MIN_HASHES;
use super::*;
use crate::clock::Now;
use crate::counter::{Policy, Reading};
use crate::lease::Ticks;
use pg_snowflake_ids::layout::Packed;
use pg_snowflake_ids::presets::{INSTAGRAM, POSTGRES, PRESETS};

const MS: i64 = 1_000;

/// An instant in the layout's life, at the start of a tick.
const NOW_US: i64 = 1_800_000_000_000_000;
const NOW_TICK: i64 = INSTAGRAM.tick_at(NOW_US);

const DEFAULTS: Policy = Policy { max_lead_us: 100 * MS, max_wait_us: 1_000 * MS };

fn called(last_value: i64) -> State {
    State { last_value, is_called: true }
}

fn counter_at(seq: i64) -> i64 {
    INSTAGRAM.at_tick(seq, NOW_TICK)
}

fn reading(policy: Policy, ticks: Ticks) -> Reading {
    let now = Now { reading_us: NOW_US, high_water_us: NOW_US };
    Reading::new(Packed::new(INSTAGRAM), policy, ticks, now)
}

fn request(reading: &Reading) -> Request<'_> {
    Request { reading, shard: 0, highest_fetched: None }
}

#[test]
fn a_search_looks_at_one_counter_at_least_however_many_numbers_it_has() {
    let wide = Layout { time_bits: 32, shard_bits: 31, seq_bits: 0, ..INSTAGRAM };
    let homed = Homed::in_partition(&wide, 0, 1, 1).expect("valid");
    assert_eq!(homed.first_in(&wide, Run { first: 5, last: 5 }), Some(Found { counter: 5, shard: 0 }));
}

#[test]
fn a_range_has_at_least_so_many_hashes() {
    let first_and_last = |last| hash_ranges(Vec::new(), [(0, last)]).map(|ranges| (ranges[0].first, ranges[0].last));
    assert_eq!(first_and_last(MIN_HASHES - 1), Ok((0, MIN_HASHES as i32 - 1)));
    assert_eq!(first_and_last(MIN_HASHES - 2), Err(Invalid::TooFewHashes { hashes: MIN_HASHES - 1, needed: MIN_HASHES }));
}

/// How many counters of 20,000 have an ID that is at home in partition 1, and how many tries an ID takes.
fn found(layout: &Layout, modulus: i32) -> (f64, f64) {
    const COUNTERS: i64 = 20_000;
    let homed = Homed::in_partition(layout, 1 % modulus, modulus, 1).expect("valid");
    let first = layout.at_tick(0, layout.tick_at(NOW_US));
    let (mut ids, mut tries) = (0, 0);
    for counter in first..first + COUNTERS {
        match homed.shard_of(layout, counter) {
            Some(shard) => {
                ids += 1;
                tries += (shard - homed.class.first) / homed.class.step + 1;
            }
            None => tries += homed.class.count(),
        }
    }
    (f64::from(ids) / COUNTERS as f64, f64::from(tries) / f64::from(ids))
}

#[test]
fn a_search_takes_as_many_tries_as_the_modulus_and_loses_no_counter_up_to_16() {
    for layout in [INSTAGRAM, POSTGRES] {
        for modulus in [1, 2, 3, 4, 16, 64, 256] {
            let (share, tries) = found(&layout, modulus);
            println!("{layout}, {modulus}: {share} of the counters, {tries} tries");
            assert!((0.85..1.15).contains(&(tries / f64::from(modulus))), "{modulus}: {tries}");
            assert!(share == 1.0 || modulus > 16, "{modulus}: {share}");
            let homed = Homed::in_partition(&layout, 0, modulus, 1).expect("valid");
            let expected = 1_000.0 / homed.counters_for(1_000) as f64;
            assert!((0.9..1.1).contains(&(share / expected)), "{share} rather than {expected}");
        }
    }
}

#[test]
fn every_preset_has_homed_ids_at_the_highest_modulus() {
    for (name, layout) in PRESETS {
        let modulus = layout.shards().min(MAX_MODULUS) as i32;
        let homed = Homed::in_partition(layout, modulus - 1, modulus, 1).expect("valid");
        let first = layout.at_tick(7, layout.tick_at(NOW_US));
        let found = homed.first_in(layout, Run { first, last: i64::MAX }).expect(name);
        assert!(homed.home.has(layout.id(found.counter, found.shard)), "{name}");
    }
}

/// Each of 64 shards has 128 numbers, so one counter in eight yields no homed ID.
fn homed() -> Homed<'static> {
    Homed::in_partition(&INSTAGRAM, 5, 64, 1).expect("valid")
}

fn ask_homed(state: State, max_value: i64, policy: Policy, ticks: Ticks) -> Decision<Found> {
    advance(state, max_value, request(&reading(policy, ticks)), &homed())
}

/// The first counter above `counter` that yields no homed ID.
fn next_not_home(counter: i64) -> i64 {
    let is_none = |&counter: &i64| homed().shard_of(&INSTAGRAM, counter).is_none();
    (counter + 1..).find(is_none).expect("one in eight")
}

#[test]
fn a_homed_id_takes_the_first_counter_that_makes_one() {
    let start = counter_at(7);
    let mut state = called(start);
    let expected = (start + 1..).filter_map(|counter| homed().shard_of(&INSTAGRAM, counter).map(|shard| Found { counter, shard }));
    for expected in expected.take(500) {
        assert_eq!(ask_homed(state, i64::MAX, DEFAULTS, Ticks::ALL), Decision::Issue(expected));
        state = called(expected.counter);
    }
    assert!(state.last_value > start + 500, "some are passed over");
}

#[test]
fn a_homed_id_waits_where_its_counter_is_above_the_limit_of_the_lead() {
    let no_lead = Policy { max_lead_us: 0, ..DEFAULTS };
    let ticks = Ticks { last: NOW_TICK, ..Ticks::ALL };
    let mut state = called(counter_at(1000));
    let decision = loop {
        match ask_homed(state, i64::MAX, no_lead, ticks) {
            Decision::Issue(found) => state = called(found.counter),
            decision => break decision,
        }
    };
    assert_eq!(decision, Decision::Wait { us: MS });
    let never = Policy { max_wait_us: 0, ..no_lead };
    let refused = ask_homed(state, i64::MAX, never, Ticks::ALL);
    assert!(matches!(refused, Decision::Refuse(Refusal::TooFarAhead { .. })), "{refused:?}");
    let refused = ask_homed(state, i64::MAX, never, ticks);
    assert!(matches!(refused, Decision::Refuse(Refusal::PastLease { .. })), "{refused:?}");
}

#[test]
fn a_homed_id_is_not_above_max_value() {
    let max_value = next_not_home(counter_at(7));
    let refusal = Refusal::AboveMaxValue { counter: max_value + 1, max_value };
    let decision = ask_homed(called(max_value - 1), max_value, DEFAULTS, Ticks::ALL);
    assert_eq!(decision, Decision::Refuse(refusal));
}

#[test]
fn a_search_for_a_homed_id_that_finds_none_ends_and_is_refused() {
    // No ID has that hash: it is not a range that hash_ranges() returns.
    let homed = Homed::new(Class::one(5), Home::Ranges(&[]));
    assert_eq!(homed.first_in(&INSTAGRAM, Run { first: 1, last: i64::MAX }), None);
    let an_hour_ahead = Policy { max_lead_us: 3_600_000 * MS, ..DEFAULTS };
    let reading = reading(an_hour_ahead, Ticks::ALL);
    let request = request(&reading);
    let counters = homed.max_counters();
    assert_eq!(advance(called(1), i64::MAX, request, &homed), Decision::Refuse(Refusal::NotHome { counters }));
}
