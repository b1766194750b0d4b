//! The fields, ticks, counters and IDs of a layout.

use super::{Layout, ShardPlace};
use std::error::Error;
use std::fmt;

/// The fields of one ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Ticks since the layout's epoch.
    pub tick: i64,
    /// The shard that generated the ID.
    pub shard: u32,
    /// The low bits of the counter.
    pub seq: u32,
}

/// The field that cannot hold the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    /// The time is before the layout's epoch or after its last tick.
    Time,
    /// The shard is negative or too large.
    Shard,
    /// The seq is negative or too large.
    Seq,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutOfRange::Time => "the time is out of the layout's range",
            OutOfRange::Shard => "the shard is out of the layout's range",
            OutOfRange::Seq => "the seq is out of the layout's range",
        })
    }
}

impl Error for OutOfRange {}

impl Layout {
    /// Whether `id` has no bit above the layout's.
    ///
    /// ```
    /// use pg_snowflake_ids::presets::JS53;
    ///
    /// assert!(JS53.is_id((1 << 53) - 1));
    /// assert!(!JS53.is_id(1 << 53));
    /// ```
    #[inline]
    pub const fn is_id(&self, id: i64) -> bool {
        self.bits() == 64 || id as u64 >> self.bits() == 0
    }

    /// The number of shards. A shard ID is below it.
    #[inline]
    pub const fn shards(&self) -> i64 {
        1 << self.shard_bits
    }

    /// The number of IDs per shard and tick. A seq is below it.
    #[inline]
    pub const fn seqs(&self) -> i64 {
        1 << self.seq_bits
    }

    /// The length of a tick in microseconds.
    #[inline]
    pub const fn tick_us(&self) -> i64 {
        self.unit.us()
    }

    /// The tick that `unix_us` falls in; negative before the layout's epoch.
    #[inline]
    pub const fn tick_at(&self, unix_us: i64) -> i64 {
        self.ticks_in(unix_us.saturating_sub(self.epoch_us()))
    }

    /// The number of whole ticks in a duration.
    #[inline]
    pub const fn ticks_in(&self, duration_us: i64) -> i64 {
        self.unit.count_in(duration_us)
    }

    /// The instant at which `tick` begins, in microseconds since 1970, saturating at the ends of `i64`.
    #[inline]
    pub const fn instant_of(&self, tick: i64) -> i64 {
        tick.saturating_mul(self.tick_us()).saturating_add(self.epoch_us())
    }

    /// The highest value of the time field. IDs are issued only up to [`Layout::max_tick`].
    #[inline]
    pub const fn time_field_max(&self) -> i64 {
        (1 << self.time_bits) - 1
    }

    /// The highest tick that may be issued. In a later one, the ID's sign bit would be set, and a negative ID sorts before all others.
    #[inline]
    pub const fn max_tick(&self) -> i64 {
        let sign_free = 63 - self.low_bits();
        let bits = if self.time_bits < sign_free { self.time_bits } else { sign_free };
        (1 << bits) - 1
    }

    /// The instant at which [`Layout::max_tick`] ends, after which no ID is issued, in microseconds since 1970; saturates
    /// at the end of `i64`.
    #[inline]
    pub const fn end_us(&self) -> i64 {
        self.instant_of(self.max_tick().saturating_add(1))
    }

    /// The highest counter that may be issued: the last one in [`Layout::max_tick`].
    #[inline]
    pub const fn max_counter(&self) -> i64 {
        self.last_counter_in(self.max_tick())
    }

    /// The tick of a counter.
    #[inline]
    pub const fn tick_of(&self, counter: i64) -> i64 {
        counter >> self.seq_bits
    }

    /// The last counter whose tick is `tick`, saturating at the end of `i64`.
    #[inline]
    pub const fn last_counter_in(&self, tick: i64) -> i64 {
        if tick >= i64::MAX >> self.seq_bits {
            return i64::MAX;
        }
        (tick << self.seq_bits) | self.seq_mask()
    }

