//! The lease worker: a background process that claims and renews the leases of this server, and releases them when the server
//! stops or no longer needs them.
//!
//! This is its loop: what is due when, and what is published and logged. Its requests are in `requests.rs`. All that a restarted worker
//! needs is in shared memory.

mod requests;

use super::activity::{self, Activity, is_stopping, wait_latch};
use super::connection::Deadline;
use super::known;
use super::libpq::Libpq;
use super::problem::{self, Problem, Reason, granted};
use super::session::Session;
use super::settings;
use super::shared::{self, new_uuid};
use crate::fence;
use crate::postgres::report::Raise;
use crate::postgres::timestamp::now_us;
use pg_snowflake_policies::holder::{Closed, Known, Slot};
use pg_snowflake_policies::pacing;
use pg_snowflake_policies::registry::{MAX_LEASE_US, MAX_SHARDS_OF_A_NODE};
use pg_snowflake_policies::shared_leases::{Leases, Shared};
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags};
use pgrx::{PgLogLevel, pg_guard, pg_sys};
use std::ffi::CString;
use std::time::{Duration, Instant};

/// Has the postmaster start the worker once the server accepts writes, and again a second after it has ended.
pub fn register() {
    // SAFETY: a plain global. A server that pg_upgrade runs generates no IDs.
    if unsafe { pg_sys::IsBinaryUpgrade } {
        return;
    }
    settings::node();
    BackgroundWorkerBuilder::new("pg_snowflake lease worker")
        .set_library("pg_snowflake")
        .set_function("pg_snowflake_lease_worker")
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::RecoveryFinished)
        .set_restart_time(Some(Duration::from_secs(1)))
        .load();
}

/// The main function of the process.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_snowflake_lease_worker(_argument: pg_sys::Datum) {
    // With core's handler of SIGINT, pg_cancel_backend() could end the worker.
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM | SignalWakeFlags::SIGINT);
    activity::connect();
    known::prepare();
    if let (Some(shared), Some(conninfo)) = (shared::get(), settings::registry()) {
        let libpq = Libpq::load();
        Worker {
            shared,
            leases: shared.leases(),
            published: shared.leases(),
            libpq: &libpq,
            conninfo,
            session: None,
            known: None,
            registry_version: String::new(),
            reported: String::new(),
            ended: Vec::new(),
            to_release: Vec::new(),
            refused: None,
            failing_since: None,
        }
        .run();
    }
    // SAFETY: nothing of ours is left. After exit status 0, the postmaster would not start the worker again.
    unsafe { pg_sys::proc_exit(1) }
}

struct Worker<'a> {
    shared: &'static Shared,
    /// What is published, or is about to be.
    leases: Leases,
    published: Leases,
    libpq: &'a Libpq,
    conninfo: CString,
    session: Option<Session<'a>>,
    /// What the data directory knows of the registry, if it has been read.
    known: Option<Known>,
    /// The version of the registry's extension that was compared last.
    registry_version: String,
    /// The state that was logged last.
    reported: String,
    /// The shards whose leases have ended.
    ended: Vec<u32>,
    /// What is closed here, but may still be held at the registry.
    to_release: Vec<Closed>,
    /// When shards that the registry refuses are claimed again; `None` if it refuses none.
    refused: Option<Retry>,
    /// When the first of the last requests in a row began that had no answer.
    failing_since: Option<Instant>,
}

/// When refused shards are claimed again.
struct Retry {
    shards: Vec<u32>,
    /// The first refusal of these shards in a row.
    since: Instant,
    pause: Duration,
    due: Instant,
}

impl Retry {
    /// After another refusal.
    fn after(last: Option<Self>, refused: &[(u32, Reason)]) -> Self {
        let now = Instant::now();
        let shards: Vec<u32> = refused.iter().map(|&(shard, _)| shard).collect();
        let last = last.filter(|last| last.shards == shards);
        let since = last.as_ref().map_or(now, |last| last.since);
        let retry_in = refused.iter().filter_map(|(_, reason)| reason.retry_in).min();
        let (wait, pause) = pacing::pause_after_refusal(last.map(|last| last.pause), since.elapsed(), retry_in, settings::lease());
        Retry { shards, since, pause, due: now + wait }
    }
}

