//! Servers that all want one shard, which the leases of a registry let only one at a time have: copies, pauses, wrong
//! clocks, a registry that is lost.
//!
//! Every ID that reaches a client counts, committed or not. No two servers may have returned IDs of one tick. In every
//! round the shard changes hands. The same rounds without a registry show which IDs they would repeat.

mod clients;
mod ledger;

use crate::episode::Episode;
use crate::journal::SHARD;
use crate::tally::Tally;
use clients::Taken;
use ledger::Ledger;
use pg_snowflake_harness::crew::Crew;
use pg_snowflake_harness::leases::{Registry, change_by_hand, restart_worker};
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::process::Frozen;
use std::convert::identity;
use std::ops::Range;

const LEASE_MS: u64 = 1000;

/// How long two servers that want the shard run side by side.
const SIDE_BY_SIDE_MS: Range<u64> = 20..500;

/// How many IDs a server returns before it counts as the holder of the shard.
const ENOUGH: u64 = 1000;

/// A server that wants the shard, and its clients.
struct Rival {
    number: u32,
    clients: Crew<Taken>,
    cluster: Cluster,
}

impl Rival {
    fn wait(&self) {
        self.clients.wait_until_done(self.clients.done().iter().sum::<u64>() + ENOUGH);
        assert!(!self.clients.has_ended(), "a client has ended");
    }
}

/// All that want the shard in an episode.
struct Rivalry<'a> {
    episode: &'a mut Episode,
    registry: Option<Registry>,
    ledger: Ledger,
    rivals: u32,
}

impl<'a> Rivalry<'a> {
    fn new(episode: &'a mut Episode) -> Self {
        let registry = episode.has_leases.then(Registry::start);
        Rivalry { episode, registry, ledger: Ledger::default(), rivals: 0 }
    }

    fn build(&mut self, settings: impl Fn(Builder) -> Builder) -> Rival {
        let node = node(self.rivals);
        let builder = self.registry.as_ref().map(|registry| registry.node(&node));
        let builder = builder
            .unwrap_or_default()
            .setting("pg_snowflake.shard_id", &SHARD.to_string())
            .setting("pg_snowflake.lease", &LEASE_MS.to_string());
        let cluster = settings(builder).start();
        clients::prepare(&cluster);
        if self.registry.is_some() && cluster.has_fake_clock() {
            restart_worker(&cluster);
        }
        self.enter(cluster)
    }

    fn enter(&mut self, cluster: Cluster) -> Rival {
        let number = self.rivals;
        self.rivals += 1;
        Rival { number, clients: clients::start(&cluster, &mut self.episode.rng), cluster }
    }

    /// Has the other server take over from a holder that stops, crashes or pauses, and then comes back.
    fn hand_over(&mut self, holder: &mut Rival, other: &Rival) {
        match self.episode.rng.u8(0..3) {
            0 => {
                holder.cluster.stop(Shutdown::Fast);
                other.wait();
                holder.cluster.start();
            }
            1 => {
                holder.cluster.kill_9();
                other.wait();
                holder.cluster.start();
            }
            _ => while_paused(holder.cluster.freeze(), other),
        }
        self.episode.sleep_ms(SIDE_BY_SIDE_MS);
    }

    /// Stops the clients of a server, and then the server.
    fn leave(&mut self, rival: Rival) {
        self.ledger.enter(rival.number, rival.clients.stop());
    }

    fn end(mut self, rivals: impl IntoIterator<Item = Rival>) -> Tally {
        rivals.into_iter().for_each(|rival| self.leave(rival));
        self.ledger.tally()
    }
}

/// Waits until a server takes over from paused processes, which then go on.
fn while_paused(paused: Frozen, other: &Rival) {
    other.wait();
    drop(paused);
}

fn node(number: u32) -> String {
    format!("db-{number}")
}

/// A base backup of the holder is started beside it, with its settings and under its host name.
pub fn base_backup(episode: &mut Episode) -> Tally {
    replace(episode, |_, holder| {
        let mut copy = holder.base_backup();
        copy.start();
        copy
    })
}

/// The same with a copy of its disk, which recovers as after a crash.
pub fn disk_copy(episode: &mut Episode) -> Tally {
    replace(episode, |episode, holder| {
        if episode.rng.bool() {
            holder.connect().batch_execute("CHECKPOINT").expect("a superuser");
            episode.sleep_ms(1..100);
        }
        let mut copy = holder.snapshot();
        copy.start();
        copy
    })
}

