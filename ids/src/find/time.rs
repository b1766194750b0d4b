//! The time in the IDs: the width of the low bits, the unit and the epoch.

use super::{CLOCK_ERROR_US, NotFound, Sample};
use crate::generators::KNOWN_LAYOUTS;
use crate::layout::{EPOCH_MS_LIMIT, Layout, MAX_TIME_BITS, ShardPlace, Unit};
use std::collections::TryReserveError;

/// The most samples whose times are compared, and how many of them are spread over the time that the IDs span.
const TIME_SAMPLES: usize = 400;
const OVER_TIME: usize = 300;

/// The narrowest and the widest low bits that are tried.
const LOW_BITS: std::ops::RangeInclusive<u8> = 8..=48;

/// A time is in an ID if it explains all but this part of the rows' differences.
const UNEXPLAINED: i64 = 10;

/// The same, of a span in which [`CLOCK_ERROR_US`] is less than that, and for a unit that is certain. A wrong unit leaves at least 2.3 %.
const UNEXPLAINED_OF_LONG: i64 = 100;

/// A unit is uncertain if the differences are spread over less than this many times as much as with the best.
const UNCERTAIN: i64 = 3;

/// If the clocks are not exact, the epoch of a known layout or at midnight is taken for the true one within ten times their error, at most this
/// distance.
const MOST_SNAP_US: i64 = 60_000_000;

/// A day, a minute, a second and a millisecond: an epoch is more likely at the beginning of one.
const EVEN_US: [i64; 4] = [86_400_000_000, 60_000_000, 1_000_000, 1_000];

/// What is above the low bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    /// The layout whose low bits are all of the counter.
    pub(super) layout: Layout,
    /// How far the times of the middle half of the rows differ, in microseconds.
    pub spread_us: i64,
    /// The other lengths of a tick that the rows allow, in microseconds.
    pub other_ticks_us: Vec<i64>,
    /// Whether the times are far enough apart, and exact enough, to exclude units that are not named.
    pub is_unit_certain: bool,
    /// The known layouts with these low bits, unit and epoch.
    pub(super) known: Vec<Layout>,
}

impl Time {
    pub(super) fn find(samples: &[Sample]) -> Result<Self, NotFound> {
        let few = few_of(samples);
        // Without a tick, the epochs are the times of the rows.
        let (first_us, last_us) = middle(&epochs_of(&few, 0, 0)?);
        let span_us = last_us.saturating_sub(first_us);
        if span_us == 0 {
            return Err(NotFound::SameTime);
        }
        let all = LOW_BITS.flat_map(|low_bits| Unit::ALL.map(|(unit, _)| (low_bits, unit)));
        let readings = all.map(|(low_bits, unit)| Time::of(&few, low_bits, unit)).collect::<Result<Vec<_>, _>>()?;
        // The error of clocks can be a large part of a short span, but not of a long one.
        let most_us = (span_us / UNEXPLAINED).min(CLOCK_ERROR_US.max(span_us / UNEXPLAINED_OF_LONG));
        let best_us = readings.iter().map(|time| time.spread_us).min().unwrap_or_default();
        let most_us = best_us.saturating_mul(UNCERTAIN).min(most_us);
        let mut possible = Vec::new();
        for Time { layout, spread_us, .. } in readings.into_iter().filter(|time| time.spread_us <= most_us) {
            let is_unit_certain = spread_us.max(layout.tick_us()) <= span_us / UNEXPLAINED_OF_LONG;
            possible.push(Time { is_unit_certain, ..Time::of(samples, layout.low_bits(), layout.unit)? });
        }
        possible.retain(|time| (0..EPOCH_MS_LIMIT).contains(&time.layout.epoch_ms));
        possible.sort_by_key(|time| (time.known.is_empty(), time.layout.unit != Unit::Ms1, time.spread_us));
        let mut possible = possible.into_iter();
        let mut time = possible.next().ok_or_else(|| {
            let rising = samples.windows(2).filter(|pair| pair[0].unix_us <= pair[1].unix_us).count();
            if rising * 10 > samples.len() * 8 { NotFound::OtherLayout } else { NotFound::NoTime }
        })?;
        time.other_ticks_us = possible.map(|other| other.layout.tick_us()).filter(|&us| us != time.layout.tick_us()).collect();
        Ok(time)
    }

