//! The division of the low bits into shard and counter.

use super::{NotFound, Sample, time::Time};
use crate::layout::{Fields, Layout, MAX_OTHER_BITS, ShardPlace};
use crate::presets::PRESETS;
use std::collections::{HashSet, TryReserveError};

/// The most layouts that are named.
const LIKELY: usize = 3;

/// A division is plausible if there are at least so many rows for each shard; that of a preset, whose epoch says more than the rows, if
/// there are so many.
const ROWS_OF_A_SHARD: usize = 16;
const ROWS_OF_A_SHARD_OF_A_PRESET: usize = 2;

/// Fewer values of a counter may all be used by chance, as statements insert so many rows, or as so many servers take turns.
const LEAST_SEQ_BITS: u8 = 7;

/// The least steps that show that a counter rises by one.
const LEAST_STEPS: u64 = 32;

/// The width of a `CACHE` that hardly anybody has.
const LARGE_CACHE_BITS: u8 = 8;

/// The divisions that the rows allow, the most likely first, and whether they prove it.
pub fn divide(samples: &[Sample], time: &Time) -> Result<(Vec<Division>, bool), NotFound> {
    let mut divisions: Vec<Division> = Vec::new();
    for place in ShardPlace::ALL {
        // Without a shard, all places are the same.
        let least = if place.is_lowest() { 1 } else { 0 };
        for shard_bits in least..=time.low_bits {
            let seq_bits = time.low_bits - shard_bits;
            if shard_bits <= MAX_OTHER_BITS && seq_bits <= MAX_OTHER_BITS {
                let layout = time.layout(place, shard_bits, seq_bits);
                let is_preset = time.preset.is_some_and(|preset| (preset.shard_place, preset.shard_bits) == (place, shard_bits));
                let rows = if is_preset { ROWS_OF_A_SHARD_OF_A_PRESET } else { ROWS_OF_A_SHARD };
                divisions.extend(Division::of(samples, layout, (samples.len() / rows).max(1), is_preset)?);
            }
        }
    }
    // Only at the right width does the XOR turn many numbers into few shards.
    let is_xored = |division: &Division| {
        let Layout { shard_bits, shard_place, .. } = division.layout;
        let is_lowest = |other: &&Division| (other.layout.shard_place, other.layout.shard_bits) == (ShardPlace::Lowest, shard_bits);
        let numbers = divisions.iter().find(is_lowest).map_or(samples.len() / ROWS_OF_A_SHARD, |lowest| lowest.shards.len());
        shard_place.is_xored() && numbers >= 4 * division.shards.len()
    };
    // The lower part of a counter that has wrapped has wrapped, too. If its steps are not all of one, several shards may seem to be a counter,
    // or a counter several shards.
    let rank = |division: &Division| (division.seen.is_strict() || is_xored(division), division.layout.seq_bits);
    let shown = || divisions.iter().filter(|division| division.is_shown || is_xored(division));
    let proved = shown().max_by_key(|division| rank(division)).filter(|widest| {
        let is_strict = rank(widest).0;
        let has_fewer = |other: &Division| other.seen.goes_on() && other.shards.len() < widest.shards.len();
        let is_only = shown().filter(|other| !is_strict || rank(other) == rank(widest)).count() == 1;
        is_only && (is_strict || !widest.layout.shard_place.is_lowest() && !divisions.iter().any(has_fewer))
    });
    let proved = proved.map(|division| division.layout);
    let mut allowed = Vec::new();
    for layout in proved.map_or_else(|| likely_layouts(samples, time), |layout| vec![layout]) {
        let index = divisions.iter().position(|division| division.layout == layout);
        allowed.extend(index.map(|index| divisions.swap_remove(index)));
    }
    allowed.truncate(LIKELY);
    if allowed.is_empty() { Err(NotFound::OtherLayout) } else { Ok((allowed, proved.is_some())) }
}

/// The likely layouts if none is proved, the most likely first.
fn likely_layouts(samples: &[Sample], time: &Time) -> Vec<Layout> {
    let low = |sample: &Sample| sample.id & ((1 << time.low_bits) - 1);
    let set = samples.iter().fold(0, |bits, sample| bits | low(sample));
    let changing = samples.iter().fold(0, |bits, sample| bits | (low(sample) ^ low(&samples[0])));
    let above_seq = |seq_bits: u32| time.layout(ShardPlace::AboveSeq, time.low_bits - seq_bits as u8, seq_bits as u8);
    // The default's division is rare among the IDs of others.
    let usual = PRESETS.iter().map(|&(_, preset)| preset).filter(|preset| preset.shard_bits > 0 && !preset.shard_place.is_xored());
    let usual = usual.filter(|preset| (preset.low_bits(), preset.unit) == (time.low_bits, time.unit));
    let usual = usual.map(|preset| time.layout(preset.shard_place, preset.shard_bits, preset.seq_bits));
    let mut likely: Vec<Layout> = time.preset.into_iter().chain(usual).collect();
    let constant = changing.trailing_zeros().min(time.low_bits.into());
    // The counter has the lowest bits that change, and perhaps those above that are 0.
    let narrowest = constant + (changing >> constant).trailing_ones();
    let widest = (narrowest + (set >> narrowest).trailing_zeros()).min(time.low_bits.into());
    likely.push(above_seq(widest));
    if constant > 0 && changing != 0 {
        likely.push(time.layout(ShardPlace::Lowest, constant as u8, time.low_bits - constant as u8));
    }
    likely.extend([above_seq(narrowest), above_seq(time.low_bits.into())]);
    likely
}

