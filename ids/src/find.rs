//! Finds the layout of IDs whose times are known, such as those that a copy of Instagram's function has generated.
//!
//! The time: in the right layout, an ID's time minus the row's is the same for every row, up to the error of the clocks. For
//! every width of the low bits and every unit, these differences are spread over some range. The right pair has the narrowest:
//! a wrong width is wrong by a factor of 2, and a wrong unit by at least 2.3 % (1000 against 1024) of the time that the rows span.
//!
//! The low bits: a counter rises from row to row, or begins again in each tick; a shard does not. For each division of the low bits
//! into both, the length of a text is computed that describes them row by row: nothing for a counter that rises by one, a few bits for
//! another step, and so on. The division with the shortest text is the right one (the principle of minimum description length). If
//! another text is as short, the rows do not show the division.

use crate::layout::{EPOCH_MS_LIMIT, Layout, MAX_OTHER_BITS, MAX_TIME_BITS, ShardPlace, Unit};
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
    /// Whether the shard changes, and nearly always where the counter begins again, so that its bits seem to count, too.
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

/// The most samples whose times are compared.
const TIME_SAMPLES: usize = 1000;

/// The narrowest and the widest low bits that are tried.
const LOW_BITS: std::ops::RangeInclusive<u8> = 8..=48;

/// A time is in an ID if it explains all but this part of the rows' differences.
const UNEXPLAINED: i64 = 10;

/// The same, of a span in which [`CLOCK_ERROR_US`] is less than that. A wrong unit leaves at least 2.3 %.
const UNEXPLAINED_OF_LONG: i64 = 100;

/// How far clocks may be off.
const CLOCK_ERROR_US: i64 = 10_000_000;

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
    let tolerance_us = time.spread_us.saturating_mul(10).max(CLOCK_ERROR_US);
    // Rows that came late, or whose ID is from elsewhere, say nothing about shard and counter.
    let mut fitting = Vec::new();
    fitting.try_reserve(samples.len())?;
    let epoch_us = time.epoch_ms * 1_000;
    let is_near = |sample: &&Sample| {
        let error_us = epoch_of(sample, time.low_bits, time.unit).saturating_sub(epoch_us);
        error_us.unsigned_abs() <= tolerance_us.unsigned_abs()
    };
    fitting.extend(samples.iter().filter(is_near).copied());
    if fitting.len() < MIN_SAMPLES {
        return Err(NotFound::NoTime);
    }
    if is_serial(&fitting, &time) {
        return Err(NotFound::Serial);
    }
    let (Division { layout, counts_on, .. }, is_division_certain) = divide(&fitting, &time)?;
    let mut shards = Vec::new();
    shards.try_reserve(fitting.len())?;
    shards.extend(shards_and_seqs(&fitting, &layout).map(|(shard, _)| shard));
    shards.sort_unstable();
    shards.dedup();
    Ok(Found {
        layout,
        measured_epoch_us: time.measured_epoch_us,
        spread_us: time.spread_us,
        tolerance_us,
        other_units: time.other_units,
        is_division_certain,
        counts_into_shard: counts_on,
        shards,
    })
}

/// Whether the low bits count on from tick to tick, as those of consecutive numbers do: from their highest number to 0.
fn is_serial(samples: &[Sample], time: &Time) -> bool {
    let half_a_tick = 1_i64 << (time.low_bits - 1);
    let (mut ticks, mut small) = (0_usize, 0_usize);
    for pair in samples.windows(2) {
        if pair[0].id >> time.low_bits != pair[1].id >> time.low_bits {
            ticks += 1;
            small += usize::from(pair[1].id - pair[0].id < half_a_tick);
        }
    }
    2 * small > ticks
}

