//! Commands that copy a sequence's tuple, with its `log_cnt`, into other storage, whose WAL does not cover the values
//! that `log_cnt` counts; then the server is killed.

use crate::episode::Episode;
use crate::ledger::Promise;
use crate::load::{self, CREW, Lead, permit};
use crate::tally::Tally;
use pg_snowflake_harness::{Cluster, SUPERUSER};

/// What happens to a sequence. Statements in one string are one transaction.
const ALTERATIONS: [&[&str]; 3] = [
    &["ALTER SEQUENCE {s} START WITH 7"],
    &["ALTER SEQUENCE {s} SET UNLOGGED; ALTER SEQUENCE {s} SET LOGGED"],
    // IDs are taken in between. The server is not killed in between, since that would reset the sequence.
    &["ALTER SEQUENCE {s} SET UNLOGGED", "ALTER SEQUENCE {s} SET LOGGED"],
];

/// Has a sequence altered under load, then kills the server, which restarts at once.
pub fn alter(episode: &mut Episode) -> Tally {
    let lead_and_promise = lead_and_promise(episode);
    episode.on_one_server(Cluster::builder(), lead_and_promise, |episode, cluster, round| {
        let load = load::start(cluster, &mut episode.rng, round * 100, &CREW);
        let mut client = cluster.connect();
        episode.sleep_ms(5..50);
        // Not random, so that even the shortest form has all of them.
        let alteration = ALTERATIONS[round as usize % ALTERATIONS.len()];
        let sequence = ["shared", "cached", "lone"][episode.rng.usize(0..3)];
        for statements in alteration {
            let statements = statements.replace("{s}", sequence);
            client.batch_execute(&statements).expect("a superuser");
        }
        // Only briefly: the copied log_cnt is soon used up.
        episode.sleep_ms(1..20);
        cluster.crash();
        load.join()
    })
}

/// Copies the database, which nobody may use meanwhile. The load continues in the copy, and the server is killed.
pub fn template(episode: &mut Episode) -> Tally {
    let (lead, promise) = lead_and_promise(episode);
    episode.on_one_server(Cluster::builder(), (lead, promise), |episode, cluster, round| {
        let load = load::start(cluster, &mut episode.rng, round * 100, &CREW);
        episode.sleep_ms(5..50);
        let mut journals = load.stop();
        put_a_copy_in_place(cluster, round);
        permit(cluster, lead);
        let load = load::start(cluster, &mut episode.rng, round * 100 + 50, &CREW);
        episode.sleep_ms(5..50);
        cluster.crash();
        journals.extend(load.join());
        journals
    })
}

/// Copies the database of the load, and renames the copy to its name. The original stays, because dropping it makes a
/// checkpoint, after which IDs are logged again.
fn put_a_copy_in_place(cluster: &Cluster, round: i32) {
    let mut client = cluster.connect_to(SUPERUSER, "template1");
    for statement in [
        "CREATE DATABASE copy TEMPLATE postgres",
        &format!("ALTER DATABASE postgres RENAME TO original{round}"),
        "ALTER DATABASE copy RENAME TO postgres",
    ] {
        client.batch_execute(statement).expect("nobody is connected");
    }
}

/// As for other faults, but without the values of plain `nextval`: until an ID of ours is logged, nothing covers what it takes from a copy.
fn lead_and_promise(episode: &mut Episode) -> (Lead, Promise) {
    episode.alternate((Lead::AnHour, Promise::CommittedIds), (Lead::None, Promise::Returned))
}
