//! Whether anything of what clients were given came twice, or out of order.

use crate::campaign::Tally;
use crate::campaign::journal::{Entry, Giver, Journal, Sequence};

/// Which of the ids that were given must never come again, besides those that are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All that reached a client: the clock has passed them since, or no server was lost.
    Given,
    /// No others.
    Committed,
    /// No others, and of what is committed nothing that plain `nextval` gave.
    CommittedIds,
}

/// All that was given on one history of a server, over all of its faults.
#[derive(Default)]
pub struct Ledger {
    given: [Vec<Given>; Sequence::ALL.len()],
    eras: u32,
    highest_committed: [i64; Sequence::ALL.len()],
    out_of_order: u64,
    refused: u64,
}

/// A counter that a client was given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Given {
    counter: i64,
    /// After how many faults.
    era: u32,
    is_promised: bool,
}

impl Ledger {
    /// Enters what was given between two faults. It has to be above all that was committed before the first
    /// fault, and within a session above what came before.
    pub fn close_era(&mut self, journals: &[Journal], promise: Promise) {
        let mut highest = self.highest_committed;
        for journal in journals {
            self.refused += journal.refused as u64;
            self.out_of_order += out_of_order(&journal.given);
            for (place, &Entry { sequence, counter, giver }) in journal.given.iter().enumerate() {
                let is_committed = place < journal.committed
                    && (promise != Promise::CommittedIds || giver == Giver::Extension);
                let is_promised = is_committed || promise == Promise::Given;
                let number = sequence as usize;
                if counter <= self.highest_committed[number] {
                    self.out_of_order += 1;
                }
                if is_committed && sequence != Sequence::Reset {
                    highest[number] = highest[number].max(counter);
                }
                self.given[number].push(Given { counter, era: self.eras, is_promised });
            }
        }
        self.highest_committed = highest;
        self.eras += 1;
    }

    /// Counts what came more than once.
    pub fn tally(mut self) -> Tally {
        let mut tally =
            Tally { out_of_order: self.out_of_order, refused: self.refused, ..Tally::default() };
        for (sequence, given) in Sequence::ALL.into_iter().zip(&mut self.given) {
            tally.given += given.len() as u64;
            // One session's ids are promised to that session: that they increase says that none repeats.
            if sequence == Sequence::Reset {
                continue;
            }
            tally.promised += given.iter().filter(|given| given.is_promised).count() as u64;
            given.sort_unstable();
            for same in given.chunk_by(|one, other| one.counter == other.counter) {
                let repeats = repeats(same);
                tally.repeats += repeats as u64;
                tally.repeats_unpromised += (same.len() - 1 - repeats) as u64;
            }
        }
        tally
    }
}

/// How often the counter that these have in common, in the order of their eras, must not have come again: after a
/// promise, and ever from a server that was not lost in between. What was given and not promised came to nothing
/// with its era.
fn repeats(same: &[Given]) -> usize {
    let promised_in = same.iter().find(|given| given.is_promised).map(|given| given.era);
    let is_broken = |pair: &&[Given]| {
        pair[0].era == pair[1].era || promised_in.is_some_and(|era| era <= pair[0].era)
    };
    same.windows(2).filter(is_broken).count()
}

