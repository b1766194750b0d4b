//! The rules with IDs of every preset, and how often they are wrong.

use super::*;
use crate::any::any_layout;
use crate::presets::{DEFAULT, INSTAGRAM, JS53, POSTGRES, TWITTER};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// 2026-11-23.
const NOW_US: i64 = 1_795_392_000_000_000;

fn id_of(layout: &Layout, unix_us: i64) -> i64 {
    layout.id(layout.at_tick(1, layout.tick_at(unix_us)), 0)
}

/// The name of the likely preset of an ID in a column of the layout.
fn named(newest: i64, layout: &Layout, now_us: i64) -> Option<&'static str> {
    mismatch(newest, layout, None, now_us).map(|mismatch| mismatch.likely.name)
}

#[test]
fn the_ids_of_a_preset_are_noticed_in_a_column_of_every_other() {
    for (actual, of_ids) in PRESETS {
        let newest = id_of(of_ids, NOW_US);
        assert_eq!(readings(newest, NOW_US)[0].name, *actual);
        for (name, layout) in PRESETS {
            // Until January 2027, pgdog reads the IDs of mastodon as those of October 2026.
            let fits = name == actual || (*name, *actual) == ("pgdog", "mastodon");
            assert_eq!(named(newest, layout, NOW_US), (!fits).then_some(*actual), "{actual} in {name}");
        }
    }
}

/// IDs of now, and IDs of a table in which the newest is some weeks old, in a column of the default layout. Presets that
/// take each other's IDs for those of now are confused, but no ID of another preset passes.
#[test]
fn no_ids_of_another_preset_fit_the_default_layout_for_twenty_years() {
    let mut confused = BTreeSet::new();
    for day in 0..20 * 365 {
        let now_us = NOW_US + day * DAY_US;
        for (actual, of_ids) in PRESETS.iter().filter(|(_, layout)| *layout != DEFAULT) {
            if now_us > of_ids.end_us() {
                continue;
            }
            for age in [0, 7, 30, 89] {
                let newest = id_of(of_ids, now_us - age * DAY_US);
                let named = named(newest, &DEFAULT, now_us);
                let named = named.unwrap_or_else(|| panic!("{actual} {age} days old passes on day {day}"));
                if named != *actual {
                    confused.insert(BTreeSet::from([*actual, named]));
                }
                assert_eq!(mismatch(newest, of_ids, None, now_us), None, "{actual} on day {day}");
            }
        }
    }
    let pairs = [["mastodon", "pgdog"], ["sonyflake", "pgedge"], ["sonyflake", "pgdog"]];
    assert_eq!(confused, BTreeSet::from(pairs.map(BTreeSet::from)));
}

#[test]
fn ids_of_the_default_layout_are_mistaken_only_after_some_idle_times() {
    let mut mistaken: Vec<(&str, i64, i64)> = Vec::new();
    for age in 0..10 * 365 {
        let newest = id_of(&DEFAULT, NOW_US - age * DAY_US);
        match (named(newest, &DEFAULT, NOW_US), mistaken.last_mut()) {
            (Some(name), Some((last, _, to))) if *last == name && *to == age - 1 => *to = age,
            (Some(name), _) => mistaken.push((name, age, age)),
            (None, _) => {}
        }
        let generated_us = Some(NOW_US - age * DAY_US);
        assert_eq!(mismatch(newest, &DEFAULT, generated_us, NOW_US), None, "{age} days");
    }
    assert_eq!(mistaken, [("twitter", 307, 397), ("discord", 1825, 1916)]);
}

