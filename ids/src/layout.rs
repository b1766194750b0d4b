//! How an ID's 64 bits are divided.
//!
//! Without its shard field, an ID is one integer that only grows: `counter = tick << seq_bits | seq`. A
//! sequence holds that counter; an ID is the counter with the shard inserted.

mod arithmetic;

pub use arithmetic::{Fields, OutOfRange};

use std::ops::Deref;

/// The widths of an ID's fields, the length of a tick, and the epoch. The time field is always the highest.
///
/// Presets are valid, and so is a layout that [`parse`](crate::layout_spec::parse) or [`Layout::unpack`] returns. Check a layout that you
/// construct yourself with [`Layout::is_valid`]: the arithmetic of an invalid one may panic.
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
    pub const ALL: [ShardPlace; 3] = [ShardPlace::AboveSeq, ShardPlace::Lowest, ShardPlace::LowestXored];

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
    pub const ALL: [(Unit, &str); 6] =
        [(Unit::Us10, "10us"), (Unit::Us100, "100us"), (Unit::Ms1, "1ms"), (Unit::Ms10, "10ms"), (Unit::Ms100, "100ms"), (Unit::S1, "1s")];

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

/// A valid layout with its packed form, by which it is compared: comparing each field takes 6 ns.
///
/// ```
/// use pg_snowflake_ids::layout::Packed;
/// use pg_snowflake_ids::presets::TWITTER;
///
/// let packed = Packed::new(TWITTER);
/// assert_eq!(Packed::unpack(packed.bits()), Some(packed));
/// assert_eq!(packed.max_tick(), TWITTER.max_tick());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    bits: u64,
    layout: Layout,
}

impl Packed {
    /// Packs a layout.
    #[inline]
    pub const fn new(layout: Layout) -> Self {
        Packed { bits: layout.pack(), layout }
    }

    /// Unpacks a layout; `None` if `bits` is not a packed layout.
    pub const fn unpack(bits: u64) -> Option<Self> {
        match Layout::unpack(bits) {
            Some(layout) => Some(Packed { bits, layout }),
            None => None,
        }
    }

    /// The layout.
    #[inline(always)]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What [`Layout::pack`] returns.
    #[inline(always)]
    pub const fn bits(&self) -> u64 {
        self.bits
    }
}

impl PartialEq for Packed {
    #[inline(always)]
    fn eq(&self, other: &Packed) -> bool {
        self.bits == other.bits
    }
}

impl Eq for Packed {}

impl Deref for Packed {
    type Target = Layout;

    #[inline(always)]
    fn deref(&self) -> &Layout {
        &self.layout
    }
}

/// The maximum width of the time field.
pub const MAX_TIME_BITS: u8 = 48;

/// The maximum width of the shard field and of the seq field, so that a value fits in an SQL `int` without the sign.
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
}

#[cfg(test)]
mod tests;
