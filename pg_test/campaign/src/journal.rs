//! The IDs that each client got.

use pg_snowflake_harness::prelude::*;
use std::collections::HashMap;

/// The shard of the campaign's IDs.
pub const SHARD: i64 = 5;

/// The modulus of the campaign's homed IDs, whose shard is [`SHARD`] modulo this.
pub const MODULUS: i64 = 8;

/// The sequences of a campaign. Plain `nextval` returns a counter and `snowflake_nextval` an ID of the same sequence, so
/// counters are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// CACHE 1, used by every worker.
    Shared,
    /// CACHE 64, used by every worker.
    Cached,
    /// CACHE 1, used by one session alone.
    Lone,
    /// CACHE 1, used by one session alone, which resets it again and again.
    Reset,
}

impl Sequence {
    /// All of them, in the order of their numbers.
    pub const ALL: [Sequence; 4] = [Sequence::Shared, Sequence::Cached, Sequence::Lone, Sequence::Reset];

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

/// Whose function returned a counter. Each has its own cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// One of ours.
    Extension,
    /// Plain `nextval`.
    Core,
}

/// A counter that reached a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub sequence: Sequence,
    pub counter: i64,
    pub source: Source,
}

/// The IDs that one worker got between two faults, in order.
pub struct Journal {
    /// The number of the worker, unique among the journals of a server.
    pub worker: i32,
    pub returned: Vec<Entry>,
    /// How many entries of `returned`, from the first, are committed in the sense of docs/proof.md.
    pub committed: usize,
    /// How many entries of `returned`, from the first, the worker's last acknowledged mark covers.
    pub marked: usize,
    /// Calls that were refused because the sequence was too far ahead of the clock.
    pub refused: usize,
    /// IDs that are not above one that had reached another client before they were asked for. The SQL edition promises that there are none.
    pub overtaken: u64,
    /// The IDs of the function that the SQL edition replaces.
    pub copied: Vec<i64>,
    /// The session with the SQL edition, idle and still connected, and its process.
    pub idle: Option<(Client, i32)>,
}

impl Journal {
    pub fn new(worker: i32) -> Self {
        Journal { worker, returned: Vec::new(), committed: 0, marked: 0, refused: 0, overtaken: 0, copied: Vec::new(), idle: None }
    }

    pub fn enter_id(&mut self, sequence: Sequence, id: i64) {
        assert_eq!(split(id).shard, SHARD, "{id}");
        self.enter(sequence, id);
    }

    pub fn enter_homed_id(&mut self, sequence: Sequence, id: i64) {
        assert_eq!(split(id).shard % MODULUS, SHARD, "{id}");
        self.enter(sequence, id);
    }

    fn enter(&mut self, sequence: Sequence, id: i64) {
        self.returned.push(Entry { sequence, counter: counter(id), source: Source::Extension });
    }

    /// Enters a value of plain `nextval`.
    pub fn enter_counter(&mut self, sequence: Sequence, counter: i64) {
        self.returned.push(Entry { sequence, counter, source: Source::Core });
    }
}

/// How many IDs each worker had got before its last commit, according to the server's own table.
pub fn marks(client: &mut Client) -> HashMap<i32, usize> {
    let rows = client.query("SELECT worker, max(returned) FROM marks GROUP BY worker", &[]).expect("the marks can be read");
    let mark = |row: &postgres::Row| {
        let returned: i64 = row.get(1);
        (row.get(0), usize::try_from(returned).expect("a number of IDs"))
    };
    rows.iter().map(mark).collect()
}
