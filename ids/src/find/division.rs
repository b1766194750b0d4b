//! The division of the low bits into shard and counter.

use super::{NotFound, Sample, most, time::Time};
use crate::layout::{Fields, Layout, MAX_OTHER_BITS, ShardPlace};
use std::collections::{HashMap, TryReserveError};

/// The most layouts that are named.
const LIKELY: usize = 3;

/// A division is proved only if there are at least so many rows for each shard.
const ROWS_OF_A_SHARD: usize = 16;

/// A division is likely only if there are at least so many.
const ROWS_OF_A_LIKELY_SHARD: usize = 4;

/// Fewer values of a counter may all be used by chance, as statements insert so many rows, or as so many servers take turns.
const LEAST_SEQ_BITS: u8 = 7;

/// The least steps that show that a counter rises by one.
const LEAST_STEPS: u64 = 32;

/// The width of a `CACHE` that hardly anybody has.
const LARGE_CACHE_BITS: u8 = 8;

/// The bits of shard and counter of other generators, the most usual first.
const USUAL: [(u8, u8); 13] =
    [(10, 12), (8, 14), (12, 10), (4, 18), (13, 10), (13, 9), (16, 8), (8, 16), (6, 6), (7, 5), (8, 4), (8, 8), (5, 16)];

/// The divisions that the rows allow, the most likely first, and whether they prove it.
pub fn divide(samples: &[Sample], time: &Time) -> Result<(Vec<Division>, bool), NotFound> {
    let mut divisions = Vec::new();
    for place in ShardPlace::ALL {
        // Without a shard, all places are the same.
        for shard_bits in u8::from(place.is_lowest())..=time.low_bits {
            if shard_bits.max(time.low_bits - shard_bits) <= MAX_OTHER_BITS {
                let layout = time.layout(place, shard_bits);
                divisions.extend(Division::of(samples, layout, samples.len() / ROWS_OF_A_SHARD)?);
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
    let shown = || divisions.iter().filter(|division| division.is_shown(time) || is_xored(division));
    let proved = shown().max_by_key(|division| rank(division)).filter(|widest| {
        let is_strict = rank(widest).0;
        let is_likelier = |other: &Division| other.seen.goes_on() && (other.seen.is_strict() || other.shards.len() < widest.shards.len());
        let is_only = shown().filter(|other| !is_strict || rank(other) == rank(widest)).count() == 1;
        is_only && (is_strict || !widest.layout.shard_place.is_lowest() && !divisions.iter().any(is_likelier))
    });
    if let Some(proved) = proved {
        return Ok((vec![proved.clone()], true));
    }
    let mut likely: Vec<Division> = Vec::new();
    for layout in likely_layouts(samples, time) {
        if likely.iter().all(|other| other.layout != layout) {
            // Where nearly each row has a shard of its own, the shard is not one.
            let rows = if time.known.contains(&layout) { 1 } else { ROWS_OF_A_LIKELY_SHARD };
            likely.extend(Division::of(samples, layout, samples.len() / rows)?);
        }
    }
    // The last one is that without a shard, which always has one.
    let none = likely.pop_if(|division| division.layout.shard_bits == 0);
    likely.sort_by_key(|division| (!time.known.contains(&division.layout), division.shards.len()));
    likely.truncate(LIKELY - 1);
    likely.extend(none);
    if likely.is_empty() { Err(NotFound::OtherLayout) } else { Ok((likely, false)) }
}

/// The likely layouts if none is proved, the most likely first.
fn likely_layouts(samples: &[Sample], time: &Time) -> Vec<Layout> {
    let low = |sample: &Sample| sample.id & ((1 << time.low_bits) - 1);
    let set = samples.iter().fold(0, |bits, sample| bits | low(sample));
    let changing = samples.iter().fold(0, |bits, sample| bits | (low(sample) ^ low(&samples[0])));
    let above_seq = |seq_bits: u32| time.layout(ShardPlace::AboveSeq, time.low_bits - seq_bits as u8);
    let constant = changing.trailing_zeros().min(time.low_bits.into());
    // The counter has the lowest bits that change, and perhaps those above that are 0.
    let narrowest = constant + (changing >> constant).trailing_ones();
    let widest = (narrowest + (set >> narrowest).trailing_zeros()).min(time.low_bits.into());
    let usual = USUAL.iter().filter(|(shard_bits, seq_bits)| shard_bits + seq_bits == time.low_bits);
    let mut likely = time.known.clone();
    let places = [ShardPlace::AboveSeq, ShardPlace::Lowest];
    likely.extend(usual.flat_map(|&(shard_bits, _)| places.map(|place| time.layout(place, shard_bits))));
    likely.push(above_seq(widest));
    if constant > 0 && changing != 0 {
        likely.push(time.layout(ShardPlace::Lowest, constant as u8));
    }
    likely.push(above_seq(time.low_bits.into()));
    likely.retain(|layout| layout.is_valid());
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
    /// What the counters have done.
    pub(super) seen: Seen,
}

impl Division {
    /// `None` if it has too many shards.
    fn of(samples: &[Sample], layout: Layout, most_shards: usize) -> Result<Option<Self>, TryReserveError> {
        let (mut counters, mut rows, mut seen) = (HashMap::new(), Vec::new(), Seen::default());
        let (mut changes, mut beginnings) = (0, 0);
        let mut last: Option<Fields> = None;
        for tick in samples.chunk_by(|one, next| one.id >> layout.low_bits() == next.id >> layout.low_bits()) {
            rows.clear();
            rows.try_reserve(tick.len())?;
            rows.extend(tick.iter().map(|sample| layout.split(sample.id)));
            for row in &rows {
                let other = last.replace(*row).filter(|last| last.shard != row.shard);
                changes += u64::from(other.is_some());
                beginnings += u64::from(other.is_some_and(|last| row.seq < last.seq));
            }
            rows.sort_unstable_by_key(|row| (row.shard, row.seq));
            for ids in rows.chunk_by(|one, next| one.shard == next.shard) {
                counters.try_reserve(1)?;
                seen.add(counters.entry(ids[0].shard).or_default(), ids, layout.seqs());
                if counters.len() > most_shards.max(1) {
                    return Ok(None);
                }
            }
        }
        let mut shards = Vec::new();
        shards.try_reserve(counters.len())?;
        shards.extend(counters.into_keys());
        shards.sort_unstable();
        Ok(Some(Self { layout, shards, counts_on: changes > 0 && beginnings * 10 >= changes * 9, seen }))
    }

    /// Whether the rows show where the counter ends.
    fn is_shown(&self, time: &Time) -> bool {
        let Layout { seq_bits, shard_place, .. } = self.layout;
        let is_known = time.known.contains(&self.layout);
        // Above a shard, the counter of a known layout ends where the time begins. Of another layout, it may be the number of a server.
        if is_known && shard_place == ShardPlace::Lowest && self.shards.len() == 1 && self.seen.counts() {
            return true;
        }
        // Most shards have both values of the bit beside the counter, as of a counter of which each session takes some values (`CACHE`).
        let beside = if shard_place.is_lowest() { self.layout.shards() as u32 / 2 } else { 1 };
        let pairs = self.shards.iter().filter(|&shard| self.shards.binary_search(&(shard ^ beside)).is_ok()).count();
        let may_be_cached = pairs * 4 >= self.shards.len() * 3 && (pairs > 2 || seq_bits < LARGE_CACHE_BITS);
        // The counter's lower bits may seem to be a shard below it: they do not change if it rises by 2.
        (is_known || seq_bits >= LEAST_SEQ_BITS && !shard_place.is_lowest()) && !self.counts_on && !may_be_cached && self.seen.has_wrapped()
    }
}

/// What the counters of all shards have done from ID to ID.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// How often there was a next ID, and its counter was more by one.
    steps: u64,
    ones: u64,
    /// How often the next ID was in another tick, and how often each of the tick's lowest bits changed then; how often the counter was near
    /// the last one, was more by one, and was not the first one of the tick before.
    pub landings: u64,
    pub tick_changes: [u64; 6],
    near: u64,
    next: u64,
    elsewhere: u64,
    /// How often the counter went past its highest value by a small step; and how often by one, or from this value past missing rows.
    crossings: u64,
    wraps: u64,
    /// The parts of the counter's range in which there are IDs: the quarters, the lowest value and the highest.
    places: u8,
}

impl Seen {
    /// Adds the IDs of a tick.
    fn add(&mut self, ends: &mut Option<(Fields, Fields)>, ids: &[Fields], seqs: i64) {
        let step = |from: &Fields, to: &Fields| (i64::from(to.seq) - i64::from(from.seq)).rem_euclid(seqs);
        let next = |index: usize| (index + 1) % ids.len();
        // The IDs begin after the widest gap.
        let begin = next((0..ids.len()).max_by_key(|&index| step(&ids[index], &ids[next(index)])).unwrap_or(0));
        let (first, last) = (ids[begin], ids[(begin + ids.len() - 1) % ids.len()]);
        let mut before = None;
        if let Some((first_before, last_before)) = ends.replace((first, last)) {
            self.landings += 1;
            let landing = step(&last_before, &first);
            self.near += u64::from(landing * 5 <= seqs || (seqs - landing) * 5 <= seqs);
            self.next += u64::from(landing == 1);
            self.elsewhere += u64::from(first.seq != first_before.seq);
            let changed = (first_before.tick ^ first.tick) as u64;
            (0..).zip(&mut self.tick_changes).for_each(|(bit, changes): (u32, _)| *changes += changed >> bit & 1);
            before = Some(last_before);
        }
        for to in ids[begin..].iter().chain(&ids[..begin]) {
            self.places |= 1 << (i64::from(to.seq) * 4 / seqs) | u8::from(to.seq == 0) << 4 | u8::from(i64::from(to.seq) == seqs - 1) << 5;
            let Some(from) = before.replace(*to) else { continue };
            let step = step(&from, to);
            self.steps += 1;
            self.ones += u64::from(step == 1);
            self.crossings += u64::from(i64::from(to.seq) < step && step * 5 <= seqs);
            self.wraps += u64::from(to.seq == 0 && step == 1 || i64::from(to.seq) + 1 == step && step <= 3);
        }
    }

    /// Whether it rises by one, from tick to tick or from the same number in each tick.
    fn counts(&self) -> bool {
        let goes_on = most(self.next, self.landings) && self.next >= LEAST_STEPS;
        let (steps, ones) = (self.steps - self.landings, self.ones - self.next);
        let restarts = self.elsewhere * 10 <= self.landings && ones >= LEAST_STEPS && ones * 10 >= steps * 9;
        goes_on || restarts
    }

    /// Whether most IDs of a shard have the next number of its counter, and whether they do from tick to tick.
    fn is_strict(&self) -> bool {
        most(self.ones, self.steps)
    }

    pub fn is_steady(&self) -> bool {
        self.landings > 0 && most(self.next, self.landings)
    }

    /// Whether it goes on from tick to tick.
    fn goes_on(&self) -> bool {
        self.near * 20 >= self.landings * 19 && self.landings >= 8 && most(self.elsewhere, self.landings)
    }

    /// Whether it has gone from its highest value to its lowest, and no bit above has changed.
    fn has_wrapped(&self) -> bool {
        // It goes by one or through its whole range, and from its highest value to its lowest.
        let is_whole = self.places == 0b11_1111 && self.crossings > 1 || most(self.next, self.landings) && self.wraps > 0;
        self.next * 20 >= self.landings && self.ones * 20 >= self.steps && self.goes_on() && is_whole
    }
}
