//! Where an ID is at home, and which arguments describe that.

use crate::hashfn::{hashint8, partition_hash};

/// The highest modulus. A search takes about as many tries as the modulus, while the sequence is locked: about 50 µs.
pub const MAX_MODULUS: i64 = 1 << 14;

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
    /// Where the ranges contain its [`hashint8`], as of a distributed table. They are in ascending order and do not overlap.
    Ranges(&'a [HashRange]),
}

impl Home<'_> {
    /// Whether the ID is at home.
    #[inline]
    pub fn has(&self, id: i64) -> bool {
        match *self {
            Home::Partition { modulus, remainder } => partition_hash(id) % u64::from(modulus) == u64::from(remainder),
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
pub const MIN_HASHES: i64 = (1 << 32) / MAX_MODULUS;

/// The ranges in ascending order, merged where they touch. `ranges` are pairs of the first and the last hash; `i64::MIN` and
/// `i64::MAX` are infinite. `found` is an empty vector, for which the caller has allocated memory if need be.
pub fn hash_ranges(mut found: Vec<HashRange>, ranges: impl IntoIterator<Item = (i64, i64)>) -> Result<Vec<HashRange>, Invalid> {
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
    if hashes < MIN_HASHES {
        return Err(Invalid::TooFewHashes { hashes, needed: MIN_HASHES });
    }
    Ok(found)
}
