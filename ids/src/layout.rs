//! How an ID's 64 bits are divided, and the arithmetic on them.
//!
//! Without its shard field, an ID is one integer that only grows: `counter = tick << seq_bits | seq`. A
//! sequence holds that counter; an ID is the counter with the shard inserted.

use std::error::Error;
use std::fmt;

/// The widths of an ID's fields, the length of a tick, and the epoch. The time field is always the highest.
///
/// Presets are valid, and so is a layout that [`parse`](crate::layout_spec::parse) or [`Layout::unpack`]
/// returns. Check a layout that you construct yourself with [`Layout::is_valid`]: the arithmetic of an invalid
/// one may panic.
///
/// ```
/// use pg_snowflake_ids::{Fields, Layout, ShardPlace, Unit};
///
/// let layout = Layout {
///     time_bits: 41,
///     shard_bits: 8,
///     seq_bits: 14,
///     shard_place: ShardPlace::AboveSeq,
///     unit: Unit::Ms1,
///     epoch_ms: 1_704_067_200_000, // 2024-01-01
/// };
/// assert!(layout.is_valid());
///
/// let id = layout.encode(1_704_067_200_123_000, 7, 42).unwrap();
/// assert_eq!(id, 123 << 22 | 7 << 14 | 42);
/// assert_eq!(layout.split(id), Fields { tick: 123, shard: 7, seq: 42 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Bits of the time field, 1..=48.
    pub time_bits: u8,
    /// Bits of the shard field, 0..=31.
    pub shard_bits: u8,
    /// Bits of the seq field, 0..=31.
    pub seq_bits: u8,
    /// Where the shard is, and how it is stored.
    pub shard_place: ShardPlace,
    /// Length of a tick.
    pub unit: Unit,
    /// The instant of tick 0, in milliseconds since 1970-01-01 UTC; below 2^43.
    pub epoch_ms: i64,
}

/// Where the shard is in an ID, and how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardPlace {
    /// Between time and seq.
    AboveSeq,
    /// In the lowest bits.
    Lowest,
    /// In the lowest bits, XORed with as many bits directly above them, which are seq and the low bits of the time. So the
    /// lowest bits vary within a shard, and `id % n` is even.
    LowestXored,
}

impl ShardPlace {
    /// All places, in the order of their numbers in a packed layout.
    pub const ALL: [ShardPlace; 3] =
        [ShardPlace::AboveSeq, ShardPlace::Lowest, ShardPlace::LowestXored];

    /// Whether the shard is below seq.
    #[inline(always)]
    pub const fn is_lowest(self) -> bool {
        !matches!(self, ShardPlace::AboveSeq)
    }

    /// The place of the same bits without the XOR.
    #[inline(always)]
    pub const fn without_xor(self) -> Self {
        match self {
            ShardPlace::AboveSeq => ShardPlace::AboveSeq,
            ShardPlace::Lowest | ShardPlace::LowestXored => ShardPlace::Lowest,
        }
    }

    /// Whether the shard is XORed with the bits above it.
    #[inline(always)]
    pub const fn is_xored(self) -> bool {
        matches!(self, ShardPlace::LowestXored)
    }
}

/// The length of a tick.
///
/// ```
/// use pg_snowflake_ids::Unit;
///
/// assert_eq!((Unit::Ms10.us(), Unit::Ms10.name()), (10_000, "10ms"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// 10 microseconds.
    Us10,
    /// 100 microseconds.
    Us100,
    /// 1 millisecond.
    Ms1,
    /// 10 milliseconds.
    Ms10,
    /// 100 milliseconds.
    Ms100,
    /// 1 second.
    S1,
}

impl Unit {
    /// Every unit with its name in a spec, from the shortest.
    pub const ALL: [(Unit, &str); 6] = [
        (Unit::Us10, "10us"),
        (Unit::Us100, "100us"),
        (Unit::Ms1, "1ms"),
        (Unit::Ms10, "10ms"),
        (Unit::Ms100, "100ms"),
        (Unit::S1, "1s"),
    ];

    /// The length in microseconds.
    #[inline]
    pub const fn us(self) -> i64 {
        match self {
            Unit::Us10 => 10,
            Unit::Us100 => 100,
            Unit::Ms1 => 1_000,
            Unit::Ms10 => 10_000,
            Unit::Ms100 => 100_000,
            Unit::S1 => 1_000_000,
        }
    }