/// A division of the low bits, with what the rows show of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The layout with this division.
    pub layout: Layout,
    /// The shards, in ascending order.
    pub shards: Vec<u32>,
    /// Whether the shard changes, and nearly always where the counter begins again, so that its bits seem to count, too.
    pub counts_on: bool,
    /// What the counters have done, and whether the rows show where they end.
    pub(super) seen: Seen,
    is_shown: bool,
}

impl Division {
    /// `None` if it has too many shards.
    fn of(samples: &[Sample], layout: Layout, most_shards: usize, is_preset: bool) -> Result<Option<Self>, TryReserveError> {
        let (mut shards, mut rows) = (HashSet::new(), Vec::new());
        let (mut changes, mut beginnings) = (0, 0);
        rows.try_reserve(samples.len())?;
        for sample in samples {
            let Fields { tick, shard, seq } = layout.split(sample.id);
            let last: Option<&Row> = rows.last();
            if last.is_none_or(|last| last.shard != shard) {
                shards.try_reserve(1)?;
                shards.insert(shard);
                changes += u64::from(last.is_some());
                beginnings += u64::from(last.is_some_and(|last| seq < last.seq));
                if shards.len() > most_shards {
                    return Ok(None);
                }
            }
            rows.push(Row { shard, tick, seq });
        }
        rows.sort_unstable_by_key(|row| (row.shard, row.tick, row.seq));
        let mut seen = Seen::default();
        let mut of_shards = Vec::new();
        of_shards.try_reserve(shards.len())?;
        for rows in rows.chunk_by(|one, next| one.shard == next.shard) {
            of_shards.push(rows[0].shard);
            seen.shard(rows, layout.seqs());
        }
        let counts_on = changes > 0 && beginnings * 10 >= changes * 9;
        let is_lowest = layout.shard_place.is_lowest();
        // Most shards have both values of the bit beside the counter, as of a counter of which each session takes some values (`CACHE`).
        let beside = if is_lowest { layout.shards() as u32 / 2 } else { 1 };
        let pairs = of_shards.iter().filter(|&shard| of_shards.binary_search(&(shard ^ beside)).is_ok()).count();
        let may_be_cached = pairs * 4 >= of_shards.len() * 3 && (pairs > 2 || layout.seq_bits < LARGE_CACHE_BITS);
        // Above a shard, the counter of a preset ends where the time begins. Of another layout, it may be the number of a server, or rise by 2.
        let is_below_time = is_preset && layout.shard_place == ShardPlace::Lowest && of_shards.len() == 1 && seen.counts();
        // The counter's lower bits may seem to be a shard below it: they do not change if it rises by 2.
        let can_wrap = (is_preset || layout.seq_bits >= LEAST_SEQ_BITS && !is_lowest) && !counts_on && !may_be_cached;
        let is_shown = is_below_time || can_wrap && seen.has_wrapped();
        Ok(Some(Self { layout, shards: of_shards, counts_on, seen, is_shown }))
    }
}

/// Some rows may be missing, as those that came late.
fn most(count: u64, of: u64) -> bool {
    count * 4 >= of * 3
}

fn nearly_all(count: u64, of: u64) -> bool {
    count * 20 >= of * 19
}

/// An ID.
struct Row {
    shard: u32,
    tick: i64,
    seq: u32,
}

/// What the counters of all shards have done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// How often the next ID was in another tick, and how often each of the tick's lowest bits changed then; how often the counter was near
    /// the last one, and the next one, and how often it was not that of the tick before.
    pub landings: u64,
    pub tick_changes: [u64; 6],
    near_landings: u64,
    next_landings: u64,
    elsewhere: u64,
    /// The same for the next ID in a tick.
    steps: u64,
    near_steps: u64,
    /// How often the counter rose by one in either case, by an odd number, and from its highest quarter to its lowest; and how often it did
    /// the latter after no longer a time than usual, and by one, or from the highest value past missing rows.
    ones: u64,
    odd: u64,
    crossings: u64,
    in_turn: u64,
    short: u64,
    /// The parts of the counter's range in which there are IDs: the quarters, the lowest value and the highest.
    places: u8,
    /// The IDs of a shard in a tick: how many sets there are, and how many begin in the upper half of the counter's range.
    ticks: u64,
    high: u64,
    /// Of several IDs, how many are not consecutive, and how many go on from the highest value to 0.
    several: u64,
    broken: u64,
    closed: u64,
}