/// Which shards are claimed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Refused,
}

impl<'a> Worker<'a> {
    fn run(mut self) {
        let mut due = Instant::now();
        while !is_stopping() {
            if takes_reload() {
                due = Instant::now();
                self.refused = None;
            }
            if self.next_due(due) <= Instant::now() {
                let began = Instant::now();
                let is_renewal = due <= began;
                let outcome = if is_renewal { self.renew() } else { self.claim(Which::Refused) };
                let last = self.refused.take();
                self.failing_since = match &outcome {
                    Err(Problem::NoAnswer(_)) => self.failing_since.or(Some(began)),
                    _ => None,
                };
                let pause = match &outcome {
                    Ok(()) | Err(Problem::Copied(_)) => self.until_renewal(),
                    Err(Problem::Refused(refused)) => {
                        self.refused = Some(Retry::after(last, refused));
                        // A release that failed is tried again with the renewal.
                        if self.to_release.is_empty() { self.until_renewal() } else { self.pause_after_a_problem() }
                    }
                    Err(_) => self.pause_after_a_problem(),
                };
                let next = Instant::now() + pause;
                // However often refused shards are claimed, the others are renewed in time.
                due = if is_renewal { next } else { due.min(next) };
                self.report(outcome);
            }
            self.report_ends();
            // A request resets the latch, so a signal during it shows only in its flag.
            if !is_stopping() && !is_reload_pending() {
                let pause = self.next_due(due).saturating_duration_since(Instant::now());
                Activity::Idle.report();
                wait_latch(0, pg_sys::PGINVALID_SOCKET, pause);
            }
        }
        self.close(|_| true);
        if let Err(problem) = self.release(Deadline::within(Deadline::WHEN_STOPPING)) {
            self.report(Err(problem));
        }
    }

    /// When the next claim is due: that of all shards, or that of the refused ones.
    fn next_due(&self, due: Instant) -> Instant {
        self.refused.as_ref().map_or(due, |refused| due.min(refused.due))
    }

    /// The time until about two thirds of a lease are left.
    fn until_renewal(&self) -> Duration {
        let held = self.leases.holder.slots.iter().filter(|slot| slot.serial.is_some());
        let end_us = held.map(|slot| slot.span.ends_us).min().unwrap_or(i64::MAX);
        let left = Duration::from_micros(end_us.saturating_sub(now_us()).max(0).unsigned_abs());
        pacing::until_renewal(left, settings::lease(), random())
    }

    /// How long to wait after a claim that had no answer, or that failed.
    fn pause_after_a_problem(&self) -> Duration {
        pacing::pause_after_failure(self.failing_for(), settings::lease(), random())
    }

