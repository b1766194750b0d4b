//! Partitions by time: the ranges of IDs that a table `PARTITION BY RANGE (id)` needs, aligned to UTC, and how they compare with
//! the partitions that it has.

mod age;
mod bounds;
mod step;

pub use age::{Doubt, doubts};
pub use bounds::{Bound, Bounds};
pub use step::{MAX_STEP_YEARS, Step, before};

use pg_snowflake_ids::Layout;
use std::ops::Range;
use step::HOUR_US;

/// The error of a clock that does no harm, in microseconds: an hour, which also is the error of a clock in the wrong time zone.
pub const CLOCK_TOLERANCE_US: i64 = HOUR_US;

/// A range that a table needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its time, in microseconds since 1970.
    pub span: Range<i64>,
    /// Its IDs.
    pub bounds: Bounds,
}

/// The ranges that a table needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRanges {
    /// The ranges within the layout, in order and without gaps.
    pub ranges: Vec<Wanted>,
    /// The start of the first range after the layout's end, if one of them would be there.
    pub beyond_layout: Option<i64>,
}

/// The ranges for now and the next `ahead` steps. They begin before now, and reach beyond it, by the tolerance, which is the
/// error of a clock or the lead of a sequence.
///
/// ```
/// use pg_snowflake_policies::partitions::{Step, wanted};
/// use pg_snowflake_ids::presets::INSTAGRAM;
///
/// let day_us = 86_400_000_000;
/// let noon_us = 20_000 * day_us + day_us / 2;
/// let days = wanted(&INSTAGRAM, Step::Time(day_us), noon_us, 3_600_000_000, 1).ranges;
/// assert_eq!(days.len(), 2);
/// assert_eq!(days[0].span, 20_000 * day_us..20_001 * day_us);
/// ```
pub fn wanted(layout: &Layout, step: Step, now_us: i64, tolerance_us: i64, ahead: u32) -> WantedRanges {
    let mut found = WantedRanges { ranges: Vec::new(), beyond_layout: None };
    let mut start = step.start_of(now_us - tolerance_us);
    let mut still_ahead = ahead;
    while let Some(starts) = start {
        if starts > now_us {
            if still_ahead == 0 && starts > now_us + tolerance_us {
                break;
            }
            still_ahead = still_ahead.saturating_sub(1);
        }
        if starts >= layout.end_us() {
            found.beyond_layout = Some(starts);
            break;
        }
        let Some(end) = step.next(starts) else { break };
        let span = starts..end;
        let bounds = Bounds::of_span(layout, &span);
        if !bounds.is_empty() {
            found.ranges.push(Wanted { span, bounds });
        }
        start = Some(end);
    }
    found
}

/// How the existing partitions of a table meet a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No partition has an ID of the range.
    None,
    /// The partition at this index has all of them.
    Whole(usize),
    /// The partition at this index has some of them.
    Part(usize),
}

/// Compares a range with the existing partitions.
pub fn coverage(existing: &[Bounds], range: Bounds) -> Coverage {
    match existing.iter().position(|bounds| bounds.overlaps(range)) {
        None => Coverage::None,
        Some(index) if existing[index].contains(range) => Coverage::Whole(index),
        Some(index) => Coverage::Part(index),
    }
}

/// The ranges between partitions that no partition has.
pub fn gaps(existing: impl IntoIterator<Item = Bounds>) -> Vec<Bounds> {
    let mut sorted: Vec<Bounds> = existing.into_iter().collect();
    sorted.sort_unstable();
    let pairs = sorted.windows(2).map(|pair| Bounds { from: pair[0].to, to: pair[1].from });
    pairs.filter(|gap| !gap.is_empty()).collect()
}

#[cfg(test)]
mod tests;
