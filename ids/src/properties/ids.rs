//! Fields survive in an ID; IDs sort by time; fields that do not fit a layout are refused; bounds divide the IDs at an
//! instant; and a drawing shows every bit.

use super::inputs::{AnyInstant, AnyLayout, id_of, instant_of, tick_at};
use crate::explain::explain;
use crate::{Fields, Layout, OutOfRange, ShardPlace};
use arbitrary::Arbitrary;

/// The input of the target.
#[derive(Debug, Arbitrary)]
pub struct Input {
    layout: AnyLayout,
    id: i64,
    other: i64,
    at: AnyInstant,
    shard: i32,
    seq: i32,
}

/// Panics if a property does not hold.
pub fn check(Input { layout: AnyLayout(layout), id, other, at, shard, seq }: Input) {
    let unix_us = at.unix_us(&layout);
    an_id_is_its_fields(&layout, id);
    let (id, other) = (id_of(&layout, id), id_of(&layout, other));
    nonnegative_ids_sort_by_time_first(&layout, id, other);
    a_counter_survives_in_an_id(&layout, id, other);
    encode_refuses_exactly_what_is_out_of_range(&layout, unix_us, shard, seq);
    let bound = layout.min_id(unix_us);
    assert!(bound >= 0);
    for id in [id, bound, bound.saturating_sub(1), bound.saturating_add(1)] {
        a_bound_divides_the_ids_at_its_instant(&layout, id, unix_us);
    }
    a_drawing_shows_every_bit(&layout, id);
}

fn an_id_is_its_fields(layout: &Layout, id: i64) {
    assert_eq!(layout.is_id(id), id_of(layout, id) == id);
    let fields = layout.split(id);
    assert!((0..=layout.time_field_max()).contains(&fields.tick));
    assert!(i64::from(fields.shard) < layout.shards() && i64::from(fields.seq) < layout.seqs());
    // With XOR, bits above the layout's can change the shard.
    if layout.is_id(id) {
        assert_eq!(layout.compose(fields), id);
    }
}

fn nonnegative_ids_sort_by_time_first(layout: &Layout, id: i64, other: i64) {
    let key = |id| {
        let Fields { tick, shard, seq } = layout.split(id);
        match layout.shard_place {
            ShardPlace::AboveSeq => (tick, shard, seq),
            ShardPlace::Lowest => (tick, seq, shard),
            // Two shards' IDs of one tick and one seq have no order that means anything.
            ShardPlace::LowestXored => (tick, seq, 0),
        }
    };
    // Likelier to have fields in common.
    let Fields { tick, shard, .. } = layout.split(id);
    let of_other = layout.split(other);
    for other in [of_other, Fields { shard, ..of_other }, Fields { tick, ..of_other }] {
        let other = layout.compose(other);
        if id >= 0 && other >= 0 && key(id) != key(other) {
            assert_eq!(id.cmp(&other), key(id).cmp(&key(other)), "{id} {other} {layout:?}");
        }
    }
}

fn a_counter_survives_in_an_id(layout: &Layout, id: i64, counter: i64) {
    let Fields { shard, .. } = layout.split(id);
    let counter = counter & i64::MAX;
    if counter > layout.max_counter() {
        return;
    }
    let id = layout.id(counter, shard);
    let Fields { tick, seq, .. } = layout.split(id);
    assert!(id >= 0);
    assert_eq!((layout.split(id).shard, layout.at_tick(seq.into(), tick)), (shard, counter));
    if counter < layout.max_counter() {
        assert!(id < layout.id(counter + 1, shard), "{counter} {layout:?}");
    }
}

fn encode_refuses_exactly_what_is_out_of_range(layout: &Layout, unix_us: i64, shard: i32, seq: i32) {
    let tick = tick_at(layout, unix_us);
    let has_room = |value: i128, bits: u8| (0..1 << bits).contains(&value);
    let expected = if !(0..=layout.max_tick().into()).contains(&tick) || unix_us == i64::MAX {
        Err(OutOfRange::Time)
    } else if !has_room(shard.into(), layout.shard_bits) {
        Err(OutOfRange::Shard)
    } else if !has_room(seq.into(), layout.seq_bits) {
        Err(OutOfRange::Seq)
    } else {
        Ok(Fields { tick: tick as i64, shard: shard as u32, seq: seq as u32 })
    };
    let encoded = layout.encode(unix_us, shard, seq);
    assert_eq!(encoded.map(|id| layout.split(id)), expected, "{unix_us} {shard} {seq} {layout:?}");
    assert!(encoded.is_ok_and(|id| id >= 0 && layout.is_id(id)) == expected.is_ok());
}

fn a_bound_divides_the_ids_at_its_instant(layout: &Layout, id: i64, unix_us: i64) {
    // No bound can be above the highest ID.
    if !layout.is_id(id) || !(0..i64::MAX).contains(&id) {
        return;
    }
    let is_late = instant_of(layout, layout.split(id).tick) >= unix_us.into() && unix_us < i64::MAX;
    assert_eq!(id >= layout.min_id(unix_us), is_late, "{id} {unix_us} {layout:?}");
}

fn a_drawing_shows_every_bit(layout: &Layout, id: i64) {
    let drawing = explain(id, layout.split(id), layout);
    assert!(drawing.starts_with(&format!("{id} = ")));
    let field_bits = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if words[1] == "0" { String::new() } else { words[3].clone() }
    };
    let bits: String = drawing.lines().skip(2).map(field_bits).collect();
    assert_eq!(bits.len(), layout.bits().into(), "{drawing}");
    // The shard is drawn as it is, not as it is stored.
    let drawn = Layout { shard_place: layout.shard_place.without_xor(), ..*layout };
    let expected = drawn.compose(layout.split(id)) as u64;
    assert_eq!(u64::from_str_radix(&bits, 2), Ok(expected), "{drawing}");
}
