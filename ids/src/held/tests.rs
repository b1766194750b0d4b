use super::*;
use crate::layout::{ShardPlace, Unit};
use crate::presets::{INSTAGRAM, JS53, POSTGRES, TWITTER};

const NOW_US: i64 = 1_795_860_000_000_000; // 2026-11-28

fn counter(layout: &Layout, ago_us: i64) -> i64 {
    layout.at_tick(7, layout.tick_at(NOW_US - ago_us))
}

fn presets() -> impl Iterator<Item = Layout> {
    PRESETS.iter().map(|&(_, layout)| layout)
}

#[test]
fn a_sequence_that_was_set_to_the_highest_id_holds_an_id() {
    for layout in presets().filter(|layout| layout.shard_bits > 0) {
        // setval(seq, max(id)), setval(seq, max(id) + 1, false), and what nextval() has added since; IDs of any shard.
        for (shard, more) in [(0, 0), (5, 1), (layout.shards() as u32 - 1, 1000)] {
            for ago_us in [0, DAY_US, RECENT_US - 1] {
                let id = layout.id(counter(&layout, ago_us), shard) + more;
                let held = instead_of_counter(id, &layout, NOW_US);
                let tick = layout.split(id).tick;
                assert_eq!(held, Some(Held::Id { layout, tick }), "{layout} {shard} {ago_us}");
            }
        }
    }
}

#[test]
fn the_last_row_of_a_table_can_be_years_old() {
    let id = POSTGRES.id(counter(&POSTGRES, 1000 * DAY_US), 5);
    assert!(matches!(instead_of_counter(id, &POSTGRES, NOW_US), Some(Held::Id { layout: POSTGRES, .. })));
    // As an ID of discord, whose epoch is five years later, it would be recent.
    let id = POSTGRES.id(counter(&POSTGRES, 1826 * DAY_US), 5);
    assert!(matches!(instead_of_counter(id, &POSTGRES, NOW_US), Some(Held::Id { layout: POSTGRES, .. })));
    // With few bits below it, the time of a wrong clock can look like that of an old ID.
    let layout = Layout { shard_bits: 1, shard_place: ShardPlace::AboveSeq, ..POSTGRES };
    let in_ten_years = counter(&layout, -3650 * DAY_US);
    assert_eq!(instead_of_counter(in_ten_years, &layout, NOW_US), None);
}

#[test]
fn a_lead_that_a_clock_can_have_is_of_no_other_number() {
    // The counter of this layout, read as an ID, has a time of the last days.
    let layout =
        Layout { shard_bits: 1, shard_place: ShardPlace::AboveSeq, unit: Unit::Ms1, epoch_ms: NOW_US / 1000 - 91 * 86_400_000, ..POSTGRES };
    let ahead = |days: i64| instead_of_counter(counter(&layout, -days * DAY_US), &layout, NOW_US);
    assert_eq!(ahead(24), None);
    assert!(ahead(91).is_some());
}

