//! Homed IDs: IDs whose hash leads to the shard that generates them.
//!
//! A system that shards by the hash of the key, such as a table that is partitioned by PostgreSQL's own hash of a `bigint`, sends a
//! row to `hash(id) mod modulus`. The shard field of a [`Layout`] has more values than there are shards. So a shard can have many
//! numbers, a [`Class`], and for nearly every counter one of them makes the ID hash to the shard.
//!
//! The search varies the number first and then the counter, so no counter is lost while the class has many more numbers than the
//! modulus. IDs stay unique by their counter.

use crate::counter::Run;
use crate::hashfn::{hashint8, partition_hash};
use pg_snowflake_ids::layout::Layout;

/// The highest modulus. A search takes about as many tries as the modulus, while the sequence is locked: about 50 µs.
pub const MAX_MODULUS: i64 = 1 << 14;

/// A search ends after this many tries. At the highest modulus, one in 10^27 searches takes more. With the smallest ranges it is one in
/// 10^14: their IDs have one shard, and in layout `instagram` the 2^20 counters of some minutes have 2^19 different hashes.
const MOST_TRIES: i64 = MAX_MODULUS << 6;

/// The shard numbers `first`, `first + step` and so on up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The lowest number.
    pub first: u32,
    /// The distance of the numbers, at least 1.
    pub step: u32,
    /// The highest number; `first` in a class of one number.
    pub last: u32,
}

impl Class {
    /// The class of one number.
    #[inline(always)]
    pub const fn one(shard: u32) -> Self {
        Class { first: shard, step: 1, last: shard }
    }

    /// Whether the class has only one number.
    #[inline(always)]
    pub const fn is_one(&self) -> bool {
        self.first == self.last
    }

    /// How many numbers it has.
    #[inline]
    pub const fn count(&self) -> u32 {
        (self.last - self.first) / self.step + 1
    }

    /// The numbers in ascending order.
    pub fn shards(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(self.step as usize)
    }
}

/// A range of [`hashint8`] values, `first` and `last` included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashRange {
    /// The lowest.
    pub first: i32,
    /// The highest, not below `first`.
    pub last: i32,
}

/// Where an ID is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home<'a> {
    /// In the hash partition with this remainder.
    Partition {
        /// The number of partitions, at least 1.
        modulus: u32,
        /// Below the modulus.
        remainder: u32,
    },
    /// Where the ranges contain its [`hashint8`], as in Citus. They are in ascending order and do not overlap.
    Ranges(&'a [HashRange]),
}

impl Home<'_> {
    /// Whether the ID is at home.
    #[inline]
    pub fn has(&self, id: i64) -> bool {
        match *self {
            Home::Partition { modulus, remainder } => {
                partition_hash(id) % u64::from(modulus) == u64::from(remainder)
            }
            Home::Ranges(ranges) => {
                let hash = hashint8(id);
                let after = ranges.partition_point(|range| range.first <= hash);
                after.checked_sub(1).is_some_and(|index| hash <= ranges[index].last)
            }
        }
    }
}

/// Why there are no homed IDs with these arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The modulus is below 1, above [`MAX_MODULUS`], or above the layout's number of shards.
    Modulus {
        /// The modulus.
        modulus: i32,
        /// The highest that is possible.
        highest: i64,
    },
    /// The number of generators is below 1, or the product with the modulus is above the layout's number of shards.
    Generators {
        /// The number of generators.
        generators: i32,
        /// The highest that is possible.
        highest: i64,
    },
    /// The shard is negative, or not below the product of modulus and generators. A shard above would share its class with another.
    Shard {
        /// The shard.
        shard: i32,
        /// The highest that is possible.
        highest: i64,
    },
    /// There is no range of hashes.
    NoRange,
    /// A range of hashes ends below -2^31 or above 2^31 - 1.
    RangeBeyondHashes,
    /// The ranges have so few hashes that a search would take too long.
    TooFewHashes {
        /// How many they have.
        hashes: i64,
        /// How many they need.
        needed: i64,
    },
}

/// How many hashes ranges need: as many as the partitions of the highest modulus have.
const LEAST_HASHES: i64 = (1 << 32) / MAX_MODULUS;