#[test]
fn a_sequence_that_has_not_come_to_the_newest_id_proves_nothing() {
    let newest = id_of(&TWITTER, NOW_US);
    let in_postgres_us = POSTGRES.instant_of(POSTGRES.split(newest).tick);
    let is_noticed = |generated_us| mismatch(newest, &POSTGRES, Some(generated_us), NOW_US).is_some();
    assert!(is_noticed(POSTGRES.instant_of(0)));
    assert!(is_noticed(in_postgres_us - 1));
    assert!(!is_noticed(in_postgres_us));
    assert!(!is_noticed(NOW_US));
    // Its counters are not of the layout.
    assert!(is_noticed(NOW_US + 2 * DAY_US));

    // An ID of the future is not of a sequence.
    let newest = id_of(&INSTAGRAM, NOW_US);
    assert!(mismatch(newest, &POSTGRES, Some(NOW_US), NOW_US).is_some());
}

#[test]
fn an_old_id_is_noticed_if_it_would_be_of_the_future() {
    let three_years_ago_us = NOW_US - 3 * 365 * DAY_US;
    assert_eq!(named(id_of(&INSTAGRAM, three_years_ago_us), &POSTGRES, NOW_US), Some("instagram"));
    assert_eq!(named(id_of(&TWITTER, three_years_ago_us), &POSTGRES, NOW_US), None);
    // Not an ID of 53 bits.
    assert_eq!(named(id_of(&TWITTER, three_years_ago_us), &JS53, NOW_US), Some("twitter"));
}

#[test]
fn an_id_of_the_coming_months_is_of_its_layout() {
    for days in 0..365 {
        let newest = id_of(&POSTGRES, NOW_US + days * DAY_US);
        assert_eq!(named(newest, &POSTGRES, NOW_US), None, "{days}");
    }
    let newest = id_of(&POSTGRES, NOW_US + 366 * DAY_US);
    assert_eq!(named(newest, &POSTGRES, NOW_US), Some("instagram"));
}

/// Verdict for a column of the default layout with these IDs.
fn verdict(ids: &[i64], generated_us: Option<i64>, now_us: i64) -> Option<Verdict> {
    let mut ids = ids.to_vec();
    ids.sort_unstable_by_key(|&id| std::cmp::Reverse(id));
    let newest = |count, at_most| {
        let newest = ids.iter().copied().filter(|&id| id <= at_most);
        Some(newest.take(count).collect())
    };
    judge(&DEFAULT, now_us, || generated_us, newest)
}

fn is_refused(ids: &[i64], generated_us: Option<i64>) -> bool {
    matches!(verdict(ids, generated_us, NOW_US), Some(Verdict::OtherLayout(_)))
}

/// IDs from now back.
fn ids_of(layout: &Layout, count: i64, step_us: i64) -> Vec<i64> {
    (0..count).map(|n| id_of(layout, NOW_US - n * step_us)).collect()
}

#[test]
fn the_ids_of_a_column_decide_and_not_its_highest() {
    let twitter = ids_of(&TWITTER, 30, 60_000_000);
    let postgres = ids_of(&DEFAULT, 30, 60_000_000);
    let old = ids_of(&DEFAULT, 30, 9 * DAY_US).split_off(11);
    let future: Vec<i64> = postgres.iter().map(|id| id_of_two_years_later(*id)).collect();
    let both = |odd: &[i64], others: &[i64]| [odd, others].concat();

    assert_eq!(verdict(&postgres, None, NOW_US), None);
    assert!(is_refused(&twitter, None));
    assert!(is_refused(&twitter[..2], None));
    // A table of which only the newest rows are of these months.
    assert!(is_refused(&ids_of(&TWITTER, 30, 30 * DAY_US), None));

    let odd = |ids: &[i64]| matches!(verdict(ids, None, NOW_US), Some(Verdict::OddId(_)));
    assert!(odd(&future[..1]));
    assert!(odd(&both(&future[..1], &postgres[..1])));
    assert!(odd(&both(&future[..1], &old)));
    assert!(odd(&both(&future[..10], &postgres)));
    assert!(odd(&both(&future[..9], &old)));
    assert!(is_refused(&both(&future[..11], &postgres), None));
    // The same ID in many rows is one.
    assert!(odd(&[future[0]; 30]));
    // Two different mistakes do not make a layout.
    assert!(odd(&both(&twitter[..1], &future[..1])));
}