    /// The number of whole units in `us` microseconds, rounded down. The divisors are constants, so that the
    /// compiler multiplies instead of dividing.
    #[inline(always)]
    const fn count_in(self, us: i64) -> i64 {
        match self {
            Unit::Us10 => us.div_euclid(10),
            Unit::Us100 => us.div_euclid(100),
            Unit::Ms1 => us.div_euclid(1_000),
            Unit::Ms10 => us.div_euclid(10_000),
            Unit::Ms100 => us.div_euclid(100_000),
            Unit::S1 => us.div_euclid(1_000_000),
        }
    }

    /// The name in a spec.
    #[inline]
    pub const fn name(self) -> &'static str {
        Unit::ALL[self as usize].1
    }
}

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

/// The maximum width of the time field.
pub const MAX_TIME_BITS: u8 = 48;

/// The maximum width of the shard field and of the seq field, so that a value fits in an SQL `int` without the
/// sign.
pub const MAX_OTHER_BITS: u8 = 31;

/// The exclusive upper limit of epochs, in milliseconds since 1970: the year 2248. An epoch fits in 43 bits.
pub const EPOCH_MS_LIMIT: i64 = 1 << 43;

impl Layout {
    /// Packs the layout into 64 bits, as it is stored: epoch 43 | unit 3 | place of the shard 2 | seq 5 | shard 5 | time 6.
    ///
    /// ```
    /// use pg_snowflake_ids::{Layout, presets::TWITTER};
    ///
    /// assert_eq!(Layout::unpack(TWITTER.pack()), Some(TWITTER));
    /// assert_eq!(Layout::unpack(0), None);
    /// ```
    #[inline(always)]
    pub const fn pack(&self) -> u64 {
        (self.epoch_ms as u64) << 21
            | (self.unit as u64) << 18
            | (self.shard_place as u64) << 16
            | (self.seq_bits as u64) << 11
            | (self.shard_bits as u64) << 6
            | self.time_bits as u64
    }

    /// Whether this valid layout equals another: [`PartialEq`] for generating an ID, where comparing each field would take 6 ns.
    #[inline(always)]
    pub const fn is_same(&self, other: &Layout) -> bool {
        self.pack() == other.pack()
    }

    /// Whether the ticks of this layout are those of the other: they begin at the same time and last as long.
    #[inline(always)]
    pub const fn has_same_ticks(&self, other: &Layout) -> bool {
        self.epoch_ms == other.epoch_ms && self.unit as u8 == other.unit as u8
    }

    /// The layout that [`Layout::pack`] packed; `None` if `packed` is not a packed layout.
    pub const fn unpack(packed: u64) -> Option<Layout> {
        let unit = (packed >> 18 & 0b111) as usize;
        let place = (packed >> 16 & 0b11) as usize;
        if unit >= Unit::ALL.len() || place >= ShardPlace::ALL.len() {
            return None;
        }
        let layout = Layout {
            time_bits: (packed & 0b11_1111) as u8,
            shard_bits: (packed >> 6 & 0b1_1111) as u8,
            seq_bits: (packed >> 11 & 0b1_1111) as u8,
            shard_place: ShardPlace::ALL[place],
            unit: Unit::ALL[unit].0,
            epoch_ms: (packed >> 21) as i64,
        };
        if layout.is_valid() { Some(layout) } else { None }
    }

    /// Whether the widths and the epoch are within their limits, and the widths are at most 64 in total.
    pub const fn is_valid(&self) -> bool {
        self.time_bits >= 1
            && self.time_bits <= MAX_TIME_BITS
            && self.shard_bits <= MAX_OTHER_BITS
            && self.seq_bits <= MAX_OTHER_BITS
            && self.bits() <= 64
            && self.epoch_ms >= 0
            && self.epoch_ms < EPOCH_MS_LIMIT
    }

    /// The total width of the fields.
    #[inline]
    pub const fn bits(&self) -> u8 {
        self.time_bits + self.shard_bits + self.seq_bits
    }

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

