//! Batches of IDs. The counters are fetched from the page in runs.
//!
//! A batch in an open cursor continues in later statements. Whatever a call checks is checked at each fetch, and the counters that are
//! left of a run are dropped when what its fetch checked no longer holds, or when the clock has passed their ticks.

use crate::error::Error;
use crate::fence;
use crate::lease::ThisServer;
use crate::postgres::timestamp::unix_us_of;
use crate::sequence::{self, Authority, Basis, NoCounter};
use crate::shard;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::{Refusal, Run};
use pg_snowflake_policies::homed::{Class, HashRange, Home, Homed};
use pgrx::{check_for_interrupts, pg_sys};

/// The most counters that a batch fetches from the page at once. A fetch costs a few hundred nanoseconds, which is negligible over 1024
/// counters.
const MAX_RUN: i64 = 1024;

/// The counters of a batch that have been fetched and not yet used.
struct Counters {
    relid: pg_sys::Oid,
    layout: Layout,
    /// The shards of the IDs.
    class: Class,
    run: Run,
    /// What the checks of the fetch depended on: rights and the transaction, and the fences.
    basis: Basis,
    fence_version: u64,
    /// The changes of the catalogs and the fences of which it is known that they do not matter.
    changes: u64,
    /// The start of the statement that last used a counter.
    statement_start: pg_sys::TimestampTz,
}

impl Counters {
    fn new(relid: pg_sys::Oid, layout: Layout, class: Class) -> Self {
        Counters {
            relid,
            layout,
            class,
            run: Run { first: 0, last: -1 },
            basis: Basis::NONE,
            fence_version: 0,
            changes: 0,
            statement_start: 0,
        }
    }

    /// The next counter that may still be used; `None` if more have to be fetched.
    #[inline(always)]
    fn next(&mut self) -> Option<i64> {
        if self.run.first > self.run.last || !self.still_holds() {
            return None;
        }
        self.run.first += 1;
        Some(self.run.first - 1)
    }

    /// Whether the next counter may be used now.
    #[inline(always)]
    fn still_holds(&mut self) -> bool {
        let tick = self.layout.tick_of(self.run.first);
        let is_leased = || ThisServer.ticks_of(self.class, &self.layout).is_ok_and(|ticks| ticks.contains(tick));
        let changes = sequence::changes();
        if changes != self.changes {
            if self.fence_version != fence::version() || !self.basis.is_of_these_catalogs() {
                return false;
            }
            self.changes = changes;
        }
        if !self.basis.is_of_this_user() || !is_leased() {
            return false;
        }
        let statement_start = sequence::statement_start();
        statement_start == self.statement_start || {
            self.statement_start = statement_start;
            tick >= self.layout.tick_at(unix_us_of(statement_start))
        }
    }

    /// Fetches the next run, and drops what is left of the last one.
    #[cold]
    fn fetch(&mut self, count: i64) -> Result<(), Error> {
        check_for_interrupts!();
        shard::permit_class(self.class)?;
        (self.fence_version, self.changes) = (fence::version(), sequence::changes());
        let count = count.clamp(1, MAX_RUN);
        (self.run, self.basis) = sequence::next_run(self.relid, self.layout, self.class, count, ThisServer)?;
        self.statement_start = sequence::statement_start();
        Ok(())
    }
}

/// IDs from one sequence, in increasing order. With `OF_THIS_DATABASE`, each has the shard that this database has when the ID is returned.
pub struct IdBatch<const OF_THIS_DATABASE: bool> {
    counters: Counters,
    shard: u32,
    /// The number of IDs still to return.
    remaining: i64,
}

impl<const OF_THIS_DATABASE: bool> IdBatch<OF_THIS_DATABASE> {
    /// An iterator over `count` IDs.
    pub fn new(relid: pg_sys::Oid, layout: Layout, shard: u32, count: i64) -> Self {
        let counters = Counters::new(relid, layout, Class::one(shard));
        IdBatch { counters, shard, remaining: count }
    }

