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

    fn at(last_value: i64, is_called: bool) -> State {
        State { last_value, is_called }
    }

    fn in_instagram(state: State, max_value: i64) -> Headroom {
        Headroom::of(state, max_value, INSTAGRAM, NOW_US)
    }

    /// The first counter in the tick `ms` milliseconds after the clock's.
    fn counter_in(ms: i64) -> i64 {
        (INSTAGRAM.tick_at(NOW_US) + ms) << INSTAGRAM.seq_bits
    }

    #[test]
    fn a_sequence_that_was_never_called_has_no_last_id() {
        assert_eq!(in_instagram(at(1, false), i64::MAX).last_us, None);
        assert_eq!(in_instagram(at(-7, true), i64::MAX).last_us, None);
    }

    #[test]
    fn the_last_id_has_the_time_of_its_tick() {
        let headroom = in_instagram(at(counter_in(-2500) + 3, true), i64::MAX);
        assert_eq!(headroom.last_us, Some(NOW_US - 2_500_000));
        assert_eq!(headroom.lead_us, 0);
    }

    #[test]
    fn a_sequence_is_ahead_by_its_tick_whether_it_was_called_or_not() {
        for is_called in [false, true] {
            assert_eq!(in_instagram(at(counter_in(80), is_called), i64::MAX).lead_us, 80_000);
        }
    }

    #[test]
    fn ids_left_counts_from_the_later_of_clock_and_sequence() {
        let end = INSTAGRAM.max_counter();
        // If the clock is ahead, seq continues.
        assert_eq!(in_instagram(at(4, true), i64::MAX).ids_left, end - counter_in(0) - 5 + 1);
        assert_eq!(in_instagram(at(counter_in(80), true), i64::MAX).ids_left, end - counter_in(80));
        assert_eq!(in_instagram(at(end, true), i64::MAX).ids_left, 0);
        assert_eq!(in_instagram(at(end, false), i64::MAX).ids_left, 1);
    }

    #[test]
    fn ids_left_ends_at_maxvalue() {
        assert_eq!(in_instagram(at(1, true), 2_147_483_647).ids_left, 0);
        assert_eq!(in_instagram(at(counter_in(1), true), counter_in(1) + 10).ids_left, 10);
    }

    #[test]
    fn no_ids_are_left_after_the_end_of_the_layout() {
        let after = JS53.instant_of(JS53.max_tick() + 1);
        assert_eq!(Headroom::of(at(1, false), i64::MAX, JS53, after).ids_left, 0);
    }

    #[test]
    fn the_ends_of_bigint_do_not_overflow() {
        for &(_, layout) in PRESETS {
            for last_value in [i64::MIN, 0, i64::MAX] {
                for now_us in [i64::MIN, 0, NOW_US, i64::MAX] {
                    let headroom = Headroom::of(at(last_value, true), i64::MAX, layout, now_us);
                    assert!(headroom.lead_us >= 0 && headroom.ids_left >= 0, "{headroom:?}");
                }
            }
        }
        assert_eq!(in_instagram(at(i64::MAX, true), i64::MAX).ids_left, 0);
    }
}
