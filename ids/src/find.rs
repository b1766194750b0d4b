//! Finds the layout of IDs whose times are known, such as those that a copy of Instagram's function has generated.
//!
//! The time: in the right layout, an ID's time minus the row's is the same for every row, up to the error of the clocks. For
//! every width of the low bits and every unit, these differences are spread over some range. The right pair has the narrowest:
//! a wrong width is wrong by a factor of 2, and a wrong unit by at least 2.3 % (1000 against 1024) of the time that the rows span.
//!
//! The low bits: a counter rises from row to row, or begins again in each tick; a shard does not. For each division of the low
//! bits, the rows are grouped by shard. A division costs a point for each shard, and for each row at which the counter neither
//! rises by a small step nor begins again. The cheapest is the right one.

use crate::layout::{
    EPOCH_MS_LIMIT, Fields, Layout, MAX_OTHER_BITS, MAX_TIME_BITS, ShardPlace, Unit,
};
use crate::presets::PRESETS;
use std::collections::{HashMap, TryReserveError};

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
    /// The layout. Its time field has all bits above the low ones.
    pub layout: Layout,
    /// The epoch that the rows show. The layout has that of a preset, or midnight, if one is within a minute.
    pub measured_epoch_us: i64,
    /// How far the times of the more consistent half of the rows differ, in microseconds.
    pub spread_us: i64,
    /// How far the time of an ID may be from that of its row, in microseconds.
    pub tolerance_us: i64,
    /// The other units that the times allow.
    pub other_units: Vec<Unit>,
    /// Whether no other division of the low bits explains the rows as well.
    pub is_division_certain: bool,
    /// Whether the shard changes only where the counter begins again, so that its bits seem to count, too.
    pub counts_into_shard: bool,
    /// The shards, in ascending order.
    pub shards: Vec<u32>,
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

/// The most samples whose times are compared.
const TIME_SAMPLES: usize = 1000;

/// The narrowest and the widest low bits that are tried.
const LOW_BITS: std::ops::RangeInclusive<u8> = 8..=48;

/// A time is in an ID if it explains all but this part of the rows' differences.
const UNEXPLAINED: i64 = 10;

/// A unit is uncertain if the differences are spread over less than this many times as much as with the best.
const UNCERTAIN: i64 = 3;

/// An epoch of a preset or at midnight within this distance is taken for the true one: clocks are off by seconds.
const SNAP_US: i64 = 60_000_000;

const DAY_US: i64 = 86_400_000_000;

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
    let time = Time::find(&few_of(samples))?;
    let (layout, is_division_certain) = divide(samples, &time)?;
    let mut last_seqs = ByShard::default();
    let mut shards = Vec::new();
    for (shard, seq) in shards_and_seqs(samples, &layout) {
        if last_seqs.replace(shard, seq)?.is_none() {
            shards.try_reserve(1)?;
            shards.push(shard);
        }
    }
    shards.sort_unstable();
    Ok(Found {
        layout,
        measured_epoch_us: time.measured_epoch_us,
        spread_us: time.spread_us,
        tolerance_us: time.spread_us.saturating_mul(10).max(10_000_000),
        other_units: time.other_units,
        is_division_certain,
        counts_into_shard: counts_into_shard(samples, &layout),
        shards,
    })
}

impl Found {
    /// Whether the time of an ID is near enough to that of its row.
    pub fn fits(&self, sample: &Sample) -> bool {
        let layout = &self.layout;
        layout.is_id(sample.id)
            && layout.instant_of(layout.split(sample.id).tick).abs_diff(sample.unix_us)
                <= self.tolerance_us.unsigned_abs()
    }
}

/// At most [`TIME_SAMPLES`] of the samples, spread over all of them. Their distances are those of multiples of the golden ratio: every
/// tenth row, say, might be a late one.
fn few_of(samples: &[Sample]) -> Vec<Sample> {
    if samples.len() <= TIME_SAMPLES {
        return samples.to_vec();
    }
    let place = |n: u32| {
        let part = n.wrapping_mul(0x9E37_79B9);
        ((u64::from(part) * samples.len() as u64) >> 32) as usize
    };
    (1..).take(TIME_SAMPLES).map(|n| samples[place(n)]).collect()
}

/// What is above the low bits.
struct Time {
    low_bits: u8,
    unit: Unit,
    epoch_ms: i64,
    measured_epoch_us: i64,
    spread_us: i64,
    other_units: Vec<Unit>,
}