impl Seen {
    /// Adds the IDs of a shard.
    fn shard(&mut self, rows: &[Row], seqs: i64) {
        let step = |from: &Row, to: &Row| (i64::from(to.seq) - i64::from(from.seq)).rem_euclid(seqs);
        let mut before: Option<(&[Row], u32, &Row)> = None;
        let (mut waited, mut landings) = (0_i128, 0_i128);
        for tick in rows.chunk_by(|one, next| one.tick == next.tick) {
            let (lowest, highest) = (&tick[0], &tick[tick.len() - 1]);
            // The IDs begin after the widest gap.
            let (mut begin, mut widest, mut gaps) = (0, step(highest, lowest), 0);
            for (index, pair) in tick.windows(2).enumerate() {
                let gap = step(&pair[0], &pair[1]);
                gaps += u64::from(gap != 1);
                if gap > widest {
                    (begin, widest) = (index + 1, gap);
                }
            }
            let ends_high = i64::from(highest.seq) == seqs - 1;
            let is_closed = gaps == 1 && ends_high && lowest.seq == 0 && tick.len() > 3;
            self.ticks += 1;
            self.high += u64::from(i64::from(tick[begin].seq) * 2 >= seqs);
            self.several += u64::from(tick.len() > 1);
            self.broken += u64::from(gaps > u64::from(is_closed));
            self.closed += u64::from(is_closed);
            self.places |= u8::from(lowest.seq == 0) << 4 | u8::from(ends_high) << 5;
            let mut is_soon = true;
            if let Some((ids, first, last)) = before {
                let wait = i128::from(tick[0].tick - ids[0].tick);
                is_soon = wait * landings <= 4 * waited + 2 * landings;
                (waited, landings) = (waited + wait, landings + 1);
                self.landings += 1;
                self.near_landings += self.add(step(last, &tick[begin]), &tick[begin], is_soon, seqs);
                self.next_landings += u64::from(step(last, &tick[begin]) == 1);
                self.elsewhere += u64::from(tick[begin].seq != first);
                let changed = ids[0].tick ^ tick[0].tick;
                (0..).zip(&mut self.tick_changes).for_each(|(bit, changes): (u32, _)| *changes += changed as u64 >> bit & 1);
            }
            let mut last = &tick[begin];
            self.places |= 1 << (i64::from(last.seq) * 4 / seqs);
            for row in tick[begin + 1..].iter().chain(&tick[..begin]) {
                self.steps += 1;
                self.near_steps += self.add(step(last, row), row, is_soon, seqs);
                self.places |= 1 << (i64::from(row.seq) * 4 / seqs);
                last = row;
            }
            before = Some((tick, tick[begin].seq, last));
        }
    }

    /// Adds a step. Returns 1 if it is a small one in either direction.
    fn add(&mut self, step: i64, to: &Row, is_soon: bool, seqs: i64) -> u64 {
        let crosses = i64::from(to.seq) < step && step * 5 <= seqs;
        self.ones += u64::from(step == 1);
        self.odd += u64::from(step & 1 == 1);
        self.crossings += u64::from(crosses);
        self.in_turn += u64::from(crosses && is_soon);
        self.short += u64::from(crosses && is_soon && (step == 1 || i64::from(to.seq) + 1 == step && step <= 3));
        u64::from(step * 5 <= seqs || (seqs - step) * 5 <= seqs)
    }

    /// Whether it rises by one, from tick to tick or from the same number in each tick.
    fn counts(&self) -> bool {
        let goes_on = most(self.next_landings, self.landings) && self.next_landings >= LEAST_STEPS;
        let restarts =
            self.elsewhere * 10 <= self.landings && self.several - self.broken >= LEAST_STEPS && self.broken * 10 <= self.several;
        self.odd > 0 && (goes_on || restarts)
    }

    /// Whether most IDs of a shard have the next number of its counter, and whether they do from tick to tick.
    fn is_strict(&self) -> bool {
        most(self.ones, self.landings + self.steps)
    }

    pub fn is_steady(&self) -> bool {
        self.landings * 2 >= self.ticks && most(self.next_landings, self.landings)
    }

    /// Whether it goes on from tick to tick.
    fn goes_on(&self) -> bool {
        nearly_all(self.near_landings, self.landings)
            && nearly_all(self.near_steps, self.steps)
            && self.landings * 2 >= self.ticks
            && most(self.elsewhere, self.landings)
    }

    /// Whether it has gone from its highest value to its lowest, and no bit above has changed.
    fn has_wrapped(&self) -> bool {
        // It goes by one or through its whole range, and from its highest value to its lowest.
        let is_whole = self.places == 0b11_1111 || most(self.next_landings, self.landings) && self.short > 0;
        // It begins anywhere, and goes on within a tick.
        let is_closed = nearly_all(self.several - self.broken, self.several) && self.closed > 0 && self.high * 8 >= self.ticks;
        self.odd > 0 && (self.goes_on() && is_whole && self.in_turn * 2 > self.crossings || is_closed)
    }
}
