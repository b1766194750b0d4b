//! Homed IDs: IDs whose hash leads to the shard that generates them.
//!
//! A system that shards by the hash of the key, such as a table that is partitioned by PostgreSQL's own hash of a `bigint`, sends a
//! row to `hash(id) mod modulus`. The shard field of a [`Layout`] has more values than there are shards. So a shard can have many
//! numbers, a [`Class`], and for nearly every counter one of them makes the ID hash to the shard.
//!
//! The search varies the number first and then the counter, so no counter is lost while the class has many more numbers than the
//! modulus. IDs stay unique by their counter.

mod home;

pub use home::{HashRange, Home, Invalid, MAX_MODULUS, hash_ranges};

use crate::counter::{self, Decision, Refusal, Request, Run, State};
use crate::hashfn::partition_hash;
use pg_snowflake_ids::layout::Layout;

/// A search ends after this many tries. At the highest modulus, one in 10^27 searches takes more. With the smallest ranges it is one in
/// 10^14: their IDs have one shard, and in layout `instagram` the 2^20 counters of some minutes have 2^19 different hashes.
const MAX_TRIES: i64 = MAX_MODULUS << 6;

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

/// Which IDs are wanted: the shard numbers that they may have, and where they are at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Homed<'a> {
    /// The shard numbers.
    pub class: Class,
    /// Where the IDs are at home.
    pub home: Home<'a>,
    shards: u32,
    max_counters: i64,
}

/// A counter, and the shard number with which it makes an ID that is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The counter.
    pub counter: i64,
    /// The shard number.
    pub shard: u32,
}

impl Found {
    /// The run of this one counter.
    pub fn run(self) -> Run {
        Run { first: self.counter, last: self.counter }
    }
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
    pub fn in_partition(layout: &Layout, shard_id: i32, modulus: i32, generators: i32) -> Result<Self, Invalid> {
        let shards = layout.shards();
        let is_within = |value: i32, lowest, highest| (lowest..=highest).contains(&i64::from(value));
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
        let [first, step, last, modulus] = [first, step, last, modulus.into()].map(|number| number as u32);
        let home = Home::Partition { modulus, remainder: first % modulus };
        Ok(Homed::new(Class { first, step, last }, home))
    }
}

impl<'a> Homed<'a> {
    /// IDs with a shard number of the class and that home.
    #[inline]
    pub fn new(class: Class, home: Home<'a>) -> Self {
        let shards = class.count();
        let max_counters = (MAX_TRIES / i64::from(shards)).max(1);
        Homed { class, home, shards, max_counters }
    }

    /// The first shard number of the class with which the counter makes an ID that is at home.
    pub fn shard_of(&self, layout: &Layout, counter: i64) -> Option<u32> {
        self.first_in(layout, Run { first: counter, last: counter }).map(|found| found.shard)
    }

    /// The first counter of the run that makes an ID that is at home, and its shard number; `None` also after [`Homed::max_counters`].
    #[inline]
    pub fn first_in(&self, layout: &Layout, run: Run) -> Option<Found> {
        // Without a division where the modulus is a power of two, whose remainder is in the lower half of the hash.
        let is_home = |id, mask, remainder| partition_hash(id) as u32 & mask == remainder;
        match self.home {
            // The processor cannot predict which of two numbers fits. Three times out of four one of the first two does: computing
            // both hashes takes 14 ns an ID, and one after the other 24 ns. From modulus 4 on that is slower.
            Home::Partition { modulus: 2, remainder } => self.search(layout, run, |ids: [i64; 2]| ids.map(|id| is_home(id, 1, remainder))),
            Home::Partition { modulus, remainder } if modulus.is_power_of_two() => {
                self.search(layout, run, |[id]| [is_home(id, modulus - 1, remainder)])
            }
            home => self.search(layout, run, |[id]| [home.has(id)]),
        }
    }

    /// The highest number of counters that a search looks at.
    #[inline]
    pub fn max_counters(&self) -> i64 {
        self.max_counters
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
    fn search<const N: usize>(&self, layout: &Layout, run: Run, are_home: impl Fn([i64; N]) -> [bool; N]) -> Option<Found> {
        let Class { first, step, .. } = self.class;
        let to_next = i64::from(step) << layout.shard_shift();
        let plain = Layout { shard_place: layout.shard_place.without_xor(), ..*layout };
        let last_counter = run.last.min(run.first.saturating_add(self.max_counters() - 1));
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

/// Moves the counter forward as [`counter::advance`] does, and on to the first counter that yields a homed ID. The counters that are passed
/// over are not used. If the limit of the lead comes before that counter, the decision is that for the counter after the limit.
///
/// ```
/// use pg_snowflake_policies::clock::Now;
/// use pg_snowflake_policies::counter::{Decision, Reading, Policy, Request, State};
/// use pg_snowflake_policies::homed::{self, Homed};
/// use pg_snowflake_policies::lease::Ticks;
/// use pg_snowflake_ids::layout::Packed;
/// use pg_snowflake_ids::presets::INSTAGRAM;
///
/// let reading_us = 1_800_000_000_000_000;
/// let policy = Policy { max_lead_us: 100_000, max_wait_us: 1_000_000 };
/// let now = Now { reading_us, high_water_us: reading_us };
/// let reading = Reading::new(Packed::new(INSTAGRAM), policy, Ticks::ALL, now);
/// let request = Request { reading: &reading, shard: 1, highest_fetched: None };
/// let fresh = State { last_value: 1, is_called: false };
/// let wanted = Homed::in_partition(&INSTAGRAM, 1, 4, 1)?;
/// let Decision::Issue(found) = homed::advance(fresh, i64::MAX, request, &wanted) else { panic!() };
/// assert_eq!(found.shard % 4, 1);
/// assert!(wanted.home.has(INSTAGRAM.id(found.counter, found.shard)));
/// # Ok::<(), pg_snowflake_policies::homed::Invalid>(())
/// ```
#[inline(always)]
pub fn advance(state: State, max_value: i64, request: Request<'_>, homed: &Homed<'_>) -> Decision<Found> {
    let counters = homed.max_counters();
    match counter::advance(state, max_value, counters, request) {
        Decision::Issue(run) => match homed.first_in(request.reading.layout(), run) {
            Some(found) => Decision::Issue(found),
            None => after_search(run, counters, max_value, request),
        },
        Decision::Wait { us } => Decision::Wait { us },
        Decision::Refuse(refusal) => Decision::Refuse(refusal),
    }
}

/// The decision after a search that has found nothing.
#[cold]
fn after_search(run: Run, counters: i64, max_value: i64, request: Request<'_>) -> Decision<Found> {
    let not_home = Decision::Refuse(Refusal::NotHome { counters });
    if run.last - run.first == counters - 1 {
        return not_home;
    }
    // A limit has cut the run: the next counter shows which one.
    match counter::advance(State { last_value: run.last, is_called: true }, max_value, 1, request) {
        Decision::Issue(_) => not_home,
        Decision::Wait { us } => Decision::Wait { us },
        Decision::Refuse(refusal) => Decision::Refuse(refusal),
    }
}

#[cfg(test)]
mod tests;