fn id_of_two_years_later(id: i64) -> i64 {
    id_of(&DEFAULT, DEFAULT.instant_of(DEFAULT.split(id).tick) + 2 * 365 * DAY_US)
}

#[test]
fn no_number_of_odd_ids_outvotes_what_the_default_has_generated() {
    let generated = ids_of(&DEFAULT, 30, 60_000_000);
    let future: Vec<i64> = generated.iter().map(|id| id_of_two_years_later(*id)).collect();
    let others = |count: usize| [&future[..], &generated[..count]].concat();
    assert!(!is_refused(&others(SAMPLE), Some(NOW_US)));
    // An idle column.
    let year_ago_us = NOW_US - 350 * DAY_US;
    let idle: Vec<i64> = (0..30).map(|n| id_of(&DEFAULT, year_ago_us - n * 1_000)).collect();
    assert!(!is_refused(&[&future[..], &idle].concat(), Some(year_ago_us)));
    // A default that has just been changed, a sequence that holds a plain count, and one that is of another layout.
    assert!(is_refused(&others(SAMPLE - 1), Some(NOW_US)));
    assert!(is_refused(&others(0), Some(NOW_US)));
    let serials: Vec<i64> = (1..=30).collect();
    assert!(is_refused(&[&future[..], &serials].concat(), Some(NOW_US)));
    assert!(is_refused(&others(SAMPLE), Some(DEFAULT.instant_of(1))));
    assert!(is_refused(&others(SAMPLE), Some(NOW_US + 3 * 365 * DAY_US)));
}

/// What `docs/layouts.md` says about numbers that are not IDs, by their kind, in a column of the default layout.
#[test]
fn numbers_that_are_not_ids_are_mistaken_only_in_some_months() {
    const YEAR_US: i64 = 365 * DAY_US;
    const SECONDS_TO_1970_FROM_YEAR_1: i64 = 62_135_596_800;
    const SECONDS_TO_1970_FROM_1601: i64 = 11_644_473_600;
    const SECONDS_FROM_1970_TO_2000: i64 = 946_684_800;
    type Number = fn(i64) -> i64;
    let kinds: [(&str, Number); 13] = [
        ("a serial", |_| 1_000_000),
        ("the end of integer", |_| i32::MAX.into()),
        ("the end of bigint", |_| i64::MAX),
        ("a date", |us| 20_261_123 + (us - NOW_US) / YEAR_US * 10_000),
        ("a date and time", |us| (20_261_123 + (us - NOW_US) / YEAR_US * 10_000) * 1_000_000),
        ("seconds since 1970", |us| us / 1_000_000),
        ("milliseconds since 1970", |us| us / 1_000),
        ("microseconds since 1970", |us| us),
        ("nanoseconds since 1970", |us| us * 1_000),
        (".NET ticks", |us| us * 10 + SECONDS_TO_1970_FROM_YEAR_1 * 10_000_000),
        ("FILETIME", |us| us * 10 + SECONDS_TO_1970_FROM_1601 * 10_000_000),
        ("TSO", |us| (us / 1_000) << 18),
        ("microseconds since 2000", |us| us - SECONDS_FROM_1970_TO_2000 * 1_000_000),
    ];
    let mut mistaken: Vec<(&str, &str, i64, i64)> = Vec::new();
    for (what, number) in kinds {
        for day in 0..20 * 365 {
            let now_us = NOW_US + day * DAY_US;
            let ids = [0, 1, 2].map(|n| number(now_us - n * 60_000_000));
            let Some(Verdict::OtherLayout(mismatch)) = verdict(&ids, None, now_us) else {
                continue;
            };
            let name = mismatch.likely.name;
            match mistaken.last_mut() {
                Some(last) if (last.0, last.1) == (what, name) && last.3 == day - 1 => last.3 = day,
                _ => mistaken.push((what, name, day, day)),
            }
        }
    }
    let expected = [
        ("microseconds since 1970", "js53", 3380, 3499),
        ("nanoseconds since 1970", "discord", 801, 919),
        ("nanoseconds since 1970", "pgedge", 4637, 4756),
        ("nanoseconds since 1970", "pgdog", 6030, 6149),
        (".NET ticks", "sonyflake", 0, 34),
        (".NET ticks", "pgedge", 342, 433),
        (".NET ticks", "pgdog", 1406, 1496),
        ("FILETIME", "pgdog", 9, 99),
        ("FILETIME", "mastodon", 3487, 3594),
        ("TSO", "pgdog", 999, 1096),
    ];
    assert_eq!(mistaken, expected);
}

