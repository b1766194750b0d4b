//! The regression test `find_layout` has the copies that public repositories have, and all presets.

use super::*;
use crate::presets::{INSTAGRAM, POSTGRES, SONYFLAKE, TWITTER};
use proptest::prelude::*;

const BEGIN_US: i64 = 1_767_225_600_000_000; // 2026-01-01
const HOUR_US: i64 = 3_600_000_000;

/// Rows of a generator that counts on, one in three minutes, with clocks up to two seconds off and one row in ten late.
fn rows(layout: Layout, shards: &[u32], count: i64) -> Vec<Sample> {
    (0..count)
        .map(|n| {
            let unix_us = BEGIN_US + n * HOUR_US / 20 + n % 7 * 1_000_003;
            let shard = shards[(n * 7 / 3) as usize % shards.len()];
            let seq = (n / shards.len() as i64 + 700) & (layout.seqs() - 1);
            let fields = crate::Fields { tick: layout.tick_at(unix_us), shard, seq: seq as u32 };
            let late_us =
                if n % 10 == 0 { n % 240 * HOUR_US } else { (n * 7919 % 41 - 20) * 100_000 };
            Sample { id: layout.compose(fields), unix_us: unix_us + late_us }
        })
        .collect()
}

#[test]
fn presets_are_found_by_their_epoch_and_their_bits() {
    for layout in [INSTAGRAM, TWITTER, SONYFLAKE, POSTGRES] {
        let found = find(&mut rows(layout, &[5], 20_000)).unwrap();
        assert_eq!(found.layout, layout);
        assert_eq!(found.shards, [5]);
        assert!(found.is_division_certain && found.other_units.is_empty(), "{found:?}");
    }
}

#[test]
fn a_layout_of_ones_own_is_found_with_its_epoch_to_the_error_of_the_clocks() {
    let own = Layout {
        time_bits: 43,
        shard_bits: 6,
        seq_bits: 15,
        epoch_ms: 1_495_331_934_000,
        ..INSTAGRAM
    };
    let found = find(&mut rows(own, &[1, 5, 20], 100_000)).unwrap();
    assert_eq!(Layout { epoch_ms: own.epoch_ms, ..found.layout }, own);
    assert!(found.layout.epoch_ms.abs_diff(own.epoch_ms) < 2_000, "{found:?}");
    assert_eq!(found.shards, [1, 5, 20]);
}

#[test]
fn rows_that_do_not_fit_are_those_that_came_late() {
    let rows = rows(INSTAGRAM, &[5], 20_000);
    let found = find(&mut rows.clone()).unwrap();
    let misfits = rows.iter().filter(|row| !found.fits(row)).count();
    assert!((1_800..=2_000).contains(&misfits), "{misfits}");
}

#[test]
fn a_counter_that_has_not_begun_again_leaves_a_doubt() {
    let own = Layout { epoch_ms: 1_600_000_000_000, ..INSTAGRAM };
    let found = find(&mut rows(own, &[5], 200)).unwrap();
    assert!(!found.is_division_certain);
    // The usual widths of these low bits.
    assert_eq!((found.layout.shard_bits, found.layout.seq_bits), (13, 10));
}

#[test]
fn times_that_are_close_together_leave_a_doubt_about_the_unit() {
    let rows: Vec<Sample> = rows(INSTAGRAM, &[5], 20_000)
        .into_iter()
        .enumerate()
        .map(|(n, row)| Sample { unix_us: BEGIN_US + n as i64 * HOUR_US / 20, ..row })
        .take(400)
        .collect();
    let near: Vec<Sample> = rows[..20].to_vec();
    assert_eq!(find(&mut rows.clone()).unwrap().other_units, []);
    assert!(find(&mut near.clone()).is_ok_and(|found| found.layout.unit == Unit::Ms1));
}

#[test]
fn what_has_no_layout_is_refused_with_the_reason() {
    let at = |id, unix_us| Sample { id, unix_us };
    assert_eq!(find(&mut vec![]), Err(NotFound::TooFew));
    assert_eq!(find(&mut vec![at(1, 1), at(1, 2), at(1, 3), at(-1, 4)]), Err(NotFound::TooFew));
    assert_eq!(find(&mut vec![at(1, 1), at(2, 1), at(3, 1)]), Err(NotFound::SameTime));
    let random: Vec<Sample> = (0..1_000_i64)
        .map(|n| {
            at(n.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) & i64::MAX, BEGIN_US + n * HOUR_US)
        })
        .collect();
    assert_eq!(find(&mut random.clone()), Err(NotFound::NoTime));
}

proptest! {
    #[test]
    fn no_samples_panic(samples in prop::collection::vec((any::<i64>(), any::<i64>()), 0..40)) {
        let samples: Vec<Sample> = samples.into_iter().map(|(id, unix_us)| Sample { id, unix_us }).collect();
        if let Ok(found) = find(&mut samples.clone()) {
            prop_assert!(found.layout.is_valid());
            for sample in &samples {
                let _ = found.fits(sample);
            }
        }
    }
}
