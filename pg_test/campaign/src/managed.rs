//! The SQL edition, on a server that lacks the extension: the clock steps, calls are cancelled, sessions terminated, and the
//! server crashes. The same sessions call the PL/pgSQL function that it replaces, whose IDs repeat.

mod load;

use crate::clock::DAY;
use crate::clock::random_offset;
use crate::crash::kill_a_backend;
use crate::episode::{self, Episode};
use crate::journal::Journal;
use crate::ledger::{Ledger, Promise};
use crate::load::{Lead, prepare};
use crate::tally::Tally;
use fastrand::Rng;
use load::Load;
use pg_snowflake_harness::copied;
use pg_snowflake_harness::id::count_repeats;
use pg_snowflake_harness::{Cluster, Shutdown};

/// The file that users run.
pub const EDITION: &str = include_str!("../../../sql/managed/pg_snowflake_managed.sql");

/// How often something happens to the sessions, while the server lives and again before it crashes.
const DISTURBANCES: usize = 20;

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
    let mut enter = |tally: &mut Tally, outcomes: Vec<load::Outcome>| -> Vec<Journal> {
        let journal = |outcome: load::Outcome| {
            copied.extend(outcome.copied);
            tally.out_of_order += outcome.overtaken;
            outcome.journal
        };
        outcomes.into_iter().map(journal).collect()
    };
    for round in 0..episode.rounds {
        let load = Load::start(&cluster, &mut episode.rng, round * 100);
        disturb(&cluster, episode, furthest_ahead, true);
        let outcomes = load.stop(&mut cluster.connect());
        tally.locks_left += locks_of(&mut cluster.connect(), &outcomes);
        let mut journals = enter(&mut tally, outcomes);

        let load = Load::start(&cluster, &mut episode.rng, round * 100 + 50);
        disturb(&cluster, episode, furthest_ahead, false);
        load.expect_a_crash();
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
        journals.extend(enter(&mut tally, load.lost()));
        episode::assert_kept(&cluster, &journals);
        ledger.close_era(&journals, Promise::Committed);
    }
    cluster.set_clock(0.0);
    let load = Load::start(&cluster, &mut episode.rng, i32::MAX - 100);
    load.wait_until_returned(episode::LAST_ERA_IDS);
    let outcomes = load.stop(&mut cluster.connect());
    ledger.close_era(&enter(&mut tally, outcomes), Promise::Committed);
    tally.copied_repeats = count_repeats(copied) as u64;
    tally += ledger.tally();
    tally
}

/// Steps the clock, cancels calls and terminates sessions, at random points.
fn disturb(cluster: &Cluster, episode: &mut Episode, furthest_ahead: f64, may_terminate: bool) {
    let mut client = cluster.connect();
    for _ in 0..DISTURBANCES {
        episode.sleep_ms(1..12);
        let workers = load::workers(&mut client);
        // Those that were terminated may not be back yet.
        if workers.is_empty() {
            continue;
        }
        let worker = workers[episode.rng.usize(0..workers.len())];
        match episode.rng.u8(0..8) {
            0..2 => cluster.set_clock(random_offset(episode, furthest_ahead)),
            2 if may_terminate => {
                client.execute("SELECT pg_terminate_backend($1)", &[&worker]).expect("a superuser");
            }
            // A second cancel can arrive while the first is handled.
            _ => {
                for _ in 0..episode.rng.u8(1..=3) {
                    load::cancel(&mut client, worker);
                }
            }
        }
    }
}

/// How many advisory locks idle sessions hold.
fn locks_of(client: &mut postgres::Client, outcomes: &[load::Outcome]) -> u64 {
    let idle: Vec<i32> = outcomes.iter().filter_map(load::Outcome::idle_backend).collect();
    let query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ANY ($1)";
    let count: i64 = client.query_one(query, &[&idle]).expect("the locks can be read").get(0);
    count as u64
}