    /// Since when the registry has not answered; zero if it has answered the last request.
    fn failing_for(&self) -> Duration {
        self.failing_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Claims the leases of all shards that the configuration names, and releases the others.
    fn renew(&mut self) -> Result<(), Problem> {
        let followed = self.follow_configuration();
        let has_closed_future = self.close_future_spans();
        // What is claimed below, or what the registry may assign, is to be released first.
        if has_closed_future || self.leases.holder.awaits_a_shard() {
            self.release(Deadline::within(third()))?;
        }
        let claimed = self.claim(Which::All);
        // A registry that does not answer a claim does not answer a release either.
        let released = match claimed {
            Err(Problem::NoAnswer(_)) => Ok(()),
            _ => self.release(Deadline::within(third())),
        };
        followed.and(claimed).and(released)
    }

    /// Makes the slots those of the configuration, and closes the others.
    fn follow_configuration(&mut self) -> Result<(), Problem> {
        let (wanted, outcome) = match wanted_shards() {
            Ok(wanted) => (wanted, Ok(())),
            Err(problem) => (Some(Vec::new()), Err(problem)),
        };
        let closed = self.leases.holder.follow(wanted.as_deref(), new_nonce());
        self.release_later(closed);
        outcome
    }

    /// Closes leases that begin later than any that a right clock grants: both clocks were ahead. Returns whether there are any.
    fn close_future_spans(&mut self) -> bool {
        // A span begins at the end of another one, or of a quiet time.
        let latest_us = now_us() + 2 * MAX_LEASE_US;
        let mark_us = self.shared.mark_us().saturating_add(1);
        let closed = self.leases.holder.close_future(latest_us, mark_us, new_nonce());
        let is_any = !closed.is_empty();
        self.release_later(closed);
        is_any
    }

    /// Closes slots whose shards the server wants again, and publishes that.
    fn close(&mut self, is_closed: impl Fn(&Slot) -> bool) {
        let closed = self.leases.holder.close(is_closed, true, new_nonce());
        self.release_later(closed);
    }

    /// Publishes that the leases are closed. What they held is to be released.
    fn release_later(&mut self, closed: Vec<Closed>) {
        for lease in closed {
            // Of two failed releases of a shard, the last has the current serial.
            self.to_release.retain(|other| (other.incarnation, other.slot.shard) != (lease.incarnation, lease.slot.shard));
            self.to_release.push(lease);
        }
        self.publish();
    }

    /// Publishes the leases, if they have changed: each session then asks for a new permit, and drops its cached counters.
    fn publish(&mut self) {
        if self.leases != self.published {
            self.shared.publish(&self.leases);
            self.published.clone_from(&self.leases);
        }
    }

    /// Logs once that leases have ended. They are granted again all at once, if nothing else is wrong.
    fn report_ends(&mut self) {
        let now_us = now_us();
        let has_ended = |slot: &&Slot| slot.serial.is_some() && slot.span.ends_us <= now_us;
        let ended: Vec<u32> = self.leases.holder.slots.iter().filter(has_ended).map(|slot| slot.shard).collect();
        if self.ended.is_empty() && !ended.is_empty() {
            problem::ended(&ended, &self.leases.error).log(PgLogLevel::WARNING);
        }
        self.ended = ended;
    }

    /// Logs once that the registry has another version than this server.
    fn report_version(&mut self, version: &str) {
        if version != self.registry_version {
            self.registry_version = version.to_owned();
            if version != problem::OWN_VERSION {
                problem::other_version(version).log(PgLogLevel::LOG);
            }
        }
    }

    /// Publishes the outcome, and logs it if the state is not that of the last time.
    fn report(&mut self, outcome: Result<(), Problem>) {
        (self.leases.answer, self.leases.error) = match &outcome {
            Ok(()) => Default::default(),
            Err(problem) => (problem.in_public(), problem.in_full()),
        };
        self.publish();
        let (level, state, report) = match outcome {
            Ok(()) => {
                let report = granted(&self.leases.holder.slots);
                (PgLogLevel::LOG, report.message.clone(), report)
            }
            Err(problem) => (PgLogLevel::WARNING, problem.state(), problem.report()),
        };
        if state != self.reported {
            self.reported = state;
            report.log(level);
        }
    }
}

/// The shards that the configuration of the server names; `None` if the registry is to assign one.
fn wanted_shards() -> Result<Option<Vec<u32>>, Problem> {
    if fence::is_foreign_host() {
        return Err(Problem::ForeignHost);
    }
    let shards: Vec<u32> = match (fence::owned_shards(), crate::settings::shard_id()) {
        (Some(owned), _) => owned.take(MAX_SHARDS_OF_A_NODE + 1).collect(),
        (None, Some(shard)) => vec![shard.unsigned_abs()],
        (None, None) => return Ok(None),
    };
    if shards.len() > MAX_SHARDS_OF_A_NODE { Err(Problem::TooManyShards) } else { Ok(Some(shards)) }
}

/// Reads the configuration again if the server has asked for it, and returns whether it has.
fn takes_reload() -> bool {
    let is_pending = is_reload_pending();
    if is_pending {
        // SAFETY: a flag that a signal handler sets, and what every process of the server does then.
        unsafe {
            (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
            call!(ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP));
        }
    }
    is_pending
}

/// Whether the server has asked this process to read the configuration again.
fn is_reload_pending() -> bool {
    // SAFETY: a flag that a signal handler sets.
    unsafe { (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0 }
}

/// The time between two claims, and the longest time that one may take.
fn third() -> Duration {
    pacing::third(settings::lease())
}

/// A fraction of 2³².
fn random() -> u32 {
    new_uuid() as u32
}

/// A nonce that also differs in two copies of this process with the same random numbers, since their clocks differ.
fn new_nonce() -> u128 {
    new_uuid() ^ now_us() as u128
}
