//! Which layout an ID probably has, judged by the time that each preset reads from it.
//!
//! The order of IDs does not show their layout: those of most presets are below today's IDs of the default layout. The time
//! does. IDs are generated now, and each preset but the right one reads a time years away from it.
//!
//! Two rules follow, which `docs/layouts.md` states with the cases in which they are wrong. An ID is *possible* in a layout
//! if its time is not after now, nor within the first 90 days of the layout, as a small number is. It *fits* a layout if its
//! time is within the last 90 days. The tolerance for clocks is a day.

use crate::instant;
use crate::layout::{Fields, Layout};
use crate::presets::PRESETS;
use std::fmt;

/// How many of the newest IDs of a column are judged, and how many of those that its default has generated.
pub const SAMPLE: usize = 20;

pub(crate) const DAY_US: i64 = 86_400_000_000;

/// How far after now an ID can be, by a clock that is ahead, or by the lead of a sequence.
pub const TOLERANCE_US: i64 = DAY_US;

/// How long before now an ID that fits a layout can be. Shorter than the 307 days between the epochs of `postgres` and
/// `twitter`, so that no ID fits both.
pub const RECENT_US: i64 = 90 * DAY_US;

/// How far after now an ID is that nobody has generated in advance, for the rows of coming months.
pub const FAR_AHEAD_US: i64 = 365 * DAY_US;

/// How long after a layout's epoch a time is that of a number that is not an ID.
pub const FIRST_DAYS_US: i64 = 90 * DAY_US;

/// 2010-01-01 UTC, before which there were no Snowflake IDs, whatever the epoch of the layout.
const FIRST_IDS_US: i64 = 1_262_304_000_000_000;

/// Why a number is probably not an ID of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Its time is after now.
    Future,
    /// Its time is in the first days of the layout, or before there were Snowflake IDs.
    FirstDays,
    /// It is negative, or has bits above the layout's.
    NotAnId,
}

/// An ID as a preset or the layout of another generator reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The name of the preset or of the generator.
    pub name: &'static str,
    /// Its layout.
    pub layout: Layout,
    /// The ID's fields in it. If it is not an ID, those of its low bits.
    pub fields: Fields,
    /// The time, in microseconds since 1970.
    pub unix_us: i64,
    /// Why it is probably not an ID of the layout.
    pub doubt: Option<Doubt>,
}

impl Reading {
    /// The ID as the layout reads it.
    pub fn of(id: i64, name: &'static str, layout: Layout, now_us: i64) -> Self {
        let fields = layout.split(id);
        let unix_us = layout.instant_of(fields.tick);
        Reading { name, layout, fields, unix_us, doubt: doubt(id, &layout, now_us) }
    }

    /// Whether the ID is possible and of the last days.
    pub fn is_recent(&self, now_us: i64) -> bool {
        self.doubt.is_none() && self.unix_us >= now_us.saturating_sub(RECENT_US)
    }
}

/// The tick of the ID; `None` if it is not an ID of the layout.
pub(crate) fn tick_of(id: i64, layout: &Layout) -> Option<i64> {
    (id >= 0 && layout.is_id(id)).then(|| layout.split(id).tick)
}

/// The time of the ID, in microseconds since 1970; `None` if it is not an ID of the layout.
fn time_of(id: i64, layout: &Layout) -> Option<i64> {
    tick_of(id, layout).map(|tick| layout.instant_of(tick))
}

fn doubt(id: i64, layout: &Layout, now_us: i64) -> Option<Doubt> {
    let Some(unix_us) = time_of(id, layout) else { return Some(Doubt::NotAnId) };
    let begin_us = layout.instant_of(0).max(FIRST_IDS_US);
    if unix_us > now_us.saturating_add(TOLERANCE_US) {
        Some(Doubt::Future)
    } else if unix_us < begin_us.saturating_add(FIRST_DAYS_US) {
        Some(Doubt::FirstDays)
    } else {
        None
    }
}

