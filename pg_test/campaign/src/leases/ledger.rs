//! Finds IDs that two servers have returned, or one server twice.

use crate::journal::SHARD;
use crate::leases::clients::{Returned, Taken};
use crate::tally::Tally;
use pg_snowflake_harness::id::split;

/// All that clients got from servers that want the same shard.
#[derive(Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    most_of_a_server: usize,
    refused: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    id: i64,
    server: u32,
    sequence: u32,
}

impl Ledger {
    /// Enters what all clients of a server got, and how many of their calls were refused.
    pub fn enter(&mut self, server: u32, clients: Vec<Taken>) {
        let before = self.entries.len();
        for Taken { returned, refused } in clients {
            self.entries.extend(returned.into_iter().map(|Returned { id, sequence }| {
                assert_eq!(split(id).shard, SHARD, "{id}");
                Entry { id, server, sequence }
            }));
            self.refused += refused;
        }
        self.most_of_a_server = self.most_of_a_server.max(self.entries.len() - before);
    }

    pub fn tally(mut self) -> Tally {
        self.entries.sort_unstable();
        let tick = |entry: &Entry| split(entry.id).unix_ms;
        let ticks = self.entries.chunk_by(|one, other| tick(one) == tick(other));
        let is_shared = |of_tick: &&[Entry]| of_tick.iter().any(|e| e.server != of_tick[0].server);
        let returned = self.entries.len();
        Tally {
            returned: returned as u64,
            promised: returned as u64,
            repeats: self.entries.windows(2).filter(is_repeat).count() as u64,
            by_others: (returned - self.most_of_a_server) as u64,
            in_shared_ticks: ticks.filter(is_shared).map(<[Entry]>::len).sum::<usize>() as u64,
            refused: self.refused,
            ..Tally::default()
        }
    }
}

/// Whether the second of two neighbors repeats the first. Two sequences of one server count independently, so each may return the same ID.
fn is_repeat(pair: &&[Entry]) -> bool {
    let [first, second] = pair else { unreachable!("a window of two") };
    first.id == second.id && (first.server != second.server || first == second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pg_snowflake_harness::id::{EPOCH_MS, Fields, compose};

    fn id(unix_ms: i64, seq: i64) -> i64 {
        compose(Fields { unix_ms, shard: SHARD, seq })
    }

    /// The tally of servers that have returned these IDs, from one sequence each.
    fn tally(servers: &[&[i64]]) -> Tally {
        let mut ledger = Ledger::default();
        for (server, ids) in (0..).zip(servers) {
            let returned = ids.iter().map(|&id| Returned { id, sequence: 0 }).collect();
            ledger.enter(server, vec![Taken { returned, refused: 1 }]);
        }
        ledger.tally()
    }

    #[test]
    fn an_id_of_two_servers_is_a_repeat() {
        let (one, two) = (id(EPOCH_MS, 1), id(EPOCH_MS + 1, 1));
        let tally = tally(&[&[one, two], &[two]]);
        assert_eq!((tally.returned, tally.by_others, tally.refused), (3, 1, 2));
        assert_eq!((tally.repeats, tally.in_shared_ticks), (1, 2));
        assert!(!tally.is_sound());
    }

    #[test]
    fn servers_with_different_ids_in_a_tick_are_noticed() {
        let tally = tally(&[&[id(EPOCH_MS, 1)], &[id(EPOCH_MS, 2)]]);
        assert_eq!((tally.repeats, tally.in_shared_ticks), (0, 2));
        assert!(!tally.is_sound());
    }

    #[test]
    fn two_sequences_of_one_server_may_return_the_same_id() {
        let id = id(EPOCH_MS, 1);
        let from = |sequence| Returned { id, sequence };
        let mut ledger = Ledger::default();
        ledger.enter(0, vec![Taken { returned: vec![from(0), from(1), from(1)], refused: 0 }]);
        assert_eq!(ledger.tally().repeats, 1);
    }
}
