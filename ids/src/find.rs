//! Finds the layout of IDs whose times are known, such as those that a copy of Instagram's function has generated.
//!
//! The time: in the right layout, an ID's time minus the row's is the same for every row, up to the error of the clocks. For
//! every width of the low bits and every unit, these differences are spread over some range. The right pair has the narrowest:
//! a wrong width is wrong by a factor of 2, and a wrong unit by at least 2.3 % (1000 against 1024) of the time that the rows span.
//! A unit that no layout has, of 2 ms or 5 ms, has the same speed as one with a bit less or more: the bits around show it.
//!
//! The low bits: the rows prove the width of the counter only where it has wrapped, from its highest value to 0, and no bit above has
//! changed. If they do not prove one division of the low bits, the likely ones are candidates.

mod division;
mod time;

use crate::layout::Layout;
pub use division::Division;
use division::divide;
use std::collections::TryReserveError;
pub use time::Time;
use time::{epoch_of, slices};

/// An ID and the time at which its row was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The ID.
    pub id: i64,
    /// The time, in microseconds since 1970.
    pub unix_us: i64,
}

/// The layout of some samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The time in the IDs.
    pub time: Time,
    /// The divisions of the low bits that the rows allow, at least one, the most likely first.
    pub divisions: Vec<Division>,
    /// Whether the rows prove the first division.
    pub is_division_certain: bool,
    /// Whether the shard changes, and nearly always where the counter begins again, so that its bits seem to count, too.
    pub counts_on: bool,
    /// How far the time of an ID may be from that of its row, in microseconds.
    pub tolerance_us: i64,
    /// The other lengths of a tick that the rows allow, in microseconds.
    pub other_ticks_us: Vec<i64>,
    /// Whether most rows fit in at least nine tenths of the time that the IDs span.
    pub fits_most_of_the_time: bool,
}

/// Why no layout was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// There are fewer than [`MIN_SAMPLES`] different IDs that are positive.
    TooFew,
    /// All rows have nearly the same time.
    SameTime,
    /// The IDs do not rise with the time.
    NoTime,
    /// The IDs rise with the time, but not as those of any layout.
    OtherLayout,
    /// The IDs are consecutive numbers.
    Serial,
    /// There is no memory to compare them.
    OutOfMemory,
}

impl From<TryReserveError> for NotFound {
    fn from(_: TryReserveError) -> Self {
        Self::OutOfMemory
    }
}

/// The least number of samples.
pub const MIN_SAMPLES: usize = 3;

/// How far clocks may be off.
const CLOCK_ERROR_US: i64 = 10_000_000;

/// Rows whose times are off by more, such as dates, show no epoch.
const MOST_SPREAD_US: i64 = 60_000_000;

/// A bit of the time, or of a random number, changes in half of the steps; one that changes in fewer than this part is another.
const CHANGES: u64 = 8;

/// Finds the layout of the samples, which are in any order. Leaves them in the order of their IDs, each ID once.
///
/// All allocations whose size depends on the number of samples can fail.
pub fn find(samples: &mut Vec<Sample>) -> Result<Found, NotFound> {
    samples.retain(|sample| sample.id > 0);
    samples.sort_unstable_by_key(|sample| (sample.id, sample.unix_us));
    samples.dedup_by_key(|sample| sample.id);
    if samples.len() < MIN_SAMPLES {
        return Err(NotFound::TooFew);
    }
    let time = Time::find(samples)?;
    let tolerance_us = time.spread_us.saturating_mul(10).max(CLOCK_ERROR_US);
    // Rows that came late, or whose ID is from elsewhere, say nothing about shard and counter.
    let mut fitting = Vec::new();
    fitting.try_reserve(samples.len())?;
    let is_near = |sample: &&Sample| {
        let error_us = epoch_of(sample, time.low_bits, time.unit.us()).saturating_sub(time.epoch_ms * 1_000);
        error_us.unsigned_abs() <= tolerance_us.unsigned_abs()
    };
    fitting.extend(samples.iter().filter(is_near).copied());
    if fitting.len() < MIN_SAMPLES {
        return Err(NotFound::NoTime);
    }
    let half_a_tick = 1_i64 << (time.low_bits - 1);
    let (mut ticks, mut small, mut flips) = (0, 0, 0);
    for pair in fitting.windows(2).filter(|pair| pair[0].id >> time.low_bits != pair[1].id >> time.low_bits) {
        ticks += 1;
        small += u64::from(pair[1].id - pair[0].id < half_a_tick);
        flips += u64::from((pair[1].id ^ pair[0].id) & half_a_tick != 0);
    }
    // The low bits count on from tick to tick, as those of consecutive numbers do: from their highest number to 0.
    if 2 * small > ticks {
        return Err(NotFound::Serial);
    }
    let (divisions, is_division_certain) = divide(&fitting, &time)?;
    let counts_on = counts_on(&fitting, &divisions[0].layout);
    let mut other_ticks_us: Vec<i64> = time.other_units.iter().map(|unit| unit.us()).collect();
    // If the lowest bits of the ticks hardly change, they may be low bits; and if the highest low bit does, it may be one of the time.
    let constant = divisions[0].constant_tick_bits();
    if constant > 0 {
        other_ticks_us.push(time.unit.us() << constant);
    }
    if flips * CHANGES >= ticks {
        other_ticks_us.push(time.unit.us() / 2);
    }
    let fits_most_of_the_time = fits_most_of_the_time(samples, &fitting, |sample| is_near(&sample));
    Ok(Found { time, divisions, is_division_certain, counts_on, tolerance_us, other_ticks_us, fits_most_of_the_time })
}

/// Whether the shard changes, and nearly always where the counter begins again, so that its bits seem to count, too.
fn counts_on(samples: &[Sample], layout: &Layout) -> bool {
    let (mut changes, mut beginnings) = (0, 0);
    for pair in samples.windows(2) {
        let [from, to] = [layout.split(pair[0].id), layout.split(pair[1].id)];
        changes += u64::from(from.shard != to.shard);
        beginnings += u64::from(from.shard != to.shard && to.seq < from.seq);
    }
    changes > 0 && beginnings * 10 >= changes * 9
}

/// Whether most rows fit in nine tenths of the time. Rows do not count, as one busy minute might have most of them.
fn fits_most_of_the_time(samples: &[Sample], fitting: &[Sample], is_near: impl Fn(&Sample) -> bool) -> bool {
    let (mut all, mut good) = (0, 0);
    for slice in slices(samples, fitting, 100) {
        all += 1;
        good += usize::from(2 * slice.iter().filter(|sample| is_near(sample)).count() > slice.len());
    }
    good * 10 >= all * 9
}

impl Found {
    /// The layout. Its time field has all bits above the low ones.
    pub fn layout(&self) -> Layout {
        self.divisions[0].layout
    }

    /// Whether the time of an ID is near enough to that of its row.
    pub fn fits(&self, sample: &Sample) -> bool {
        let layout = self.layout();
        layout.is_id(sample.id)
            && layout.instant_of(layout.split(sample.id).tick).abs_diff(sample.unix_us) <= self.tolerance_us.unsigned_abs()
    }

    /// Whether the rows allow no other layout, with an epoch as exact as their times.
    pub fn is_sure(&self) -> bool {
        self.is_division_certain
            && !self.counts_on
            && self.time.is_unit_certain
            && self.other_ticks_us.is_empty()
            && self.fits_most_of_the_time
            && self.time.spread_us <= MOST_SPREAD_US
    }
}

#[cfg(test)]
mod tests;
