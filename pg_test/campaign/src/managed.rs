//! The SQL edition, on a server that lacks the extension: the clock steps, calls are cancelled, sessions terminated, and the
//! server crashes. The same sessions call the PL/pgSQL function that it replaces, whose IDs repeat.

use crate::clock::{DAY, random_offset};
use crate::crash::{kill_a_backend, workers};
use crate::episode::{self, Episode};
use crate::journal::Journal;
use crate::ledger::{Ledger, Promise};
use crate::load::{self, Lead, Load, Role, prepare};
use crate::tally::Tally;
use fastrand::Rng;
use pg_snowflake_harness::copied;
use pg_snowflake_harness::prelude::*;

/// The file that users run.
pub const EDITION: &str = include_str!("../../../sql/managed/pg_snowflake_managed.sql");

/// How often something happens to the sessions, while the server lives and again before it crashes.
const DISTURBANCES: usize = 20;

const SESSIONS: usize = 8;

pub fn faults(episode: &mut Episode) -> Tally {
    with_edition(episode, EDITION)
}

/// The tally of a round with another edition, for tests that break it.
pub fn round_with(edition: &str) -> Tally {
    let mut rng = Rng::new();
    let is_second = rng.bool();
    with_edition(&mut Episode { rng, rounds: 1, is_second, has_leases: true }, edition)
}

fn with_edition(episode: &mut Episode, edition: &str) -> Tally {
    // With a short permitted lead, a long step leaves only refusals.
    let (max_lead, furthest_ahead) = episode.alternate(("2 days", DAY), ("100 ms", 1.0));
    let mut cluster = Cluster::builder().fake_clock().start();
    let mut client = cluster.connect();
    client.batch_execute("DROP EXTENSION pg_snowflake").expect("nothing depends on it");
    prepare(&cluster, Lead::None);
    let permit = format!(
        "CREATE OR REPLACE FUNCTION snowflake_managed.max_lead_us() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
         AS $$ SELECT (extract(epoch FROM '{max_lead}'::interval) * 1000000)::bigint $$"
    );
    for statement in [edition, &permit, copied::PLPGSQL, "CREATE SEQUENCE copied"] {
        client.batch_execute(statement).expect("a superuser");
    }
    let (mut ledger, mut tally, mut copied) = (Ledger::default(), Tally::default(), Vec::new());
    let mut close_era = |tally: &mut Tally, journals: &mut [Journal]| {
        copied.extend(journals.iter_mut().flat_map(|journal| std::mem::take(&mut journal.copied)));
        tally.out_of_order += journals.iter().map(|journal| journal.overtaken).sum::<u64>();
        ledger.close_era(journals, Promise::Committed);
    };
    for round in 0..episode.rounds {
        let load = start(&cluster, episode, round * 100, true);
        disturb(&cluster, episode, furthest_ahead, true);
        let mut client = cluster.connect();
        let mut journals = stop(load, &mut client);
        tally.locks_left += locks_of(&mut client, &mut journals);

        let load = start(&cluster, episode, round * 100 + 50, false);
        disturb(&cluster, episode, furthest_ahead, false);
        // Not random, so that even the shortest form has all of them.
        match round % 3 {
            0 => kill_a_backend(&mut cluster, episode),
            1 => {
                cluster.stop(Shutdown::Immediate);
                cluster.set_clock(random_offset(episode, furthest_ahead));
                cluster.start();
            }
            _ => {
                cluster.kill_9();
                cluster.set_clock(random_offset(episode, furthest_ahead));
                cluster.start();
            }
        }
        journals.extend(load.join());
        episode::assert_kept(&cluster, &journals);
        close_era(&mut tally, &mut journals);
    }
    cluster.set_clock(0.0);
    let load = start(&cluster, episode, i32::MAX - 100, false);
    load.wait_until_done(episode::LAST_ERA_IDS);
    assert!(!load.have_all_ended(), "the server returns too few IDs");
    close_era(&mut tally, &mut stop(load, &mut cluster.connect()));
    tally.copied_repeats = count_repeats(copied) as u64;
    tally += ledger.tally();
    tally
}

fn start(cluster: &Cluster, episode: &mut Episode, first_worker: i32, reconnects: bool) -> Load {
    let mut crew = [Role::OfEdition { has_lone: false, reconnects }; SESSIONS];
    crew[0] = Role::OfEdition { has_lone: true, reconnects };
    load::start(cluster, &mut episode.rng, first_worker, &crew)
}

/// Lets the workers end, and cancels the calls that have not ended then: `pg_sleep` waits for a clock that has stepped back in the
/// meantime.
fn stop(load: Load, client: &mut Client) -> Vec<Journal> {
    load.call_stop();
    let ends = comes_true(|| {
        workers(client).into_iter().for_each(|worker| cancel(client, worker));
        load.have_all_ended()
    });
    assert!(ends, "a call cannot be cancelled");
    load.join()
}

/// Steps the clock, cancels calls and terminates sessions, at random points.
fn disturb(cluster: &Cluster, episode: &mut Episode, furthest_ahead: f64, may_terminate: bool) {
    let mut client = cluster.connect();
    for _ in 0..DISTURBANCES {
        episode.sleep_ms(1..12);
        let workers = workers(&mut client);
        // Those that were terminated may not be back yet.
        let Some(&worker) = episode.rng.choice(&workers) else { continue };
        match episode.rng.u8(0..8) {
            0..2 => cluster.set_clock(random_offset(episode, furthest_ahead)),
            2 if may_terminate => {
                client.execute("SELECT pg_terminate_backend($1)", &[&worker]).expect("a superuser");
            }
            // A second cancel can arrive while the first is handled.
            _ => (0..episode.rng.u8(1..=3)).for_each(|_| cancel(&mut client, worker)),
        }
    }
}

/// Cancels what that session does, if anything.
fn cancel(client: &mut Client, worker: i32) {
    client.execute("SELECT pg_cancel_backend($1)", &[&worker]).expect("a superuser");
}

/// How many advisory locks idle sessions hold. They end afterwards.
fn locks_of(client: &mut Client, journals: &mut [Journal]) -> u64 {
    let (_idle, backends): (Vec<Client>, Vec<i32>) = journals.iter_mut().filter_map(|journal| journal.idle.take()).unzip();
    let query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ANY ($1)";
    let count: i64 = client.query_one(query, &[&backends]).expect("the locks can be read").get(0);
    count as u64
}