/// The ranges in ascending order, merged where they touch. `ranges` are pairs of the first and the last hash; `i64::MIN` and
/// `i64::MAX` are infinite. `found` is an empty vector, for which the caller has allocated memory if need be.
pub fn hash_ranges(
    mut found: Vec<HashRange>,
    ranges: impl IntoIterator<Item = (i64, i64)>,
) -> Result<Vec<HashRange>, Invalid> {
    for (first, last) in ranges {
        let bound = |hash: i64, infinite: i64, end: i32| match hash == infinite {
            true => Ok(end),
            false => i32::try_from(hash).map_err(|_| Invalid::RangeBeyondHashes),
        };
        let first = bound(first, i64::MIN, i32::MIN)?;
        let last = bound(last, i64::MAX, i32::MAX)?;
        if first <= last {
            found.push(HashRange { first, last });
        }
    }
    found.sort_unstable();
    found.dedup_by(|later, earlier| {
        let touches = later.first <= earlier.last.saturating_add(1);
        if touches {
            earlier.last = earlier.last.max(later.last);
        }
        touches
    });
    if found.is_empty() {
        return Err(Invalid::NoRange);
    }
    let hashes = found.iter().map(|range| i64::from(range.last) - i64::from(range.first) + 1).sum();
    if hashes < LEAST_HASHES {
        return Err(Invalid::TooFewHashes { hashes, needed: LEAST_HASHES });
    }
    Ok(found)
}

/// Which IDs are wanted: the shard numbers that they may have, and where they are at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Homed<'a> {
    /// The shard numbers.
    pub class: Class,
    /// Where the IDs are at home.
    pub home: Home<'a>,
    shards: u32,
    most_counters: i64,
}

/// A counter, and the shard number with which it makes an ID that is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The counter.
    pub counter: i64,
    /// The shard number.
    pub shard: u32,
}

impl Homed<'static> {
    /// IDs in the partition `shard_id mod modulus`. The class is `shard_id`, `shard_id + modulus·generators` and so on, as far as the
    /// layout goes. So `shard mod modulus` is the partition, and the classes of different shard IDs have no number in common.
    ///
    /// ```
    /// use pg_snowflake_policies::hashfn::partition_hash;
    /// use pg_snowflake_policies::homed::Homed;
    /// use pg_snowflake_ids::presets::INSTAGRAM;
    ///
    /// let homed = Homed::in_partition(&INSTAGRAM, 3, 4, 1)?;
    /// let shard = homed.shard_of(&INSTAGRAM, 1_000_000).expect("one of 2048 numbers");
    /// assert_eq!(shard % 4, 3);
    /// assert_eq!(partition_hash(INSTAGRAM.id(1_000_000, shard)) % 4, 3);
    /// # Ok::<(), pg_snowflake_policies::homed::Invalid>(())
    /// ```
    pub fn in_partition(
        layout: &Layout,
        shard_id: i32,
        modulus: i32,
        generators: i32,
    ) -> Result<Self, Invalid> {
        let shards = layout.shards();
        let is_within =
            |value: i32, lowest, highest| (lowest..=highest).contains(&i64::from(value));
        let highest = shards.min(MAX_MODULUS);
        if !is_within(modulus, 1, highest) {
            return Err(Invalid::Modulus { modulus, highest });
        }
        let highest = shards / i64::from(modulus);
        if !is_within(generators, 1, highest) {
            return Err(Invalid::Generators { generators, highest });
        }
        let step = i64::from(modulus) * i64::from(generators);
        let highest = step - 1;
        if !is_within(shard_id, 0, highest) {
            return Err(Invalid::Shard { shard: shard_id, highest });
        }
        let first = i64::from(shard_id);
        let last = first + (shards - 1 - first) / step * step;
        let [first, step, last, modulus] =
            [first, step, last, modulus.into()].map(|number| number as u32);
        let home = Home::Partition { modulus, remainder: first % modulus };
        Ok(Homed::new(Class { first, step, last }, home))
    }
}

impl<'a> Homed<'a> {
    /// IDs with a shard number of the class and that home.
    #[inline]
    pub fn new(class: Class, home: Home<'a>) -> Self {
        let shards = class.count();
        let most_counters = (MOST_TRIES / i64::from(shards)).max(1);
        Homed { class, home, shards, most_counters }
    }

    /// The first shard number of the class with which the counter makes an ID that is at home.
    pub fn shard_of(&self, layout: &Layout, counter: i64) -> Option<u32> {
        self.first_in(layout, Run { first: counter, last: counter }).map(|found| found.shard)
    }

