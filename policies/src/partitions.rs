//! Partitions by time: the ranges of IDs that a table `PARTITION BY RANGE (id)` needs, aligned to UTC, and how they compare with
//! the partitions that it has.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use pg_snowflake_ids::Layout;
use std::fmt;
use std::ops::Range;

/// The error of a clock that does no harm, in microseconds: an hour, which also is the error of a clock in the wrong time zone.
pub const CLOCK_TOLERANCE_US: i64 = HOUR_US;

/// The longest step, in years.
pub const LONGEST_STEP_YEARS: i32 = 100;

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;
/// 1970-01-01 was a Thursday.
const FIRST_MONDAY_US: i64 = 4 * DAY_US;

/// Where a layout begins, its times prove nothing: a small number that no layout generated reads as such a time. 90 days have
/// all serial numbers below 2^54, if the layout has 22 bits below the time.
const FIRST_DAYS_US: i64 = 90 * DAY_US;

/// The length of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A time in microseconds: hours that divide a day, aligned to 00:00 UTC; days, aligned to 1970-01-01; or whole weeks,
    /// aligned to a Monday.
    Time(i64),
    /// Months that divide a year, aligned to January; or whole years, aligned to the year 0.
    Months(i32),
}

impl Step {
    /// The step of an SQL interval, which has months, days and microseconds; `None` if partitions of that length cannot be aligned.
    ///
    /// ```
    /// use pg_snowflake_policies::partitions::Step;
    ///
    /// assert_eq!(Step::of_interval(3, 0, 0), Some(Step::Months(3)));
    /// assert_eq!(Step::of_interval(0, 0, 3_600_000_000), Some(Step::Time(3_600_000_000)));
    /// assert_eq!(Step::of_interval(5, 0, 0), None); // does not divide a year
    /// assert_eq!(Step::of_interval(1, 1, 0), None);
    /// ```
    pub fn of_interval(months: i32, days: i32, us: i64) -> Option<Step> {
        let longest_days = 366 * LONGEST_STEP_YEARS;
        match (months, days, us) {
            (1..=11, 0, 0) if 12 % months == 0 => Some(Step::Months(months)),
            (12.., 0, 0) if months % 12 == 0 && months <= 12 * LONGEST_STEP_YEARS => {
                Some(Step::Months(months))
            }
            (0, 1.., 0) if days <= longest_days => Some(Step::Time(i64::from(days) * DAY_US)),
            (0, 0, HOUR_US..) if us % HOUR_US == 0 && DAY_US % us == 0 => Some(Step::Time(us)),
            (0, 0, DAY_US..) if us % DAY_US == 0 && us / DAY_US <= longest_days.into() => {
                Some(Step::Time(us))
            }
            _ => None,
        }
    }

    /// The start of the range that contains an instant; `None` outside of the years -9999 to 9999.
    fn start_of(self, unix_us: i64) -> Option<i64> {
        match self {
            Step::Time(us) => {
                let first = if us % (7 * DAY_US) == 0 { FIRST_MONDAY_US } else { 0 };
                Some(unix_us - (unix_us - first).rem_euclid(us))
            }
            Step::Months(months) => {
                let date = utc(unix_us)?.date();
                let month = i32::from(date.year()) * 12 + i32::from(date.month()) - 1;
                let start = month - month.rem_euclid(months);
                let (year, month) = (start.div_euclid(12), start.rem_euclid(12) + 1);
                unix_us_of(DateTime::new(year.try_into().ok()?, month as i8, 1, 0, 0, 0, 0).ok()?)
            }
        }
    }

    /// The start of the range after that which starts there.
    fn next(self, start_us: i64) -> Option<i64> {
        match self {
            Step::Time(us) => start_us.checked_add(us),
            Step::Months(months) => unix_us_of(utc(start_us)?.checked_add(months.months()).ok()?),
        }
    }

