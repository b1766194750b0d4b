//! How far a sequence is from the clock, and from the end of its layout.

use crate::counter::State;
use pg_snowflake_ids::layout::Layout;

/// The distance of a sequence from the clock and from its end.
///
/// ```
/// use pg_snowflake_policies::counter::State;
/// use pg_snowflake_policies::headroom::Headroom;
/// use pg_snowflake_ids::presets::TWITTER;
///
/// let now_us = 1_800_000_000_000_000;
/// let last_value = TWITTER.at_tick(0, TWITTER.tick_at(now_us) + 80); // 80 ms ahead of the clock
/// let headroom = Headroom::of(State { last_value, is_called: true }, i64::MAX, TWITTER, now_us);
///
/// assert_eq!(headroom.lead_us, 80_000);
/// assert_eq!(headroom.ids_left, TWITTER.max_counter() - last_value);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// The time of the last ID, in microseconds since 1970. `None` if there is no such ID: the sequence was
    /// never called, or holds a negative number, which is not the counter of an ID.
    pub last_us: Option<i64>,
    /// How far the sequence is ahead of the clock, in microseconds; 0 if the clock has passed it.
    pub lead_us: i64,
    /// The number of IDs left from now to the end of the layout or to MAXVALUE, saturating at the end of `i64`.
    pub ids_left: i64,
}

impl Headroom {
    /// The headroom of a sequence with this state and MAXVALUE in `layout` when the clock reads `now_us`.
    pub fn of(state: State, max_value: i64, layout: Layout, now_us: i64) -> Headroom {
        let tick = layout.tick_of(state.last_value);
        Headroom {
            last_us: (state.is_called && state.last_value >= 0).then(|| layout.instant_of(tick)),
            lead_us: layout.instant_of(tick).saturating_sub(now_us).max(0),
            ids_left: ids_left(state, max_value, layout, now_us),
        }
    }
}

fn ids_left(state: State, max_value: i64, layout: Layout, now_us: i64) -> i64 {
    let Some(next) = state.last_value.checked_add(i64::from(state.is_called)) else { return 0 };
    let now_tick = layout.tick_at(now_us);
    if now_tick > layout.max_tick() {
        return 0;
    }
    let first = layout.not_before(next, now_tick);
    max_value.min(layout.max_counter()).saturating_sub(first).saturating_add(1).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pg_snowflake_ids::presets::{INSTAGRAM, JS53, PRESETS};

    const NOW_US: i64 = 1_800_000_000_000_000;

    fn in_instagram(last_value: i64, is_called: bool, max_value: i64) -> Headroom {
        Headroom::of(State { last_value, is_called }, max_value, INSTAGRAM, NOW_US)
    }

    /// The first counter in the tick `ms` milliseconds after the clock's.
    fn counter_in(ms: i64) -> i64 {
        (INSTAGRAM.tick_at(NOW_US) + ms) << INSTAGRAM.seq_bits
    }

    #[test]
    fn the_last_id_has_the_time_of_its_tick_by_which_a_sequence_is_ahead_of_the_clock() {
        let late = counter_in(-2500) + 3;
        for (last_value, is_called, last_us, lead_us) in [
            (1, false, None, 0),
            (-7, true, None, 0),
            (late, true, Some(NOW_US - 2_500_000), 0),
            (counter_in(80), false, None, 80_000),
            (counter_in(80), true, Some(NOW_US + 80_000), 80_000),
        ] {
            let headroom = in_instagram(last_value, is_called, i64::MAX);
            assert_eq!((headroom.last_us, headroom.lead_us), (last_us, lead_us), "{last_value} {is_called}");
        }
    }

    #[test]
    fn ids_left_counts_from_the_later_of_clock_and_sequence_to_the_end_or_to_maxvalue() {
        let end = INSTAGRAM.max_counter();
        for (last_value, is_called, max_value, ids_left) in [
            // If the clock is ahead, seq continues.
            (4, true, i64::MAX, end - counter_in(0) - 5 + 1),
            (counter_in(80), true, i64::MAX, end - counter_in(80)),
            (end, true, i64::MAX, 0),
            (end, false, i64::MAX, 1),
            (i64::MAX, true, i64::MAX, 0),
            (1, true, 2_147_483_647, 0),
            (counter_in(1), true, counter_in(1) + 10, 10),
        ] {
            assert_eq!(in_instagram(last_value, is_called, max_value).ids_left, ids_left, "{last_value} {is_called} {max_value}");
        }
        let state = State { last_value: 1, is_called: false };
        assert_eq!(Headroom::of(state, i64::MAX, JS53, JS53.instant_of(JS53.max_tick() + 1)).ids_left, 0);
    }

    #[test]
    fn the_ends_of_bigint_do_not_overflow() {
        for &(_, layout) in PRESETS {
            for last_value in [i64::MIN, 0, i64::MAX] {
                for now_us in [i64::MIN, 0, NOW_US, i64::MAX] {
                    let headroom = Headroom::of(State { last_value, is_called: true }, i64::MAX, layout, now_us);
                    assert!(headroom.lead_us >= 0 && headroom.ids_left >= 0, "{headroom:?}");
                }
            }
        }
    }
}
