//! The primary is lost, and its standby is promoted.

use crate::episode::{self, Episode};
use crate::ledger::Promise;
use crate::load::{self, CREW, prepare};
use crate::tally::Tally;
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::wait::wait_for;

/// A synchronous standby, whose clock differs from the primary's by up to 2 seconds.
pub fn synchronous(episode: &mut Episode) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..episode.rounds {
        let (lead, promise) = episode.lead_and_promise();
        let primary = Cluster::builder().setting("pg_snowflake.max_lead", "10s").fake_clock().start();
        prepare(&primary, lead);
        let standby = primary.standby();
        wait_for_standby(&primary);
        let [of_primary, of_standby] = [(); 2].map(|()| episode.rng.f64() * 2.0 - 1.0);
        primary.set_clock(of_primary);
        standby.set_clock(of_standby);
        tally += fail_over(episode, primary, &standby, promise, true);
    }
    tally
}

/// An asynchronous standby, on a machine with a correct clock.
pub fn asynchronous(episode: &mut Episode) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..episode.rounds {
        let (lead, promise) = episode.lead_and_promise();
        let primary = Cluster::new();
        prepare(&primary, lead);
        let standby = primary.standby();
        tally += fail_over(episode, primary, &standby, promise, false);
    }
    tally
}

fn fail_over(episode: &mut Episode, mut primary: Cluster, standby: &Cluster, promise: Promise, is_synchronous: bool) -> Tally {
    let load = load::start(&primary, &mut episode.rng, 0, &CREW);
    episode.sleep_ms(50..300);
    primary.kill_9();
    let mut journals = load.join();
    standby.promote();
    if is_synchronous {
        episode::assert_kept(standby, &journals);
    } else {
        episode::cut_to_marks(standby, &mut journals);
    }
    episode.go_on_elsewhere(standby, &journals, promise)
}

pub(super) fn wait_for_standby(primary: &Cluster) {
    let mut client = primary.connect();
    for statement in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
        client.batch_execute(statement).expect("a superuser");
    }
    let is_synchronous = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'";
    wait_for(&mut client, is_synchronous, "a standby is synchronous");
}