    /// The end of a partition's name, from the start of its range: `p20261101`, with hours `p20261101_060000`. These are the
    /// names of pg_partman.
    ///
    /// ```
    /// use pg_snowflake_policies::partitions::Step;
    ///
    /// assert_eq!(Step::Months(1).name_suffix(1_793_491_200_000_000), "p20261101");
    /// assert_eq!(Step::Time(21_600_000_000).name_suffix(1_793_512_800_000_000), "p20261101_060000");
    /// ```
    ///
    /// # Panics
    /// If the start is not one of [`wanted`].
    pub fn name_suffix(self, start_us: i64) -> String {
        let start = utc(start_us).expect("a start has been computed from a date");
        if matches!(self, Step::Time(us) if us < DAY_US) {
            hour_suffix(start)
        } else {
            day_suffix(start)
        }
    }
}

fn day_suffix(start: DateTime) -> String {
    format!("p{:04}{:02}{:02}", start.year(), start.month(), start.day())
}

fn hour_suffix(start: DateTime) -> String {
    format!("{}_{:02}0000", day_suffix(start), start.hour())
}

/// Whether a name ends in the start of the range, as [`Step::name_suffix`] has it with a step of any length.
fn is_named_after(name: &str, start_us: i64) -> bool {
    let ends_in =
        |suffix: String| name.strip_suffix(&suffix).is_some_and(|rest| rest.ends_with('_'));
    utc(start_us).is_some_and(|start| {
        ends_in(hour_suffix(start)) || start.hour() == 0 && ends_in(day_suffix(start))
    })
}

fn utc(unix_us: i64) -> Option<DateTime> {
    Some(Timestamp::from_microsecond(unix_us).ok()?.to_zoned(TimeZone::UTC).datetime())
}

fn unix_us_of(utc: DateTime) -> Option<i64> {
    Some(TimeZone::UTC.to_timestamp(utc).ok()?.as_microsecond())
}

/// An instant less an SQL interval, by the calendar in UTC; `None` before the year -9999.
///
/// ```
/// use pg_snowflake_policies::partitions::before;
///
/// // One month before 2026-03-31 is 2026-02-28.
/// assert_eq!(before(1_774_915_200_000_000, 1, 0, 0), Some(1_772_236_800_000_000));
/// ```
pub fn before(unix_us: i64, months: i32, days: i32, us: i64) -> Option<i64> {
    let span = Span::new()
        .try_months(months)
        .and_then(|span| span.try_days(days))
        .and_then(|span| span.try_microseconds(us))
        .ok()?;
    unix_us_of(utc(unix_us)?.checked_sub(span).ok()?)
}

/// One bound of a partition. The upper bound is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// `MINVALUE`.
    Min,
    /// An ID.
    At(i64),
    /// `MAXVALUE`.
    Max,
}

impl Bound {
    fn parse(text: &str) -> Option<Bound> {
        match text {
            "MINVALUE" => Some(Bound::Min),
            "MAXVALUE" => Some(Bound::Max),
            _ => {
                let digits = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
                digits.unwrap_or(text).parse().ok().map(Bound::At)
            }
        }
    }

    /// The time at which IDs from the bound on are generated; `None` if the layout has none at the bound.
    pub fn instant(self, layout: &Layout) -> Option<i64> {
        match self {
            Bound::At(id) if id >= 0 && id >> layout.low_bits() <= layout.max_tick() => {
                Some(layout.instant_of(id >> layout.low_bits()))
            }
            _ => None,
        }
    }
}

impl Bound {
    /// The whole hour whose first ID is the bound.
    fn whole_hour(self, layout: &Layout) -> Option<i64> {
        let instant = self.instant(layout)?;
        let hour = instant - instant.rem_euclid(HOUR_US);
        (self == Bound::At(layout.min_id(hour))).then_some(hour)
    }
}

/// As in a `FOR VALUES` clause.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Min => f.write_str("MINVALUE"),
            Bound::At(id) => write!(f, "'{id}'"),
            Bound::Max => f.write_str("MAXVALUE"),
        }
    }
}

