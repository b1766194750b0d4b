//! The script `find_layout` has the copies that public repositories have, all presets, rows that do not fit, and units in doubt. The test
//! `simulation` has clocks, rates and counters of every kind.

use super::*;
use crate::presets::{INSTAGRAM, TWITTER};
use proptest::prelude::*;

const BEGIN_US: i64 = 1_767_225_600_000_000; // 2026-01-01
const HOUR_US: i64 = 3_600_000_000;

#[test]
fn a_counter_that_has_not_wrapped_leaves_candidates_with_the_usual_widths_first() {
    for (low, usual) in [(INSTAGRAM, (13, 10)), (TWITTER, (10, 12)), (Layout { shard_bits: 8, seq_bits: 8, ..INSTAGRAM }, (8, 8))] {
        let own = Layout { epoch_ms: 1_600_000_000_000, ..low };
        let found = find(&mut rows_of(own, 100, |_| 5, |n| n % 6)).unwrap();
        assert!(!found.is_division_certain && !found.is_sure());
        assert_eq!((found.layout().shard_bits, found.layout().seq_bits, &found.divisions[0].shards[..]), (usual.0, usual.1, &[5][..]));
        let without_shard = found.divisions.last().expect("others");
        assert_eq!((without_shard.layout.shard_bits, &without_shard.shards[..]), (0, &[0][..]));
    }
}

