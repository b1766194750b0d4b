//! The fields of IDs. `crate::properties::ids` has the properties of the arithmetic in any layout.

use super::*;
use crate::presets::{INSTAGRAM, JS53, TWITTER};

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
fn a_bound_after_the_time_range_is_above_every_id() {
    assert_eq!(JS53.min_id(i64::MAX), 1 << 53);
    // 48 bits of seconds reach beyond the end of i64 in microseconds.
    let of_48_bits = Layout { time_bits: 48, shard_bits: 0, seq_bits: 0, unit: Unit::S1, ..INSTAGRAM };
    assert_eq!(of_48_bits.min_id(i64::MAX), 1 << 48);
    let of_62_bits = Layout { time_bits: 40, shard_bits: 11, seq_bits: 11, ..INSTAGRAM };
    assert_eq!(of_62_bits.min_id(i64::MAX), 1 << 62);
    assert_eq!(TWITTER.min_id(i64::MAX), i64::MAX);
    assert_eq!(INSTAGRAM.min_id(INSTAGRAM.instant_of(1 << 40)), i64::MAX);
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

#[test]
fn an_error_names_the_field_that_is_out_of_range() {
    let of_field = |field| format!("the {field} is out of the layout's range");
    assert_eq!(OutOfRange::Time.to_string(), of_field("time"));
    assert_eq!(OutOfRange::Shard.to_string(), of_field("shard"));
    assert_eq!(OutOfRange::Seq.to_string(), of_field("seq"));
}
