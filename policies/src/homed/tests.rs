//! Homes and their searches, and the decisions of [`advance`].

use super::home::MIN_HASHES;
use super::*;
use crate::clock::Now;
use crate::counter::{Policy, Reading};
use crate::hashfn::hashint8;
use crate::lease::Ticks;
use pg_snowflake_ids::any::any_layout;
use pg_snowflake_ids::layout::Packed;
use pg_snowflake_ids::presets::{INSTAGRAM, JS53, POSTGRES, PRESETS};
use proptest::prelude::*;

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

fn reading(policy: Policy) -> Reading {
    let now = Now { reading_us: NOW_US, high_water_us: NOW_US };
    Reading::new(Packed::new(INSTAGRAM), policy, now)
}

fn request(reading: &Reading, ticks: Ticks) -> Request<'_> {
    Request { reading, shard: 0, highest_fetched: None, ticks }
}

fn invalid(shard_id: i32, modulus: i32, generators: i32) -> Invalid {
    Homed::in_partition(&JS53, shard_id, modulus, generators).expect_err("invalid")
}

#[test]
fn the_arguments_must_fit_the_layout() {
    // 128 shards.
    let cases = [
        ((0, 0, 1), Invalid::Modulus { modulus: 0, highest: 128 }),
        ((0, -1, 1), Invalid::Modulus { modulus: -1, highest: 128 }),
        ((0, 129, 1), Invalid::Modulus { modulus: 129, highest: 128 }),
        ((0, 4, 0), Invalid::Generators { generators: 0, highest: 32 }),
        ((0, 4, 33), Invalid::Generators { generators: 33, highest: 32 }),
        ((0, 4, i32::MAX), Invalid::Generators { generators: i32::MAX, highest: 32 }),
        ((-1, 4, 2), Invalid::Shard { shard: -1, highest: 7 }),
        ((8, 4, 2), Invalid::Shard { shard: 8, highest: 7 }),
    ];
    for ((shard_id, modulus, generators), expected) in cases {
        assert_eq!(invalid(shard_id, modulus, generators), expected);
    }
    let wide = Layout { time_bits: 32, shard_bits: 31, seq_bits: 0, ..INSTAGRAM };
    let too_large = Invalid::Modulus { modulus: i32::MAX, highest: MAX_MODULUS };
    assert_eq!(Homed::in_partition(&wide, 0, i32::MAX, 1), Err(too_large));
}

#[test]
fn a_class_has_every_number_of_its_shard() {
    let class = |shard_id, modulus, generators| {
        let homed = Homed::in_partition(&JS53, shard_id, modulus, generators).expect("valid");
        (homed.class.shards().collect::<Vec<_>>(), homed.class.count())
    };
    assert_eq!(class(5, 32, 1), (vec![5, 37, 69, 101], 4));
    assert_eq!(class(37, 32, 2), (vec![37, 101], 2));
    assert_eq!(class(1, 50, 1), (vec![1, 51, 101], 3));
    assert_eq!(class(30, 50, 1), (vec![30, 80], 2));
    assert_eq!(class(127, 128, 1), (vec![127], 1));
    assert_eq!(class(0, 1, 1).1, 128);
}

#[test]
fn ranges_are_sorted_and_merged() {
    const MIN: i32 = i32::MIN;
    let ranges = |ranges: &[(i64, i64)]| {
        hash_ranges(Vec::new(), ranges.iter().copied()).map(|ranges| ranges.iter().map(|range| (range.first, range.last)).collect())
    };
    assert_eq!(ranges(&[(i64::MIN, i64::MAX)]), Ok(vec![(MIN, i32::MAX)]));
    let of_two = [(0, 999_999), (i64::MIN, -1_000), (-999, -1)];
    assert_eq!(ranges(&of_two), Ok(vec![(MIN, 999_999)]));
    let apart = [(5_000_000, i64::MAX), (0, 999_999)];
    assert_eq!(ranges(&apart), Ok(vec![(0, 999_999), (5_000_000, i32::MAX)]));
    assert_eq!(ranges(&[(0, MIN_HASHES - 1)]), Ok(vec![(0, MIN_HASHES as i32 - 1)]));
    let too_few = Invalid::TooFewHashes { hashes: MIN_HASHES - 1, needed: MIN_HASHES };
    assert_eq!(ranges(&[(1, MIN_HASHES - 1)]), Err(too_few));
    assert_eq!(ranges(&[]), Err(Invalid::NoRange));
    for beyond in [(0, 1 << 31), (-(1 << 31) - 1, 0), (1 << 31, i64::MAX)] {
        assert_eq!(ranges(&[beyond]), Err(Invalid::RangeBeyondHashes));
    }
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

#[test]
fn a_search_ends() {
    // No ID has that hash: it is not a range that hash_ranges() returns.
    let homed = Homed::new(Class::one(5), Home::Ranges(&[]));
    assert_eq!(homed.first_in(&INSTAGRAM, Run { first: 1, last: i64::MAX }), None);
}

/// Each of 64 shards has 128 numbers, so one counter in eight yields no homed ID.
fn homed() -> Homed<'static> {
    Homed::in_partition(&INSTAGRAM, 5, 64, 1).expect("valid")
}

