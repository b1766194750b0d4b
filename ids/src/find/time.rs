//! The time in the IDs: the width of the low bits, the unit and the epoch.

use super::{CLOCK_ERROR_US, NotFound, Sample};
use crate::generators::KNOWN_LAYOUTS;
use crate::layout::{EPOCH_MS_LIMIT, Layout, MAX_TIME_BITS, ShardPlace, Unit};

/// The most samples whose times are compared, and how many of them are spread over the time that the IDs span.
const TIME_SAMPLES: usize = 400;
const OF_SLICES: i64 = 300;

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

const DAY_US: i64 = 86_400_000_000;

/// What is above the low bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    pub(super) low_bits: u8,
    pub(super) unit: Unit,
    pub(super) epoch_ms: i64,
    /// How far the times of the more consistent half of the rows differ, in microseconds.
    pub spread_us: i64,
    pub(super) other_units: Vec<Unit>,
    /// Whether the times are far enough apart, and exact enough, to exclude units that are not named.
    pub is_unit_certain: bool,
    /// The known layouts with these low bits, unit and epoch.
    pub(super) known: Vec<Layout>,
}

impl Time {
    pub(super) fn find(samples: &[Sample]) -> Result<Self, NotFound> {
        let few = few_of(samples);
        let span_us = middle(few.iter().map(|sample| sample.unix_us).collect());
        if span_us == 0 {
            return Err(NotFound::SameTime);
        }
        let readings: Vec<(i64, u8, Unit)> = LOW_BITS
            .flat_map(|low_bits| Unit::ALL.map(|(unit, _)| (low_bits, unit)))
            .map(|(low_bits, unit)| (middle(few.iter().map(|sample| epoch_of(sample, low_bits, unit.us())).collect()), low_bits, unit))
            .collect();
        // The error of clocks can be a large part of a short span, but not of a long one.
        let most_us = (span_us / UNEXPLAINED).min(CLOCK_ERROR_US.max(span_us / UNEXPLAINED_OF_LONG));
        let rising = few.windows(2).filter(|pair| pair[0].unix_us <= pair[1].unix_us).count();
        let none = if rising * 10 > few.len() * 8 { NotFound::OtherLayout } else { NotFound::NoTime };
        let best = readings.iter().map(|(spread, ..)| *spread).min().filter(|best| *best <= most_us).ok_or(none)?;
        let is_possible = |&&(spread, ..): &&(i64, u8, Unit)| spread <= best.saturating_mul(UNCERTAIN) && spread <= most_us;
        let mut possible = Vec::new();
        for &(spread, low_bits, unit) in readings.iter().filter(is_possible) {
            let mut time = Time::of(samples, low_bits, unit)?;
            time.is_unit_certain = spread.max(unit.us()) <= span_us / UNEXPLAINED_OF_LONG;
            possible.push(time);
        }
        possible.retain(|time| (0..EPOCH_MS_LIMIT).contains(&time.epoch_ms));
        let units: Vec<Unit> = possible.iter().map(|time| time.unit).collect();
        let rank = |time: &Self| (time.known.is_empty(), time.unit != Unit::Ms1, time.spread_us);
        let mut time = possible.into_iter().min_by_key(rank).ok_or(none)?;
        time.other_units = units.into_iter().filter(|unit| *unit != time.unit).collect();
        Ok(time)
    }

    fn of(samples: &[Sample], low_bits: u8, unit: Unit) -> Result<Self, NotFound> {
        let epoch = Epoch::of(samples, low_bits, unit.us())?;
        let snap_us = if epoch.is_exact { 0 } else { epoch.spread_us.saturating_mul(10).min(MOST_SNAP_US) };
        let is_in = |us: i64, by_us: i64| (epoch.from_us.saturating_sub(by_us)..=epoch.to_us.saturating_add(by_us)).contains(&us);
        let is_known = |known: &Layout| (known.low_bits(), known.unit) == (low_bits, unit) && is_in(known.epoch_ms * 1_000, snap_us);
        let known: Vec<Layout> = KNOWN_LAYOUTS.iter().copied().filter(is_known).collect();
        let round = |length_us: i64| epoch.measured_us.saturating_add(length_us / 2).div_euclid(length_us).saturating_mul(length_us);
        let even = [(DAY_US, snap_us), (60_000_000, 0), (1_000_000, 0), (1_000, 0)].map(|(length_us, by_us)| (round(length_us), by_us));
        let epoch_us = even.into_iter().find(|&(us, by_us)| is_in(us, by_us)).map_or(epoch.measured_us, |(us, _)| us);
        Ok(Time {
            low_bits,
            unit,
            epoch_ms: known.first().map_or(epoch_us.div_euclid(1_000), |known| known.epoch_ms),
            spread_us: epoch.spread_us,
            other_units: Vec::new(),
            is_unit_certain: false,
            known,
        })
    }

