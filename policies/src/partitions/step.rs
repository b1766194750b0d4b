//! The calendar of partitions: where a step begins and ends, and the name of what begins there. All of it is in UTC.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

/// The longest step, in years.
pub const MAX_STEP_YEARS: i32 = 100;

/// An hour.
pub const HOUR_US: i64 = 3_600_000_000;
/// A day.
pub const DAY_US: i64 = 24 * HOUR_US;

/// 1970-01-01 was a Thursday.
const FIRST_MONDAY_US: i64 = 4 * DAY_US;

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
        let longest_days = 366 * MAX_STEP_YEARS;
        match (months, days, us) {
            (1..=11, 0, 0) if 12 % months == 0 => Some(Step::Months(months)),
            (12.., 0, 0) if months % 12 == 0 && months <= 12 * MAX_STEP_YEARS => Some(Step::Months(months)),
            (0, 1.., 0) if days <= longest_days => Some(Step::Time(i64::from(days) * DAY_US)),
            (0, 0, HOUR_US..) if us % HOUR_US == 0 && DAY_US % us == 0 => Some(Step::Time(us)),
            (0, 0, DAY_US..) if us % DAY_US == 0 && us / DAY_US <= longest_days.into() => Some(Step::Time(us)),
            _ => None,
        }
    }

    /// The start of the range that contains an instant; `None` outside of the years -9999 to 9999.
    pub(super) fn start_of(self, unix_us: i64) -> Option<i64> {
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
    pub(super) fn next(self, start_us: i64) -> Option<i64> {
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
    /// If the start is not one of `wanted`.
    pub fn name_suffix(self, start_us: i64) -> String {
        let start = utc(start_us).expect("a start has been computed from a date");
        if matches!(self, Step::Time(us) if us < DAY_US) { hour_suffix(start) } else { day_suffix(start) }
    }
}

fn day_suffix(start: DateTime) -> String {
    format!("p{:04}{:02}{:02}", start.year(), start.month(), start.day())
}

fn hour_suffix(start: DateTime) -> String {
    format!("{}_{:02}0000", day_suffix(start), start.hour())
}

/// Whether a name ends in the start of the range, as [`Step::name_suffix`] has it with a step of any length.
pub fn is_named_after(name: &str, start_us: i64) -> bool {
    let ends_in = |suffix: String| name.strip_suffix(&suffix).is_some_and(|rest| rest.ends_with('_'));
    utc(start_us).is_some_and(|start| ends_in(hour_suffix(start)) || start.hour() == 0 && ends_in(day_suffix(start)))
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
    let span = Span::new().try_months(months).and_then(|span| span.try_days(days)).and_then(|span| span.try_microseconds(us)).ok()?;
    unix_us_of(utc(unix_us)?.checked_sub(span).ok()?)
}
