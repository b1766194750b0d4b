//! Finds repeats and out-of-order IDs among all that clients got.

use crate::journal::{Entry, Journal, Sequence, Source};
use crate::tally::Tally;

/// Which of the returned IDs must never be returned again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All that reached a client: the clock has passed them since, or no server was lost.
    Returned,
    Committed,
    /// The committed ones, except values of plain `nextval`.
    CommittedIds,
}

/// All that was returned on one history of a server, over all of its faults.
#[derive(Default)]
pub struct Ledger {
    returned: [Vec<Returned>; Sequence::ALL.len()],
    eras: u32,
    highest_committed: [i64; Sequence::ALL.len()],
    out_of_order: u64,
    refused: u64,
}

/// A counter that a client got.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Returned {
    counter: i64,
    /// The number of faults before it.
    era: u32,
    is_promised: bool,
}

impl Ledger {
    /// Enters what was returned between two faults. It must be above all that was committed before the first of them, and in
    /// each session above what came before.
    pub fn close_era(&mut self, journals: &[Journal], promise: Promise) {
        let mut highest = self.highest_committed;
        for journal in journals {
            self.refused += journal.refused as u64;
            self.out_of_order += out_of_order(&journal.returned);
            for (place, &Entry { sequence, counter, source }) in journal.returned.iter().enumerate() {
                let is_committed = place < journal.committed && (promise != Promise::CommittedIds || source == Source::Extension);
                let is_promised = is_committed || promise == Promise::Returned;
                let number = sequence as usize;
                if counter <= self.highest_committed[number] {
                    self.out_of_order += 1;
                }
                if is_committed && sequence != Sequence::Reset {
                    highest[number] = highest[number].max(counter);
                }
                self.returned[number].push(Returned { counter, era: self.eras, is_promised });
            }
        }
        self.highest_committed = highest;
        self.eras += 1;
    }

    pub fn tally(mut self) -> Tally {
        let mut tally = Tally { out_of_order: self.out_of_order, refused: self.refused, ..Tally::default() };
        for (sequence, returned) in Sequence::ALL.into_iter().zip(&mut self.returned) {
            tally.returned += returned.len() as u64;
            // These IDs are promised to one session only: if they increase, none is repeated.
            if sequence == Sequence::Reset {
                continue;
            }
            tally.promised += returned.iter().filter(|returned| returned.is_promised).count() as u64;
            returned.sort_unstable();
            for same in returned.chunk_by(|one, other| one.counter == other.counter) {
                let repeats = repeats(same);
                tally.repeats += repeats as u64;
                tally.repeats_unpromised += (same.len() - 1 - repeats) as u64;
            }
        }
        tally
    }
}

/// The number of repeats among returns of the same counter, in the order of their eras. Any return after a promise is a
/// repeat, and so is any second return by a server that was not lost in between. An unpromised return is lost with its era.
fn repeats(same: &[Returned]) -> usize {
    let promised_in = same.iter().find(|returned| returned.is_promised).map(|returned| returned.era);
    let is_broken = |pair: &&[Returned]| pair[0].era == pair[1].era || promised_in.is_some_and(|era| era <= pair[0].era);
    same.windows(2).filter(is_broken).count()
}

/// How many of one session's counters are not above the one before from the same sequence. If the sequence has CACHE,
/// core's cache and ours are separate.
fn out_of_order(returned: &[Entry]) -> u64 {
    let mut last = [[i64::MIN; 2]; Sequence::ALL.len()];
    let mut is_out_of_order = |entry: &&Entry| {
        let cache = entry.sequence == Sequence::Cached && entry.source == Source::Core;
        let last = &mut last[entry.sequence as usize][usize::from(cache)];
        entry.counter <= std::mem::replace(last, entry.counter)
    };
    returned.iter().filter(|entry| is_out_of_order(entry)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(counter: i64) -> Entry {
        Entry { sequence: Sequence::Shared, counter, source: Source::Extension }
    }

    fn journal(worker: i32, counters: &[i64], committed: usize) -> Journal {
        let returned = counters.iter().map(|&counter| entry(counter)).collect();
        Journal { returned, committed, ..Journal::new(worker) }
    }

    fn tally(eras: &[&[Journal]], promise: Promise) -> Tally {
        let mut ledger = Ledger::default();
        eras.iter().for_each(|journals| ledger.close_era(journals, promise));
        ledger.tally()
    }

    #[test]
    fn repeats_and_order_depend_on_what_was_promised_before() {
        use Promise::{Committed, Returned};
        // The counters of each worker between two faults, and how many of them are committed; then the repeats, the counters out of
        // order, and the repeats of what was not promised.
        type Era<'a> = &'a [(&'a [i64], usize)];
        let cases: [(&str, &[Era], Promise, [u64; 3]); 7] = [
            ("two workers got 2", &[&[(&[1, 2, 3], 3), (&[4, 5, 2], 2)]], Committed, [1, 1, 0]),
            ("a running server repeats not even the uncommitted 2", &[&[(&[1, 2], 0), (&[2, 3], 0)]], Committed, [1, 0, 0]),
            ("2 was committed", &[&[(&[1, 2], 2)], &[(&[2, 3], 0)]], Committed, [1, 1, 0]),
            ("2 was lost", &[&[(&[1, 2], 1)], &[(&[2, 3], 0)]], Committed, [0, 0, 1]),
            ("2 was returned", &[&[(&[1, 2], 1)], &[(&[2, 3], 0)]], Returned, [1, 0, 0]),
            ("2 was lost, and promised then", &[&[(&[1, 2], 1)], &[(&[2, 3], 2)], &[(&[2, 4], 0)]], Committed, [1, 1, 1]),
            ("a session goes back", &[&[(&[1, 3, 2], 0)]], Committed, [0, 1, 0]),
        ];
        for (what, eras, promise, expected) in cases {
            let mut ledger = Ledger::default();
            for era in eras {
                let journals = (0..).zip(*era).map(|(worker, &(counters, committed))| journal(worker, counters, committed));
                ledger.close_era(&journals.collect::<Vec<_>>(), promise);
            }
            let tally = ledger.tally();
            assert_eq!([tally.repeats, tally.out_of_order, tally.repeats_unpromised], expected, "{what}");
        }
    }

    #[test]
    fn a_value_of_plain_nextval_counts_only_if_all_committed_ones_do() {
        let mut first = journal(1, &[1, 2], 2);
        first.returned[1].source = Source::Core;
        let eras: [&[Journal]; 2] = [&[first], &[journal(2, &[2, 3], 0)]];
        let ids = tally(&eras, Promise::CommittedIds);
        assert_eq!((ids.promised, ids.repeats, ids.out_of_order), (1, 0, 0));
        let all = tally(&eras, Promise::Committed);
        assert_eq!((all.promised, all.repeats, all.out_of_order), (2, 1, 1));
    }

    #[test]
    fn with_cache_core_and_the_extension_are_ordered_separately() {
        let cached = |counter, source| Entry { sequence: Sequence::Cached, counter, source };
        let core_first = [cached(1, Source::Core), cached(65, Source::Extension), cached(2, Source::Core)];
        assert_eq!(out_of_order(&core_first), 0);
        assert_eq!(out_of_order(&core_first.map(|entry| Entry { source: Source::Core, ..entry })), 1);
    }

    #[test]
    fn the_same_counter_of_two_sequences_is_not_a_repeat() {
        let mut journal = journal(1, &[7], 1);
        journal.returned.push(Entry { sequence: Sequence::Cached, ..entry(7) });
        assert_eq!(tally(&[&[journal]], Promise::Returned).repeats, 0);
    }
}