#[test]
fn a_sentence_has_the_times_of_both_layouts() {
    let message = |newest, layout| mismatch(newest, &layout, None, NOW_US).unwrap().to_string();
    assert_eq!(
        message(id_of(&INSTAGRAM, NOW_US), POSTGRES),
        "4036363106367045633 has time 2040-06-30T05:45:56.558Z in layout \"postgres\", but 2026-11-23T00:00:00Z in layout \"instagram\""
    );
    assert_eq!(
        message(id_of(&TWITTER, NOW_US), JS53),
        "2124654157624246273 is not an ID of layout \"js53\", but has time 2026-11-23T00:00:00Z in layout \"twitter\""
    );
}

/// Numbers without a pattern: SplitMix64.
fn random(state: &mut u64) -> i64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as i64
}

#[test]
fn random_numbers_are_not_taken_for_ids() {
    let mut state = 33;
    for bits in [31, 53, 63] {
        for rows in [1, 10, 1_000] {
            for _ in 0..1_000 {
                let number = |_| (random(&mut state) as u64 >> (64 - bits)) as i64;
                let ids: Vec<i64> = (0..rows).map(number).collect();
                assert!(!is_refused(&ids, None), "{bits} bits, {rows} rows");
            }
        }
    }
}

proptest! {
    #[test]
    fn the_most_likely_reading_is_the_nearest_possible_one(id: i64, now_us in NOW_US..2 * NOW_US) {
        let readings = readings(id, now_us);
        prop_assert_eq!(readings.len(), PRESETS.len());
        let possible = readings.iter().take_while(|reading| reading.doubt.is_none());
        prop_assert!(possible.clone().is_sorted_by_key(|reading| reading.unix_us.abs_diff(now_us)));
        prop_assert!(readings[possible.count()..].iter().all(|reading| reading.doubt.is_some()));
        for reading in readings {
            let fits = reading.layout.is_id(id) && id >= 0;
            prop_assert_eq!(reading.doubt != Some(Doubt::NotAnId), fits);
        }
    }

    /// Also in the first days of a layout of one's own.
    #[test]
    fn recent_ids_of_the_layout_itself_are_never_refused(
        preset in 0..PRESETS.len(), days in 0..3_000_i64, age in 0..90_i64, shard: u32,
    ) {
        let preset = PRESETS[preset].1;
        let layout = Layout { epoch_ms: (NOW_US - days * DAY_US) / 1_000, ..preset };
        let tick = layout.tick_at(NOW_US - age.min(days) * DAY_US);
        let shard = shard & (layout.shards() - 1) as u32;
        let id = layout.compose(Fields { tick, shard, seq: 1 });
        prop_assert_eq!(mismatch(id, &layout, None, NOW_US), None);
    }

    #[test]
    fn a_refusal_names_another_layout_that_is_possible(id: i64, layout in any_layout(), generated_us: Option<i64>) {
        if let Some(Mismatch { likely, .. }) = mismatch(id, &layout, generated_us, NOW_US) {
            prop_assert!(likely.layout != layout && likely.doubt.is_none());
            prop_assert!(id >= 0);
        }
    }
}
