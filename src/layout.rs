//! How an id's 64 bits are divided, and the arithmetic that follows from it.
//!
//! Pure numbers: no server, no clock. An id is `time | shard | seq`, high bits first. With the shard
//! field cut out, what is left is one integer that only grows: `counter = tick << seq_bits | seq`. That
//! counter is what a sequence holds; an id is the counter with the shard put back in.

/// The widths of an id's fields, and what its time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bits of the time field, 1..=48.
    time_bits: u8,
    /// Bits of the shard field, 0..=31.
    shard_bits: u8,
    /// Bits of the seq field, 0..=31.
    seq_bits: u8,
    /// Length of a tick in microseconds.
    tick_us: i64,
    /// The instant of tick 0, in microseconds since 1970-01-01 UTC.
    epoch_us: i64,
}

/// The fields of one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Ticks since the layout's epoch.
    pub tick: i64,
    /// The shard that minted the id.
    pub shard: u32,
    /// The low bits of the counter.
    pub seq: u32,
}

/// The layout that Instagram published in 2012, and the default: milliseconds since
/// 2011-08-24 21:07:01.721 UTC, 8192 shards, 1024 ids a millisecond on each.
pub const INSTAGRAM: Layout = Layout {
    time_bits: 41,
    shard_bits: 13,
    seq_bits: 10,
    tick_us: 1_000,
    epoch_us: 1_314_220_021_721_000,
};

impl Layout {
    /// The number of shards; a shard id is below it.
    pub const fn shards(&self) -> i64 {
        1 << self.shard_bits
    }

    /// Length of a tick in microseconds.
    pub const fn tick_us(&self) -> i64 {
        self.tick_us
    }

    /// The tick that `unix_us` falls in; negative before the layout's epoch.
    pub const fn tick_at(&self, unix_us: i64) -> i64 {
        unix_us.saturating_sub(self.epoch_us).div_euclid(self.tick_us)
    }

    /// The instant at which `tick` begins, in microseconds since 1970, saturating at the ends of `i64`.
    pub const fn instant_of(&self, tick: i64) -> i64 {
        tick.saturating_mul(self.tick_us).saturating_add(self.epoch_us)
    }

    /// The highest tick that generation may use: above it the id's sign bit would be set, and a
    /// negative id sorts before all others.
    pub const fn max_tick(&self) -> i64 {
        let sign_free = 63 - self.shard_bits - self.seq_bits;
        let bits = if self.time_bits < sign_free { self.time_bits } else { sign_free };
        (1 << bits) - 1
    }

    /// The highest counter that generation may use: the last one in [`Layout::max_tick`].
    pub const fn max_counter(&self) -> i64 {
        self.last_counter_in(self.max_tick())
    }

    /// The tick of a counter.
    pub const fn tick_of(&self, counter: i64) -> i64 {
        counter >> self.seq_bits
    }

    /// The last counter whose tick is `tick`, saturating at the end of `i64`.
    pub const fn last_counter_in(&self, tick: i64) -> i64 {
        if tick >= i64::MAX >> self.seq_bits {
            return i64::MAX;
        }
        (tick << self.seq_bits) | self.seq_mask()
    }

    /// `counter` moved to `tick`, its seq kept: the jump to the clock.
    pub const fn at_tick(&self, counter: i64, tick: i64) -> i64 {
        (tick << self.seq_bits) | (counter & self.seq_mask())
    }

    /// How many counters pass in `duration_us` at full rate; at least 1.
    pub const fn counters_in(&self, duration_us: i64) -> i64 {
        let counters = (duration_us as i128 * (1 << self.seq_bits)) / self.tick_us as i128;
        if counters < 1 { 1 } else { counters as i64 }
    }

    /// The id of `counter` on `shard`.
    ///
    /// The caller keeps `counter` within `0..=max_counter()` and `shard` below [`Layout::shards`].
    pub const fn id(&self, counter: i64, shard: u32) -> i64 {
        let tick = self.tick_of(counter);
        (tick << (self.shard_bits + self.seq_bits))
            | ((shard as i64) << self.seq_bits)
            | (counter & self.seq_mask())
    }

    /// The fields of `id`, read as this layout. The time field is unsigned, so an id whose sign bit is
    /// set still shows its true time.
    pub const fn split(&self, id: i64) -> Fields {
        let bits = id as u64;
        Fields {
            tick: (bits >> (self.shard_bits + self.seq_bits)) as i64,
            shard: ((bits >> self.seq_bits) & (self.shards() as u64 - 1)) as u32,
            seq: (bits & self.seq_mask() as u64) as u32,
        }
    }

    const fn seq_mask(&self) -> i64 {
        (1 << self.seq_bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_instagram_id_is_the_published_formula() {
        // The worked example of Instagram's article: 1387263000 ms after the epoch, user 31341 on one of
        // 2000 logical shards, and the 5001st value of the sequence.
        let id = INSTAGRAM.id(INSTAGRAM.at_tick(5001, 1_387_263_000), 31341 % 2000);
        assert_eq!(id, (1_387_263_000 << 23) | (1341 << 10) | (5001 % 1024));
    }

    #[test]
    fn the_last_counter_of_the_layout_gives_the_largest_id() {
        assert_eq!(INSTAGRAM.id(INSTAGRAM.max_counter(), 8191), i64::MAX);
        assert_eq!(INSTAGRAM.max_tick(), (1 << 40) - 1);
        // 2046-06-27 17:00:49.497 UTC, from which on the sign bit would be set.
        assert_eq!(INSTAGRAM.instant_of(INSTAGRAM.max_tick() + 1), 2_413_731_649_497_000);
    }

    #[test]
    fn a_tenth_of_a_second_is_102400_counters() {
        assert_eq!(INSTAGRAM.counters_in(100_000), 102_400);
        assert_eq!(INSTAGRAM.counters_in(0), 1);
    }

    #[test]
    fn ticks_before_the_epoch_are_negative() {
        assert_eq!(INSTAGRAM.tick_at(INSTAGRAM.epoch_us), 0);
        assert_eq!(INSTAGRAM.tick_at(INSTAGRAM.epoch_us - 1), -1);
        assert_eq!(INSTAGRAM.tick_at(i64::MIN), i64::MIN / 1000 - 1);
    }

    proptest! {
        #[test]
        fn an_id_splits_into_what_it_was_made_of(
            counter in 0..=INSTAGRAM.max_counter(), shard in 0..8192_u32,
        ) {
            let fields = INSTAGRAM.split(INSTAGRAM.id(counter, shard));
            prop_assert_eq!(fields.tick, counter >> 10);
            prop_assert_eq!(fields.shard, shard);
            prop_assert_eq!(i64::from(fields.seq), counter & 1023);
        }

        #[test]
        fn ids_of_one_shard_sort_as_their_counters(
            a in 0..=INSTAGRAM.max_counter(), b in 0..=INSTAGRAM.max_counter(), shard in 0..8192_u32,
        ) {
            prop_assert_eq!(a.cmp(&b), INSTAGRAM.id(a, shard).cmp(&INSTAGRAM.id(b, shard)));
        }
    }
}