    /// The time in these bits above the low ones, in this unit.
    fn of(samples: &[Sample], low_bits: u8, unit: Unit) -> Result<Self, NotFound> {
        let tick_us = unit.us();
        let epochs = epochs_of(samples, low_bits, tick_us)?;
        let (one, other) = middle(&epochs);
        // The rows are as many ticks after the epoch as their IDs say, and up to a tick more.
        let (least_us, most_us) = (other.saturating_sub(tick_us).min(one), one.saturating_add(tick_us).max(other));
        let near = &epochs[epochs.partition_point(|&us| us < least_us)..epochs.partition_point(|&us| us <= most_us)];
        let (low, end) = (near[0], near[near.len() - 1].saturating_sub(tick_us));
        let is_exact = end <= low && near.len() * 4 >= epochs.len() * 3;
        let measured_us = if is_exact { low } else { low.saturating_add(end.saturating_sub(low) / 2) };
        let spread_us = other.saturating_sub(one);
        let snap_us = if is_exact { 0 } else { spread_us.saturating_mul(10).min(MOST_SNAP_US) };
        let is_in = |us: i64, by_us: i64| (low.min(end).saturating_sub(by_us)..=low.max(end).saturating_add(by_us)).contains(&us);
        let is_known = |known: &Layout| (known.low_bits(), known.unit) == (low_bits, unit) && is_in(known.epoch_ms * 1_000, snap_us);
        let known: Vec<Layout> = KNOWN_LAYOUTS.iter().copied().filter(is_known).collect();
        let round = |length_us: i64| measured_us.saturating_add(length_us / 2).div_euclid(length_us).saturating_mul(length_us);
        let mut even = EVEN_US.map(round).into_iter().zip([snap_us, 0, 0, 0]);
        let epoch_us = even.find(|&(us, by_us)| is_in(us, by_us)).map_or(measured_us, |(us, _)| us);
        let epoch_ms = known.first().map_or(epoch_us.div_euclid(1_000), |known| known.epoch_ms);
        let time_bits = (64 - low_bits).min(MAX_TIME_BITS);
        let layout = Layout { time_bits, shard_bits: 0, seq_bits: low_bits, shard_place: ShardPlace::AboveSeq, unit, epoch_ms };
        Ok(Time { layout, spread_us, other_ticks_us: Vec::new(), is_unit_certain: false, known })
    }

    /// Whether the time of an ID is near enough to that of its row.
    pub fn fits(&self, sample: &Sample) -> bool {
        let tolerance_us = self.spread_us.saturating_mul(10).max(CLOCK_ERROR_US);
        self.layout.instant_of(sample.id >> self.layout.low_bits()).abs_diff(sample.unix_us) <= tolerance_us.unsigned_abs()
    }

    /// The layout with a division of the low bits.
    pub(super) fn layout(&self, shard_place: ShardPlace, shard_bits: u8) -> Layout {
        let known = self.known.iter().find(|known| (known.shard_place, known.shard_bits) == (shard_place, shard_bits));
        let seq_bits = self.layout.seq_bits - shard_bits;
        known.copied().unwrap_or(Layout { shard_place, shard_bits, seq_bits, ..self.layout })
    }
}

/// At most [`TIME_SAMPLES`] of the samples. Most are spread over the time, as one busy minute might have most of the rows; the others over
/// the rows, as one ID from elsewhere might be far from all others. They are picked by multiples of the golden ratio: every tenth row, say,
/// might be a late one.
fn few_of(samples: &[Sample]) -> Vec<Sample> {
    if samples.len() <= TIME_SAMPLES {
        return samples.to_vec();
    }
    let (first, last) = (samples[0].id, samples[samples.len() - 1].id);
    let part = |n: usize, of: i64| ((i128::from(of) * i128::from((n as u32).wrapping_mul(0x9E37_79B9))) >> 32) as i64;
    let since = |id: i64| samples.partition_point(|sample| sample.id < id);
    let mut few: Vec<Sample> = (0..OVER_TIME).map(|n| samples[since(first + part(n, last - first))]).collect();
    few.sort_unstable_by_key(|sample| sample.id);
    few.dedup();
    few.extend((few.len()..TIME_SAMPLES).map(|n| samples[part(n, samples.len() as i64) as usize]));
    few
}

/// The epoch by each row, in ascending order.
fn epochs_of(samples: &[Sample], low_bits: u8, tick_us: i64) -> Result<Vec<i64>, TryReserveError> {
    let mut epochs = Vec::new();
    epochs.try_reserve(samples.len())?;
    epochs.extend(samples.iter().map(|sample| sample.unix_us.saturating_sub((sample.id >> low_bits).saturating_mul(tick_us))));
    epochs.sort_unstable();
    Ok(epochs)
}

/// The ends of the middle half of sorted values; of fewer than eight, of all. Late rows and wrong clocks are outside.
fn middle(sorted: &[i64]) -> (i64, i64) {
    let quarter = if sorted.len() < 8 { 0 } else { sorted.len() / 4 };
    (sorted[quarter], sorted[sorted.len() - 1 - quarter])
}
