//! A homed ID is of a counter of the run and of a shard of the class, and its hash leads home. Whether there is one in a run depends
//! on nothing but the run. Arguments that are not valid are refused.

use crate::counter::Run;
use crate::hashfn::{hashint8, partition_hash};
use crate::homed::{Class, Found, Home, Homed, hash_ranges};
use arbitrary::Arbitrary;
use pg_snowflake_ids::properties::inputs::AnyLayout;

/// The input of the target.
#[derive(Debug, Arbitrary)]
pub struct Input {
    layout: AnyLayout,
    shard_id: AnyInt,
    modulus: AnyInt,
    generators: AnyInt,
    counter: i64,
    length: u8,
    ranges: Vec<(i64, i64)>,
}

/// Small ones are more likely to be valid.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum AnyInt {
    Any(i32),
    Small(u8),
}

impl AnyInt {
    fn value(self) -> i32 {
        match self {
            AnyInt::Any(value) => value,
            AnyInt::Small(value) => value.into(),
        }
    }
}

/// Panics if a property does not hold.
pub fn check(input: Input) {
    let AnyLayout(layout) = input.layout;
    let [shard_id, modulus, generators] = [input.shard_id, input.modulus, input.generators].map(AnyInt::value);
    let first = (input.counter & i64::MAX).min(layout.max_counter());
    let run = Run { first, last: first.saturating_add(input.length.into()).min(layout.max_counter()) };
    let is_in_run = |found: Found| (run.first..=run.last).contains(&found.counter);

    let product = i128::from(modulus) * i128::from(generators);
    let is_valid =
        (1..=1 << 14).contains(&modulus) && generators >= 1 && product <= layout.shards().into() && (0..product).contains(&shard_id.into());
    let homed = Homed::in_partition(&layout, shard_id, modulus, generators);
    assert_eq!(homed.is_ok(), is_valid, "{homed:?}");
    if let Ok(homed) = homed {
        assert!(homed.class.last < layout.shards() as u32);
        let found = homed.first_in(&layout, run);
        if let Some(found) = found {
            assert!(is_in_run(found));
            assert_eq!(i128::from(found.shard) % product, shard_id.into());
            let id = layout.id(found.counter, found.shard);
            assert!(id >= 0 && layout.split(id).shard == found.shard);
            let home = partition_hash(id) % modulus as u64;
            assert_eq!(home, (shard_id % modulus) as u64);
        }
        if i64::from(input.length) < homed.max_counters() {
            let last = found.map_or(run.last + 1, |found| found.counter);
            assert!((run.first..last).all(|counter| homed.shard_of(&layout, counter).is_none()));
        }
    }

    let Ok(ranges) = hash_ranges(Vec::new(), input.ranges.iter().copied()) else { return };
    assert!(ranges.iter().all(|range| range.first <= range.last));
    assert!(ranges.windows(2).all(|pair| i64::from(pair[0].last) + 1 < pair[1].first.into()));
    let shard = shard_id as u32 & (layout.shards() - 1) as u32;
    let homed = Homed::new(Class::one(shard), Home::Ranges(&ranges));
    if let Some(found) = homed.first_in(&layout, run) {
        assert!(is_in_run(found) && found.shard == shard);
        let hash = i64::from(hashint8(layout.id(found.counter, shard)));
        assert!(input.ranges.iter().any(|&(first, last)| (first..=last).contains(&hash)));
    }
}
