//! What a campaign runs: faults, whose episodes take turns.

use crate::episode::Episode;
use crate::report::Report;
use crate::tally::Tally;
use crate::{FAULTS, Fault};
use fastrand::Rng;
use pg_snowflake_harness::installation;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub struct Plan {
    pub faults: Vec<(&'static Fault, i32)>,
    pub seed: u64,
    /// The number of each fault's first episode; above 0 to repeat a later one alone.
    pub first_episode: u64,
    /// Whether servers that share a shard have a registry of leases. Without one they repeat IDs, which does not count as a failure.
    pub has_leases: bool,
    /// After this time, no episode begins.
    pub budget: Option<Duration>,
    /// Whether an episode that breaks a promise is the last to begin.
    pub until_broken: bool,
    pub at_a_time: usize,
}

/// One episode of a fault.
pub struct Turn {
    pub fault: &'static Fault,
    pub episode: u64,
    pub rounds: i32,
}

/// The result of an episode: `None` if the harness or a server failed.
pub type Outcome = Option<Tally>;

impl Turn {
    /// The command that repeats its choices.
    pub fn reproduce(&self, seed: u64, has_leases: bool) -> String {
        let Turn { fault, episode, rounds } = self;
        format!(
            "./dev campaign {} --fault {} --seed {seed} --episode {episode} --rounds {rounds}{}",
            installation::major(installation::bindir()),
            fault.name,
            if has_leases { "" } else { " --without-leases" }
        )
    }

    pub fn take(&self, plan: &Plan) -> Outcome {
        let place = FAULTS.iter().position(|fault| fault.name == self.fault.name);
        let place = place.expect("a fault of the campaign") as u64;
        // Different seeds, so that no two episodes make the same choices.
        let seed = plan.seed ^ (place << 48) ^ (self.episode << 32);
        let mut episode =
            Episode { rng: Rng::with_seed(seed), rounds: self.rounds, is_second: self.episode % 2 == 1, has_leases: plan.has_leases };
        // The panic has printed its reason to standard error, with the server's log.
        catch_unwind(AssertUnwindSafe(|| (self.fault.episode)(&mut episode))).ok()
    }
}

/// Runs the plan, its episodes in parallel and within its time, prints its progress to standard output, and returns the report.
pub fn run(plan: &Plan) -> Report {
    let report = Mutex::new(Report::begin(plan));
    let deadline = plan.budget.map(|budget| Instant::now() + budget);
    thread::scope(|scope| {
        for _ in 0..plan.at_a_time {
            scope.spawn(|| {
                while deadline.is_none_or(|deadline| Instant::now() < deadline)
                    && let Some(turn) = next_turn(&report)
                {
                    let outcome = turn.take(plan);
                    lock(&report).enter(&turn, outcome);
                }
            });
        }
    });
    report.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Releases the report before the turn is taken.
fn next_turn(report: &Mutex<Report>) -> Option<Turn> {
    lock(report).next_turn()
}

fn lock(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The short form of one fault, for a test: of two episodes at most, which have both variants of those with two.
pub fn short_form(name: &str) {
    let fault = Fault::named(name).expect("a fault of the campaign");
    let report = run(&Plan {
        faults: vec![(fault, fault.short.min(2 * fault.per_episode))],
        seed: fastrand::u64(..),
        first_episode: 0,
        has_leases: true,
        budget: None,
        until_broken: false,
        at_a_time: 1,
    });
    println!("{report}");
    assert!(report.is_sound(), "{name} breaks its promise");
}