/// The ID as every preset reads it, the most likely first: those in which it is possible, from the nearest to now, and then the others.
///
/// ```
/// use pg_snowflake_ids::likely::{Doubt, readings};
///
/// let id = 1_541_815_603_606_036_480; // of Twitter
/// let in_2022_us = 1_656_500_000_000_000;
/// let readings = readings(id, in_2022_us);
/// assert_eq!((readings[0].name, readings[0].fields.shard), ("twitter", 378));
/// assert_eq!(readings[1].name, "postgres"); // in 2021
/// assert_eq!(readings.last().unwrap().doubt, Some(Doubt::NotAnId));
/// ```
pub fn readings(id: i64, now_us: i64) -> Vec<Reading> {
    let of_preset = |&(name, layout): &(_, _)| Reading::of(id, name, layout, now_us);
    let mut readings: Vec<Reading> = PRESETS.iter().map(of_preset).collect();
    readings.sort_by_key(|reading| match reading.doubt {
        None => (0, reading.unix_us.abs_diff(now_us)),
        Some(Doubt::Future) => (1, reading.unix_us.abs_diff(now_us)),
        Some(Doubt::FirstDays) => (2, 0),
        Some(Doubt::NotAnId) => (3, 0),
    });
    readings
}

/// An ID that is probably not of the layout that it should be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The ID.
    pub id: i64,
    /// The layout that it should be of.
    pub layout: Layout,
    /// The ID in the preset of which it probably is.
    pub likely: Reading,
}

impl Mismatch {
    /// Whether the ID is not one of the layout, or one that nobody has generated in advance.
    fn is_far_ahead(&self, now_us: i64) -> bool {
        time_of(self.id, &self.layout).is_none_or(|unix_us| unix_us > now_us.saturating_add(FAR_AHEAD_US))
    }
}

/// One sentence with the figures.
impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { id, layout, likely } = self;
        let own = tick_of(*id, layout);
        match own {
            Some(tick) => write!(f, "{id} has time {} in layout \"{layout}\"", instant::text(layout, tick))?,
            None => write!(f, "{id} is not an ID of layout \"{layout}\"")?,
        }
        let other = instant::text(&likely.layout, likely.fields.tick);
        let has_time = if own.is_none() { "has time " } else { "" };
        write!(f, ", but {has_time}{other} in layout \"{}\"", likely.name)
    }
}

/// Whether an ID is probably of a preset and not of `layout`. For a column, [`judge`] asks several IDs.
///
/// It is if it does not fit `layout` but fits a preset; and if it is more than a year ahead of now in `layout`, or not an ID of
/// `layout`, but is possible in a preset. The nearest to now is the likely preset. Of a number that is not an ID of any preset,
/// nothing is known, so `None` is returned.
///
/// `generated_us` is the time in `layout` up to which the column's sequence has generated, if there is one. An ID up to that time
/// is of `layout`, however old it is.
///
/// ```
/// use pg_snowflake_ids::likely::mismatch;
/// use pg_snowflake_ids::presets::{INSTAGRAM, POSTGRES};
///
/// let now_us = 1_800_000_000_000_000;
/// let id = INSTAGRAM.id(INSTAGRAM.at_tick(1, INSTAGRAM.tick_at(now_us)), 5);
/// assert_eq!(mismatch(id, &INSTAGRAM, None, now_us), None);
///
/// let mismatch = mismatch(id, &POSTGRES, None, now_us).unwrap();
/// assert_eq!(mismatch.likely.name, "instagram");
/// assert!(mismatch.to_string().ends_with("but 2027-01-15T08:00:00Z in layout \"instagram\""));
/// ```
pub fn mismatch(id: i64, layout: &Layout, generated_us: Option<i64>, now_us: i64) -> Option<Mismatch> {
    if fits(id, layout, generated_us, now_us) {
        return None;
    }
    let likely = readings(id, now_us).into_iter().next()?;
    let mismatch = Mismatch { id, layout: *layout, likely };
    let is_likely = likely.is_recent(now_us) || likely.doubt.is_none() && mismatch.is_far_ahead(now_us);
    is_likely.then_some(mismatch)
}

/// Whether the time of the ID is one of the last days, or one that the sequence has come to.
fn fits(id: i64, layout: &Layout, generated_us: Option<i64>, now_us: i64) -> bool {
    let latest_us = now_us.saturating_add(TOLERANCE_US);
    let earliest_us = now_us.saturating_sub(RECENT_US);
    time_of(id, layout).is_some_and(|unix_us| {
        unix_us <= latest_us && (unix_us >= earliest_us || generated_us.is_some_and(|us| (unix_us..=latest_us).contains(&us)))
    })
}

