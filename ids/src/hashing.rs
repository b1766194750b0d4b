//! How many hash values PostgreSQL can have for the IDs of a layout.
//!
//! PostgreSQL hashes a `bigint` in two steps (`hashint8`, access/hash/hashfunc.c). The fold XORs the high 32 bits with the
//! low 32. Then the result is mixed. So IDs with the same fold have the same hash, however well it is mixed.

use crate::layout::{Fields, Layout};

/// The fold of an ID, which is not negative: its high half XOR its low half.
///
/// ```
/// use pg_snowflake_ids::{Fields, hashing, presets::INSTAGRAM};
///
/// // Two IDs of a shard, 512 ms apart, in which the time's change is undone by that of seq.
/// let one = INSTAGRAM.compose(Fields { tick: 0, shard: 5, seq: 1 });
/// let other = INSTAGRAM.compose(Fields { tick: 512, shard: 5, seq: 0 });
/// assert_eq!(hashing::fold(one), hashing::fold(other));
/// ```
#[inline]
pub const fn fold(id: i64) -> u32 {
    id as u32 ^ (id >> 32) as u32
}

impl Layout {
    /// The number of distinct [folds](fold) among all IDs of one shard in the layout's first `duration_us`; 0 if that is
    /// less than a tick. Every shard has the same number. It is at most 2^32, and at most the number of IDs.
    ///
    /// ```
    /// use pg_snowflake_ids::presets::{INSTAGRAM, POSTGRES};
    ///
    /// let ten_minutes_us = 600_000_000;
    /// assert_eq!(POSTGRES.counters_in(ten_minutes_us), 614_400_000);
    /// assert_eq!(POSTGRES.distinct_folds(ten_minutes_us), 614_400_000);
    /// assert_eq!(INSTAGRAM.counters_in(ten_minutes_us), 614_400_000);
    /// assert_eq!(INSTAGRAM.distinct_folds(ten_minutes_us), 1_048_576);
    /// ```
    pub fn distinct_folds(&self, duration_us: i64) -> u64 {
        let ticks = self.ticks_in(duration_us).clamp(0, self.max_tick() + 1);
        let fold_of = |tick, seq| fold(self.compose(Fields { tick, shard: 0, seq }));
        // The ticks 0..ticks are a block of 2^bit ticks for each bit that is set in `ticks`. In a block, the low bits of
        // the time take all values and the others are constant. A fold is an XOR of what each bit of time and seq
        // contributes. So the folds of a block are a constant XORed with each value of a linear span, which is within the
        // span of a larger block. So a block's folds are either all among those of a larger one or none of them.
        let mut span = Span::default();
        (0..self.seq_bits).for_each(|bit| span.add(fold_of(0, 1 << bit)));
        let mut blocks: Vec<(u32, Span)> = Vec::new();
        for bit in 0..=self.time_bits {
            if ticks >> bit & 1 == 1 {
                // The blocks of higher bits come first.
                let first_of_block = ticks & !((2 << bit) - 1);
                blocks.push((fold_of(first_of_block, 0), span));
            }
            span.add(fold_of(1 << bit, 0));
        }
        let is_new = |index: usize, constant: u32| !blocks[index + 1..].iter().any(|(larger, span)| span.contains(constant ^ larger));
        (0..).zip(&blocks).filter(|&(index, &(constant, _))| is_new(index, constant)).map(|(_, (_, span))| span.size()).sum()
    }
}

/// All XORs of some numbers: a linear subspace over the field of two elements.
#[derive(Clone, Copy, Default)]
struct Span {
    /// Numbers whose XORs are the span, each at the index of its highest bit, else 0.
    basis: [u32; 32],
}

impl Span {
    /// Extends the span by a number.
    fn add(&mut self, number: u32) {
        let rest = self.reduce(number);
        if rest != 0 {
            self.basis[rest.ilog2() as usize] = rest;
        }
    }

    fn contains(&self, number: u32) -> bool {
        self.reduce(number) == 0
    }

