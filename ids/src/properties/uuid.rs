//! A UUID carries its ID, is of version 7 with the ID's time, and sorts as the ID does.

use super::inputs::{AnyLayout, id_of, instant_of};
use crate::Layout;
use crate::uuid::{from_id, to_id};
use arbitrary::Arbitrary;

/// The input of the target.
#[derive(Debug, Arbitrary)]
pub struct Input {
    layout: AnyLayout,
    id: i64,
    other: i64,
    uuid: u128,
    bit: u8,
}

/// Panics if a property does not hold.
pub fn check(Input { layout: AnyLayout(layout), id, other, uuid, bit }: Input) {
    let (id, other) = (id_of(&layout, id), id_of(&layout, other));
    a_uuid_has_the_ids_time_and_round_trips(&layout, id, bit);
    if id >= 0
        && other >= 0
        && let (Some(of_id), Some(of_other)) = (from_id(id, &layout), from_id(other, &layout))
    {
        assert_eq!(id.cmp(&other), of_id.cmp(&of_other), "{id} {other} {layout:?}");
    }
    if let Some(id) = to_id(uuid, &layout) {
        assert!(layout.is_id(id));
        assert_eq!(from_id(id, &layout), Some(uuid));
    }
}

fn a_uuid_has_the_ids_time_and_round_trips(layout: &Layout, id: i64, bit: u8) {
    let unix_ms = instant_of(layout, layout.split(id).tick) / 1_000;
    let Some(uuid) = from_id(id, layout) else {
        assert!(unix_ms >= 1 << 48, "{id} has no UUID: {layout:?}");
        return;
    };
    assert_eq!((uuid >> 80) as i128, unix_ms);
    assert_eq!((uuid >> 76 & 0xf, uuid >> 62 & 0b11), (7, 2));
    assert_eq!(to_id(uuid, layout), Some(id), "{uuid:032x} {layout:?}");
    assert_ne!(to_id(uuid ^ 1 << (bit % 128), layout), Some(id), "every bit counts");
}
