//! Inputs that the fuzzer could hardly derive from raw bytes.

use crate::layout::{EPOCH_MS_LIMIT, MAX_OTHER_BITS, MAX_TIME_BITS};
use crate::{Layout, PRESETS, ShardPlace, Unit};
use arbitrary::{Arbitrary, Result, Unstructured};

/// Checks thousands of inputs, each made of random bytes as the fuzzer makes it.
#[cfg(any(test, feature = "proptest"))]
pub fn hold<I: for<'a> Arbitrary<'a> + std::fmt::Debug>(check: fn(I)) {
    use proptest::prelude::*;
    let config = ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 2048 });
    proptest!(config, |(bytes in prop::collection::vec(any::<u8>(), 0..160))| {
        if let Ok(input) = I::arbitrary_take_rest(Unstructured::new(&bytes)) {
            check(input);
        }
    });
}

/// Any valid layout, often a preset.
#[derive(Clone, Copy, Debug)]
pub struct AnyLayout(pub Layout);

impl Arbitrary<'_> for AnyLayout {
    fn arbitrary(u: &mut Unstructured) -> Result<Self> {
        if u.ratio(1, 4)? {
            return Ok(AnyLayout(u.choose(PRESETS)?.1));
        }
        let time_bits = u.int_in_range(1..=MAX_TIME_BITS)?;
        let shard_bits = u.int_in_range(0..=MAX_OTHER_BITS.min(64 - time_bits))?;
        let seq_bits = u.int_in_range(0..=MAX_OTHER_BITS.min(64 - time_bits - shard_bits))?;
        Ok(AnyLayout(Layout {
            time_bits,
            shard_bits,
            seq_bits,
            shard_place: *u.choose(&ShardPlace::ALL)?,
            unit: u.choose(&Unit::ALL)?.0,
            epoch_ms: u.int_in_range(0..=EPOCH_MS_LIMIT - 1)?,
        }))
    }
}

/// An instant anywhere, or near a boundary of a layout.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum AnyInstant {
    /// Microseconds since 1970.
    At(i64),
    /// An offset in microseconds from the beginning of a tick.
    NearTick(i64, i32),
    /// An offset in microseconds from the end of the layout's last tick.
    NearEnd(i32),
    /// An offset in microseconds from the end of the last tick without negative IDs.
    NearLastId(i32),
}

impl AnyInstant {
    /// In microseconds since 1970.
    pub fn unix_us(self, layout: &Layout) -> i64 {
        let near = |tick: i64, off_us: i32| {
            let us = instant_of(layout, tick) + i128::from(off_us);
            us.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        };
        match self {
            AnyInstant::At(unix_us) => unix_us,
            AnyInstant::NearTick(tick, off_us) => near(tick & layout.time_field_max(), off_us),
            AnyInstant::NearEnd(off_us) => near(layout.time_field_max() + 1, off_us),
            AnyInstant::NearLastId(off_us) => near(layout.max_tick() + 1, off_us),
        }
    }
}

/// The beginning of a tick, in microseconds since 1970: stated independently, in integers that cannot overflow.
pub fn instant_of(layout: &Layout, tick: i64) -> i128 {
    i128::from(layout.epoch_ms) * 1_000 + i128::from(tick) * tick_us(layout)
}

/// The tick of an instant in microseconds since 1970.
pub fn tick_at(layout: &Layout, unix_us: i64) -> i128 {
    (i128::from(unix_us) - instant_of(layout, 0)).div_euclid(tick_us(layout))
}

fn tick_us(layout: &Layout) -> i128 {
    match layout.unit {
        Unit::Us10 => 10,
        Unit::Us100 => 100,
        Unit::Ms1 => 1_000,
        Unit::Ms10 => 10_000,
        Unit::Ms100 => 100_000,
        Unit::S1 => 1_000_000,
    }
}

/// The part of `bits` that an ID of that layout has room for.
pub fn id_of(layout: &Layout, bits: i64) -> i64 {
    let width = u32::from(layout.time_bits + layout.shard_bits + layout.seq_bits);
    bits & (u64::MAX >> (64 - width)) as i64
}