/// Its standby is promoted, and the old primary lives on.
pub fn promotion(episode: &mut Episode) -> Tally {
    replace(episode, |_, holder| {
        let standby = holder.standby();
        standby.promote();
        standby
    })
}

/// In each round a copy of the holder takes over from it, and is the holder in the next.
fn replace(episode: &mut Episode, copy_of: fn(&mut Episode, &Cluster) -> Cluster) -> Tally {
    let mut rivalry = Rivalry::new(episode);
    let mut holder = rivalry.build(identity);
    holder.wait();
    for _ in 0..rivalry.episode.rounds {
        let copy = copy_of(rivalry.episode, &holder.cluster);
        let copy = rivalry.enter(copy);
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
        rivalry.hand_over(&mut holder, &copy);
        rivalry.leave(std::mem::replace(&mut holder, copy));
    }
    rivalry.end([holder])
}

/// The primary pauses, its standby is promoted meanwhile, and both are written to once the primary goes on, as its manager has not noticed
/// yet.
pub fn paused_primary(episode: &mut Episode) -> Tally {
    let mut rivalry = Rivalry::new(episode);
    let mut holder = rivalry.build(identity);
    for _ in 0..rivalry.episode.rounds {
        holder.wait();
        let standby = holder.cluster.standby();
        let paused = holder.cluster.freeze();
        standby.promote();
        let standby = rivalry.enter(standby);
        while_paused(paused, &standby);
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
        rivalry.leave(std::mem::replace(&mut holder, standby));
    }
    rivalry.end([holder])
}

/// All processes of the holder stop for longer than its lease, then go on.
pub fn pause(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| {
        while_paused(holder.cluster.freeze(), other);
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
    })
}

/// Its lease worker or some of its sessions stop alone. In the second case it is shut down meanwhile.
pub fn pause_processes(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| {
        let rng = &mut rivalry.episode.rng;
        let is_shut_down = rng.bool();
        let mut paused = holder.cluster.processes("[local]");
        paused.retain(|_| rng.bool());
        if !is_shut_down {
            paused.extend(holder.cluster.processes("lease worker"));
        }
        let paused = Frozen::of(paused);
        if is_shut_down {
            holder.cluster.begin_to_stop(Shutdown::Fast);
        }
        while_paused(paused, other);
        if is_shut_down {
            holder.cluster.restart(Shutdown::Fast);
        }
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
    })
}

/// An operator assigns the shard to the other server while its holder is running.
pub fn take_over(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, _, other| {
        if let Some(registry) = &rivalry.registry {
            let take_over = format!("SELECT snowflake_registry.take_over({SHARD}, '{}')", node(other.number));
            registry.cluster.connect().batch_execute(&take_over).expect("a superuser");
        }
        other.wait();
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
    })
}

/// The holder's clock is wrong by an hour until the other server has taken over.
pub fn clocks(episode: &mut Episode) -> Tally {
    let max_lead = episode.alternate("2h", "100ms");
    let settings = |builder: Builder| builder.fake_clock().setting("pg_snowflake.max_lead", max_lead);
    alternate(episode, settings, |rivalry, holder, other| {
        let hour = if rivalry.episode.rng.bool() { 3600.0 } else { -3600.0 };
        holder.cluster.set_clock(hour);
        other.wait();
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
        holder.cluster.set_clock(0.0);
    })
}

/// The registry is killed, and starts after a third of a lease or up to three leases. The holder may crash meanwhile.
pub fn registry_down(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| lose_registry(rivalry, holder, other, LEASE_MS / 3..LEASE_MS * 3))
}

/// The registry is killed, and starts half a minute later. The holder may crash meanwhile.
pub fn registry_outage(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| lose_registry(rivalry, holder, other, 30_000..30_001))
}

fn lose_registry(rivalry: &mut Rivalry, holder: &mut Rival, other: &Rival, for_ms: Range<u64>) {
    if let Some(registry) = &mut rivalry.registry {
        registry.cluster.kill_9();
    }
    rivalry.episode.sleep_ms(for_ms);
    if rivalry.episode.rng.bool() {
        holder.cluster.crash();
    }
    if let Some(registry) = &mut rivalry.registry {
        registry.cluster.start();
    }
    rivalry.hand_over(holder, other);
}