impl Time {
    fn find(samples: &[Sample]) -> Result<Self, NotFound> {
        let mut times: Vec<i64> = samples.iter().map(|sample| sample.unix_us).collect();
        times.sort_unstable();
        let span_us = middle(&times);
        if span_us == 0 {
            return Err(NotFound::SameTime);
        }
        let mut readings: Vec<(i64, u8, Unit)> = Vec::new();
        for low_bits in LOW_BITS {
            for (unit, _) in Unit::ALL {
                readings.push((middle(&epochs(samples, low_bits, unit)), low_bits, unit));
            }
        }
        let &(best, ..) = readings.iter().min_by_key(|(spread, ..)| *spread).expect("readings");
        if best > span_us / UNEXPLAINED {
            return Err(NotFound::NoTime);
        }
        // Times are rounded to a tick.
        let is_possible = |&&(spread, _, unit): &&(i64, u8, Unit)| {
            spread <= best.saturating_mul(UNCERTAIN).max(unit.us())
                && spread <= span_us / UNEXPLAINED
        };
        let possible: Vec<Self> = readings
            .iter()
            .filter(is_possible)
            .map(|&(spread, low_bits, unit)| Time::of(samples, low_bits, unit, spread))
            .filter(|time| (0..EPOCH_MS_LIMIT).contains(&time.epoch_ms))
            .collect();
        let units: Vec<Unit> = possible.iter().map(|time| time.unit).collect();
        let rank = |time: &Self| (time.preset().is_none(), time.unit != Unit::Ms1, time.spread_us);
        let mut time = possible.into_iter().min_by_key(rank).ok_or(NotFound::NoTime)?;
        time.other_units = units.into_iter().filter(|unit| *unit != time.unit).collect();
        Ok(time)
    }

    fn of(samples: &[Sample], low_bits: u8, unit: Unit, spread_us: i64) -> Self {
        // The shortest interval with half of the rows: late rows and wrong clocks are outside.
        let epochs = epochs(samples, low_bits, unit);
        let half = epochs.len() / 2;
        let narrowest = epochs
            .windows(half + 1)
            .min_by_key(|window| window[half].saturating_sub(window[0]))
            .expect("more than half of the rows");
        let measured_epoch_us = narrowest[half / 2];
        let mut time = Time {
            low_bits,
            unit,
            epoch_ms: measured_epoch_us.div_euclid(1_000),
            measured_epoch_us,
            spread_us: spread_us.min(narrowest[half].saturating_sub(narrowest[0])),
            other_units: Vec::new(),
        };
        let midnight_us = measured_epoch_us.saturating_add(DAY_US / 2).div_euclid(DAY_US) * DAY_US;
        if let Some(preset) = time.preset() {
            time.epoch_ms = preset.epoch_ms;
        } else if midnight_us.abs_diff(measured_epoch_us) <= SNAP_US as u64 {
            time.epoch_ms = midnight_us / 1_000;
        }
        time
    }

    /// The preset with these low bits, unit and epoch.
    fn preset(&self) -> Option<Layout> {
        PRESETS.iter().map(|&(_, preset)| preset).find(|preset| {
            preset.low_bits() == self.low_bits
                && preset.unit == self.unit
                && (preset.epoch_ms * 1_000).abs_diff(self.measured_epoch_us) <= SNAP_US as u64
        })
    }

    fn layout(&self, shard_place: ShardPlace, shard_bits: u8, seq_bits: u8) -> Layout {
        let preset = self.preset().filter(|preset| {
            (preset.shard_place, preset.shard_bits, preset.seq_bits)
                == (shard_place, shard_bits, seq_bits)
        });
        preset.unwrap_or(Layout {
            time_bits: (64 - self.low_bits).min(MAX_TIME_BITS),
            shard_bits,
            seq_bits,
            shard_place,
            unit: self.unit,
            epoch_ms: self.epoch_ms,
        })
    }
}

/// The epoch by each row, in ascending order.
fn epochs(samples: &[Sample], low_bits: u8, unit: Unit) -> Vec<i64> {
    let epoch = |sample: &Sample| {
        sample.unix_us.saturating_sub((sample.id >> low_bits).saturating_mul(unit.us()))
    };
    let mut epochs: Vec<i64> = samples.iter().map(epoch).collect();
    epochs.sort_unstable();
    epochs
}

/// How far the middle half of sorted values reaches; of fewer than eight, all.
fn middle(sorted: &[i64]) -> i64 {
    let (count, last) = (sorted.len(), sorted.len() - 1);
    let (low, high) = if count < 8 { (0, last) } else { (count / 4, last - count / 4) };
    sorted[high].saturating_sub(sorted[low])
}

