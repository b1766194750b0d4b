//! A homed ID is of the first counter of the run and the first shard of the class whose ID has a hash that leads home. Arguments that are
//! not valid are refused.

use crate::counter::Run;
use crate::hashfn::{hashint8, partition_hash};
use crate::homed::{Class, Found, Home, Homed, MAX_MODULUS, hash_ranges};
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
    /// The first hash, and how many more.
    ranges: Vec<(i32, u32)>,
    any_range: Option<(i64, i64)>,
    /// A range that begins at the hash of the first ID, or ends there.
    edge: Option<bool>,
}

/// Anything, or likelier to be valid.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum AnyInt {
    Any(i32),
    Small(u8),
    UpTo7(u8),
    BelowHighest(u8),
    UpToHighest(u32),
}

impl AnyInt {
    fn value(self, highest: i64) -> i32 {
        let highest = highest.clamp(0, i32::MAX.into());
        match self {
            AnyInt::Any(value) => value,
            AnyInt::Small(value) => value.into(),
            AnyInt::UpTo7(value) => (value % 8).into(),
            AnyInt::BelowHighest(less) => (highest - i64::from(less)) as i32,
            AnyInt::UpToHighest(value) => (i64::from(value) % (highest + 1)) as i32,
        }
    }
}

/// Panics if a property does not hold.
pub fn check(input: Input) {
    let AnyLayout(layout) = input.layout;
    let modulus = input.modulus.value(layout.shards().min(MAX_MODULUS));
    let generators = input.generators.value(layout.shards() / i64::from(modulus).max(1));
    let shard_id = input.shard_id.value((i64::from(modulus) * i64::from(generators)).saturating_sub(1));
    let first = (input.counter & i64::MAX).min(layout.max_counter());
    let run = Run { first, last: first.saturating_add(input.length.into()).min(layout.max_counter()) };
    let is_in_run = |found: Found| (run.first..=run.last).contains(&found.counter);

    let product = i128::from(modulus) * i128::from(generators);
    let is_valid = (1..=MAX_MODULUS).contains(&modulus.into())
        && generators >= 1
        && product <= layout.shards().into()
        && (0..product).contains(&shard_id.into());
    let homed = Homed::in_partition(&layout, shard_id, modulus, generators);
    assert_eq!(homed.is_ok(), is_valid, "{homed:?}");
    if let Ok(homed) = homed {
        const MOST: usize = 5_000;
        let numbers = || (0..layout.shards()).skip(shard_id as usize).step_by(product as usize);
        assert!(homed.class.shards().map(i64::from).take(MOST).eq(numbers().take(MOST)), "{:?}", homed.class);
        assert_eq!(i128::from(homed.class.count()), (i128::from(layout.shards()) - 1 - i128::from(shard_id)) / product + 1);
        let found = homed.first_in(&layout, run);
        assert!(found.is_none_or(is_in_run));
        let all = (run.first..=run.last).flat_map(|counter| numbers().map(move |shard| Found { counter, shard: shard as u32 }));
        let is_home = |found: &Found| {
            let id = layout.id(found.counter, found.shard);
            assert!(id >= 0 && layout.split(id).shard == found.shard);
            partition_hash(id) % modulus as u64 == (shard_id % modulus) as u64
        };
        let tried: Vec<Found> = all.take(MOST).collect();
        let expected = tried.iter().copied().find(is_home);
        if tried.len() < MOST || expected.is_some() {
            assert_eq!(found, expected);
        }
    }

    let shard = shard_id as u32 & (layout.shards() - 1) as u32;
    let hash_of = |counter| i64::from(hashint8(layout.id(counter, shard)));
    let edge = input.edge.map(|is_first| match (is_first, hash_of(run.first)) {
        (true, hash) => (hash, i64::MAX),
        (false, hash) => (i64::MIN, hash),
    });
    let ranges_asked = || {
        let range = |&(first, more): &(i32, u32)| (first.into(), (i64::from(first) + i64::from(more)).min(i32::MAX.into()));
        input.ranges.iter().map(range).chain(input.any_range).chain(edge)
    };
    let Ok(ranges) = hash_ranges(Vec::new(), ranges_asked()) else { return };
    assert!(ranges.iter().all(|range| range.first <= range.last));
    assert!(ranges.windows(2).all(|pair| i64::from(pair[0].last) + 1 < pair[1].first.into()));
    let homed = Homed::new(Class::one(shard), Home::Ranges(&ranges));
    let is_home = |&counter: &i64| ranges_asked().any(|(first, last)| (first..=last).contains(&hash_of(counter)));
    let expected = (run.first..=run.last).find(is_home).map(|counter| Found { counter, shard });
    assert_eq!(homed.first_in(&layout, run), expected);
}