/// How many of one session's are not above the one before from the same sequence. Where the sequence has CACHE,
/// core's cache and ours are two.
fn out_of_order(given: &[Entry]) -> u64 {
    let mut last = [[i64::MIN; 2]; Sequence::ALL.len()];
    let mut is_out_of_order = |entry: &&Entry| {
        let cache = entry.sequence == Sequence::Cached && entry.giver == Giver::Core;
        let last = &mut last[entry.sequence as usize][usize::from(cache)];
        entry.counter <= std::mem::replace(last, entry.counter)
    };
    given.iter().filter(|entry| is_out_of_order(entry)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(counter: i64) -> Entry {
        Entry { sequence: Sequence::Shared, counter, giver: Giver::Extension }
    }

    fn journal(worker: i32, counters: &[i64], committed: usize) -> Journal {
        let given = counters.iter().map(|&counter| entry(counter)).collect();
        Journal { given, committed, ..Journal::new(worker) }
    }

    fn tally(eras: &[&[Journal]], promise: Promise) -> Tally {
        let mut ledger = Ledger::default();
        eras.iter().for_each(|journals| ledger.close_era(journals, promise));
        ledger.tally()
    }

    #[test]
    fn a_counter_that_two_workers_were_given_is_a_repeat() {
        let journals = [journal(1, &[1, 2, 3], 3), journal(2, &[4, 2], 2)];
        let tally = tally(&[&journals], Promise::Committed);
        assert_eq!((tally.given, tally.promised, tally.repeats), (5, 5, 1));
    }

    #[test]
    fn a_living_server_repeats_nothing_whether_committed_or_not() {
        let journals = [journal(1, &[1, 2], 0), journal(2, &[2, 3], 0)];
        assert_eq!(tally(&[&journals], Promise::Committed).repeats, 1);
    }

    #[test]
    fn a_counter_that_was_committed_once_and_given_once_more_is_a_repeat() {
        let eras: [&[Journal]; 2] = [&[journal(1, &[1, 2], 2)], &[journal(2, &[2, 3], 0)]];
        let tally = tally(&eras, Promise::Committed);
        assert_eq!((tally.repeats, tally.out_of_order), (1, 1));
    }

    #[test]
    fn what_nobody_committed_counts_only_where_all_that_was_given_does() {
        let eras: [&[Journal]; 2] = [&[journal(1, &[1, 2], 1)], &[journal(2, &[2, 3], 0)]];
        let committed = tally(&eras, Promise::Committed);
        assert_eq!((committed.repeats, committed.repeats_unpromised), (0, 1));
        let given = tally(&eras, Promise::Given);
        assert_eq!((given.repeats, given.repeats_unpromised), (1, 0));
    }

    #[test]
    fn what_plain_nextval_gave_counts_only_where_all_that_is_committed_does() {
        let mut first = journal(1, &[1, 2], 2);
        first.given[1].giver = Giver::Core;
        let eras: [&[Journal]; 2] = [&[first], &[journal(2, &[2, 3], 0)]];
        let ids = tally(&eras, Promise::CommittedIds);
        assert_eq!((ids.promised, ids.repeats, ids.out_of_order), (1, 0, 0));
        let all = tally(&eras, Promise::Committed);
        assert_eq!((all.promised, all.repeats, all.out_of_order), (2, 1, 1));
    }

    #[test]
    fn what_was_lost_with_its_era_may_come_again_and_is_promised_then() {
        let eras: [&[Journal]; 3] =
            [&[journal(1, &[1, 2], 1)], &[journal(2, &[2, 3], 2)], &[journal(3, &[2, 4], 0)]];
        let tally = tally(&eras, Promise::Committed);
        assert_eq!((tally.repeats, tally.repeats_unpromised), (1, 1));
    }

    #[test]
    fn a_session_that_goes_back_is_out_of_order() {
        let tally = tally(&[&[journal(1, &[1, 3, 2], 0)]], Promise::Committed);
        assert_eq!((tally.repeats, tally.out_of_order), (0, 1));
    }

    #[test]
    fn where_a_sequence_is_cached_core_and_we_have_an_order_each() {
        let cached = |counter, giver| Entry { sequence: Sequence::Cached, counter, giver };
        let core_first =
            [cached(1, Giver::Core), cached(65, Giver::Extension), cached(2, Giver::Core)];
        assert_eq!(out_of_order(&core_first), 0);
        assert_eq!(out_of_order(&core_first.map(|entry| Entry { giver: Giver::Core, ..entry })), 1);
    }

    #[test]
    fn the_same_counter_of_two_sequences_is_no_repeat() {
        let mut journal = journal(1, &[7], 1);
        journal.given.push(Entry { sequence: Sequence::Cached, ..entry(7) });
        assert_eq!(tally(&[&[journal]], Promise::Given).repeats, 0);
    }
}
