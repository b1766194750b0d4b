//! The fault campaign: each fault many times, on real servers under load. No ID may be returned twice.
//!
//! The load (`load`) takes IDs in every way and records each one that reaches a client (`journal`), committed or not. The
//! ledger finds repeats. The faults have a module each for crashes, clocks, standbys, copies, storage and many clients,
//! one for servers that share a shard by leases (`leases`), with a load and a ledger of its own, and one for the SQL edition
//! (`managed`), with a load of its own. `oracle` has no load: it executes random statements one at a time, beside core's functions.
//! The campaign runs them in parallel within a time budget ([`run()`]).

mod clients;
mod clock;
mod copies;
mod crash;
mod episode;
mod journal;
mod leases;
mod ledger;
mod load;
mod managed;
mod oracle;
mod plan;
mod report;
mod standby;
mod storage;
mod tally;

pub use managed::{EDITION, round_with};
pub use plan::{Plan, run, short_form};
pub use report::Report;
pub use tally::Tally;

use episode::Episode;
use pg_snowflake_harness::installation;

/// What a fault happens to. Each kind has a table in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    OfAServer,
    /// Compared with core's functions.
    BesideCore,
    OfTheSqlEdition,
    /// Which servers share.
    OfAShard,
}

/// A fault of a server. docs/proof.md says which IDs are guaranteed despite it.
pub struct Fault {
    pub name: &'static str,
    pub title: &'static str,
    pub long: i32,
    pub short: i32,
    /// How often it happens to one set of servers.
    per_episode: i32,
    episode: Happen,
}

/// The faults of the campaign: the name, how often each happens in the long form, in the short form and in an episode, and what happens.
#[rustfmt::skip]
pub const FAULTS: &[Fault] = &[
    fault("kill", [200, 10, 5], crash::kill, "`kill -9` of the whole server, the postmaster or a backend, restart at once"),
    fault("checkpoint", [50, 4, 2], crash::stop_in_checkpoint, "immediate stop during a checkpoint"),
    fault("steps", [500, 100, 25], clock::steps, "clock steps of ±1 ms to ±1 day during load"),
    fault("behind", [100, 4, 10], crash::clock_behind_after_crash, "`kill -9`, and a clock that comes back behind by 1 ms to 1 day"),
    fault("failover", [50, 2, 1], standby::synchronous, "synchronous standby promoted, old primary killed, clocks up to 2 s apart"),
    fault("async", [50, 2, 1], standby::asynchronous, "asynchronous standby promoted, old primary killed"),
    fault("restore", [20, 2, 1], copies::point_in_time, "base backup and point-in-time restore"),
    fault("dump", [20, 2, 1], copies::dump_and_restore, "dump and restore to another server"),
    fault("upgrade", [3, 2, 1], copies::upgrade, "`pg_upgrade` to a later major version"),
    fault("alter", [60, 6, 3], storage::alter,
        "`ALTER SEQUENCE` under load: `START WITH`, `SET UNLOGGED` and `SET LOGGED`; then `kill -9`"),
    fault("template", [50, 4, 2], storage::template, "`CREATE DATABASE … TEMPLATE`, the load goes on in the copy; then `kill -9`"),
    fault("clients", [10, 1, 5], clients::many, "64 clients, CACHE 1 and 64, batches, plain `nextval`; a round is 1,000,000 IDs"),
    fault("managed", [60, 6, 3], managed::faults,
        "clock steps, cancelled calls, terminated sessions; then `kill -9` of a backend or the server, or an immediate stop"),
    fault("oracle", [400, 40, 5], oracle::beside_core,
        "400 random statements beside core's `nextval`; then `kill -9`, an immediate stop, or a synchronous standby promoted"),
    fault("lease-backup", [50, 2, 5], leases::base_backup, "base backup started beside its source"),
    fault("lease-disk", [50, 2, 5], leases::disk_copy, "copy of the disk of a running server, started beside it"),
    fault("lease-promotion", [50, 2, 5], leases::promotion, "standby promoted, old primary alive"),
    fault("lease-paused-primary", [50, 4, 5], leases::paused_primary, "primary paused, standby promoted, primary awake, both written to"),
    fault("lease-pause", [50, 4, 10], leases::pause, "all processes of the holder paused for longer than its lease"),
    fault("lease-processes", [50, 4, 10], leases::pause_processes,
        "lease worker or single sessions of the holder paused for longer than its lease"),
    fault("lease-clocks", [50, 4, 5], leases::clocks, "clock of the holder wrong by an hour"),
    fault("lease-takeover", [50, 4, 10], leases::take_over, "lease of a living holder taken over"),
    fault("lease-registry", [50, 2, 5], leases::registry_down, "registry killed, restarted after a third of a lease or up to three leases"),
    fault("lease-outage", [50, 1, 5], leases::registry_outage, "registry killed, restarted after 30 s"),
    fault("lease-late", [50, 2, 5], leases::late_requests, "requests that reach the registry after their server gave them up"),
    fault("lease-failover", [50, 1, 5], leases::registry_failover,
        "registry failed over to an asynchronous standby that lacks its last grants"),
    fault("lease-restore", [50, 1, 5], leases::registry_restored, "registry restored from an older base backup"),
    fault("lease-rollback", [50, 1, 5], leases::registry_rolled_back, "registry rolled back without a restart, noticed by the holder"),
    fault("lease-clone-restart", [50, 2, 5], leases::restart_beside_copy, "holder restarted beside a base backup of it"),
];

type Happen = fn(&mut Episode) -> Tally;

const fn fault(name: &'static str, [long, short, per_episode]: [i32; 3], episode: Happen, title: &'static str) -> Fault {
    Fault { name, title, long, short, per_episode, episode }
}

impl Fault {
    pub fn named(name: &str) -> Option<&'static Fault> {
        FAULTS.iter().find(|fault| fault.name == name)
    }

    pub fn kind(&self) -> Kind {
        match self.name {
            "oracle" => Kind::BesideCore,
            "managed" => Kind::OfTheSqlEdition,
            name if name.starts_with("lease-") => Kind::OfAShard,
            _ => Kind::OfAServer,
        }
    }

    /// What the fault needs and this machine lacks, if anything.
    pub fn left_out(&self) -> Option<&'static str> {
        if self.name == "upgrade" { installation::next_bindir().err() } else { None }
    }
}
