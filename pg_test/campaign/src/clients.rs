//! Many clients at once, and no fault.

use crate::episode::Episode;
use crate::ledger::{Ledger, Promise};
use crate::load::{self, Lead, Role, prepare};
use crate::tally::Tally;
use pg_snowflake_harness::Cluster;

const CLIENTS: usize = 64;

/// How many IDs a round takes.
const IDS_PER_ROUND: u64 = 1_000_000;

/// 64 clients take IDs from sequences with CACHE 1 and CACHE 64, one by one, in batches and with plain `nextval`.
pub fn many(episode: &mut Episode) -> Tally {
    // Twice as many as there are clients, since those of the last round may still be disconnecting.
    let cluster = Cluster::builder().setting("max_connections", "200").start();
    prepare(&cluster, Lead::None);
    let mut crew = [Role::Sharing; CLIENTS];
    crew[0] = Role::Lone;
    let mut ledger = Ledger::default();
    for round in 0..episode.rounds {
        let load = load::start(&cluster, &mut episode.rng, round * 100, &crew);
        load.wait_until_done(IDS_PER_ROUND);
        ledger.close_era(&load.stop(), Promise::Returned);
    }
    ledger.tally()
}