/// What the newest IDs of a column show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are probably of a preset and not of the layout. The newest of them.
    OtherLayout(Mismatch),
    /// The highest ID would be of a preset, but the others do not confirm it.
    OddId(Mismatch),
}

/// Whether the IDs of a column are probably of a preset and not of `layout`, or only the highest one is odd. A user can store any number, so
/// one ID never decides for the column.
///
/// `newest(n, at_most)` returns up to `n` distinct IDs that are not above `at_most`, the highest first, or `None` if they cannot be
/// read. Only the highest is read if it is not in doubt. `generated_us` is that of [`mismatch`].
///
/// The [`SAMPLE`] newest IDs vote, and so do as many that the default of the column has generated, so no number of IDs above
/// these is a majority of a column that is in use.
///
/// ```
/// use pg_snowflake_ids::likely::{Verdict, judge};
/// use pg_snowflake_ids::presets::POSTGRES;
///
/// let now_us = 1_800_000_000_000_000;
/// let id = |us| POSTGRES.id(POSTGRES.at_tick(1, POSTGRES.tick_at(us)), 5);
/// let of_two_years_ahead = id(now_us + 2 * 365 * 86_400_000_000);
/// let ids = [of_two_years_ahead, id(now_us), id(now_us - 5_000_000)];
/// let verdict = judge(&POSTGRES, now_us, || None, |n, _| Some(ids.into_iter().take(n).collect()));
/// assert!(matches!(verdict, Some(Verdict::OddId(odd)) if odd.id == of_two_years_ahead));
/// ```
pub fn judge(
    layout: &Layout,
    now_us: i64,
    generated_us: impl FnOnce() -> Option<i64>,
    mut newest: impl FnMut(usize, i64) -> Option<Vec<i64>>,
) -> Option<Verdict> {
    let highest = *newest(1, i64::MAX)?.first()?;
    // The time of the sequence is needed only if there is a doubt.
    mismatch(highest, layout, None, now_us)?;
    let generated_us = generated_us();
    let odd = mismatch(highest, layout, generated_us, now_us)?;
    let mut voters = newest(SAMPLE, i64::MAX)?;
    if let Some(last) = last_generated(layout, generated_us, now_us) {
        voters.extend(newest(SAMPLE, last)?);
    }
    voters.sort_unstable_by_key(|&id| std::cmp::Reverse(id));
    voters.dedup();
    let against: Vec<_> = voters.iter().filter_map(|&id| mismatch(id, layout, generated_us, now_us)).collect();
    let of_preset = |mismatch: &Mismatch| against.iter().filter(|other| other.likely.name == mismatch.likely.name).count();
    // The last of several maxima, so that of the highest IDs.
    let other = *against.iter().rev().max_by_key(|mismatch| of_preset(mismatch))?;
    let is_far_ahead = other.is_far_ahead(now_us);
    let speaks_for = |&&id: &&i64| {
        // Many an old ID is possible in both.
        let is_possible = || is_far_ahead || fits(id, layout, generated_us, now_us);
        fits(id, layout, None, now_us)
            || doubt(id, layout, now_us).is_none() && is_possible() && mismatch(id, layout, generated_us, now_us).is_none()
    };
    let votes = of_preset(&other);
    let is_majority = votes > 1 && votes > voters.iter().filter(speaks_for).count();
    Some(if is_majority { Verdict::OtherLayout(other) } else { Verdict::OddId(odd) })
}

/// The highest ID that the default of a column has generated, or can have; `None` if it has generated none, or if its sequence is not of
/// the layout, as if it holds a plain count.
fn last_generated(layout: &Layout, generated_us: Option<i64>, now_us: i64) -> Option<i64> {
    let generated_us = generated_us?;
    let last = layout.min_id(generated_us.saturating_add(layout.tick_us())).checked_sub(1)?;
    (generated_us <= now_us.saturating_add(TOLERANCE_US) && doubt(last, layout, now_us) != Some(Doubt::FirstDays)).then_some(last)
}

#[cfg(test)]
mod tests;