    /// The first counter of the run that makes an ID that is at home, and its shard number; `None` also after
    /// [`Homed::most_counters`].
    #[inline]
    pub fn first_in(&self, layout: &Layout, run: Run) -> Option<Found> {
        // Without a division where the modulus is a power of two, whose remainder is in the lower half of the hash.
        let is_home = |id, mask, remainder| partition_hash(id) as u32 & mask == remainder;
        match self.home {
            // The processor cannot predict which of two numbers fits. Three times out of four one of the first two does: computing
            // both hashes takes 14 ns an ID, and one after the other 24 ns. From modulus 4 on that is slower.
            Home::Partition { modulus: 2, remainder } => {
                self.search(layout, run, |ids: [i64; 2]| ids.map(|id| is_home(id, 1, remainder)))
            }
            Home::Partition { modulus, remainder } if modulus.is_power_of_two() => {
                self.search(layout, run, |[id]| [is_home(id, modulus - 1, remainder)])
            }
            home => self.search(layout, run, |[id]| [home.has(id)]),
        }
    }

    /// The most counters that a search looks at.
    #[inline]
    pub fn most_counters(&self) -> i64 {
        self.most_counters
    }

    /// How many counters it takes on average to find `ids` of them; at least `ids`.
    pub fn counters_for(&self, ids: i64) -> i64 {
        let share = match self.home {
            Home::Partition { modulus, .. } => 1.0 / f64::from(modulus),
            Home::Ranges(ranges) => {
                let size = |range: &HashRange| f64::from(range.last) - f64::from(range.first) + 1.0;
                ranges.iter().map(size).sum::<f64>() / (1_u64 << 32) as f64
            }
        };
        let has_one = 1.0 - (1.0 - share).powf(f64::from(self.class.count()));
        // A conversion to an integer saturates.
        (ids as f64 / has_one).ceil() as i64
    }