    /// The highest tick that may be issued. In a later one, the ID's sign bit would be set, and a negative ID
    /// sorts before all others.
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
        self.compose(Fields {
            tick: self.tick_of(counter),
            shard,
            seq: (counter & self.seq_mask()) as u32,
        })
    }

    /// The ID of these fields. The caller must keep each field within its width.
    #[inline]
    pub const fn compose(&self, fields: Fields) -> i64 {
        let Fields { tick, shard, seq } = fields;
        let counter = self.shift_tick(tick) | (seq as i64) << self.seq_shift();
        counter ^ self.mask_of_shard(counter) ^ (shard as i64) << self.shard_shift()
    }

    /// The ID in the tick that `unix_us` falls in, with this shard and this seq. `i64::MAX` is after every
    /// tick.
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
        if unix_us == i64::MAX || !(0..=self.time_field_max()).contains(&tick) {
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

    /// The fields of `id` in this layout. The time field is unsigned, so an ID with its sign bit set still
    /// decodes to its true time.
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
            shard: ((id ^ self.mask_of_shard(id)) as u64 >> self.shard_shift()
                & (self.shards() as u64 - 1)) as u32,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::any_layout;
    use crate::presets::{INSTAGRAM, JS53, TWITTER};
    use proptest::prelude::*;

    #[test]
    fn an_instagram_id_is_the_published_formula() {
        // The worked example of Instagram's article: 1387263000 ms after the epoch, user 31341 on one of
        // 2000 logical shards, and the 5001st value of the sequence.
        let id = INSTAGRAM.id(INSTAGRAM.at_tick(5001, 1_387_263_000), 31341 % 2000);
        assert_eq!(id, (1_387_263_000 << 23) | (1341 << 10) | (5001 % 1024));
    }

    #[test]
    fn the_last_counter_yields_the_largest_id() {
        assert_eq!(INSTAGRAM.id(INSTAGRAM.max_counter(), 8191), i64::MAX);
        assert_eq!(INSTAGRAM.max_tick(), (1 << 40) - 1);
        // 2046-06-27 17:00:49.497 UTC, from when on the sign bit would be set.
        assert_eq!(INSTAGRAM.instant_of(INSTAGRAM.max_tick() + 1), 2_413_731_649_497_000);
    }

    #[test]
    fn a_tenth_of_a_second_is_102400_counters() {
        assert_eq!(INSTAGRAM.counters_in(100_000), 102_400);
        assert_eq!(INSTAGRAM.counters_in(0), 1);
    }

    #[test]
    fn ticks_before_the_epoch_are_negative() {
        assert_eq!(INSTAGRAM.tick_at(INSTAGRAM.instant_of(0)), 0);
        assert_eq!(INSTAGRAM.tick_at(INSTAGRAM.instant_of(0) - 1), -1);
        assert_eq!(INSTAGRAM.tick_at(i64::MIN), i64::MIN / 1000 - 1);
    }

    #[test]
    fn bounds_outside_the_time_range_are_below_and_above_every_id() {
        assert_eq!(JS53.min_id(JS53.instant_of(0) - 1), 0);
        assert_eq!(JS53.min_id(JS53.instant_of(-1)), 0);
        assert_eq!(JS53.min_id(i64::MIN), 0);
        assert_eq!(JS53.min_id(i64::MAX), 1 << 53);
        // 48 bits of seconds reach beyond the end of i64 in microseconds.
        let of_48_bits =
            Layout { time_bits: 48, shard_bits: 0, seq_bits: 0, unit: Unit::S1, ..INSTAGRAM };
        assert_eq!(of_48_bits.min_id(i64::MAX), 1 << 48);
        let of_62_bits = Layout { time_bits: 40, shard_bits: 11, seq_bits: 11, ..INSTAGRAM };
        assert_eq!(of_62_bits.min_id(i64::MAX), 1 << 62);
        assert_eq!(TWITTER.min_id(i64::MAX), i64::MAX);
        assert_eq!(INSTAGRAM.min_id(INSTAGRAM.instant_of(1 << 40)), i64::MAX);
    }

    #[test]
    fn encode_refuses_a_value_that_its_field_cannot_hold() {
        let (first, after) = (JS53.instant_of(0), JS53.instant_of(JS53.time_field_max() + 1));
        assert_eq!(JS53.encode(first, 0, 0), Ok(0));
        assert_eq!(JS53.encode(after - 1, 127, 31), Ok((1 << 53) - 1));
        let cases = [
            ((first - 1, 0, 0), OutOfRange::Time),
            ((after, 0, 0), OutOfRange::Time),
            ((i64::MIN, 0, 0), OutOfRange::Time),
            ((i64::MAX, 0, 0), OutOfRange::Time),
            ((first, -1, 0), OutOfRange::Shard),
            ((first, 128, 0), OutOfRange::Shard),
            ((first, 0, -1), OutOfRange::Seq),
            ((first, 0, 32), OutOfRange::Seq),
        ];
        for ((unix_us, shard, seq), field) in cases {
            assert_eq!(JS53.encode(unix_us, shard, seq), Err(field), "{unix_us} {shard} {seq}");
        }
    }

    #[test]
    fn unpack_refuses_an_invalid_layout() {
        let not_layouts = [
            Layout { time_bits: 0, ..INSTAGRAM },
            Layout { time_bits: 49, shard_bits: 0, ..INSTAGRAM },
            Layout { shard_bits: 14, ..INSTAGRAM },
        ];
        for layout in not_layouts {
            assert_eq!(Layout::unpack(layout.pack()), None, "{layout:?}");
        }
        let unit_6 = 6 << 18;
        assert_eq!(Layout::unpack(INSTAGRAM.pack() & !(0b111 << 18) | unit_6), None);
        let place_3 = 3 << 16;
        assert_eq!(Layout::unpack(INSTAGRAM.pack() | place_3), None);
    }

    /// A layout, and fields that fit in it.
    fn layout_and_fields() -> impl Strategy<Value = (Layout, Fields)> {
        any_layout().prop_flat_map(|layout| {
            (0..=layout.time_field_max(), 0..layout.shards(), 0..layout.seqs()).prop_map(
                move |(tick, shard, seq)| {
                    (layout, Fields { tick, shard: shard as u32, seq: seq as u32 })
                },
            )
        })
    }

    proptest! {
        #[test]
        fn split_returns_the_composed_fields((layout, fields) in layout_and_fields()) {
            let id = layout.compose(fields);
            prop_assert!(layout.is_id(id));
            prop_assert_eq!(layout.split(id), fields);
        }

        #[test]
        fn nonnegative_ids_sort_by_time_first(
            (layout, a) in layout_and_fields(), tick: i64, shard: u32, seq: u32,
        ) {
            let b = Fields {
                tick: tick & layout.time_field_max(),
                shard: shard & (layout.shards() - 1) as u32,
                seq: seq & (layout.seqs() - 1) as u32,
            };
            let key = |fields: Fields| match layout.shard_place {
                ShardPlace::AboveSeq => (fields.tick, fields.shard, fields.seq),
                ShardPlace::Lowest => (fields.tick, fields.seq, fields.shard),
                // Two shards' IDs of one tick and one seq have no order that means anything.
                ShardPlace::LowestXored => (fields.tick, fields.seq, 0),
            };
            let (of_a, of_b) = (layout.compose(a), layout.compose(b));
            if of_a >= 0 && of_b >= 0 && key(a) != key(b) {
                prop_assert_eq!(of_a.cmp(&of_b), key(a).cmp(&key(b)));
            }
        }

        #[test]
        fn min_id_separates_ids_by_time(
            (layout, fields) in layout_and_fields(), off_us in -3_000_000..3_000_000_i64,
        ) {
            let id = layout.compose(fields);
            let created_us = layout.instant_of(fields.tick);
            let at_us = created_us.saturating_add(off_us);
            // No bound is above the last ID of all.
            if (0..i64::MAX).contains(&id) && created_us < i64::MAX / 2 {
                prop_assert_eq!(id >= layout.min_id(at_us), created_us >= at_us);
            }
        }

        #[test]
        fn split_returns_the_counter_and_the_shard((layout, fields) in layout_and_fields()) {
            prop_assume!(fields.tick <= layout.max_tick());
            let counter = layout.at_tick(fields.seq.into(), fields.tick);
            let id = layout.id(counter, fields.shard);
            prop_assert!(id >= 0 && counter <= layout.max_counter());
            prop_assert_eq!(layout.split(id), fields);
        }

        #[test]
        fn min_id_never_panics(layout in any_layout(), unix_us: i64) {
            prop_assert!(layout.min_id(unix_us) >= 0);
        }

        #[test]
        fn ids_of_one_shard_sort_as_their_counters(
            a in 0..=INSTAGRAM.max_counter(), b in 0..=INSTAGRAM.max_counter(), shard in 0..8192_u32,
        ) {
            prop_assert_eq!(a.cmp(&b), INSTAGRAM.id(a, shard).cmp(&INSTAGRAM.id(b, shard)));
        }
    }
}
