//! The clock steps under a running server.

use crate::episode::Episode;
use crate::journal::{Journal, Sequence};
use crate::ledger::{Ledger, Promise};
use crate::load::{self, Lead, Role, is_too_far_ahead, prepare};
use crate::tally::Tally;
use pg_snowflake_harness::prelude::*;

/// A day in seconds: the longest clock step.
pub const DAY: f64 = 86_400.0;

const CREW: [Role; 4] = [Role::Sharing, Role::Sharing, Role::Lone, Role::Resetting];

/// How many steps a session sees in its life.
const STEPS_PER_LOAD: i32 = 5;

/// Steps the clock back and forth under load. No server is lost, so all returned IDs count.
pub fn steps(episode: &mut Episode) -> Tally {
    // With a short permitted lead, a long step forward would leave only refusals.
    let (max_lead, furthest_ahead) = episode.alternate(("2d", DAY), ("100ms", 1.0));
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", max_lead).fake_clock().start();
    prepare(&cluster, Lead::None);
    let mut ledger = Ledger::default();
    for first_step in (0..episode.rounds).step_by(STEPS_PER_LOAD as usize) {
        let load = load::start(&cluster, &mut episode.rng, first_step * 100, &CREW);
        let mut probe = Probe::new(&cluster);
        for _ in first_step..episode.rounds.min(first_step + STEPS_PER_LOAD) {
            episode.sleep_ms(5..40);
            probe.take();
            cluster.set_clock(random_offset(episode, furthest_ahead));
            probe.take();
        }
        cluster.set_clock(0.0);
        episode.sleep_ms(5..40);
        let mut journals = load.stop();
        journals.push(probe.journal);
        ledger.close_era(&journals, Promise::Returned);
    }
    ledger.tally()
}

/// Seconds from the true clock. One step in three corrects the clock.
pub fn random_offset(episode: &mut Episode, furthest_ahead: f64) -> f64 {
    match episode.rng.u8(0..3) {
        0 => 0.0,
        1 => -episode.step_seconds(DAY),
        _ => episode.step_seconds(furthest_ahead),
    }
}

/// Takes an ID before and after a step. Calls on a sequence are served one after the other, so the first is above all
/// that were returned before it, and the second must be above the first.
struct Probe {
    client: Client,
    journal: Journal,
}

impl Probe {
    fn new(cluster: &Cluster) -> Self {
        Probe { client: cluster.connect(), journal: Journal::new(-1) }
    }

    fn take(&mut self) {
        match self.client.query_one("SELECT snowflake_nextval('shared', 5)", &[]) {
            Ok(row) => self.journal.enter_id(Sequence::Shared, row.get(0)),
            Err(error) => assert!(is_too_far_ahead(&error), "{error:?}"),
        }
    }
}