fn ask_homed(state: State, max_value: i64, policy: Policy, ticks: Ticks) -> Decision<Found> {
    advance(state, max_value, request(&reading(policy), ticks), &homed())
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
fn a_search_for_a_homed_id_that_finds_none_is_refused() {
    let homed = Homed::new(Class::one(5), Home::Ranges(&[]));
    let an_hour_ahead = Policy { max_lead_us: 3_600_000 * MS, ..DEFAULTS };
    let reading = reading(an_hour_ahead);
    let request = request(&reading, Ticks::ALL);
    let counters = homed.max_counters();
    assert_eq!(advance(called(1), i64::MAX, request, &homed), Decision::Refuse(Refusal::NotHome { counters }));
}

/// Any home with shares of the hashes that a test of a thousand tries meets.
fn any_homed() -> impl Strategy<Value = (Layout, i32, i32, i32)> {
    any_layout().prop_flat_map(|layout| {
        let shards = layout.shards();
        (1..=shards.min(50)).prop_flat_map(move |modulus| {
            (1..=(shards / modulus).min(1_000_000)).prop_flat_map(move |generators| {
                (0..modulus * generators).prop_map(move |shard| (layout, shard as i32, modulus as i32, generators as i32))
            })
        })
    })
}

proptest! {
    #[test]
    fn the_search_is_that_of_brute_force(
        (layout, shard_id, modulus, generators) in any_homed(), counter: u64, length in 0..20_i64,
    ) {
        let homed = Homed::in_partition(&layout, shard_id, modulus, generators).unwrap();
        let first = (counter as i64 & layout.max_counter()).min(layout.max_counter() - 20).max(0);
        let run = Run { first, last: (first + length).min(layout.max_counter()) };
        let step = i64::from(modulus) * i64::from(generators);
        let all = (run.first..=run.last).flat_map(|counter| {
            (0..).map(move |n| i64::from(shard_id) + n * step)
                .take_while(move |&shard| shard < layout.shards())
                .map(move |shard| Found { counter, shard: shard as u32 })
        });
        let all: Vec<Found> = all.take(5_000).collect();
        let expected = all.iter().copied().find(|found| {
            let id = layout.id(found.counter, found.shard);
            partition_hash(id) % modulus as u64 == (shard_id % modulus) as u64
        });
        if all.len() < 5_000 || expected.is_some() {
            prop_assert_eq!(homed.first_in(&layout, run), expected);
        }
    }

    #[test]
    fn different_shards_have_no_number_in_common(
        modulus in 1..20_i32, generators in 1..6_i32, shards in prop::array::uniform2(0..120_i32),
    ) {
        let [one, other] = shards.map(|shard| shard % (modulus * generators));
        prop_assume!(one != other);
        let class = |shard| Homed::in_partition(&JS53, shard, modulus, generators).unwrap().class;
        prop_assert!(class(one).shards().all(|shard| class(other).shards().all(|o| o != shard)));
    }

    #[test]
    fn a_home_in_ranges_is_where_one_of_them_has_the_hash(
        pairs in prop::collection::vec((i32::MIN..i32::MAX, 0..1_i64 << 28), 1..8), id in 0..i64::MAX,
    ) {
        let pairs: Vec<(i64, i64)> = pairs
            .into_iter()
            .map(|(first, more)| (first.into(), (i64::from(first) + more).min(i32::MAX.into())))
            .collect();
        let Ok(ranges) = hash_ranges(Vec::new(), pairs.iter().copied()) else { return Ok(()) };
        let hash = i64::from(hashint8(id));
        let expected = pairs.iter().any(|&(first, last)| (first..=last).contains(&hash));
        prop_assert_eq!(Home::Ranges(&ranges).has(id), expected);
    }
}
