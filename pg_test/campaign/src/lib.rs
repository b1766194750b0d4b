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
mod run;
mod standby;
mod storage;
mod tally;

pub use managed::{EDITION, round_with};
pub use plan::Plan;
pub use report::Report;
pub use run::{run, short_form};
pub use tally::Tally;

use episode::Episode;
use pg_snowflake_harness::installation;

/// A fault of a server. docs/proof.md says which IDs are guaranteed despite it.
pub struct Fault {
    /// Its name on the command line.
    pub name: &'static str,
    /// What happens.
    pub title: &'static str,
    /// How often it happens in the long form.
    pub long: i32,
    /// How often it happens in the short form.
    pub short: i32,
    /// How often it happens to one set of servers.
    per_episode: i32,
    episode: fn(&mut Episode) -> Tally,
}

/// The faults of the campaign.
pub const FAULTS: [Fault; 28] = [
    Fault {
        name: "kill",
        title: "`kill -9` of the whole server, the postmaster or a backend, restart at once",
        long: 200,
        short: 10,
        per_episode: 5,
        episode: crash::kill,
    },
    Fault {
        name: "checkpoint",
        title: "immediate stop during a checkpoint",
        long: 50,
        short: 4,
        per_episode: 2,
        episode: crash::stop_in_checkpoint,
    },
    Fault {
        name: "steps",
        title: "clock steps of ±1 ms to ±1 day during load",
        long: 500,
        short: 100,
        per_episode: 25,
        episode: clock::steps,
    },
    Fault {
        name: "behind",
        title: "`kill -9`, and a clock that comes back behind by 1 ms to 1 day",
        long: 100,
        short: 4,
        per_episode: 10,
        episode: crash::clock_behind_after_crash,
    },
    Fault {
        name: "failover",
        title: "synchronous standby promoted, old primary killed, clocks up to 2 s apart",
        long: 50,
        short: 2,
        per_episode: 1,
        episode: standby::synchronous,
    },
    Fault {
        name: "async",
        title: "asynchronous standby promoted, old primary killed",
        long: 50,
        short: 2,
        per_episode: 1,
        episode: standby::asynchronous,
    },
    Fault {
        name: "restore",
        title: "base backup and point-in-time restore",
        long: 20,
        short: 2,
        per_episode: 1,
        episode: copies::point_in_time,
    },
    Fault {
        name: "dump",
        title: "dump and restore to another server",
        long: 20,
        short: 2,
        per_episode: 1,
        episode: copies::dump_and_restore,
    },
    Fault { name: "upgrade", title: "`pg_upgrade` to a later major version", long: 3, short: 2, per_episode: 1, episode: copies::upgrade },
    Fault {
        name: "alter",
        title: "`ALTER SEQUENCE` under load: `START WITH`, `SET UNLOGGED` and `SET LOGGED`; then `kill -9`",
        long: 60,
        short: 6,
        per_episode: 3,
        episode: storage::alter,
    },
    Fault {
        name: "template",
        title: "`CREATE DATABASE … TEMPLATE`, the load goes on in the copy; then `kill -9`",
        long: 50,
        short: 4,
        per_episode: 2,
        episode: storage::template,
    },
    Fault {
        name: "clients",
        title: "64 clients, CACHE 1 and 64, batches, plain `nextval`; a round is 1,000,000 IDs",
        long: 10,
        short: 1,
        per_episode: 5,
        episode: clients::many,
    },
    Fault {
        name: "managed",
        title: "clock steps, cancelled calls, terminated sessions; then `kill -9` of a backend or the server, or an immediate stop",
        long: 60,
        short: 6,
        per_episode: 3,
        episode: managed::faults,
    },
    Fault {
        name: "oracle",
        title: "400 random statements beside core's `nextval`; then `kill -9`, an immediate stop, or a synchronous standby promoted",
        long: 400,
        short: 40,
        per_episode: 5,
        episode: oracle::beside_core,
    },
    Fault {
        name: "lease-backup",
        title: "base backup started beside its source",
        long: 50,
        short: 2,
        per_episode: 5,
        episode: leases::base_backup,
    },
    Fault {
        name: "lease-disk",
        title: "copy of the disk of a running server, started beside it",
        long: 50,
        short: 2,
        per_episode: 5,
        episode: leases::disk_copy,
    },
    Fault {
        name: "lease-promotion",
        title: "standby promoted, old primary alive",
        long: 50,
        short: 2,
        per_episode: 5,
        episode: leases::promotion,
    },
    Fault {
        name: "lease-pause",
        title: "all processes of the holder paused for longer than its lease",
        long: 50,
        short: 4,
        per_episode: 10,
        episode: leases::pause,
    },
    Fault {
        name: "lease-processes",
        title: "lease worker or single sessions of the holder paused for longer than its lease",
        long: 50,
        short: 4,
        per_episode: 10,
        episode: leases::pause_processes,
    },
    Fault {
        name: "lease-clocks",
        title: "clock of the holder wrong by an hour",
        long: 50,
        short: 4,
        per_episode: 5,
        episode: leases::clocks,
    },
    Fault {
        name: "lease-takeover",
        title: "lease of a living holder taken over",
        long: 50,
        short: 4,
        per_episode: 10,
        episode: leases::take_over,
    },
    Fault {
        name: "lease-registry",
        title: "registry killed, restarted after a third of a lease or up to three leases",
        long: 50,
        short: 2,
        per_episode: 5,
        episode: leases::registry_down,
    },
    Fault {
        name: "lease-outage",
        title: "registry killed, restarted after 30 s",
        long: 50,
        short: 1,
        per_episode: 5,
        episode: leases::registry_outage,
    },
    Fault {
        name: "lease-late",
        title: "requests that reach the registry after their server gave them up",
        long: 50,
        short: 2,
        per_episode: 5,
        episode: leases::late_requests,
    },
    Fault {
        name: "lease-failover",
        title: "registry failed over to an asynchronous standby that lacks its last grants",
        long: 50,
        short: 1,
        per_episode: 5,
        episode: leases::registry_failover,
    },
    Fault {
        name: "lease-restore",
        title: "registry restored from an older base backup",
        long: 50,
        short: 1,
        per_episode: 5,
        episode: leases::registry_restored,
    },
    Fault {
        name: "lease-rollback",
        title: "registry rolled back without a restart, noticed by the holder",
        long: 50,
        short: 1,
        per_episode: 5,
        episode: leases::registry_rolled_back,
    },
    Fault {
        name: "lease-clone-restart",
        title: "holder restarted beside a base backup of it",
        long: 50,
        short: 2,
        per_episode: 5,
        episode: leases::restart_beside_copy,
    },
];

impl Fault {
    /// The fault of that name.
    pub fn named(name: &str) -> Option<&'static Fault> {
        FAULTS.iter().find(|fault| fault.name == name)
    }

    /// Whether servers share a shard in it.
    pub fn is_of_leases(&self) -> bool {
        self.name.starts_with("lease-")
    }

    /// Whether the SQL edition generates the IDs.
    pub fn is_of_the_sql_edition(&self) -> bool {
        self.name == "managed"
    }

    /// Whether it compares with core's functions.
    pub fn is_of_the_oracle(&self) -> bool {
        self.name == "oracle"
    }

    /// What the fault needs and this machine lacks, if anything.
    pub fn left_out(&self) -> Option<&'static str> {
        (self.name == "upgrade" && installation::next_bindir().is_none()).then_some("later major version of the same origin")
    }
}
