//! What clients were given, and whether any of it came twice.

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

/// Whose function a counter came from. Each has a cache of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// One of ours.
    Extension,
    /// Plain `nextval`.
    Core,
}

/// A counter that reached a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The sequence that it came from.
    pub sequence: Sequence,
    /// The counter.
    pub counter: i64,
    /// Who gave it.
    pub giver: Giver,
}

/// What one worker was given between two faults, in the order in which it came.
pub struct Journal {
    /// Which worker: a number that no other journal of the same server has.
    pub worker: i32,
    /// What it was given.
    pub given: Vec<Entry>,
    /// How many of the first of `given` are committed: docs/proof.md says what that is.
    pub committed: usize,
    /// How many of the first of `given` the worker's last acknowledged mark covers.
    pub marked: usize,
    /// Calls that were refused because the sequence was too far ahead of the clock.
    pub refused: usize,
}

impl Journal {
    /// An empty journal.
    pub fn new(worker: i32) -> Self {
        Journal { worker, given: Vec::new(), committed: 0, marked: 0, refused: 0 }
    }

    /// Enters an id.
    pub fn enter_id(&mut self, sequence: Sequence, id: i64) {
        assert_eq!(split(id).shard, SHARD, "{id}");
        self.given.push(Entry { sequence, counter: counter(id), giver: Giver::Extension });
    }

    /// Enters what plain `nextval` gave.
    pub fn enter_counter(&mut self, sequence: Sequence, counter: i64) {
        self.given.push(Entry { sequence, counter, giver: Giver::Core });
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
