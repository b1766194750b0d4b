//! What a campaign runs: faults, whose episodes take turns.

use crate::episode::Episode;
use crate::tally::Tally;
use crate::{FAULTS, Fault};
use fastrand::Rng;
use pg_snowflake_harness::installation;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

pub struct Plan {
    pub faults: Vec<(&'static Fault, i32)>,
    pub seed: u64,
    /// The number of each fault's first episode; above 0 to repeat a later one alone.
    pub first_episode: u64,
    /// Whether servers that share a shard have a registry of leases. Without one they repeat IDs, which does not count as a failure.
    pub has_leases: bool,
    /// After this time, no episode begins.
    pub budget: Option<Duration>,
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
