//! The division of the low bits into shard and counter.

use super::{NotFound, Sample, time::Time};
use crate::layout::{Fields, Layout, ShardPlace};
use std::collections::{HashMap, TryReserveError};

/// The most layouts that are named.
const LIKELY: usize = 3;

/// A division is proved only if there are at least so many rows for each shard.
const ROWS_OF_A_SHARD: usize = 16;

/// A division is likely only if there are at least so many. Where nearly each row has a shard of its own, the shard is not one.
const ROWS_OF_A_LIKELY_SHARD: usize = 4;

/// Fewer values of a counter may all be used by chance, as statements insert so many rows, or as so many servers take turns: if the shard is
/// in the lowest bits and each generates one ID in a tick, their numbers are as a counter that goes on from tick to tick.
const LEAST_SEQ_BITS: u8 = 9;

/// The width of a `CACHE` that hardly anybody has.
const LARGE_CACHE_BITS: u8 = 8;

/// The least steps that show that a counter rises by one.
const LEAST_STEPS: u64 = 32;

/// The bits of shard and counter of other generators, the most usual first.
const USUAL: [(u8, u8); 13] =
    [(10, 12), (8, 14), (12, 10), (4, 18), (13, 10), (13, 9), (16, 8), (8, 16), (6, 6), (7, 5), (8, 4), (8, 8), (5, 16)];

/// The divisions that the rows allow, the most likely first, and whether they prove it.
pub fn divide(samples: &[Sample], time: &Time) -> Result<(Vec<Division>, bool), NotFound> {
    let likely = likely_layouts(samples, time);
    let low_bits = time.layout.low_bits();
    let all = ShardPlace::ALL.into_iter().flat_map(|place| (0..=low_bits).map(move |shard_bits| time.layout(place, shard_bits)));
    let mut divisions: Vec<Division> = Vec::new();
    for layout in likely.iter().copied().chain(all) {
        let has_no_shard_below = layout.shard_place.is_lowest() && layout.shard_bits == 0;
        if layout.is_valid() && !has_no_shard_below && divisions.iter().all(|other| other.layout != layout) {
            divisions.extend(Division::of(samples, layout, time.known.contains(&layout))?);
        }
    }
    let most_shards = (samples.len() / ROWS_OF_A_SHARD).max(1);
    // Only at the right width does the XOR turn many numbers into few shards.
    let is_xored = |division: &Division| {
        let Layout { shard_bits, shard_place, .. } = division.layout;
        let is_lowest = |other: &&Division| (other.layout.shard_place, other.layout.shard_bits) == (ShardPlace::Lowest, shard_bits);
        let numbers = divisions.iter().find(is_lowest).map_or(most_shards, |lowest| lowest.shards.len());
        shard_place.is_xored() && numbers >= 4 * division.shards.len()
    };
    let is_shown = |division: &&Division| division.shards.len() <= most_shards && (division.is_shown() || is_xored(division));
    // The lower part of a counter that has wrapped has wrapped, too.
    let widest = divisions.iter().filter(is_shown).max_by_key(|division| division.layout.seq_bits);
    if let Some(proved) = widest.filter(|widest| is_xored(widest) || widest.is_plausible()) {
        return Ok((vec![proved.clone()], true));
    }
    let implausible = widest.map(|widest| widest.layout);
    divisions.retain(|division| likely.contains(&division.layout) || Some(division.layout) == implausible);
    divisions.sort_by_key(|division| (!division.is_known, division.layout.shard_bits == 0, division.shards.len()));
    // That without a shard stays the last.
    let without_shard = divisions.pop_if(|last| last.layout.shard_bits == 0 && !last.is_known);
    divisions.truncate(LIKELY - usize::from(without_shard.is_some()));
    divisions.extend(without_shard);
    if divisions.is_empty() { Err(NotFound::OtherLayout) } else { Ok((divisions, false)) }
}

/// The likely layouts if none is proved, the most likely first.
fn likely_layouts(samples: &[Sample], time: &Time) -> Vec<Layout> {
    let (mask, low_bits) = (time.layout.seqs() - 1, time.layout.low_bits());
    let set = mask & samples.iter().fold(0, |bits, sample| bits | sample.id);
    let changing = mask & samples.iter().fold(0, |bits, sample| bits | (sample.id ^ samples[0].id));
    let constant = changing.trailing_zeros() as u8 % 64;
    // The counter has the lowest bits that change, and perhaps those above that are 0.
    let narrowest = constant + (changing >> constant).trailing_ones() as u8;
    let widest = low_bits.min(narrowest + (set >> narrowest).trailing_zeros() as u8);
    let usual = USUAL.into_iter().filter(|(shard_bits, seq_bits)| shard_bits + seq_bits == low_bits);
    let usual = usual.flat_map(|(shard_bits, _)| [(ShardPlace::AboveSeq, shard_bits), (ShardPlace::Lowest, shard_bits)]);
    let by_bits = [(ShardPlace::AboveSeq, low_bits - widest), (ShardPlace::Lowest, constant), (ShardPlace::AboveSeq, 0)];
    time.known.iter().copied().chain(usual.chain(by_bits).map(|(place, shard_bits)| time.layout(place, shard_bits))).collect()
}

