//! The cost of an ID, from this extension and from its alternatives. `./dev bench` runs it.
//!
//! Each measure starts its own server and runs all contenders in every round, so that a disturbance of the machine
//! affects all of them.

mod backend;
mod bulk;
mod chart;
pub mod contender;
pub mod contenders;
mod first;
pub mod hashing;
mod homed;
mod instructions;
mod large;
mod leases;
pub mod limits;
mod load;
mod pgbench;
pub mod pgedge;
mod rate;
pub mod registry;
mod repeats;
mod report;
mod retention;
pub mod samples;
mod sequences;
mod server;
mod summary;

pub use load::CLIENTS;
pub use report::Report;

use contender::Contender;
use limits::is_judged;
use samples::{Measure, Samples};
use std::time::{Duration, Instant};

/// What to measure, and how thoroughly.
#[derive(Debug)]
pub struct Plan {
    /// The measures.
    pub parts: Vec<&'static Part>,
    /// How many rounds each contender runs.
    pub rounds: usize,
    /// The numbers of clients of the loads.
    pub clients: Vec<u32>,
    /// The size of everything: 1 as in the documentation, 0.1 for a tenth of it.
    pub scale: f64,
    /// What is already known to be left out, and why.
    pub notes: Vec<String>,
}

impl Plan {
    fn scaled(&self, full: i64) -> i64 {
        scaled(full, self.scale)
    }

    /// Whether everything is measured, at its full size: then every limit must be met. The number of rounds does not matter:
    /// too few of them miss the limit.
    fn is_full(&self) -> bool {
        let has_part = |part: &Part| self.parts.iter().any(|planned| planned.name == part.name);
        self.scale == 1.0
            && PARTS.iter().all(has_part)
            && CLIENTS.iter().all(|clients| self.clients.contains(clients))
    }

    fn scaled_time(&self, full: Duration) -> Duration {
        full.mul_f64(self.scale)
    }
}

fn scaled(full: i64, scale: f64) -> i64 {
    ((full as f64 * scale) as i64).max(100)
}

/// Measures that share a server.
#[derive(Debug)]
pub struct Part {
    /// Its name on the command line.
    pub name: &'static str,
    what: &'static str,
    run: fn(&Plan, &[&'static Contender], &mut Findings),
}

/// All parts, in their order.
pub static PARTS: [Part; 14] = [
    Part { name: "backend", what: "IDs in one backend", run: backend::run },
    Part { name: "first", what: "the first ID of a transaction", run: first::run },
    Part { name: "repeats", what: "whether IDs of one statement repeat", run: repeats::run },
    Part { name: "bulk", what: "an INSERT of many rows", run: bulk::run },
    Part { name: "sequences", what: "many sequences in one backend", run: sequences::run },
    Part { name: "rate", what: "the rate of a layout", run: rate::run },
    Part { name: "load", what: "transactions of several clients, flushed to disk", run: load::run },
    Part { name: "large", what: "a table that outgrows memory", run: large::run },
    Part { name: "leases", what: "IDs with and without leases", run: leases::run },
    Part { name: "registry", what: "a registry of many nodes", run: registry::run },
    Part { name: "homed", what: "plain and homed IDs", run: homed::run },
    Part { name: "hashing", what: "hash tables of IDs", run: hashing::run },
    Part { name: "retention", what: "the removal of a month", run: retention::run },
    Part { name: "instructions", what: "instructions under valgrind", run: instructions::run },
];

/// The results.
#[derive(Debug, Default)]
pub struct Findings {
    pub samples: Samples,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Findings {
    fn note(&mut self, note: String) {
        println!("      {note}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Runs the plan.
pub fn run(plan: &Plan) -> Report {
    let started = Instant::now();
    let mut findings = Findings::default();
    plan.notes.iter().for_each(|note| findings.note(note.clone()));
    let contenders = server::available(&mut findings);
    for part in &plan.parts {
        println!("==> {}", part.what);
        let began = Instant::now();
        (part.run)(plan, &contenders, &mut findings);
        println!("      {:.1} s", began.elapsed().as_secs_f64());
    }
    Report::new(plan, contenders, findings, started.elapsed())
}

/// Runs each contender once in each round, in the order of [`turns`].
fn interleaved<T>(rounds: usize, contenders: &mut [T], mut turn: impl FnMut(usize, &mut T)) {
    for round in 0..rounds {
        for place in turns(round, contenders.len()) {
            turn(round, &mut contenders[place]);
        }
    }
}

/// Whether a turn that takes seconds is due: in each round if a limit uses its figure, else in every third.
fn is_due(round: usize, measure: Measure, contender: &Contender) -> bool {
    round.is_multiple_of(3) || is_judged(measure, contender.name)
}

/// The order of a round. The first one changes from round to round, and every other round runs backwards, so that each
/// of two neighbours follows the other equally often.
fn turns(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    let is_backwards = round % 2 == 1;
    (0..contenders).map(move |turn| {
        let place = (round + turn) % contenders;
        if is_backwards { contenders - 1 - place } else { place }
    })
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS, PARTS, Plan, turns};

    fn full() -> Plan {
        Plan {
            parts: PARTS.iter().collect(),
            rounds: 9,
            clients: CLIENTS.to_vec(),
            scale: 1.0,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_plan_that_leaves_something_out_is_not_full() {
        assert!(full().is_full());
        assert!(Plan { rounds: 1, ..full() }.is_full());
        assert!(!Plan { parts: PARTS.iter().skip(1).collect(), ..full() }.is_full());
        assert!(!Plan { clients: vec![1, 2, 32], ..full() }.is_full());
        assert!(!Plan { scale: 0.5, ..full() }.is_full());
    }

    #[test]
    fn each_runs_once_a_round_and_before_its_neighbour_in_about_half() {
        const CONTENDERS: usize = 9;
        let rounds: Vec<Vec<usize>> =
            (0..9).map(|round| turns(round, CONTENDERS).collect()).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..CONTENDERS).collect::<Vec<_>>());
        }
        for one in 0..CONTENDERS - 1 {
            let place =
                |round: &[usize], contender| round.iter().position(|&other| other == contender);
            let is_first = |round: &&Vec<usize>| place(round, one) < place(round, one + 1);
            let times = rounds.iter().filter(is_first).count();
            assert!(
                (4..=6).contains(&times),
                "{one} comes first in {times} of 9 rounds: {rounds:?}"
            );
        }
    }
}
