//! Batches of IDs. The counters are fetched from the page in runs.
//!
//! A batch in an open cursor continues in later statements. Whatever a call checks is checked at each fetch, and the counters that are
//! left of a run are dropped once anything that its fetch checked has changed, or the clock has passed their ticks.

use crate::authority::{self, Asked};
use crate::error::Error;
use crate::postgres::timestamp::unix_us_of;
use crate::sequence::{self, Basis, NoCounter, Permit};
use pg_snowflake_ids::layout::{Layout, Packed};
use pg_snowflake_policies::counter::{Refusal, Run};
use pg_snowflake_policies::homed::{Class, HashRange, Home, Homed};
use pgrx::{check_for_interrupts, pg_sys};

/// The most counters that a batch fetches from the page at once. A fetch costs a few hundred nanoseconds, which is negligible over 1024
/// counters.
const MAX_RUN: i64 = 1024;

/// The counters of a batch that have been fetched and not yet used.
struct Counters {
    /// The SQL function, for an error.
    function: &'static str,
    relid: pg_sys::Oid,
    layout: Packed,
    asked: Asked,
    run: Run,
    /// What the fetch was permitted, and what its other checks depended on: rights and the transaction.
    permit: Permit,
    basis: Basis,
    /// The changes of the catalogs of which it is known that they do not matter.
    changes: u64,
    /// The start of the statement that last used a counter.
    statement_start: pg_sys::TimestampTz,
}

impl Counters {
    fn new(function: &'static str, relid: pg_sys::Oid, layout: Layout, asked: Asked) -> Self {
        let run = Run { first: 0, last: -1 };
        Counters {
            function,
            relid,
            layout: Packed::new(layout),
            asked,
            run,
            permit: Permit::NONE,
            basis: Basis::NONE,
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
        if !authority::is_current(&self.permit) {
            return false;
        }
        let changes = sequence::changes();
        if changes != self.changes {
            if !self.basis.is_of_these_catalogs() {
                return false;
            }
            self.changes = changes;
        }
        if !self.basis.is_of_this_user() {
            return false;
        }
        let statement_start = sequence::statement_start();
        statement_start == self.statement_start || {
            self.statement_start = statement_start;
            self.layout.tick_of(self.run.first) >= self.layout.tick_at(unix_us_of(statement_start))
        }
    }

    /// Fetches the next run, and drops what is left of the last one.
    #[cold]
    fn fetch(&mut self, count: i64) {
        check_for_interrupts!();
        self.changes = sequence::changes();
        let count = count.clamp(1, MAX_RUN);
        let fetched = sequence::next_run(self.relid, *self.layout, count, self.asked);
        (self.run, self.permit, self.basis) = fetched.unwrap_or_else(|error| Error::from(error).raise(self.function, self.relid));
        self.statement_start = sequence::statement_start();
    }
}

/// IDs from one sequence, in increasing order.
pub struct IdBatch {
    counters: Counters,
    /// The number of IDs still to return.
    remaining: i64,
}

impl IdBatch {
    /// An iterator over `count` IDs.
    pub fn new(function: &'static str, relid: pg_sys::Oid, layout: Layout, asked: Asked, count: i64) -> Self {
        IdBatch { counters: Counters::new(function, relid, layout, asked), remaining: count }
    }

    #[cold]
    fn fetched(&mut self) -> i64 {
        loop {
            self.counters.fetch(self.remaining);
            if let Some(counter) = self.counters.next() {
                return counter;
            }
        }
    }
}

impl Iterator for IdBatch {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if self.remaining == 0 {
            return None;
        }
        let counter = self.counters.next().unwrap_or_else(|| self.fetched());
        self.remaining -= 1;
        let id = self.counters.layout.id(counter, self.counters.permit.class.first);
        sequence::set_last(self.counters.relid, id);
        Some(id)
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
    pub fn new(function: &'static str, relid: pg_sys::Oid, layout: Layout, homed: OwnedHomed, count: i64) -> Self {
        let counters = Counters::new(function, relid, layout, Asked::Class(homed.get().class));
        HomedBatch { counters, homed, remaining: count, passed_over: 0 }
    }

    /// The next ID, if a fetched counter yields one.
    fn next_fetched(&mut self) -> Option<i64> {
        let homed = self.homed.get();
        let layout = *self.counters.layout;
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
    fn fetch(&mut self) {
        let homed = self.homed.get();
        let counters = homed.max_counters();
        if self.passed_over > counters {
            let (layout, shard) = (*self.counters.layout, homed.class.first);
            let refused = NoCounter::Refused { refusal: Refusal::NotHome { counters }, layout, shard, is_set_back: false };
            Error::from(refused).raise(self.counters.function, self.counters.relid);
        }
        let count = homed.counters_for(self.remaining);
        self.counters.fetch(count)
    }
}

impl Iterator for HomedBatch {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if self.remaining == 0 {
            return None;
        }
        let id = loop {
            if let Some(id) = self.next_fetched() {
                break id;
            }
            self.fetch();
        };
        self.remaining -= 1;
        sequence::set_last(self.counters.relid, id);
        Some(id)
    }
}