/// The sessions of the registry pause, so that servers give up requests that are executed later. The holder may stop meanwhile.
pub fn late_requests(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| {
        let sessions = |registry: &Registry| registry.cluster.processes("node postgres");
        let paused = Frozen::of(rivalry.registry.as_ref().map(sessions).unwrap_or_default());
        rivalry.episode.sleep_ms(LEASE_MS / 3..LEASE_MS * 3);
        if rivalry.episode.rng.bool() {
            holder.cluster.restart(Shutdown::Fast);
        }
        drop(paused);
        rivalry.hand_over(holder, other);
    })
}

/// The registry fails over to a standby that lacks its last grants.
pub fn registry_failover(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| {
        let standby = rivalry.registry.as_ref().map(|registry| registry.cluster.standby());
        let frozen = standby.as_ref().map(Cluster::freeze);
        rivalry.hand_over(holder, other);
        if let Some(registry) = &mut rivalry.registry {
            registry.cluster.kill_9();
        }
        drop(frozen);
        if let (Some(registry), Some(standby)) = (&mut rivalry.registry, standby) {
            standby.promote();
            registry.move_to(standby);
        }
        rivalry.hand_over(holder, other);
    })
}

/// The registry is lost, and restored from a base backup that does not know the last holder.
pub fn registry_restored(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| {
        let backup = rivalry.registry.as_ref().map(|registry| registry.cluster.base_backup());
        rivalry.hand_over(holder, other);
        if let (Some(registry), Some(mut backup)) = (&mut rivalry.registry, backup) {
            registry.cluster.kill_9();
            backup.start();
            registry.move_to(backup);
        }
        rivalry.hand_over(holder, other);
    })
}

/// The rows of the registry are those of some leases ago, and the holder is the first to claim the shard afterwards.
pub fn registry_rolled_back(episode: &mut Episode) -> Tally {
    alternate(episode, identity, |rivalry, holder, other| {
        let back_up = "DROP TABLE IF EXISTS backup; CREATE TABLE backup AS TABLE snowflake_registry.shards";
        let mut superuser = rivalry.registry.as_ref().map(|registry| registry.cluster.connect());
        if let Some(superuser) = &mut superuser {
            superuser.batch_execute(back_up).expect("a superuser");
        }
        rivalry.episode.sleep_ms(LEASE_MS / 2..LEASE_MS * 4);
        let paused = Frozen::of(other.cluster.processes("lease worker"));
        if let Some(superuser) = &mut superuser {
            let before = printed(superuser, "SELECT max(lost_serial) FROM snowflake_registry.nodes");
            change_by_hand(superuser, "DELETE FROM snowflake_registry.shards; INSERT INTO snowflake_registry.shards TABLE backup");
            wait_for(superuser, &format!("SELECT max(lost_serial) > {before} FROM snowflake_registry.nodes"), "the rollback is noticed");
        }
        drop(paused);
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
        rivalry.hand_over(holder, other);
    })
}

/// A base backup of the holder runs beside it while the holder restarts.
pub fn restart_beside_copy(episode: &mut Episode) -> Tally {
    let mut rivalry = Rivalry::new(episode);
    let mut holder = rivalry.build(identity);
    for _ in 0..rivalry.episode.rounds {
        holder.wait();
        let mut copy = holder.cluster.base_backup();
        copy.start();
        let copy = rivalry.enter(copy);
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
        match rivalry.episode.rng.u8(0..3) {
            0 => holder.cluster.stop(Shutdown::Fast),
            1 => holder.cluster.stop(Shutdown::Immediate),
            _ => holder.cluster.kill_9(),
        }
        holder.cluster.start();
        rivalry.episode.sleep_ms(LEASE_MS / 2..LEASE_MS * 4);
        // On a slow machine, the copy has the shard by now.
        rivalry.leave(copy);
    }
    holder.wait();
    rivalry.end([holder])
}

/// In each round, what happens to the holder of two servers makes it the other one.
fn alternate(episode: &mut Episode, settings: impl Fn(Builder) -> Builder, happen: fn(&mut Rivalry, &mut Rival, &Rival)) -> Tally {
    let mut rivalry = Rivalry::new(episode);
    let mut holder = rivalry.build(&settings);
    holder.wait();
    let mut other = rivalry.build(&settings);
    for _ in 0..rivalry.episode.rounds {
        rivalry.episode.sleep_ms(SIDE_BY_SIDE_MS);
        happen(&mut rivalry, &mut holder, &other);
        std::mem::swap(&mut holder, &mut other);
    }
    rivalry.end([holder, other])
}