    /// Whether the next ID may have the shard of the last one.
    #[inline(always)]
    fn has_this_shard(&self) -> bool {
        !OF_THIS_DATABASE || shard::known() == Some(self.shard as i32)
    }

    /// Continues with the shard of this database. If it is another one, drops what is left of the last run, which was fetched for the
    /// former shard.
    #[cold]
    fn take_this_shard(&mut self) -> Result<(), Error> {
        let Counters { relid, layout, .. } = self.counters;
        let shard = shard::permitted(None, layout)?;
        if shard != self.shard {
            self.shard = shard;
            self.counters = Counters::new(relid, layout, Class::one(shard));
        }
        Ok(())
    }
}

impl<const OF_THIS_DATABASE: bool> Iterator for IdBatch<OF_THIS_DATABASE> {
    type Item = Result<i64, Error>;

    // Inlined, so that the result stays in registers.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        let counter = loop {
            // Also after a fetch, which can wait for the sequence or the clock.
            if !self.has_this_shard()
                && let Err(error) = self.take_this_shard()
            {
                return Some(Err(error));
            }
            if let Some(counter) = self.counters.next() {
                break counter;
            }
            if let Err(error) = self.counters.fetch(self.remaining) {
                return Some(Err(error));
            }
        };
        self.remaining -= 1;
        let id = self.counters.layout.id(counter, self.shard);
        sequence::set_last(self.counters.relid, id);
        Some(Ok(id))
    }
}

/// Homed IDs from one sequence, with increasing counters. Counters that yield no homed ID are dropped.
pub struct HomedBatch {
    counters: Counters,
    homed: OwnedHomed,
    /// The number of IDs still to return.
    remaining: i64,
    /// How many counters in a row have made no homed ID.
    passed_over: i64,
}

/// A [`Homed`] that owns its ranges.
pub enum OwnedHomed {
    /// Without ranges.
    InPartition(Homed<'static>),
    /// With these ranges.
    InRanges(Class, Vec<HashRange>),
}

impl OwnedHomed {
    /// Its view.
    pub fn get(&self) -> Homed<'_> {
        match self {
            OwnedHomed::InPartition(homed) => *homed,
            OwnedHomed::InRanges(class, ranges) => Homed::new(*class, Home::Ranges(ranges)),
        }
    }
}

impl HomedBatch {
    /// An iterator over `count` IDs.
    pub fn new(relid: pg_sys::Oid, layout: Layout, homed: OwnedHomed, count: i64) -> Self {
        let counters = Counters::new(relid, layout, homed.get().class);
        HomedBatch { counters, homed, remaining: count, passed_over: 0 }
    }

    /// The next ID, if a fetched counter yields one.
    fn next_fetched(&mut self) -> Option<i64> {
        let homed = self.homed.get();
        let layout = self.counters.layout;
        while let Some(counter) = self.counters.next() {
            if let Some(shard) = homed.shard_of(&layout, counter) {
                self.passed_over = 0;
                return Some(layout.id(counter, shard));
            }
            self.passed_over += 1;
        }
        None
    }

    /// Fetches the next run.
    #[cold]
    fn fetch(&mut self) -> Result<(), Error> {
        let homed = self.homed.get();
        let counters = homed.max_counters();
        if self.passed_over > counters {
            let refusal = Refusal::NotHome { counters };
            let layout = self.counters.layout;
            return Err(NoCounter::Refused { refusal, layout, shard: homed.class.first, is_set_back: false }.into());
        }
        let count = homed.counters_for(self.remaining);
        self.counters.fetch(count)
    }
}

impl Iterator for HomedBatch {
    type Item = Result<i64, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        let id = loop {
            if let Some(id) = self.next_fetched() {
                break id;
            }
            if let Err(error) = self.fetch() {
                return Some(Err(error));
            }
        };
        self.remaining -= 1;
        sequence::set_last(self.counters.relid, id);
        Some(Ok(id))
    }
}