/// The layout with the best division of the low bits, and whether no other division explains the IDs as well.
fn divide(samples: &[Sample], time: &Time) -> Result<(Layout, bool), NotFound> {
    let mut divisions: Vec<(u64, Layout)> = Vec::new();
    for place in ShardPlace::ALL {
        // Without a shard, all places are the same.
        let least = if place.is_lowest() { 1 } else { 0 };
        for shard_bits in least..=time.low_bits {
            let seq_bits = time.low_bits - shard_bits;
            if shard_bits <= MAX_OTHER_BITS && seq_bits <= MAX_OTHER_BITS {
                let layout = time.layout(place, shard_bits, seq_bits);
                divisions.push((cost(samples, &layout)?, layout));
            }
        }
    }
    // A counter rises by one and not by two, as it would if its lowest bit were the shard's.
    let mut steps = Vec::new();
    for layout in least_of(divisions) {
        steps.push((median_step(samples, &layout)?, layout));
    }
    let best = least_of(steps);
    let usual = time.preset().or_else(|| {
        let has_low_bits =
            |preset: &Layout| preset.low_bits() == time.low_bits && preset.unit == time.unit;
        PRESETS.iter().map(|&(_, preset)| preset).find(has_low_bits)
    });
    let is_usual = |layout: &Layout| {
        usual.is_some_and(|usual| {
            (usual.shard_place, usual.shard_bits) == (layout.shard_place, layout.shard_bits)
        })
    };
    // The bits above a counter that are never set are the counter's, too, if the shard is 0.
    let width = |layout: &Layout| {
        let seq_bits = i64::from(layout.seq_bits);
        let has_shard = shards_and_seqs(samples, layout).any(|(shard, _)| shard != 0);
        if has_shard { seq_bits } else { -seq_bits }
    };
    let chosen = best
        .iter()
        .min_by_key(|layout| (!is_usual(layout), width(layout)))
        .expect("the low bits can be divided");
    Ok((*chosen, best.len() == 1))
}

/// Those with the least number.
fn least_of<N: Copy + Ord, T>(numbered: Vec<(N, T)>) -> Vec<T> {
    let least = numbered.iter().map(|&(number, _)| number).min();
    let is_least = |(number, item): (N, T)| (Some(number) == least).then_some(item);
    numbered.into_iter().filter_map(is_least).collect()
}

fn shards_and_seqs(samples: &[Sample], layout: &Layout) -> impl Iterator<Item = (u32, u32)> {
    samples.iter().map(|sample| {
        let fields = layout.split(sample.id);
        (fields.shard, fields.seq)
    })
}

/// Something of each shard.
struct ByShard<T>(HashMap<u32, T>);

impl<T> Default for ByShard<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> ByShard<T> {
    /// Replaces what is there, and returns it.
    fn replace(&mut self, shard: u32, new: T) -> Result<Option<T>, TryReserveError> {
        self.0.try_reserve(1)?;
        Ok(self.0.insert(shard, new))
    }
}

/// Whether the shard changes, and only where the counter begins again.
fn counts_into_shard(samples: &[Sample], layout: &Layout) -> bool {
    let pairs = shards_and_seqs(samples, layout).zip(shards_and_seqs(&samples[1..], layout));
    let mut changes = pairs.filter(|(last, next)| last.0 != next.0).peekable();
    changes.peek().is_some() && changes.all(|(last, next)| next.1 < last.1)
}

/// The shards, and the rows at which the counter of a shard neither rises by a small step nor begins again.
fn cost(samples: &[Sample], layout: &Layout) -> Result<u64, TryReserveError> {
    let (mut by_shard, mut rising, mut resetting) = (ByShard::default(), 0, 0);
    let most = (layout.seqs() / 4).clamp(1, 64);
    for sample in samples {
        let Fields { tick, shard, seq } = layout.split(sample.id);
        let Some((last_tick, last_seq)) = by_shard.replace(shard, (tick, seq))? else { continue };
        let is_small = (1..=most).contains(&step(layout, last_seq, seq));
        rising += u64::from(!is_small);
        let begins_again = tick != last_tick && seq <= 3;
        resetting += u64::from(!begins_again && !(tick == last_tick && is_small));
    }
    Ok(by_shard.0.len() as u64 + rising.min(resetting))
}

fn median_step(samples: &[Sample], layout: &Layout) -> Result<i64, TryReserveError> {
    let mut by_shard = ByShard::default();
    let mut steps = Vec::new();
    for (shard, seq) in shards_and_seqs(samples, layout) {
        if let Some(last) = by_shard.replace(shard, seq)? {
            steps.try_reserve(1)?;
            steps.push(step(layout, last, seq));
        }
    }
    steps.sort_unstable();
    Ok(steps.get(steps.len() / 2).copied().unwrap_or(0))
}

/// How far the counter has risen, modulo its size.
fn step(layout: &Layout, from: u32, to: u32) -> i64 {
    (i64::from(to) - i64::from(from)).rem_euclid(layout.seqs())
}

#[cfg(test)]
mod tests;