    /// The number of its elements.
    fn size(&self) -> u64 {
        1 << self.basis.iter().filter(|&&number| number != 0).count()
    }

    /// The number XORed with elements of the basis, so that it is 0 if it is in the span.
    fn reduce(&self, number: u32) -> u32 {
        (0..32).rev().fold(number, |rest, bit| match rest >> bit & 1 {
            1 if self.basis[bit] != 0 => rest ^ self.basis[bit],
            _ => rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::any_layout;
    use crate::layout::Unit;
    use crate::presets::{INSTAGRAM, JS53, POSTGRES, PRESETS, TWITTER};
    use proptest::prelude::*;
    use std::collections::HashSet;

    const TEN_MINUTES_US: i64 = 600_000_000;

    #[test]
    fn the_presets_folds_follow_from_the_places_of_their_bits() {
        let expected = [
            // The high bits of the time fall on the shard, which the bits above determine: no two IDs have the same fold.
            ("postgres", 600_000 << 10),
            // 600,000 ticks: the low 9 bits of the time are above the shard. Its high bits fall on seq and 1 bit more.
            ("instagram", 1 << (9 + 10 + 1)),
            // The low 10 bits of the time are above the shard. Its high bits all fall on seq.
            ("twitter", 1 << (10 + 12)),
            ("discord", 1 << (10 + 12)),
            // More IDs than folds.
            ("mastodon", 1 << 32),
            // 60,000 ticks: the high bits of the time fall on the shard, so no two IDs have the same fold.
            ("sonyflake", 60_000 << 8),
            ("pgedge", 1 << (10 + 12)),
            ("pgdog", 1 << (10 + 12)),
            // All bits of the time are in the low half.
            ("js53", 600_000 << 5),
        ];
        let found = PRESETS.iter().map(|(name, layout)| (*name, layout.distinct_folds(TEN_MINUTES_US)));
        assert!(found.eq(expected), "{:?}", expected.map(|(name, _)| name));
    }

    #[test]
    fn the_folds_of_longer_times_follow_from_the_places_of_the_bits() {
        let all_us = POSTGRES.tick_us() << 22;
        assert_eq!(POSTGRES.distinct_folds(all_us), 1 << 32);
        assert_eq!(POSTGRES.distinct_folds(all_us - 1_000), (1 << 32) - (1 << 10));
        assert_eq!(INSTAGRAM.distinct_folds(i64::MAX), 1 << 32);
        // A day has 168,750 times 512 ticks, which seq rounds up to a multiple of 1024.
        assert_eq!(INSTAGRAM.distinct_folds(86_400_000_000), (165 * 1024) << 9);
        // 84,375 times 1024 ticks, rounded up to a multiple of 4096.
        assert_eq!(TWITTER.distinct_folds(86_400_000_000), (21 * 4096) << 10);
    }

    #[test]
    fn a_layout_that_has_ended_has_no_further_folds() {
        let of_two_ticks = Layout { time_bits: 1, unit: Unit::S1, ..JS53 };
        assert_eq!(of_two_ticks.distinct_folds(-1), 0);
        assert_eq!(of_two_ticks.distinct_folds(999_999), 0);
        assert_eq!(of_two_ticks.distinct_folds(1_000_000), 1 << 5);
        assert_eq!(of_two_ticks.distinct_folds(i64::MAX), 2 << 5);
    }

    proptest! {
        #[test]
        fn distinct_folds_are_as_many_as_are_counted(
            layout in any_layout(), ticks in 0..700_i64, shard: u32,
        ) {
            prop_assume!(layout.seq_bits <= 6);
            let shard = shard & (layout.shards() - 1) as u32;
            let folds: HashSet<u32> = (0..ticks.min(layout.max_tick() + 1))
                .flat_map(|tick| (0..layout.seqs() as u32).map(move |seq| Fields { tick, shard, seq }))
                .map(|fields| fold(layout.compose(fields)))
                .collect();
            prop_assert_eq!(layout.distinct_folds(ticks * layout.tick_us()), folds.len() as u64);
        }
    }
}