/// A number that looks random.
fn hash(n: i64) -> i64 {
    let mixed = (n as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as i64
}

/// Rows, one in three minutes, of a layout with these shards and counters by their number.
fn rows_of(layout: Layout, count: i64, shard: impl Fn(i64) -> u32, counter: impl Fn(i64) -> i64) -> Vec<Sample> {
    (0..count)
        .map(|n| {
            let unix_us = BEGIN_US + n * HOUR_US / 20 + hash(n) % 10_000_000;
            let seq = (counter(n) & (layout.seqs() - 1)) as u32;
            let fields = crate::Fields { tick: layout.tick_at(unix_us), shard: shard(n), seq };
            Sample { id: layout.compose(fields), unix_us }
        })
        .collect()
}

#[test]
fn counters_in_another_order_give_the_layout_or_leave_a_doubt() {
    const COPY: Layout = Layout { epoch_ms: 1_600_000_000_000, ..INSTAGRAM };
    let mastodon = Layout::preset("mastodon").unwrap();
    let five = |_| 5;
    // Of a sequence that other tables use, too.
    let shared = |n: i64| (0..n).map(|n| 1 + hash(n) % 300).sum();
    let cached = |sessions: i64, cache: i64| move |n: i64| (n / sessions / cache * sessions + n % sessions) * cache + n / sessions % cache;
    for (name, layout, rows) in [
        ("shared by tables", COPY, rows_of(COPY, 3_000, five, shared)),
        ("shared by tables, a preset", INSTAGRAM, rows_of(INSTAGRAM, 3_000, five, shared)),
        ("CACHE 50, 3 sessions", COPY, rows_of(COPY, 5_000, five, cached(3, 50))),
        ("every 397th", COPY, rows_of(COPY, 3_000, five, |n| n * 397)),
        ("random", COPY, rows_of(COPY, 500, five, hash)),
        ("random, 20,000", COPY, rows_of(COPY, 20_000, five, hash)),
        ("ten picked", INSTAGRAM, rows_of(INSTAGRAM, 10, five, hash)),
        ("ten picked of three shards", TWITTER, rows_of(TWITTER, 10, |n| n as u32 % 3, hash)),
        ("random, of Mastodon", mastodon, rows_of(mastodon, 3_000, |_| 0, hash)),
        ("two shards in turn", COPY, rows_of(COPY, 5_000, |n| 4 + n as u32 % 2, |n| n / 2)),
        ("one shard after another", COPY, rows_of(COPY, 6_000, |n| 6 + n as u32 / 3_000, |n| n)),
        ("16 shards", COPY, rows_of(COPY, 20_000, |n| hash(n) as u32 % 16, |n| n / 16)),
        ("always 0", TWITTER, rows_of(TWITTER, 500, five, |_| 0)),
    ] {
        let found = find(&mut rows.clone()).unwrap();
        assert_eq!(
            (found.layout().shard_place, found.layout().shard_bits, found.layout().seq_bits),
            (layout.shard_place, layout.shard_bits, layout.seq_bits),
            "{name}: {found:?}"
        );
        let is_in_order = ["two shards", "one shard after"];
        let is_in_order = is_in_order.iter().any(|order| name.starts_with(order));
        assert_eq!(found.is_division_certain, is_in_order, "{name}");
    }
}

/// The rows are 3 ms early, but three in twenty are a minute earlier, and three later.
#[test]
fn an_epoch_that_too_few_rows_confirm_is_that_of_the_known_layout_nearby() {
    let mut rows = rows_of(TWITTER, 1_000, |_| 5, |n| n);
    for (row, n) in rows.iter_mut().zip(0..) {
        row.unix_us += match n % 20 {
            0..3 => -60_000_000,
            3..6 => 60_000_000,
            _ => -3_000,
        };
    }
    assert_eq!(find(&mut rows).unwrap().layout(), TWITTER);
}

/// Rows as a statement of many rows inserts them: `burst` in 1 ms, of all rows of a minute.
fn bursts(layout: Layout, count: i64, burst: i64, resets: bool) -> Vec<Sample> {
    (0..count)
        .map(|n| {
            let unix_us = BEGIN_US + n / 5_000 * 60_000_000 + n % 5_000 / burst * 1_000;
            let counter = if resets { n % 5_000 % burst } else { n };
            let seq = (counter & (layout.seqs() - 1)) as u32;
            let fields = crate::Fields { tick: layout.tick_at(unix_us), shard: 5, seq };
            Sample { id: layout.compose(fields), unix_us }
        })
        .collect()
}

#[test]
fn a_counter_may_begin_again_within_a_tick() {
    let own = Layout { epoch_ms: 1_495_331_934_000, ..INSTAGRAM };
    for burst in [2, 5, 50, 700] {
        for layout in [own, Layout { epoch_ms: own.epoch_ms, ..TWITTER }] {
            let found = find(&mut bursts(layout, 12_000, burst, false)).unwrap();
            let found = (found.is_division_certain, found.divisions[0].shards.clone(), found.layout().seq_bits);
            assert_eq!(found, (true, vec![5], layout.seq_bits), "{burst}");
        }
        let twitter = find(&mut bursts(TWITTER, 6_000, burst, true)).unwrap();
        assert_eq!((twitter.is_division_certain, twitter.layout()), (false, TWITTER), "{burst}");
    }
}

#[test]
fn cockroachdbs_layout_is_named_first_as_its_ids_have_no_counter() {
    let layout = crate::layout_spec::parse("time:48 shard:15 seq:0 epoch:2015-01-01 unit:10us", i64::MAX).unwrap();
    for nodes in [vec![1], vec![1, 2, 3], (1..10).collect()] {
        let rows = [
            rows_of(layout, 600, |n| nodes[hash(n) as usize % nodes.len()], |_| 0),
            rows_of(layout, 5_000, |n| nodes[n as usize % nodes.len()], |_| 0),
        ];
        for mut rows in rows {
            let found = find(&mut rows).unwrap();
            assert!(!found.is_sure());
            assert_eq!((found.layout(), &found.divisions[0].shards), (layout, &nodes));
        }
    }
}

#[test]
fn a_bit_that_only_the_shard_changes_is_not_taken_for_one_of_the_tick() {
    // In ticks of 10 ms and not 20 ms, the highest bit of the shard would be the lowest of the tick.
    let id_of = |n: i64, ms: i64| ((ms / 20) << 22) | ([1_358, 4_095][n as usize % 2] << 10) | ((n / 2 + 900) % 1_024);
    let rows = (0..1_400).map(|n| (n, BEGIN_US / 1_000 + n * 10_000 + hash(n) % 5_000));
    let mut rows = rows.map(|(n, ms)| Sample { id: id_of(n, ms - 1_620_000_000_000), unix_us: ms * 1_000 }).collect();
    let found = find(&mut rows).unwrap();
    assert_eq!((found.layout().tick_us(), found.is_division_certain, &found.time.other_ticks_us[..]), (10_000, true, &[20_000][..]));
}

#[test]
fn consecutive_numbers_are_no_ids_with_a_time() {
    for us in [100, 1_000, 4_000, 40_000] {
        let mut serial: Vec<Sample> = (1..20_000).map(|n| Sample { id: n, unix_us: BEGIN_US + n * us }).collect();
        let refused = find(&mut serial);
        assert!(matches!(refused, Err(NotFound::Serial | NotFound::OtherLayout)), "{us}: {refused:?}");
    }
    // Times as numbers, of a unit that no layout has.
    for id_of in [|us: i64| us / 1_000, |us| us, |us| us * 1_000] {
        let rows = (0..2_000).map(|n| BEGIN_US + n * 60_000_000);
        let mut rows = rows.map(|unix_us| Sample { id: id_of(unix_us), unix_us }).collect();
        assert_eq!(find(&mut rows), Err(NotFound::OtherLayout));
    }
}

#[test]
fn an_id_from_elsewhere_changes_nothing() {
    let own = Layout { epoch_ms: 1_600_000_000_000, ..INSTAGRAM };
    let mut samples = rows_of(own, 5_000, |_| 5, |n| n);
    samples.push(Sample { id: i64::MAX, unix_us: BEGIN_US });
    samples.push(Sample { id: 17, unix_us: BEGIN_US });
    let found = find(&mut samples).unwrap();
    assert_eq!((found.layout().seq_bits, &found.divisions[0].shards[..]), (own.seq_bits, &[5][..]));
}

#[test]
fn what_has_no_layout_is_refused_with_the_reason() {
    let at = |id, unix_us| Sample { id, unix_us };
    assert_eq!(find(&mut vec![]), Err(NotFound::TooFew));
    assert_eq!(find(&mut vec![at(1, 1), at(1, 2), at(1, 3), at(-1, 4)]), Err(NotFound::TooFew));
    assert_eq!(find(&mut vec![at(1, 1), at(2, 1), at(3, 1)]), Err(NotFound::SameTime));
    let random: Vec<Sample> =
        (0..1_000_i64).map(|n| at(n.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) & i64::MAX, BEGIN_US + n * HOUR_US)).collect();
    assert_eq!(find(&mut random.clone()), Err(NotFound::NoTime));
}

proptest! {
    #[test]
    fn no_samples_panic(samples in prop::collection::vec((any::<i64>(), any::<i64>()), 0..40)) {
        let samples: Vec<Sample> = samples.into_iter().map(|(id, unix_us)| Sample { id, unix_us }).collect();
        if let Ok(found) = find(&mut samples.clone()) {
            prop_assert!(found.layout().is_valid());
            for sample in &samples {
                let _ = found.time.fits(sample);
            }
        }
    }
}