/// A division of the low bits, with what the counters of all shards have done from tick to tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The layout with this division.
    pub layout: Layout,
    is_known: bool,
    /// The shards, in ascending order.
    pub shards: Vec<u32>,
    /// How often the next ID was in another tick, each of the lowest bits of the tick changed, and the counter was near the last one, and
    /// more by one.
    pub(super) landings: u64,
    pub(super) tick_changes: [u64; 6],
    near: u64,
    next: u64,
    /// How often the counter of the next ID was more by one, and how often it went from its highest value to 0, or past missing rows.
    ones: u64,
    wraps: u64,
}

impl Division {
    /// `None` if it has too many shards.
    fn of(samples: &[Sample], layout: Layout, is_known: bool) -> Result<Option<Self>, TryReserveError> {
        let most_shards = (samples.len() / if is_known { 1 } else { ROWS_OF_A_LIKELY_SHARD }).max(1);
        let (mut ends, mut rows) = (HashMap::new(), Vec::new());
        let mut division =
            Division { layout, is_known, shards: Vec::new(), landings: 0, tick_changes: [0; 6], near: 0, next: 0, ones: 0, wraps: 0 };
        for tick in samples.chunk_by(|one, next| one.id >> layout.low_bits() == next.id >> layout.low_bits()) {
            rows.clear();
            rows.try_reserve(tick.len())?;
            rows.extend(tick.iter().map(|sample| layout.split(sample.id)));
            rows.sort_unstable_by_key(|row| (row.shard, row.seq));
            for ids in rows.chunk_by(|one, next| one.shard == next.shard) {
                ends.try_reserve(1)?;
                division.add(ends.entry(ids[0].shard).or_default(), ids);
                if ends.len() > most_shards {
                    return Ok(None);
                }
            }
        }
        division.shards.try_reserve(ends.len())?;
        division.shards.extend(ends.into_keys());
        division.shards.sort_unstable();
        Ok(Some(division))
    }

    /// Adds the IDs of a shard in a tick, after the end of its tick before.
    fn add(&mut self, end: &mut Option<Fields>, ids: &[Fields]) {
        let seqs = self.layout.seqs();
        let step = |from: &Fields, to: &Fields| (i64::from(to.seq) - i64::from(from.seq)).rem_euclid(seqs);
        let next = |index: usize| (index + 1) % ids.len();
        // The IDs begin after the widest gap.
        let begin = next((0..ids.len()).max_by_key(|&index| step(&ids[index], &ids[next(index)])).unwrap_or(0));
        for id in ids[begin..].iter().chain(&ids[..begin]) {
            let Some(last) = end.replace(*id) else { continue };
            let step = step(&last, id);
            self.ones += u64::from(step == 1);
            self.wraps += u64::from(i64::from(last.seq) == seqs - 1 && id.seq < 3);
            if last.tick != id.tick {
                self.landings += 1;
                self.near += u64::from(step > 0 && step * 5 <= seqs);
                self.next += u64::from(step == 1);
                (0..).zip(&mut self.tick_changes).for_each(|(bit, changes)| *changes += ((last.tick ^ id.tick) >> bit & 1) as u64);
            }
        }
    }

    /// Whether the rows show where the counter ends.
    fn is_shown(&self) -> bool {
        let is_alone = self.is_known && self.shards.len() == 1;
        // Above a shard, the counter of a known layout ends where the time begins. Of another layout, it may be the number of a server.
        let ends_at_time = is_alone && self.layout.shard_place == ShardPlace::Lowest && self.ones >= LEAST_STEPS;
        // The counter goes on from tick to tick by one, or other tables use some of the numbers of one shard.
        let is_steady = self.next * 4 >= self.landings * 3 && (self.is_known || !self.layout.shard_place.is_lowest());
        let has_wrapped = self.landings >= 8 && self.near * 20 >= self.landings * 19 && self.wraps > 0;
        ends_at_time || has_wrapped && (is_steady || is_alone)
    }

    /// Whether what seems to be the counter is neither the number of a server nor a part of the counter.
    fn is_plausible(&self) -> bool {
        // All shards have both values of the bit beside the counter, as of a counter of which each session takes some values (`CACHE`).
        let is_pair = |shard: &u32| self.shards.binary_search(&(shard ^ 1)).is_ok();
        let is_cached = self.layout.seq_bits < LARGE_CACHE_BITS && self.shards.iter().all(is_pair);
        !is_cached && (self.is_known || self.layout.seq_bits >= LEAST_SEQ_BITS)
    }
}
