//! Ranges of all steps, and partitions that prove their age or do not.

use super::age::{FIRST_DAYS_US, own_doubt};
use super::step::DAY_US;
use super::*;
use jiff::Timestamp;
use pg_snowflake_ids::PRESETS;
use pg_snowflake_ids::any::any_layout;
use pg_snowflake_ids::presets::{INSTAGRAM, JS53, TWITTER};
use proptest::prelude::*;

const MINUTE_US: i64 = 60_000_000;

fn at(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

fn interval(text: &str) -> (i32, i32, i64) {
    let (count, unit) = text.split_once(' ').unwrap();
    let count: i32 = count.parse().unwrap();
    match unit {
        "months" => (count, 0, 0),
        "days" => (0, count, 0),
        "hours" => (0, 0, i64::from(count) * HOUR_US),
        "minutes" => (0, 0, i64::from(count) * MINUTE_US),
        _ => panic!("{unit}"),
    }
}

fn step(text: &str) -> Option<Step> {
    let (months, days, us) = interval(text);
    Step::of_interval(months, days, us)
}

#[test]
fn a_step_starts_at_the_utc_boundary_before() {
    for (length, instant, start, next) in [
        ("1 hours", "2026-11-23T00:17:03Z", "2026-11-23T00:00:00Z", "2026-11-23T01:00:00Z"),
        ("6 hours", "2026-11-23T11:59:59Z", "2026-11-23T06:00:00Z", "2026-11-23T12:00:00Z"),
        ("24 hours", "2026-11-23T11:59:59Z", "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"),
        ("1 days", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"),
        ("1 days", "1969-12-31T23:00:00Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("10 days", "1970-01-15T23:00:00Z", "1970-01-11T00:00:00Z", "1970-01-21T00:00:00Z"),
        // Mondays.
        ("7 days", "2026-11-22T23:59:59Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"),
        ("7 days", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
        ("14 days", "1970-01-19T00:00:00Z", "1970-01-19T00:00:00Z", "1970-02-02T00:00:00Z"),
        ("1 months", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ("3 months", "2026-12-31T12:00:00Z", "2026-10-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("12 months", "2026-12-31T12:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("60 months", "2026-12-31T12:00:00Z", "2025-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
    ] {
        let step = step(length).unwrap();
        let found = step.start_of(at(instant)).unwrap();
        assert_eq!((found, step.next(found)), (at(start), Some(at(next))), "{length} {instant}");
    }
}

/// Beside those that the script `partition_errors` has.
#[test]
fn a_step_that_cannot_be_aligned_is_refused() {
    for length in ["-1 months", "5 months", "18 months", "36601 days", "90 minutes", "36 hours", "-24 hours"] {
        assert_eq!(step(length), None, "{length}");
    }
    for (months, days, us) in [(1, 1, 0), (1, 0, HOUR_US), (1, -1, 0), (i32::MAX, i32::MAX, i64::MAX)] {
        assert_eq!(Step::of_interval(months, days, us), None, "{months} {days} {us}");
    }
}

#[test]
fn the_ranges_reach_an_hour_before_and_after_now() {
    let starts = |now: &str, ahead| -> Vec<String> {
        let day = Step::Time(DAY_US);
        let found = wanted(&INSTAGRAM, day, at(now), CLOCK_TOLERANCE_US, ahead);
        assert_eq!(found.beyond_layout, None);
        found.ranges.iter().map(|range| day.name_suffix(range.span.start)).collect()
    };
    assert_eq!(starts("2026-11-23T12:00:00Z", 0), ["p20261123"]);
    assert_eq!(starts("2026-11-23T12:00:00Z", 2), ["p20261123", "p20261124", "p20261125"]);
    assert_eq!(starts("2026-11-23T00:00:00Z", 1), ["p20261122", "p20261123", "p20261124"]);
    assert_eq!(starts("2026-11-23T00:59:59Z", 0), ["p20261122", "p20261123"]);
    assert_eq!(starts("2026-11-23T23:00:00Z", 0), ["p20261123", "p20261124"]);
    assert_eq!(starts("2026-11-23T23:30:00Z", 1), ["p20261123", "p20261124"]);
}

#[test]
fn the_last_range_ends_with_the_layout() {
    let year = Step::Months(12);
    // JS53 ends in 2088.
    let found = wanted(&JS53, year, at("2080-06-01T00:00:00Z"), CLOCK_TOLERANCE_US, 1000);
    let last = found.ranges.last().unwrap();
    assert!(last.span.contains(&(JS53.end_us() - 1)), "{last:?}");
    assert_eq!(last.bounds.to, Bound::At(1 << 53));
    assert_eq!(found.beyond_layout, Some(last.span.end));

    // The IDs of INSTAGRAM have 63 bits without the sign.
    let found = wanted(&INSTAGRAM, year, INSTAGRAM.end_us() - 1, CLOCK_TOLERANCE_US, 0);
    assert_eq!(found.ranges.last().unwrap().bounds.to, Bound::Max);
}

#[test]
fn the_first_range_begins_with_the_layout() {
    let epoch_us = JS53.instant_of(0);
    let found = wanted(&JS53, Step::Months(12), epoch_us - HOUR_US, CLOCK_TOLERANCE_US, 1);
    assert_eq!(found.ranges[0].bounds.from, Bound::At(0));
    assert!(found.ranges[0].span.contains(&epoch_us));
}

#[test]
fn a_partition_is_older_only_if_all_its_ids_are() {
    for (_, layout) in PRESETS {
        let cut = at("2026-11-01T00:00:00Z").max(layout.instant_of(1_000));
        let cut_id = layout.min_id(cut);
        let to = |to| Bounds { from: Bound::Min, to };
        assert!(to(Bound::At(cut_id)).ends_before(layout, cut), "{layout}");
        assert!(!to(Bound::At(cut_id + 1)).ends_before(layout, cut), "{layout}");
        assert!(!to(Bound::Max).ends_before(layout, i64::MAX - 1), "{layout}");
        assert!(!to(Bound::At(0)).ends_before(layout, cut), "{layout}");
        // Before the epoch nothing is older.
        assert!(!to(Bound::At(1)).ends_before(layout, layout.instant_of(0) - HOUR_US));
    }
}

#[test]
fn a_range_is_covered_by_one_partition_wholly_or_in_part() {
    let bounds = |from, to| Bounds { from: Bound::At(from), to: Bound::At(to) };
    let open = Bounds { from: Bound::Min, to: Bound::At(10) };
    let existing = [open, bounds(10, 20), bounds(30, 40)];
    for (range, expected) in [
        (bounds(0, 10), Coverage::Whole(0)),
        (bounds(10, 20), Coverage::Whole(1)),
        (bounds(12, 13), Coverage::Whole(1)),
        (bounds(20, 30), Coverage::None),
        (bounds(19, 30), Coverage::Part(1)),
        (bounds(25, 45), Coverage::Part(2)),
        (bounds(20, 31), Coverage::Part(2)),
    ] {
        assert_eq!(coverage(&existing, range), expected, "{range}");
    }
    assert_eq!(gaps(existing), [bounds(20, 30)]);
    assert_eq!(gaps([]), []);
}

/// The bounds of a span that is given as two times.
fn bounds_of(layout: &Layout, from: &str, to: &str) -> Bounds {
    Bounds::of_span(layout, &(at(from)..at(to)))
}

#[test]
fn a_name_and_bounds_that_agree_prove_a_partition() {
    let month = bounds_of(&INSTAGRAM, "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z");
    let hours = bounds_of(&INSTAGRAM, "2026-03-01T06:00:00Z", "2026-03-01T12:00:00Z");
    let (Bound::At(from), Bound::At(to)) = (month.from, month.to) else { unreachable!() };
    let between = |from, to| Bounds { from: Bound::At(from), to: Bound::At(to) };
    for (name, bounds, expected) in [
        ("t_p20260301", month, None),
        ("t_p20260301_000000", month, None),
        ("t_p20260301_060000", hours, None),
        ("t_p20260301", hours, Some(Doubt::Name)),
        ("t_p20260301_120000", hours, Some(Doubt::Name)),
        ("t_p20260401", month, Some(Doubt::Name)),
        ("t_p20260301_old", month, Some(Doubt::Name)),
        ("tp20260301", month, Some(Doubt::Name)),
        ("p20260301", month, Some(Doubt::Name)),
        ("t_2026_03", month, Some(Doubt::Name)),
        ("", month, Some(Doubt::Name)),
        ("t_p20260301", between(from + 1, to), Some(Doubt::Start)),
        ("t_p20260301", between(from - 1, to), Some(Doubt::Start)),
        ("t_p20260301", Bounds { from: Bound::Min, ..month }, Some(Doubt::Start)),
        ("t_p20260301", between(from, to + 1), Some(Doubt::End)),
        ("t_p20260301", between(from, to - 1), Some(Doubt::End)),
        ("t_p20260301", Bounds { to: Bound::Max, ..month }, Some(Doubt::End)),
        ("t_0", between(0, 1_000_000), Some(Doubt::End)),
        ("t_0", between(1_000_000, 2_000_000), Some(Doubt::Start)),
        ("t_0", between(-5, 1_000_000), Some(Doubt::Start)),
    ] {
        assert_eq!(own_doubt(&INSTAGRAM, name, bounds), expected, "{name} {bounds}");
    }
}

#[test]
fn the_first_days_of_a_layout_prove_nothing() {
    // Its epoch is a whole hour, so number 0 is the first ID of one.
    let until = |to| bounds_of(&JS53, "2020-01-01T00:00:00Z", to);
    assert_eq!(until("2020-02-01T00:00:00Z").from, Bound::At(0));
    let doubt = own_doubt(&JS53, "t_p20200101", until("2026-01-01T00:00:00Z"));
    assert_eq!(doubt, Some(Doubt::FirstDays));
    for (name, from, expected) in
        [("t_p20200330", "2020-03-30T00:00:00Z", Some(Doubt::FirstDays)), ("t_p20200331", "2020-03-31T00:00:00Z", None)]
    {
        let bounds = bounds_of(&JS53, from, "2020-05-01T00:00:00Z");
        assert_eq!(own_doubt(&JS53, name, bounds), expected);
    }
    for (_, layout) in PRESETS {
        let serial = Bounds { from: Bound::At(0), to: Bound::At(1 << 30) };
        assert!(own_doubt(layout, "t_p20100101", serial).is_some(), "{layout}");
    }
}

#[test]
fn a_gap_or_a_doubtful_partition_between_the_instant_and_now_puts_all_in_doubt() {
    let months = ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06"];
    let bounds = |index: usize| {
        let day = |index: usize| format!("{}-01T00:00:00Z", months[index]);
        bounds_of(&INSTAGRAM, &day(index), &day(index + 1))
    };
    let named = ["t_p20260101", "t_p20260201", "t_p20260301", "t_p20260401", "t_p20260501"];
    let all: Vec<_> = (0..5).map(|index| (named[index], bounds(index))).collect();
    let now = at("2026-04-15T00:00:00Z");
    let found = |partitions: &[(&str, Bounds)]| doubts(&INSTAGRAM, partitions, at("2026-02-01T00:00:00Z"), now);
    assert_eq!(found(&all), [None; 5]);

    let mut with_gap = all.clone();
    with_gap.remove(1);
    assert_eq!(found(&with_gap), [Some(Doubt::Gap(bounds(1))), None, None, None]);
    // Before the instant, partitions may have been removed.
    let later = doubts(&INSTAGRAM, &with_gap, at("2026-03-01T00:00:00Z"), now);
    assert_eq!(later, [None; 4]);

    let mut renamed = all.clone();
    renamed[1].0 = "february";
    let later = Some(Doubt::Later(1));
    assert_eq!(found(&renamed), [later, Some(Doubt::Name), None, None, None]);
    let later = doubts(&INSTAGRAM, &renamed, at("2026-03-01T00:00:00Z"), now);
    assert_eq!(later, [None, Some(Doubt::Name), None, None, None]);

    // The current one, in which a clock years ahead would be now, too.
    let mut open = all.clone();
    open.truncate(4);
    open[3].1.to = Bound::Max;
    assert_eq!(found(&open)[0], Some(Doubt::Later(3)));

    // What is in the future has no part in it.
    let mut future = all.clone();
    future[4].0 = "future";
    assert_eq!(found(&future), [None; 5]);
    assert_eq!(found(&[]), []);
}

/// Of any two layouts that give a time to the same IDs, also of that which is to become the default.
#[test]
fn no_partition_of_one_layout_is_proved_in_another() {
    let since_2010 = Layout { epoch_ms: 1_262_304_000_000, ..TWITTER };
    let mut layouts: Vec<Layout> = PRESETS.iter().map(|&(_, layout)| layout).collect();
    layouts.push(since_2010);
    let mut whole_in_both = 0;
    for length in ["1 hours", "1 days", "7 days", "1 months", "12 months"] {
        let step = step(length).unwrap();
        for former in &layouts {
            let year = at("2024-01-01T00:00:00Z");
            for Wanted { span, bounds } in wanted(former, step, year, 0, 1000).ranges {
                let name = format!("t_{}", step.name_suffix(span.start));
                for layout in layouts.iter().filter(|layout| !layout.has_same_ticks(former)) {
                    let doubt = own_doubt(layout, &name, bounds);
                    let has_same_ids = bounds == Bounds::of_span(layout, &span);
                    assert!(doubt.is_some() || has_same_ids, "{former} {layout} {bounds}");
                    whole_in_both += i32::from(doubt == Some(Doubt::Name));
                }
            }
        }
    }
    // Whole hours alone would prove nothing.
    assert!(whole_in_both > 1_000, "{whole_in_both}");
}

proptest! {
    /// No ID of an hour around now is without a range, whatever the layout. What `snowflake_create_partitions` creates is proved when it
    /// is old.
    #[test]
    fn every_id_of_the_next_steps_is_in_exactly_one_range_which_its_name_proves(
        layout in any_layout(),
        length in prop::sample::select(&["1 hours", "8 hours", "1 days", "3 days", "7 days", "1 months", "6 months", "24 months"][..]),
        now_s in 1_700_000_000_i64..4_000_000_000,
        offset_us in -HOUR_US..HOUR_US,
        ahead in 0_u32..5,
    ) {
        let (now_us, step) = (now_s * 1_000_000, step(length).unwrap());
        let found = wanted(&layout, step, now_us, CLOCK_TOLERANCE_US, ahead);
        for pair in found.ranges.windows(2) {
            prop_assert_eq!(pair[0].bounds.to, pair[1].bounds.from);
            prop_assert_eq!(pair[0].span.end, pair[1].span.start);
        }
        let id = layout.min_id(now_us + offset_us);
        let tick = id >> layout.low_bits();
        if now_us + offset_us >= layout.instant_of(0) && tick <= layout.max_tick() && id < i64::MAX {
            let bounds = Bounds { from: Bound::At(id), to: Bound::At(id + 1) };
            let having = found.ranges.iter().filter(|range| range.bounds.contains(bounds)).count();
            prop_assert_eq!(having, 1);
        }
        for Wanted { span, bounds } in &found.ranges {
            let begins_late = span.start >= layout.instant_of(0) + FIRST_DAYS_US;
            let ends = bounds.to.instant(&layout).is_some();
            if begins_late && ends && layout.tick_us() < HOUR_US {
                let name = format!("t_{}", step.name_suffix(span.start));
                prop_assert_eq!(own_doubt(&layout, &name, *bounds), None, "{} {}", name, bounds);
            }
            prop_assert_eq!(coverage(&[*bounds], *bounds), Coverage::Whole(0));
            if let Bound::At(id) = bounds.from {
                prop_assert!(id == 0 || bounds.from.instant(&layout) >= Some(span.start));
            }
        }
    }
}

#[test]
fn a_bound_that_no_id_reaches_has_no_time() {
    for (_, layout) in PRESETS {
        assert_eq!(Bound::At(0).instant(layout), Some(layout.instant_of(0)));
        assert_eq!(Bound::At(-1).instant(layout), None);
        assert_eq!(Bound::At(i64::MIN).instant(layout), None);
    }
}