    /// `counter` moved to `tick` with its seq kept: the jump to the clock.
    #[inline]
    pub const fn at_tick(&self, counter: i64, tick: i64) -> i64 {
        (tick << self.seq_bits) | (counter & self.seq_mask())
    }

    /// `counter`, moved to `tick` if that is ahead of it.
    #[inline]
    pub const fn not_before(&self, counter: i64, tick: i64) -> i64 {
        if tick > self.tick_of(counter) { self.at_tick(counter, tick) } else { counter }
    }

    /// The number of counters in `duration_us` at full rate; at least 1.
    #[inline]
    pub const fn counters_in(&self, duration_us: i64) -> i64 {
        let counters = (duration_us as i128 * (1 << self.seq_bits)) / self.tick_us() as i128;
        if counters < 1 { 1 } else { counters as i64 }
    }

    /// The ID of `counter` on `shard`.
    ///
    /// The caller must keep `counter` within `0..=max_counter()` and `shard` below [`Layout::shards`].
    ///
    /// ```
    /// use pg_snowflake_ids::presets::TWITTER;
    ///
    /// let counter = TWITTER.at_tick(42, 1000); // tick 1000, seq 42
    /// assert_eq!(counter, 1000 << 12 | 42);
    /// assert_eq!(TWITTER.id(counter, 5), 1000 << 22 | 5 << 12 | 42);
    /// ```
    #[inline]
    pub const fn id(&self, counter: i64, shard: u32) -> i64 {
        // As compose() does, in half of the instructions: a counter has its tick above its seq.
        let shard = shard as i64;
        match self.shard_place {
            ShardPlace::AboveSeq => {
                let seq = counter & self.seq_mask();
                (counter ^ seq) << self.shard_bits | shard << self.seq_bits | seq
            }
            ShardPlace::Lowest => counter << self.shard_bits | shard,
            ShardPlace::LowestXored => counter << self.shard_bits | (counter & (self.shards() - 1)) ^ shard,
        }
    }

    /// The ID of these fields. The caller must keep each field within its width.
    #[inline]
    pub const fn compose(&self, fields: Fields) -> i64 {
        let Fields { tick, shard, seq } = fields;
        let counter = self.shift_tick(tick) | (seq as i64) << self.seq_shift();
        counter ^ self.mask_of_shard(counter) ^ (shard as i64) << self.shard_shift()
    }

    /// The ID in the tick that `unix_us` falls in, with this shard and this seq. `i64::MAX` is after every
    /// tick, and so is a tick above [`Layout::max_tick`].
    ///
    /// Fails if the layout has no room for one of the three.
    ///
    /// ```
    /// use pg_snowflake_ids::{OutOfRange, presets::TWITTER};
    ///
    /// assert_eq!(TWITTER.encode(TWITTER.instant_of(1000), 5, 42), Ok(1000 << 22 | 5 << 12 | 42));
    /// assert_eq!(TWITTER.encode(0, 5, 42), Err(OutOfRange::Time));
    /// assert_eq!(TWITTER.encode(TWITTER.instant_of(1000), 1024, 42), Err(OutOfRange::Shard));
    /// ```
    #[inline]
    pub fn encode(&self, unix_us: i64, shard: i32, seq: i32) -> Result<i64, OutOfRange> {
        let tick = self.tick_at(unix_us);
        if unix_us == i64::MAX || !(0..=self.max_tick()).contains(&tick) {
            return Err(OutOfRange::Time);
        }
        let shard = self.checked_shard(shard).ok_or(OutOfRange::Shard)?;
        let seq = checked_below(self.seqs(), seq).ok_or(OutOfRange::Seq)?;
        Ok(self.compose(Fields { tick, shard, seq }))
    }

