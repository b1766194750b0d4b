//! What the number in a sequence is.
//!
//! A sequence has no layout: it holds a number, and each call names the layout. So the number is read in every layout that it can be
//! of, and the time that this yields shows what it is: a counter or an ID is generated now, and any other reading is years away.
//!
//! The rule for a time is that of [`likely`], which judges IDs.

use crate::layout::Layout;
use crate::likely::{self, DAY_US, FAR_AHEAD_US, FIRST_DAYS_US, RECENT_US, TOLERANCE_US};
use crate::{instant, presets::PRESETS};
use std::fmt;

/// A lead that a wrong clock often has, which the highest `pg_snowflake.max_lead` permits.
const SHORT_LEAD_US: i64 = 25 * DAY_US;

/// A lead that a wrong clock hardly has. A counter that is ahead by less can be a recent number of some preset.
const LONG_LEAD_US: i64 = 30 * 365 * DAY_US;

/// A lead that no clock has.
const LEAD_OF_NO_CLOCK_US: i64 = 10 * LONG_LEAD_US;

/// What a sequence holds that is far ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// An ID, of the layout that is used or of another one: somebody has set the sequence to the highest ID.
    Id {
        /// The layout.
        layout: Layout,
        /// The tick of the ID.
        tick: i64,
    },
    /// A counter of another layout, which a call has named.
    OtherCounter {
        /// The layout.
        layout: Layout,
        /// The tick of the counter.
        tick: i64,
    },
    /// The time since 1970 in this unit.
    UnixTime(&'static str),
}

/// What `last_value` is: the end of a sentence.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, layout, tick) = match self {
            Held::Id { layout, tick } => ("an ID", layout, *tick),
            Held::OtherCounter { layout, tick } => ("a counter", layout, *tick),
            Held::UnixTime(unit) => return write!(f, "the time since 1970 in {unit}"),
        };
        write!(f, "{what} of layout \"{layout}\" with time {}", instant::text(layout, tick))
    }
}

/// What `last_value` is instead of a counter of `layout`; `None` if it is not so far ahead that no clock explains it, or if it is
/// not recognized.
///
/// ```
/// use pg_snowflake_ids::held::{Held, instead_of_counter};
/// use pg_snowflake_ids::presets::POSTGRES;
///
/// let now_us = 1_800_000_000_000_000;
/// let counter = POSTGRES.at_tick(7, POSTGRES.tick_at(now_us));
/// assert_eq!(instead_of_counter(counter, &POSTGRES, now_us), None);
///
/// let held = instead_of_counter(POSTGRES.id(counter, 5), &POSTGRES, now_us).unwrap();
/// assert!(matches!(held, Held::Id { layout: POSTGRES, .. }));
/// assert_eq!(held.to_string(), "an ID of layout \"postgres\" with time 2027-01-15T08:00:00Z");
/// ```
pub fn instead_of_counter(last_value: i64, layout: &Layout, now_us: i64) -> Option<Held> {
    let lead_us = layout.instant_of(layout.tick_of(last_value)).saturating_sub(now_us);
    if lead_us < SHORT_LEAD_US {
        return None;
    }
    let recent_us = now_us - RECENT_US;
    let own_id_since = |since_us| {
        let tick = likely::tick_of(last_value, layout)?;
        is_within(layout, tick, since_us, now_us).then_some(Held::Id { layout: *layout, tick })
    };
    if let Some(held) = own_id_since(recent_us) {
        return Some(held);
    }
    if lead_us < LONG_LEAD_US {
        return None;
    }
    let nearest = |tick_in: &dyn Fn(&Layout) -> Option<i64>| {
        let others = PRESETS.iter().map(|&(_, other)| other).filter(|other| other != layout);
        others
            .filter_map(|other| Some((other, tick_in(&other)?)))
            .filter(|&(other, tick)| is_within(&other, tick, recent_us, now_us))
            .min_by_key(|&(other, tick)| other.instant_of(tick).abs_diff(now_us))
    };
    let counter = || nearest(&|other| Some(other.tick_of(last_value))).map(|(layout, tick)| Held::OtherCounter { layout, tick });
    // A script sets all sequences, also those of tables whose last row is years old. Read in another layout, such an ID can be recent.
    let old_id = || own_id_since(i64::MIN).filter(|_| lead_us >= LEAD_OF_NO_CLOCK_US);
    let id = || nearest(&|other| likely::tick_of(last_value, other)).map(|(layout, tick)| Held::Id { layout, tick });
    counter().or_else(old_id).or_else(id).or_else(|| unix_time(last_value, now_us))
}

/// Whether a sequence that is defined to start at `start`, and about which no call says which layout it has, holds the counter of a preset.
///
/// `marked` is a counter that the sequence is known to have held, of any layout. A sequence that continues from it holds a counter.
/// One that was set to something else does not.
///
/// ```
/// use pg_snowflake_ids::held::is_counter;
/// use pg_snowflake_ids::presets::POSTGRES;
///
/// let now_us = 1_800_000_000_000_000;
/// let counter = POSTGRES.at_tick(7, POSTGRES.tick_at(now_us));
/// assert!(is_counter(counter, 1, None, now_us));
/// assert!(!is_counter(1_000_000, 1, None, now_us));
/// ```
pub fn is_counter(last_value: i64, start: i64, marked: Option<i64>, now_us: i64) -> bool {
    let continues = |marked| last_value >= marked / 2 && last_value / 2 <= marked;
    let is_of = |&(_, layout): &(_, Layout)| {
        let tick = layout.tick_of(last_value);
        // Some split the numbers of a bigserial among servers. A conversion lets a counter start a day ago.
        let ran_us = layout.instant_of(tick).saturating_sub(layout.instant_of(layout.tick_of(start)));
        ran_us >= DAY_US / 2 && is_within(&layout, tick, now_us - FAR_AHEAD_US, now_us)
    };
    marked.map_or_else(|| PRESETS.iter().any(is_of), continues)
}

/// Whether the tick is between these times, with tolerance, and not in the first days of the layout, as a small number is.
fn is_within(layout: &Layout, tick: i64, since_us: i64, now_us: i64) -> bool {
    let unix_us = layout.instant_of(tick);
    unix_us >= since_us.max(layout.instant_of(0).saturating_add(FIRST_DAYS_US)) && unix_us <= now_us.saturating_add(TOLERANCE_US)
}

/// Units shorter than the tick of any preset. Times in longer units are small numbers.
fn unix_time(value: i64, now_us: i64) -> Option<Held> {
    let of_unit =
        |&(unit, us): &(&'static str, i64)| (now_us - RECENT_US..=now_us + TOLERANCE_US).contains(&us).then_some(Held::UnixTime(unit));
    [("microseconds", value), ("nanoseconds", value / 1000)].iter().find_map(of_unit)
}

#[cfg(test)]
mod tests;
