//! Layouts for property tests.

use crate::layout::{Layout, ShardPlace, Unit};
use proptest::prelude::*;

/// The clock of the tests, in milliseconds since 1970.
pub const NOW_MS: i64 = 1_800_000_000_000;

/// Any layout that a spec can name at [`NOW_MS`].
pub fn any_layout() -> impl Strategy<Value = Layout> {
    (1..=48_u8, 0..=31_u8, 0..=31_u8, 0..3_usize, 0..6_usize, 0..=NOW_MS)
        .prop_map(|(time_bits, shard_bits, seq_bits, place, unit, epoch_ms)| Layout {
            time_bits,
            shard_bits,
            seq_bits,
            shard_place: ShardPlace::ALL[place],
            unit: Unit::ALL[unit].0,
            epoch_ms,
        })
        .prop_filter("64 bits at most", |layout| layout.bits() <= 64)
}