#[test]
fn numbers_of_other_layouts_are_named() {
    for layout in presets() {
        for other in presets().filter(|&other| other != layout) {
            let counter = counter(&other, 0);
            let id = other.id(counter, other.shards() as u32 - 1);
            let is_ahead = |value| layout.instant_of(layout.tick_of(value)) > NOW_US + LONG_LEAD_US;
            // A recent number of one layout can be an older ID of another.
            let is_own =
                |value| matches!(instead_of_counter(value, &layout, NOW_US), Some(Held::Id { layout: of_id, .. }) if of_id == layout);
            let expected = Held::Id { layout: other, tick: other.split(id).tick };
            if is_ahead(id) && other.shard_bits > 0 && !is_own(id) {
                assert_eq!(instead_of_counter(id, &layout, NOW_US), Some(expected), "{layout}");
            }
            if is_ahead(counter) && !is_own(counter) {
                let held = instead_of_counter(counter, &layout, NOW_US).expect("a counter");
                let text = held.to_string();
                assert!(text.contains(&format!("layout \"{other}\" with time 2026-11-28T")), "{layout}: {text}");
            }
        }
    }
    // As an ID of this layout, it would be of 2010.
    let mastodon = Layout::preset("mastodon").expect("a preset");
    let held = instead_of_counter(counter(&mastodon, 0), &POSTGRES, NOW_US);
    assert!(matches!(held, Some(Held::OtherCounter { layout, .. }) if layout == mastodon));
    let of_js53 = |value| instead_of_counter(value, &JS53, NOW_US).map(|held| held.to_string());
    assert_eq!(of_js53(NOW_US).as_deref(), Some("the time since 1970 in microseconds"));
    assert_eq!(of_js53(NOW_US * 1000).as_deref(), Some("the time since 1970 in nanoseconds"));
    // Neither seconds nor milliseconds are ahead of the clock.
    assert_eq!(of_js53(NOW_US / 1000), None);
}

#[test]
fn what_is_not_recognized_has_no_name() {
    for value in [i64::MIN, -1, 0, 1, 1_000_000, 8_000_000_000_000_000_000, i64::MAX] {
        assert_eq!(instead_of_counter(value, &POSTGRES, NOW_US), None, "{value}");
    }
    // A clock that was wrong by a year, and one that was wrong by 300.
    for ahead_us in [365 * DAY_US, 300 * 365 * DAY_US] {
        assert_eq!(instead_of_counter(counter(&POSTGRES, -ahead_us), &POSTGRES, NOW_US), None);
    }
    // An ID after the end of time does not overflow.
    assert_eq!(instead_of_counter(i64::MAX, &INSTAGRAM, i64::MAX), None);
}

#[test]
fn a_counter_of_the_last_year_is_recognized_without_a_layout() {
    for layout in presets() {
        let since_us = NOW_US - layout.instant_of(0) - FIRST_DAYS_US;
        for ago_us in [0, 80 * DAY_US, FAR_AHEAD_US.min(since_us)] {
            assert!(is_counter(counter(&layout, ago_us), 1, None, NOW_US), "{layout}");
        }
    }
}

#[test]
fn no_number_of_a_serial_is_a_counter() {
    let id = POSTGRES.id(counter(&POSTGRES, 0), 5);
    let of_servers = [100_000_000_000_000, 1 << 48, 2 << 48, 5 << 48, 1_000_000_000_000_000];
    for value in [i64::MIN, 0, 1, 2_147_483_647, 1_000_000_000_000, id, id + 1, i64::MAX] {
        assert!(!is_counter(value, 1, None, NOW_US), "{value}");
    }
    for value in of_servers {
        assert!(!is_counter(value + 7, value, None, NOW_US), "{value}");
    }
    // A conversion has let this one start a day before its first ID.
    for layout in presets() {
        assert!(is_counter(counter(&layout, 0), counter(&layout, DAY_US), None, NOW_US), "{layout}");
    }
    // Also if it begins at such a number.
    let counter = counter(&TWITTER, 0);
    assert!(!is_counter(counter + 100, counter, None, NOW_US));
}

#[test]
fn a_sequence_that_continues_from_a_counter_holds_one_whatever_its_layout() {
    let layout = Layout { epoch_ms: 1_767_225_600_000, seq_bits: 20, ..POSTGRES };
    let marked = counter(&layout, 0);
    assert!(!is_counter(marked, 1, None, NOW_US));
    assert!(is_counter(marked - 1000, 1, Some(marked), NOW_US));
    assert!(is_counter(marked + 1_000_000, 1, Some(marked), NOW_US));
    // It was reset, or set to the highest ID.
    assert!(!is_counter(1, 1, Some(marked), NOW_US));
    assert!(!is_counter(layout.id(marked, 5), 1, Some(marked), NOW_US));
}