impl Found {
    /// Whether the time of an ID is near enough to that of its row.
    pub fn fits(&self, sample: &Sample) -> bool {
        let layout = &self.layout;
        layout.is_id(sample.id)
            && layout.instant_of(layout.split(sample.id).tick).abs_diff(sample.unix_us) <= self.tolerance_us.unsigned_abs()
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
        // The error of clocks can be a large part of a short span, but not of a long one.
        let most_us = (span_us / UNEXPLAINED).min(CLOCK_ERROR_US.max(span_us / UNEXPLAINED_OF_LONG));
        if best > most_us {
            return Err(NotFound::NoTime);
        }
        // Times are rounded to a tick.
        let is_possible =
            |&&(spread, _, unit): &&(i64, u8, Unit)| spread <= best.saturating_mul(UNCERTAIN).max(unit.us()) && spread <= most_us;
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
        let narrowest =
            epochs.windows(half + 1).min_by_key(|window| window[half].saturating_sub(window[0])).expect("more than half of the rows");
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
        let preset =
            self.preset().filter(|preset| (preset.shard_place, preset.shard_bits, preset.seq_bits) == (shard_place, shard_bits, seq_bits));
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

/// The epoch by a row.
fn epoch_of(sample: &Sample, low_bits: u8, unit: Unit) -> i64 {
    sample.unix_us.saturating_sub((sample.id >> low_bits).saturating_mul(unit.us()))
}

/// The epoch by each row, in ascending order.
fn epochs(samples: &[Sample], low_bits: u8, unit: Unit) -> Vec<i64> {
    let mut epochs: Vec<i64> = samples.iter().map(|sample| epoch_of(sample, low_bits, unit)).collect();
    epochs.sort_unstable();
    epochs
}

/// How far the middle half of sorted values reaches; of fewer than eight, all.
fn middle(sorted: &[i64]) -> i64 {
    let (count, last) = (sorted.len(), sorted.len() - 1);
    let (low, high) = if count < 8 { (0, last) } else { (count / 4, last - count / 4) };
    sorted[high].saturating_sub(sorted[low])
}

/// The layout with the best division of the low bits, and whether no other division describes the IDs as well.
fn divide(samples: &[Sample], time: &Time) -> Result<(Division, bool), NotFound> {
    let mut divisions: Vec<Division> = Vec::new();
    for place in ShardPlace::ALL {
        // Without a shard, all places are the same.
        let least = if place.is_lowest() { 1 } else { 0 };
        for shard_bits in least..=time.low_bits {
            let seq_bits = time.low_bits - shard_bits;
            if shard_bits <= MAX_OTHER_BITS && seq_bits <= MAX_OTHER_BITS {
                let layout = time.layout(place, shard_bits, seq_bits);
                divisions.push(Division::of(samples, layout)?);
            }
        }
    }
    let shortest = divisions.iter().map(Division::total).min().expect("there are divisions");
    let usual = time.preset().or_else(|| {
        let has_low_bits = |preset: &Layout| preset.low_bits() == time.low_bits && preset.unit == time.unit;
        PRESETS.iter().map(|&(_, preset)| preset).find(has_low_bits)
    });
    let is_usual =
        |layout: &Layout| usual.is_some_and(|usual| (usual.shard_place, usual.shard_bits) == (layout.shard_place, layout.shard_bits));
    // The bits above a counter that are never set are the counter's, too, if the shard is 0.
    let width = |layout: &Layout| {
        let seq_bits = i64::from(layout.seq_bits);
        let has_shard = shards_and_seqs(samples, layout).any(|(shard, _)| shard != 0);
        if has_shard { seq_bits } else { -seq_bits }
    };
    let best = divisions
        .iter()
        .filter(|division| division.total() == shortest)
        .min_by_key(|division| (!is_usual(&division.layout), width(&division.layout)))
        .expect("one is the shortest");
    // If the shard changes only where the counter begins again, the shard's lowest bits are the counter's, too.
    let is_longer = |other: &Division| other.bits >= best.bits + CERTAIN_BITS || (other.counts_on && !best.counts_on);
    let is_certain = !best.fills_a_block && divisions.iter().all(|other| other.layout == best.layout || is_longer(other));
    if is_certain {
        return Ok((*best, true));
    }
    // The epoch of a preset says more than counters without an order, and its widths are the usual ones.
    let rows = samples.len() as u64;
    let (is_preset, has_block) = (time.preset().is_some(), best.fills_a_block);
    let rows_of_a_shard = if is_preset { 2 } else { 16 };
    let is_plausible = |division: &&Division| {
        is_usual(&division.layout) && (division.total() <= shortest + rows || division.shards * rows_of_a_shard <= rows)
    };
    let chosen = divisions.iter().find(is_plausible).filter(|_| is_preset || has_block).unwrap_or(best);
    Ok((*chosen, false))
}

/// A division of the low bits, with the length of a text that describes them by it.
#[derive(Clone, Copy)]
struct Division {
    layout: Layout,
    shards: u64,
    /// Whether the shards are all numbers with the same high bits, so that their low bits may be the highest of a counter of which each
    /// session takes some values at a time (`CACHE`).
    fills_a_block: bool,
    /// Whether the shard changes, and nearly always where the counter begins again.
    counts_on: bool,
    /// The shard and the counter of each row.
    bits: u64,
}

/// The least shards of a block.
const SHARDS_OF_A_BLOCK: u64 = 8;

/// What a shard costs beside the rows: more than the bits of its number, so that rows are not taken for shards.
const BITS_OF_A_SHARD: u64 = 32;

/// What a counter costs that does not rise by one: more than [`CERTAIN_BITS`], as it would rise by two if its lowest bit were the shard's.
const BITS_OF_A_STRIDE: u64 = 32;

/// A division is certain if all others need so many bits more: chance does that once in 256.
const CERTAIN_BITS: u64 = 8;

impl Division {
    fn of(samples: &[Sample], layout: Layout) -> Result<Self, TryReserveError> {
        let rows = samples.len() as u64;
        let width = u64::from(layout.seq_bits);
        // The last counter of each shard.
        let mut by_shard: HashMap<u32, u32> = HashMap::new();
        let mut resetting = Surprises::default();
        let mut steps = Vec::new();
        steps.try_reserve(samples.len())?;
        let (mut changes, mut beginnings) = (0, 0);
        let mut last_row: Option<(u32, u32)> = None;
        let mut of_tick = Vec::new();
        let low_bits = layout.low_bits();
        for tick in samples.chunk_by(|one, next| one.id >> low_bits == next.id >> low_bits) {
            of_tick.clear();
            of_tick.try_reserve(tick.len())?;
            of_tick.extend(shards_and_seqs(tick, &layout));
            of_tick.sort_unstable();
            for rows in of_tick.chunk_by(|one, next| one.0 == next.0) {
                let (shard, first) = rows[0];
                if let Some((_, last_seq)) = last_row.filter(|last| last.0 != shard) {
                    changes += 1;
                    beginnings += u64::from(first < last_seq);
                }
                last_row = rows.last().copied();
                let last = by_shard.get(&shard).copied();
                // IDs of a tick are in the order of their counters, which may have begun again in it.
                let begin = last.map_or(0, |last| rows.partition_point(|row| row.1 <= last)) % rows.len();
                let in_order = rows[begin..].iter().chain(&rows[..begin]).map(|row| row.1);
                let mut before = last;
                for seq in in_order {
                    steps.extend(before.map(|before| step(&layout, before, seq)));
                    before = Some(seq);
                }
                by_shard.try_reserve(1)?;
                by_shard.extend(before.map(|seq| (shard, seq)));
                if last.is_some() {
                    resetting.add(i64::from(first) + 1, 1, width);
                }
                for pair in rows.windows(2) {
                    resetting.add(step(&layout, pair[0].1, pair[1].1), 1, width);
                }
            }
        }
        let shards = by_shard.len() as u64;
        let mut rising = Surprises::default();
        let stride = median(&mut steps);
        steps.iter().for_each(|&step| rising.add(step, stride, width));
        let unusual = if stride == 1 { 0 } else { BITS_OF_A_STRIDE };
        let counter = (rising.bits(rows) + unusual).min(resetting.bits(rows)).min(rows * width);
        let shard = (rows * bits_for(shards)).min(changes * (bits_for(rows) + bits_for(shards)));
        let numbers = by_shard.keys().map(|&shard| u64::from(shard));
        let (first, last) = (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0));
        let fills_a_block = shards >= SHARDS_OF_A_BLOCK && shards.is_power_of_two() && first % shards == 0 && last - first < shards;
        let counts_on = changes > 0 && beginnings * 10 >= changes * 9;
        Ok(Self { layout, shards, fills_a_block, counts_on, bits: counter + shard })
    }

    fn total(&self) -> u64 {
        self.bits + self.shards * BITS_OF_A_SHARD
    }
}

/// The steps of a counter that are not the usual one: of one, or of the sessions' `CACHE`.
#[derive(Clone, Copy, Default)]
struct Surprises {
    count: u64,
    bits: u64,
}

impl Surprises {
    /// Adds a step, whose length in Elias's gamma code grows with it, up to that of the counter itself.
    fn add(&mut self, step: i64, usual: i64, width: u64) {
        if step != usual {
            self.count += 1;
            let gamma = step.checked_ilog2().map_or(width, |log| 2 * u64::from(log) + 1);
            self.bits += gamma.min(width);
        }
    }

    /// Each row says whether its step is one; or each surprise says which row it is of.
    fn bits(&self, rows: u64) -> u64 {
        self.bits + rows.min(self.count * bits_for(rows))
    }
}

/// The median; 1 of nothing.
fn median(steps: &mut [i64]) -> i64 {
    let middle = steps.len() / 2;
    if steps.is_empty() { 1 } else { *steps.select_nth_unstable(middle).1 }
}

/// How many bits a number below `count` has.
fn bits_for(count: u64) -> u64 {
    u64::from(count.max(1).next_power_of_two().ilog2())
}

fn shards_and_seqs(samples: &[Sample], layout: &Layout) -> impl Iterator<Item = (u32, u32)> {
    samples.iter().map(|sample| {
        let fields = layout.split(sample.id);
        (fields.shard, fields.seq)
    })
}

/// How far the counter has risen, modulo its size.
fn step(layout: &Layout, from: u32, to: u32) -> i64 {
    (i64::from(to) - i64::from(from)).rem_euclid(layout.seqs())
}

#[cfg(test)]
mod tests;