/// The IDs of a partition by range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounds {
    /// The inclusive lower bound.
    pub from: Bound,
    /// The exclusive upper bound.
    pub to: Bound,
}

impl Bounds {
    /// Reads what `pg_get_expr()` prints of a partition by range of one integer; `None` for any other partition.
    ///
    /// ```
    /// use pg_snowflake_policies::partitions::{Bound, Bounds};
    ///
    /// let bounds = Bounds { from: Bound::At(5), to: Bound::Max };
    /// assert_eq!(Bounds::parse("FOR VALUES FROM ('5') TO (MAXVALUE)"), Some(bounds));
    /// assert_eq!(bounds.to_string(), "FOR VALUES FROM ('5') TO (MAXVALUE)");
    /// assert_eq!(Bounds::parse("DEFAULT"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Bounds> {
        let (from, to) =
            text.strip_prefix("FOR VALUES FROM (")?.strip_suffix(')')?.split_once(") TO (")?;
        Some(Bounds { from: Bound::parse(from)?, to: Bound::parse(to)? })
    }

    /// The IDs of the layout in a span of time.
    fn of_span(layout: &Layout, span: &Range<i64>) -> Bounds {
        let to = match layout.min_id(span.end) {
            // Beyond the last ID, if that has 63 bits.
            i64::MAX => Bound::Max,
            id => Bound::At(id),
        };
        Bounds { from: Bound::At(layout.min_id(span.start)), to }
    }

    fn is_empty(self) -> bool {
        self.from >= self.to
    }

    fn overlaps(self, other: Bounds) -> bool {
        self.from < other.to && other.from < self.to
    }

    fn contains(self, other: Bounds) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Whether it has IDs of the layout that are generated at an instant, by a clock with an error of up to the tolerance.
    pub fn has_ids_of(self, layout: &Layout, unix_us: i64, tolerance_us: i64) -> bool {
        self.overlaps(Bounds::of_span(layout, &(unix_us - tolerance_us..unix_us + tolerance_us)))
    }

    /// Whether every ID in it was generated before that instant, and it has IDs of the layout.
    pub fn ends_before(self, layout: &Layout, unix_us: i64) -> bool {
        // IDs below 0 have no order by time.
        matches!(self.to, Bound::At(id) if id > 0 && id <= layout.min_id(unix_us))
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FOR VALUES FROM ({}) TO ({})", self.from, self.to)
    }
}

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
pub fn wanted(
    layout: &Layout,
    step: Step,
    now_us: i64,
    tolerance_us: i64,
    ahead: u32,
) -> WantedRanges {
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
/// Two layouts read one bound as two times, and both can be whole days. The name says which time was meant when the partition
/// was created.
fn own_doubt(layout: &Layout, name: &str, bounds: Bounds) -> Option<Doubt> {
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
pub fn doubts(
    layout: &Layout,
    partitions: &[(&str, Bounds)],
    before_us: i64,
    now_us: i64,
) -> Vec<Option<Doubt>> {
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

#[cfg(test)]
mod tests {
    use super::*;
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
            assert_eq!(
                (found, step.next(found)),
                (at(start), Some(at(next))),
                "{length} {instant}"
            );
        }
    }

    #[test]
    fn a_step_that_cannot_be_aligned_is_refused() {
        for length in [
            "0 days",
            "-1 days",
            "-1 months",
            "5 months",
            "18 months",
            "1212 months",
            "36601 days",
            "59 minutes",
            "90 minutes",
            "5 hours",
            "36 hours",
            "0 hours",
            "-24 hours",
        ] {
            assert_eq!(step(length), None, "{length}");
        }
        for mixed in [(1, 1, 0), (0, 1, HOUR_US), (1, 0, HOUR_US), (1, -1, 0)] {
            assert_eq!(Step::of_interval(mixed.0, mixed.1, mixed.2), None, "{mixed:?}");
        }
        let infinity = Step::of_interval(i32::MAX, i32::MAX, i64::MAX);
        assert_eq!(infinity, None);
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

    #[test]
    fn bounds_are_read_as_they_are_printed() {
        for (text, from, to) in [
            ("FOR VALUES FROM (MINVALUE) TO ('-5')", Bound::Min, Bound::At(-5)),
            (
                "FOR VALUES FROM ('9223372036854775807') TO (MAXVALUE)",
                Bound::At(i64::MAX),
                Bound::Max,
            ),
        ] {
            let bounds = Bounds { from, to };
            assert_eq!(Bounds::parse(text), Some(bounds));
            assert_eq!(bounds.to_string(), text);
        }
        for text in [
            "DEFAULT",
            "FOR VALUES WITH (modulus 2, remainder 0)",
            "FOR VALUES IN ('1')",
            "FOR VALUES FROM ('1', '2') TO ('3', '4')",
            "FOR VALUES FROM ('2026-11-01') TO ('2026-12-01')",
        ] {
            assert_eq!(Bounds::parse(text), None, "{text}");
        }
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
        let of = |from, to| Bounds { from: Bound::At(from), to: Bound::At(to) };
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
            ("t_p20260301", of(from + 1, to), Some(Doubt::Start)),
            ("t_p20260301", of(from - 1, to), Some(Doubt::Start)),
            ("t_p20260301", Bounds { from: Bound::Min, ..month }, Some(Doubt::Start)),
            ("t_p20260301", of(from, to + 1), Some(Doubt::End)),
            ("t_p20260301", of(from, to - 1), Some(Doubt::End)),
            ("t_p20260301", Bounds { to: Bound::Max, ..month }, Some(Doubt::End)),
            ("t_0", of(0, 1_000_000), Some(Doubt::End)),
            ("t_0", of(1_000_000, 2_000_000), Some(Doubt::Start)),
            ("t_0", of(-5, 1_000_000), Some(Doubt::Start)),
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
        for (name, from, expected) in [
            ("t_p20200330", "2020-03-30T00:00:00Z", Some(Doubt::FirstDays)),
            ("t_p20200331", "2020-03-31T00:00:00Z", None),
        ] {
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
        let found = |partitions: &[(&str, Bounds)]| {
            doubts(&INSTAGRAM, partitions, at("2026-02-01T00:00:00Z"), now)
        };
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
        /// What `snowflake_create_partitions` creates is proved when it is old.
        #[test]
        fn every_wanted_range_is_proved_by_its_name(
            layout in any_layout(),
            length in prop::sample::select(&["1 hours", "8 hours", "1 days", "3 days", "7 days", "1 months", "6 months", "24 months"][..]),
            now_s in 1_700_000_000_i64..4_000_000_000,
        ) {
            let (now_us, step) = (now_s * 1_000_000, step(length).unwrap());
            let ranges = wanted(&layout, step, now_us, CLOCK_TOLERANCE_US, 3).ranges;
            for Wanted { span, bounds } in ranges {
                let begins_late = span.start >= layout.instant_of(0) + FIRST_DAYS_US;
                let ends = bounds.to.instant(&layout).is_some();
                if begins_late && ends && layout.tick_us() < HOUR_US {
                    let name = format!("t_{}", step.name_suffix(span.start));
                    prop_assert_eq!(own_doubt(&layout, &name, bounds), None, "{} {}", name, bounds);
                }
            }
        }

        /// No ID of an hour around now is without a range, whatever the layout.
        #[test]
        fn every_id_of_the_next_steps_is_in_exactly_one_range(
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
                prop_assert_eq!(coverage(&[*bounds], *bounds), Coverage::Whole(0));
                if let Bound::At(id) = bounds.from {
                    prop_assert!(id == 0 || bounds.from.instant(&layout) >= Some(span.start));
                }
            }
        }
    }
}
