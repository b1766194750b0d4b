//! What clients were given, and whether any of it came twice.

use crate::campaign::Tally;
use crate::id::{counter, split};
use postgres::Client;
use std::collections::HashMap;

/// The shard of the campaign's ids.
pub const SHARD: i64 = 5;

/// The sequences of a campaign. A plain `nextval` gives a counter and `snowflake_nextval` an id of the same
/// sequence, so what is compared are counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// CACHE 1, used by every worker.
    Shared,
    /// CACHE 64, used by every worker.
    Cached,
    /// CACHE 1, used by one session alone.
    Lone,
    /// CACHE 1, used by one session alone, which sets it back again and again.
    Reset,
}

impl Sequence {
    /// All of them, in the order of their numbers.
    pub const ALL: [Sequence; 4] =
        [Sequence::Shared, Sequence::Cached, Sequence::Lone, Sequence::Reset];

    /// Its name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Sequence::Shared => "shared",
            Sequence::Cached => "cached",
            Sequence::Lone => "lone",
            Sequence::Reset => "reset",
        }
    }
}

/// Which of the ids that were given must never come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All that reached a client, committed or not: the clock has gone on since.
    Given,
    /// What a commit covers: see [`Journal::committed`].
    Committed,
}

/// What one worker was given between two faults, in the order in which it came.
pub struct Journal {
    /// Which worker: a number that no other journal of the same server has.
    pub worker: i32,
    /// The counters.
    pub given: Vec<(Sequence, i64)>,
    /// How many of the first of `given` are covered by a commit of this worker that was acknowledged and
    /// wrote something: WAL is flushed in order, so with that commit all that was logged before it.
    pub committed: usize,
    /// Calls that were refused because the sequence was too far ahead of the clock.
    pub refused: usize,
}

impl Journal {
    /// An empty journal.
    pub fn new(worker: i32) -> Self {
        Journal { worker, given: Vec::new(), committed: 0, refused: 0 }
    }

    /// Enters an id.
    pub fn enter_id(&mut self, sequence: Sequence, id: i64) {
        assert_eq!(split(id).shard, SHARD, "{id}");
        self.given.push((sequence, counter(id)));
    }
}

/// How many ids of each worker the server's own table says were given before the worker's last commit.
pub fn marks(client: &mut Client) -> HashMap<i32, usize> {
    let rows = client
        .query("SELECT worker, max(given) FROM marks GROUP BY worker", &[])
        .expect("the marks can be read");
    let mark = |row: &postgres::Row| {
        let given: i64 = row.get(1);
        (row.get(0), usize::try_from(given).expect("a number of ids"))
    };
    rows.iter().map(mark).collect()
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
            for (place, &(sequence, counter)) in journal.given.iter().enumerate() {
                let is_committed = place < journal.committed;
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
            tally.promised += given.iter().filter(|given| given.is_promised).count() as u64;
            // One session's ids are promised to that session: that they increase says that none repeats.
            if sequence == Sequence::Reset {
                continue;
            }
            given.sort_unstable();
            for same in given.chunk_by(|one, other| one.counter == other.counter) {
                // What was given before a promise came to nothing with its era, and may come again.
                let promised = same.iter().find(|given| given.is_promised);
                let repeats = promised.map_or(0, |promised| {
                    same.iter().filter(|given| given.era >= promised.era).count() - 1
                });
                tally.repeats += repeats as u64;
                tally.repeats_unpromised += (same.len() - 1 - repeats) as u64;
            }
        }
        tally
    }
}

/// How many ids of one session are not above the one before from the same sequence. Not so with CACHE, where
/// core's `nextval` has a cache of its own beside ours.
fn out_of_order(given: &[(Sequence, i64)]) -> u64 {
    let mut last = [i64::MIN; Sequence::ALL.len()];
    let mut is_out_of_order = |&&(sequence, counter): &&(Sequence, i64)| {
        let last = std::mem::replace(&mut last[sequence as usize], counter);
        counter <= last && sequence != Sequence::Cached
    };
    given.iter().filter(|entry| is_out_of_order(entry)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(worker: i32, counters: &[i64], committed: usize) -> Journal {
        let given = counters.iter().map(|&counter| (Sequence::Shared, counter)).collect();
        Journal { worker, given, committed, refused: 0 }
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
    fn what_was_committed_to_another_client_at_the_same_time_is_a_repeat() {
        let journals = [journal(1, &[1, 2], 0), journal(2, &[2, 3], 2)];
        assert_eq!(tally(&[&journals], Promise::Committed).repeats, 1);
    }

    #[test]
    fn what_was_lost_with_its_era_may_come_again_and_is_promised_then() {
        let eras: [&[Journal]; 2] = [&[journal(1, &[1, 2], 1)], &[journal(2, &[2, 3], 2)]];
        let tally = tally(&eras, Promise::Committed);
        assert_eq!((tally.repeats, tally.repeats_unpromised), (0, 1));
    }

    #[test]
    fn a_session_that_goes_back_is_out_of_order() {
        let tally = tally(&[&[journal(1, &[1, 3, 2], 0)]], Promise::Committed);
        assert_eq!((tally.repeats, tally.out_of_order), (0, 1));
    }

    #[test]
    fn the_same_counter_of_two_sequences_is_no_repeat() {
        let mut journal = journal(1, &[7], 1);
        journal.given.push((Sequence::Cached, 7));
        assert_eq!(tally(&[&[journal]], Promise::Given).repeats, 0);
    }
}
