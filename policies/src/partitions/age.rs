//! Whether the bounds of a partition prove how old its IDs are.

use super::bounds::{Bound, Bounds};
use super::step::{DAY_US, is_named_after};
use pg_snowflake_ids::Layout;

/// Where a layout begins, its times prove nothing: a small number that no layout generated reads as such a time. 90 days have
/// all serial numbers below 2^54, if the layout has 22 bits below the time.
pub const FIRST_DAYS_US: i64 = 90 * DAY_US;

/// Why the bounds of a partition do not prove how old its IDs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The lower bound is not the first ID of a whole hour.
    Start,
    /// The upper bound is not the first ID of a whole hour.
    End,
    /// The partition begins in the first days of the layout.
    FirstDays,
    /// The name does not end in the start of the range.
    Name,
    /// No partition has these IDs, which are between the partition and now.
    Gap(Bounds),
    /// The partition at this index, which is between this one and now, is in doubt itself.
    Later(usize),
}

/// Why a partition's own name and bounds do not prove it.
///
/// Two layouts read one bound as two times, and both can be whole days. The name says which time was meant when the partition was created.
pub fn own_doubt(layout: &Layout, name: &str, bounds: Bounds) -> Option<Doubt> {
    let Some(start_us) = bounds.from.whole_hour(layout) else { return Some(Doubt::Start) };
    if bounds.to.whole_hour(layout).is_none() {
        Some(Doubt::End)
    } else if start_us < layout.instant_of(0) + FIRST_DAYS_US {
        Some(Doubt::FirstDays)
    } else if !is_named_after(name, start_us) {
        Some(Doubt::Name)
    } else {
        None
    }
}

/// For each partition that begins before now, why its bounds do not prove that its IDs are from before an instant; `None` if
/// they do, or if they say that its IDs are newer. The partitions are in the order of their bounds, each with its name.
///
/// A partition is proved to be old if it has the name and the bounds that `snowflake_create_partitions` gives it, and all those from the
/// instant to now have them too, without a gap. A former layout leaves names of other times. A clock that is ahead by more
/// than the partitions that were created ahead leaves a gap.
///
/// ```
/// use pg_snowflake_policies::partitions::{Doubt, Step, doubts, wanted};
/// use pg_snowflake_ids::presets::INSTAGRAM;
///
/// let day_us = 86_400_000_000;
/// let now_us = 20_001 * day_us + 1;
/// let bounds = |day| wanted(&INSTAGRAM, Step::Time(day_us), day * day_us + 1, 0, 0).ranges[0].bounds;
/// let [old, now] = [bounds(20_000), bounds(20_001)];
/// let doubts = |name| doubts(&INSTAGRAM, &[(name, old), ("t_p20241005", now)], 20_001 * day_us, now_us);
/// assert_eq!(doubts("t_p20241004"), [None, None]);
/// assert_eq!(doubts("t_p20170801"), [Some(Doubt::Name), None]);
/// ```
pub fn doubts(layout: &Layout, partitions: &[(&str, Bounds)], before_us: i64, now_us: i64) -> Vec<Option<Doubt>> {
    let [before, now] = [before_us, now_us].map(|instant| Bound::At(layout.min_id(instant)));
    let mut found = vec![None; partitions.len()];
    // What is in doubt between the instant and now.
    let mut later = None;
    let mut next: Option<Bounds> = None;
    for (index, &(name, bounds)) in partitions.iter().enumerate().rev() {
        if bounds.from > now {
            continue;
        }
        if let Some(next) = next.filter(|next| next.from != bounds.to && next.from > before) {
            later = later.or(Some(Doubt::Gap(Bounds { from: bounds.to, to: next.from })));
        }
        let own = own_doubt(layout, name, bounds);
        found[index] = own.or(later);
        if bounds.to > before && own.is_some() {
            later = later.or(Some(Doubt::Later(index)));
        }
        next = Some(bounds);
    }
    found
}
