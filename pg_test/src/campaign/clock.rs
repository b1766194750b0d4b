//! The clock steps under a running server.

use crate::Cluster;
use crate::campaign::episode::Episode;
use crate::campaign::journal::{Ledger, Promise};
use crate::campaign::load::{Lead, Load, Role, prepare};
use crate::campaign::{DAY, Tally};
use crate::id::counter;
use postgres::Client;

const CREW: [Role; 4] = [Role::Sharing, Role::Sharing, Role::Lone, Role::Resetting];

/// How many steps a session sees in its life.
const STEPS_PER_LOAD: i32 = 5;

/// Steps the clock back and forth under load. No server is lost, so all that is given counts.
pub fn steps(episode: &mut Episode) -> Tally {
    // Where the permitted lead is short, a long step forward would leave nothing to see but refusals.
    let (max_lead, furthest_ahead) = episode.alternate(("2d", DAY), ("100ms", 1.0));
    let cluster =
        Cluster::builder().setting("pg_snowflake.max_lead", max_lead).fake_clock().start();
    prepare(&cluster, Lead::None);
    let mut probe = Probe { client: cluster.connect(), last: 0, out_of_order: 0 };
    let mut ledger = Ledger::default();
    for first_step in (0..episode.rounds).step_by(STEPS_PER_LOAD as usize) {
        let load = Load::start(&cluster, &mut episode.rng, first_step * 100, &CREW);
        for _ in first_step..episode.rounds.min(first_step + STEPS_PER_LOAD) {
            episode.sleep_ms(5..40);
            probe.take();
            cluster.set_clock(random_offset(episode, furthest_ahead));
            probe.take();
        }
        cluster.set_clock(0.0);
        episode.sleep_ms(5..40);
        ledger.close_era(&load.stop(), Promise::Given);
    }
    let mut tally = ledger.tally();
    tally.out_of_order += probe.out_of_order;
    tally
}

/// Of three steps one sets the clock right.
fn random_offset(episode: &mut Episode, furthest_ahead: f64) -> f64 {
    match episode.rng.u8(0..3) {
        0 => 0.0,
        1 => -episode.step_seconds(DAY),
        _ => episode.step_seconds(furthest_ahead),
    }
}

/// Takes an id before and after a step. Calls of a sequence are served one after the other, so the first is
/// above all that was given before it, and the second has to be above the first.
struct Probe {
    client: Client,
    last: i64,
    out_of_order: u64,
}

impl Probe {
    fn take(&mut self) {
        match self.client.query_one("SELECT snowflake_nextval('shared', 5)", &[]) {
            Ok(row) => {
                let counter = counter(row.get(0));
                self.out_of_order += u64::from(counter <= self.last);
                self.last = counter;
            }
            Err(error) => {
                let code = error.code().map(|code| code.code());
                assert_eq!(code, Some("55000"), "{error:?}");
            }
        }
    }
}