    /// The layout with a division of the low bits.
    pub(super) fn layout(&self, shard_place: ShardPlace, shard_bits: u8) -> Layout {
        let known = self.known.iter().find(|known| (known.shard_place, known.shard_bits) == (shard_place, shard_bits));
        known.copied().unwrap_or(Layout {
            time_bits: (64 - self.low_bits).min(MAX_TIME_BITS),
            shard_bits,
            seq_bits: self.low_bits - shard_bits,
            shard_place,
            unit: self.unit,
            epoch_ms: self.epoch_ms,
        })
    }
}

/// When the first tick began, by the rows.
pub struct Epoch {
    /// The interval in which it is.
    pub from_us: i64,
    pub to_us: i64,
    pub measured_us: i64,
    pub spread_us: i64,
    pub is_exact: bool,
}

impl Epoch {
    pub fn of(samples: &[Sample], low_bits: u8, tick_us: i64) -> Result<Self, NotFound> {
        let mut epochs = Vec::new();
        epochs.try_reserve(samples.len())?;
        epochs.extend(samples.iter().map(|sample| epoch_of(sample, low_bits, tick_us)));
        epochs.sort_unstable();
        // The shortest interval with half of the rows: late rows and wrong clocks are outside. The others are within a tick of both ends.
        let half = epochs.len() / 2;
        let reach = |window: &&[i64]| window[half].saturating_sub(window[0]);
        let narrowest = epochs.windows(half + 1).min_by_key(reach).expect("more than half of the rows");
        let least_us = narrowest[half].saturating_sub(tick_us).min(narrowest[0]);
        let most_us = narrowest[0].saturating_add(tick_us).max(narrowest[half]);
        let first = epochs.partition_point(|&epoch| epoch < least_us);
        let last = epochs.partition_point(|&epoch| epoch <= most_us) - 1;
        let (low, high) = (epochs[first], epochs[last]);
        let has_most = (last - first + 1) * 4 >= epochs.len() * 3;
        let is_exact = has_most && high.saturating_sub(low) <= tick_us;
        let end = high.saturating_sub(tick_us);
        // The rows are as many ticks after the epoch as their IDs say, and up to a tick more.
        let beyond = if has_most { 0 } else { high.saturating_sub(low) };
        Ok(Epoch {
            from_us: low.min(end).saturating_sub(beyond),
            to_us: low.max(end).saturating_add(beyond),
            measured_us: if is_exact { low } else { low.saturating_add(end.saturating_sub(low) / 2) },
            spread_us: reach(&narrowest),
            is_exact,
        })
    }
}

/// At most [`TIME_SAMPLES`] of the samples. Most are spread over the time, as one busy minute might have most of the rows; the others over
/// the rows, as one ID from elsewhere might be far from all others. They are picked by multiples of the golden ratio: every tenth row, say,
/// might be a late one.
fn few_of(samples: &[Sample]) -> Vec<Sample> {
    if samples.len() <= TIME_SAMPLES {
        return samples.to_vec();
    }
    let pick = |from: &[Sample], n: usize| {
        let part = (n as u32).wrapping_mul(0x9E37_79B9);
        from[((u64::from(part) * from.len() as u64) >> 32) as usize]
    };
    let slices = slices(samples, samples, OF_SLICES);
    let mut few: Vec<Sample> = slices.enumerate().map(|(n, slice)| pick(slice, n)).collect();
    few.extend((few.len()..TIME_SAMPLES).map(|n| pick(samples, n)));
    few.sort_unstable_by_key(|sample| sample.id);
    few
}

/// The samples by so many equal parts of the range of `span`, which are samples, too.
pub fn slices<'a>(samples: &'a [Sample], span: &[Sample], count: i64) -> impl Iterator<Item = &'a [Sample]> {
    let first = span[0].id;
    let length = (span[span.len() - 1].id - first) / count + 1;
    let slice_of = move |sample: &Sample| (sample.id - first).div_euclid(length);
    samples.chunk_by(move |one, next| slice_of(one) == slice_of(next))
}

/// The epoch by a row.
pub fn epoch_of(sample: &Sample, low_bits: u8, tick_us: i64) -> i64 {
    sample.unix_us.saturating_sub((sample.id >> low_bits).saturating_mul(tick_us))
}

/// How far the middle half of the values reaches; of fewer than eight, all.
fn middle(mut values: Vec<i64>) -> i64 {
    let last = values.len() - 1;
    let quarter = if values.len() < 8 { 0 } else { values.len() / 4 };
    let high = *values.select_nth_unstable(last - quarter).1;
    high.saturating_sub(*values.select_nth_unstable(quarter).1)
}