    /// `shard` as a shard ID; `None` if the layout does not have it.
    #[inline]
    pub fn checked_shard(&self, shard: i32) -> Option<u32> {
        checked_below(self.shards(), shard)
    }

    /// `tick` in the place of the time field, with all other bits 0.
    #[inline]
    pub const fn shift_tick(&self, tick: i64) -> i64 {
        tick << self.low_bits()
    }

    /// The fields of `id` in this layout. The time field is unsigned, so an ID with its sign bit set still decodes to its true time.
    ///
    /// Bits above the layout's are ignored; check with [`Layout::is_id`] first.
    ///
    /// ```
    /// use pg_snowflake_ids::{Fields, presets::TWITTER};
    ///
    /// let fields = TWITTER.split(1_541_815_603_606_036_480);
    /// assert_eq!(fields, Fields { tick: 367_597_485_448, shard: 378, seq: 0 });
    /// assert_eq!(TWITTER.instant_of(fields.tick), 1_656_432_460_105_000);
    /// ```
    #[inline]
    pub const fn split(&self, id: i64) -> Fields {
        let bits = id as u64;
        Fields {
            tick: (bits >> self.low_bits()) as i64 & self.time_field_max(),
            shard: ((id ^ self.mask_of_shard(id)) as u64 >> self.shard_shift() & (self.shards() as u64 - 1)) as u32,
            seq: (bits >> self.seq_shift() & self.seq_mask() as u64) as u32,
        }
    }

    /// The smallest ID whose time is `unix_us` or later. Before the layout's epoch, it is 0. After the layout's
    /// last tick, it is above every ID, or `i64::MAX` if IDs use 63 bits. `i64::MAX` is after every tick.
    ///
    /// ```
    /// use pg_snowflake_ids::presets::TWITTER;
    ///
    /// let noon_us = 1_656_417_600_000_000; // 2022-06-28 12:00
    /// let id = 1_541_815_603_606_036_480; // of the same day, 16:07
    /// assert!(id >= TWITTER.min_id(noon_us));
    /// assert!(id < TWITTER.min_id(noon_us + 5 * 3_600_000_000));
    /// ```
    #[inline]
    pub const fn min_id(&self, unix_us: i64) -> i64 {
        // Round up: an ID's time is the beginning of its tick.
        let tick = self.tick_at(unix_us.saturating_sub(1)).saturating_add(1);
        if tick < 0 {
            0
        } else if tick <= self.max_tick() && unix_us < i64::MAX {
            self.shift_tick(tick)
        } else if self.bits() < 63 {
            1 << self.bits()
        } else {
            i64::MAX
        }
    }

    /// What the shard in the lowest bits of `id` is XORed with: the bits above it, or 0 in other places.
    #[inline(always)]
    const fn mask_of_shard(&self, id: i64) -> i64 {
        let shards = if self.shard_place.is_xored() { self.shards() - 1 } else { 0 };
        id >> self.shard_bits & shards
    }

    #[inline]
    const fn epoch_us(&self) -> i64 {
        self.epoch_ms * 1_000
    }

    /// The number of bits below the time field.
    #[inline]
    pub const fn low_bits(&self) -> u8 {
        self.shard_bits + self.seq_bits
    }

    /// The number of bits below the shard field.
    #[inline]
    pub const fn shard_shift(&self) -> u8 {
        if self.shard_place.is_lowest() { 0 } else { self.seq_bits }
    }

    /// The number of bits below the seq field.
    #[inline]
    pub const fn seq_shift(&self) -> u8 {
        if self.shard_place.is_lowest() { self.shard_bits } else { 0 }
    }

    #[inline]
    const fn seq_mask(&self) -> i64 {
        (1 << self.seq_bits) - 1
    }
}

/// `value`, if it is neither negative nor above the limit.
#[inline]
fn checked_below(limit: i64, value: i32) -> Option<u32> {
    u32::try_from(value).ok().filter(|&value| i64::from(value) < limit)
}
