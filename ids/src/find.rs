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
    let mut time = Time::find(samples)?;
    // Rows that came late, or whose ID is from elsewhere, say nothing about shard and counter.
    let mut fitting = Vec::new();
    fitting.try_reserve(samples.len())?;
    fitting.extend(samples.iter().filter(|sample| time.fits(sample)).copied());
    if fitting.len() < MIN_SAMPLES {
        return Err(NotFound::NoTime);
    }
    let half_a_tick = 1_i64 << (time.layout.low_bits() - 1);
    let (mut ticks, mut small, mut flips) = (0, 0, 0);
    for pair in fitting.windows(2).filter(|pair| pair[0].id >> time.layout.low_bits() != pair[1].id >> time.layout.low_bits()) {
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
    // A bit of the time changes in half of the steps. If the lowest bits of the ticks hardly change, they may be low bits; and if the highest
    // low bit changes in an eighth of the steps, it may be one of the time.
    let Division { tick_changes, landings, .. } = &divisions[0];
    let constant = tick_changes.iter().take_while(|&changes| changes * 3 < *landings).count();
    if constant > 0 {
        time.other_ticks_us.push(time.layout.tick_us() << constant);
    }
    if flips * 8 >= ticks {
        time.other_ticks_us.push(time.layout.tick_us() / 2);
    }
    let fits_most_of_the_time = fits_most_of_the_time(samples, &fitting, &time);
    Ok(Found { time, divisions, is_division_certain, counts_on, fits_most_of_the_time })
}

/// Whether the shard changes, and nearly always where the counter begins again, so that its bits seem to count, too.
fn counts_on(samples: &[Sample], layout: &Layout) -> bool {
    let steps = samples.windows(2).map(|pair| [layout.split(pair[0].id), layout.split(pair[1].id)]);
    let (mut changes, mut beginnings) = (0, 0);
    for [from, to] in steps.filter(|[from, to]| from.shard != to.shard) {
        changes += 1;
        beginnings += u64::from(to.seq < from.seq);
    }
    changes > 0 && beginnings * 10 >= changes * 9
}

/// Whether most rows fit in nine tenths of the time. Rows do not count, as one busy minute might have most of them.
fn fits_most_of_the_time(samples: &[Sample], fitting: &[Sample], time: &Time) -> bool {
    let (first, last) = (fitting[0].id, fitting[fitting.len() - 1].id);
    let slice_of = |sample: &Sample| (sample.id - first).div_euclid((last - first) / 100 + 1);
    let has_most = |slice: &[Sample]| 2 * slice.iter().filter(|sample| time.fits(sample)).count() > slice.len();
    let slices = samples.chunk_by(|one, next| slice_of(one) == slice_of(next));
    slices.map(|slice| if has_most(slice) { 1 } else { -9 }).sum::<i64>() >= 0
}

impl Found {
    /// The most likely layout. Its time field has all bits above the low ones.
    pub fn layout(&self) -> Layout {
        self.divisions[0].layout
    }

    /// Whether the rows allow no other layout, with an epoch as exact as their times.
    pub fn is_sure(&self) -> bool {
        self.is_division_certain
            && !self.counts_on
            && self.time.is_unit_certain
            && self.time.other_ticks_us.is_empty()
            && self.fits_most_of_the_time
            && self.time.spread_us <= MOST_SPREAD_US
    }
}

#[cfg(test)]
mod tests;