    /// Tries `N` shard numbers at a time.
    #[inline(always)]
    fn search<const N: usize>(
        &self,
        layout: &Layout,
        run: Run,
        are_home: impl Fn([i64; N]) -> [bool; N],
    ) -> Option<Found> {
        let Class { first, step, .. } = self.class;
        let to_next = i64::from(step) << layout.shard_shift();
        let plain = Layout { shard_place: layout.shard_place.without_xor(), ..*layout };
        let last_counter = run.last.min(run.first.saturating_add(self.most_counters() - 1));
        for counter in run.first..=last_counter {
            // Shard numbers are added to the ID, and then it is XORed with what the layout XORs the shard with.
            let mut id = plain.id(counter, first);
            let mask = layout.id(counter, first) ^ id;
            let mut tried = 0;
            while tried < self.shards {
                // Those beyond the class are not looked at.
                let ids = std::array::from_fn(|n| id.wrapping_add(n as i64 * to_next) ^ mask);
                let mut fitting = 0_u32;
                for (n, is_home) in are_home(ids).into_iter().enumerate() {
                    fitting |= u32::from(is_home) << n;
                }
                let nth = tried + fitting.trailing_zeros();
                if fitting != 0 && nth < self.shards {
                    return Some(Found { counter, shard: first + nth * step });
                }
                tried += N as u32;
                id = id.wrapping_add(N as i64 * to_next);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pg_snowflake_ids::any::any_layout;
    use pg_snowflake_ids::presets::{INSTAGRAM, JS53, POSTGRES, PRESETS};
    use proptest::prelude::*;

    fn invalid(shard_id: i32, modulus: i32, generators: i32) -> Invalid {
        Homed::in_partition(&JS53, shard_id, modulus, generators).expect_err("invalid")
    }

    #[test]
    fn the_arguments_must_fit_the_layout() {
        // 128 shards.
        let cases = [
            ((0, 0, 1), Invalid::Modulus { modulus: 0, highest: 128 }),
            ((0, -1, 1), Invalid::Modulus { modulus: -1, highest: 128 }),
            ((0, 129, 1), Invalid::Modulus { modulus: 129, highest: 128 }),
            ((0, 4, 0), Invalid::Generators { generators: 0, highest: 32 }),
            ((0, 4, 33), Invalid::Generators { generators: 33, highest: 32 }),
            ((0, 4, i32::MAX), Invalid::Generators { generators: i32::MAX, highest: 32 }),
            ((-1, 4, 2), Invalid::Shard { shard: -1, highest: 7 }),
            ((8, 4, 2), Invalid::Shard { shard: 8, highest: 7 }),
        ];
        for ((shard_id, modulus, generators), expected) in cases {
            assert_eq!(invalid(shard_id, modulus, generators), expected);
        }
        let wide = Layout { time_bits: 32, shard_bits: 31, seq_bits: 0, ..INSTAGRAM };
        let too_large = Invalid::Modulus { modulus: i32::MAX, highest: MAX_MODULUS };
        assert_eq!(Homed::in_partition(&wide, 0, i32::MAX, 1), Err(too_large));
    }

    #[test]
    fn a_class_has_every_number_of_its_shard() {
        let class = |shard_id, modulus, generators| {
            let homed = Homed::in_partition(&JS53, shard_id, modulus, generators).expect("valid");
            (homed.class.shards().collect::<Vec<_>>(), homed.class.count())
        };
        assert_eq!(class(5, 32, 1), (vec![5, 37, 69, 101], 4));
        assert_eq!(class(37, 32, 2), (vec![37, 101], 2));
        assert_eq!(class(1, 50, 1), (vec![1, 51, 101], 3));
        assert_eq!(class(30, 50, 1), (vec![30, 80], 2));
        assert_eq!(class(127, 128, 1), (vec![127], 1));
        assert_eq!(class(0, 1, 1).1, 128);
    }

    #[test]
    fn ranges_are_sorted_and_merged() {
        const MIN: i32 = i32::MIN;
        let ranges = |ranges: &[(i64, i64)]| {
            hash_ranges(Vec::new(), ranges.iter().copied())
                .map(|ranges| ranges.iter().map(|range| (range.first, range.last)).collect())
        };
        assert_eq!(ranges(&[(i64::MIN, i64::MAX)]), Ok(vec![(MIN, i32::MAX)]));
        let of_two = [(0, 999_999), (i64::MIN, -1_000), (-999, -1)];
        assert_eq!(ranges(&of_two), Ok(vec![(MIN, 999_999)]));
        let apart = [(5_000_000, i64::MAX), (0, 999_999)];
        assert_eq!(ranges(&apart), Ok(vec![(0, 999_999), (5_000_000, i32::MAX)]));
        assert_eq!(ranges(&[(0, LEAST_HASHES - 1)]), Ok(vec![(0, LEAST_HASHES as i32 - 1)]));
        let too_few = Invalid::TooFewHashes { hashes: LEAST_HASHES - 1, needed: LEAST_HASHES };
        assert_eq!(ranges(&[(1, LEAST_HASHES - 1)]), Err(too_few));
        assert_eq!(ranges(&[]), Err(Invalid::NoRange));
        for beyond in [(0, 1 << 31), (-(1 << 31) - 1, 0), (1 << 31, i64::MAX)] {
            assert_eq!(ranges(&[beyond]), Err(Invalid::RangeBeyondHashes));
        }
    }

    /// How many counters of 20,000 have an ID that is at home in partition 1, and how many tries an ID takes.
    fn found(layout: &Layout, modulus: i32) -> (f64, f64) {
        const COUNTERS: i64 = 20_000;
        let homed = Homed::in_partition(layout, 1 % modulus, modulus, 1).expect("valid");
        let first = layout.at_tick(0, layout.tick_at(1_800_000_000_000_000));
        let (mut ids, mut tries) = (0, 0);
        for counter in first..first + COUNTERS {
            match homed.shard_of(layout, counter) {
                Some(shard) => {
                    ids += 1;
                    tries += (shard - homed.class.first) / homed.class.step + 1;
                }
                None => tries += homed.class.count(),
            }
        }
        (f64::from(ids) / COUNTERS as f64, f64::from(tries) / f64::from(ids))
    }

    #[test]
    fn a_search_takes_as_many_tries_as_the_modulus_and_loses_no_counter_up_to_16() {
        for layout in [INSTAGRAM, POSTGRES] {
            for modulus in [1, 2, 3, 4, 16, 64, 256] {
                let (share, tries) = found(&layout, modulus);
                println!("{layout}, {modulus}: {share} of the counters, {tries} tries");
                assert!((0.85..1.15).contains(&(tries / f64::from(modulus))), "{modulus}: {tries}");
                assert!(share == 1.0 || modulus > 16, "{modulus}: {share}");
                let homed = Homed::in_partition(&layout, 0, modulus, 1).expect("valid");
                let expected = 1_000.0 / homed.counters_for(1_000) as f64;
                assert!((0.9..1.1).contains(&(share / expected)), "{share} rather than {expected}");
            }
        }
    }

    #[test]
    fn every_preset_has_homed_ids_at_the_highest_modulus() {
        for (name, layout) in PRESETS {
            let modulus = layout.shards().min(MAX_MODULUS) as i32;
            let homed = Homed::in_partition(layout, modulus - 1, modulus, 1).expect("valid");
            let first = layout.at_tick(7, layout.tick_at(1_800_000_000_000_000));
            let found = homed.first_in(layout, Run { first, last: i64::MAX }).expect(name);
            assert!(homed.home.has(layout.id(found.counter, found.shard)), "{name}");
        }
    }

    #[test]
    fn a_search_ends() {
        // No ID has that hash: it is not a range that hash_ranges() returns.
        let homed = Homed::new(Class::one(5), Home::Ranges(&[]));
        assert_eq!(homed.first_in(&INSTAGRAM, Run { first: 1, last: i64::MAX }), None);
    }

    /// Any home with shares of the hashes that a test of a thousand tries meets.
    fn any_homed() -> impl Strategy<Value = (Layout, i32, i32, i32)> {
        any_layout().prop_flat_map(|layout| {
            let shards = layout.shards();
            (1..=shards.min(50)).prop_flat_map(move |modulus| {
                (1..=(shards / modulus).min(1_000_000)).prop_flat_map(move |generators| {
                    (0..modulus * generators).prop_map(move |shard| {
                        (layout, shard as i32, modulus as i32, generators as i32)
                    })
                })
            })
        })
    }

    proptest! {
        #[test]
        fn the_search_is_that_of_brute_force(
            (layout, shard_id, modulus, generators) in any_homed(), counter: u64, length in 0..20_i64,
        ) {
            let homed = Homed::in_partition(&layout, shard_id, modulus, generators).unwrap();
            let first = (counter as i64 & layout.max_counter()).min(layout.max_counter() - 20).max(0);
            let run = Run { first, last: (first + length).min(layout.max_counter()) };
            let step = i64::from(modulus) * i64::from(generators);
            let all = (run.first..=run.last).flat_map(|counter| {
                (0..).map(move |n| i64::from(shard_id) + n * step)
                    .take_while(move |&shard| shard < layout.shards())
                    .map(move |shard| Found { counter, shard: shard as u32 })
            });
            let all: Vec<Found> = all.take(5_000).collect();
            let expected = all.iter().copied().find(|found| {
                let id = layout.id(found.counter, found.shard);
                partition_hash(id) % modulus as u64 == (shard_id % modulus) as u64
            });
            if all.len() < 5_000 || expected.is_some() {
                prop_assert_eq!(homed.first_in(&layout, run), expected);
            }
        }

        #[test]
        fn different_shards_have_no_number_in_common(
            modulus in 1..20_i32, generators in 1..6_i32, shards in prop::array::uniform2(0..120_i32),
        ) {
            let [one, other] = shards.map(|shard| shard % (modulus * generators));
            prop_assume!(one != other);
            let class = |shard| Homed::in_partition(&JS53, shard, modulus, generators).unwrap().class;
            prop_assert!(class(one).shards().all(|shard| class(other).shards().all(|o| o != shard)));
        }

        #[test]
        fn a_home_in_ranges_is_where_one_of_them_has_the_hash(
            pairs in prop::collection::vec((i32::MIN..i32::MAX, 0..1_i64 << 28), 1..8), id in 0..i64::MAX,
        ) {
            let pairs: Vec<(i64, i64)> = pairs
                .into_iter()
                .map(|(first, more)| (first.into(), (i64::from(first) + more).min(i32::MAX.into())))
                .collect();
            let Ok(ranges) = hash_ranges(Vec::new(), pairs.iter().copied()) else { return Ok(()) };
            let hash = i64::from(hashint8(id));
            let expected = pairs.iter().any(|&(first, last)| (first..=last).contains(&hash));
            prop_assert_eq!(Home::Ranges(&ranges).has(id), expected);
        }
    }
}
