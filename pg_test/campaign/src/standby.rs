//! The primary is lost, and its standby is promoted.

use crate::episode::{self, Episode};
use crate::journal::Journal;
use crate::load::{self, CREW};
use crate::tally::Tally;
use pg_snowflake_harness::prelude::*;

/// A synchronous standby, whose clock differs from the primary's by up to 2 seconds.
pub fn synchronous(episode: &mut Episode) -> Tally {
    let builder = || Cluster::builder().setting("pg_snowflake.max_lead", "10s").fake_clock();
    episode.on_new_servers(builder, |episode, primary, _| {
        let standby = primary.standby();
        wait_for_standby(&primary);
        for server in [&primary, &standby] {
            server.set_clock(episode.rng.f64() * 2.0 - 1.0);
        }
        let journals = lose(episode, primary);
        standby.promote();
        episode::assert_kept(&standby, &journals);
        (standby, journals)
    })
}

/// An asynchronous standby, on a machine with a correct clock.
pub fn asynchronous(episode: &mut Episode) -> Tally {
    episode.on_new_servers(Cluster::builder, |episode, primary, _| {
        let standby = primary.standby();
        let mut journals = lose(episode, primary);
        standby.promote();
        episode::cut_to_marks(&standby, &mut journals);
        (standby, journals)
    })
}

fn lose(episode: &mut Episode, mut primary: Cluster) -> Vec<Journal> {
    let load = load::start(&primary, &mut episode.rng, 0, &CREW);
    episode.sleep_ms(50..300);
    primary.kill_9();
    load.join()
}

pub(super) fn wait_for_standby(primary: &Cluster) {
    let mut client = primary.connect();
    reload_with(&mut client, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    wait_for(&mut client, "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'", "a standby is synchronous");
}
