//! Faults that end the server abruptly: killed, stopped in a checkpoint, restarted with an earlier clock.

use crate::clock::DAY;
use crate::episode::{Episode, close_era};
use crate::ledger::{Ledger, Promise};
use crate::load::{self, CREW, Lead, Load, WORKER, prepare};
use crate::tally::Tally;
use pg_snowflake_harness::prelude::*;
use std::thread::spawn;

/// Kills the whole server, its postmaster alone, or one backend, under load; it restarts at once.
pub fn kill(episode: &mut Episode) -> Tally {
    let lead_and_promise = episode.lead_and_promise();
    episode.on_one_server(Cluster::builder(), lead_and_promise, |episode, cluster, round| {
        let load = match round % 3 {
            0 => load_with_a_checkpoint(cluster, episode, round),
            // No other session flushes its WAL.
            1 => load::start_with_one_id(cluster, round * 100),
            _ => {
                let load = load::start(cluster, &mut episode.rng, round * 100, &CREW);
                episode.sleep_ms(50..200);
                load
            }
        };
        match episode.rng.u8(0..3) {
            0 => {
                cluster.crash();
            }
            1 => {
                cluster.kill_postmaster();
                cluster.start();
            }
            _ => kill_a_backend(cluster, episode),
        }
        load.join()
    })
}

/// Recovery starts at the last checkpoint: a record before it does not cover IDs that are taken after it.
fn load_with_a_checkpoint(cluster: &Cluster, episode: &mut Episode, round: i32) -> Load {
    let load = load::start(cluster, &mut episode.rng, round * 100, &CREW);
    episode.sleep_ms(5..100);
    cluster.connect().batch_execute("CHECKPOINT").expect("a superuser");
    episode.sleep_ms(5..50);
    load
}

pub fn kill_a_backend(cluster: &mut Cluster, episode: &mut Episode) {
    let backends = workers(&mut cluster.connect());
    cluster.kill_backend(backends[episode.rng.usize(0..backends.len())]);
}

/// The processes of the workers' sessions.
pub fn workers(client: &mut Client) -> Vec<i32> {
    let query = "SELECT pid FROM pg_stat_activity WHERE application_name = $1";
    let rows = client.query(query, &[&WORKER]).expect("the sessions can be listed");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Stops the server at once while a checkpoint is under way.
pub fn stop_in_checkpoint(episode: &mut Episode) -> Tally {
    let (lead, promise) = episode.lead_and_promise();
    let mut cluster = Cluster::new();
    prepare(&cluster, lead);
    let mut ledger = Ledger::default();
    let fill = "CREATE TABLE filler AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 10000)";
    let mut stopped_in_checkpoint = 0;
    let mut era = 0;
    while stopped_in_checkpoint < episode.rounds {
        assert!(era < 10 * episode.rounds, "most checkpoints end too soon");
        let load = load_with_a_checkpoint(&cluster, episode, era);
        era += 1;
        let mut client = cluster.connect();
        client.batch_execute(&format!("DROP TABLE IF EXISTS filler; {fill}")).expect("a superuser");
        let before = cluster.log().len();
        let has_begun = || cluster.log()[before..].contains("checkpoint starting");
        // A spread checkpoint sleeps after each page, usually for 100 ms. With these pages it takes minutes, so it is
        // still running when the server is stopped, however late that is.
        let backup = spawn(move || drop(client.execute("SELECT pg_backup_start('x', false)", &[])));
        assert!(comes_true(has_begun), "no checkpoint begins");
        episode.sleep_ms(1..150);
        cluster.stop(Shutdown::Immediate);
        backup.join().expect("it only executes");
        let log = &cluster.log()[before..];
        if log.contains("checkpoint starting") && !log.contains("checkpoint complete") {
            stopped_in_checkpoint += 1;
        }
        cluster.start();
        close_era(&cluster, &mut ledger, &load.join(), promise);
    }
    episode.last_era(&cluster, ledger, promise)
}

/// Kills the server, which restarts with a clock that is behind by up to a day.
pub fn clock_behind_after_crash(episode: &mut Episode) -> Tally {
    // IDs that were returned and not committed may be in no WAL, and this clock may not be above them.
    let builder = Cluster::builder().setting("pg_snowflake.max_lead", "2d").fake_clock();
    episode.on_one_server(builder, (Lead::None, Promise::Committed), |episode, cluster, round| {
        let load = load::start(cluster, &mut episode.rng, round * 100, &CREW);
        // Often longer than the 100 ms of counters that a record covers, so that a crash finds more than one record.
        episode.sleep_ms(10..400);
        cluster.kill_9();
        let journals = load.join();
        cluster.set_clock(-episode.step_seconds(DAY));
        cluster.start();
        // Half of the crashes happen after the clock was corrected in between.
        if episode.rng.bool() {
            cluster.set_clock(0.0);
        }
        journals
    })
}
