//! IDs as version 7 UUIDs (RFC 9562). The ID's time is in the UUID's time field, the rest of the ID in the
//! random bits. The UUIDs sort in the order of the IDs, and can be converted back.
//!
//! ```text
//! 48 bits  Unix milliseconds
//!  4 bits  version, 7
//! 12 bits  the tick within the millisecond, where ticks are shorter; else 0
//!  2 bits  variant, 2
//! 62 bits  the fields below time, as they stand in the id
//! ```

use crate::layout::Layout;

const VERSION: u128 = 7;
const VARIANT: u128 = 2;

/// The UUID of `id`. `None` if the ID's time is after the year 10889, where 48 bits of milliseconds end.
///
/// ```
/// use pg_snowflake_ids::{presets::INSTAGRAM, uuid};
///
/// let uuid = uuid::from_id(11_637_205_501_278_089, &INSTAGRAM).unwrap();
/// assert_eq!(format!("{uuid:032x}"), "0132504e0bf17000800000000014f789");
/// assert_eq!(uuid::to_id(uuid, &INSTAGRAM), Some(11_637_205_501_278_089));
/// ```
pub fn from_id(id: i64, layout: &Layout) -> Option<u128> {
    let ticks_per_ms = (1_000 / layout.tick_us()).max(1);
    let tick = layout.split(id).tick;
    let low = id as u64 & low_mask(layout.low_bits());
    let unix_ms = u128::try_from(layout.instant_of(tick).div_euclid(1_000)).ok()?;
    if unix_ms >> 48 != 0 {
        return None;
    }
    let within_ms = (tick % ticks_per_ms) as u128;
    Some(unix_ms << 80 | VERSION << 76 | within_ms << 64 | VARIANT << 62 | u128::from(low))
}

/// The ID of `uuid`; `None` if [`from_id`] did not make it from an ID of this layout.
pub fn to_id(uuid: u128, layout: &Layout) -> Option<i64> {
    let low = uuid as u64 & low_mask(62);
    let within_ms = (uuid >> 64 & 0xfff) as i64;
    let unix_us = (uuid >> 80) as i64 * 1_000 + within_ms * layout.tick_us();
    let tick = layout.tick_at(unix_us);
    if !(0..=layout.time_field_max()).contains(&tick) {
        return None;
    }
    // Bits that from_id() does not set, between the fields or within the millisecond, are lost here.
    let id = layout.shift_tick(tick) | low as i64;
    (from_id(id, layout) == Some(uuid)).then_some(id)
}

const fn low_mask(bits: u8) -> u64 {
    (1 << bits) - 1
}
