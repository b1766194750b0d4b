//! The cost of an ID, from this extension and from its alternatives. `./dev bench` runs it.
//!
//! Each measure starts its own server and runs all contenders in every round, so that a disturbance of the machine
//! affects all of them.

mod backend;
pub mod build;
mod bulk;
mod chart;
pub mod contender;
pub mod contenders;
mod first;
pub mod floor;
pub mod hashing;
mod homed;
mod instructions;
mod large;
mod leases;
mod limit;
pub mod limits;
mod load;
pub mod page;
mod pgbench;
pub mod pgedge;
mod plan;
mod rate;
pub mod reading;
pub mod registry;
mod repeats;
mod report;
mod retention;
pub mod samples;
mod sequences;
mod server;
mod summary;
mod tables;
mod turns;

pub use plan::{CLIENTS, Findings, Part, Plan};
pub use report::Report;

use std::time::Instant;

/// All parts, in their order.
pub static PARTS: [Part; 15] = [
    Part { name: "backend", what: "IDs in one backend", run: backend::run },
    Part { name: "first", what: "the first ID of a transaction", run: first::run },
    Part { name: "repeats", what: "whether IDs of one statement repeat", run: repeats::run },
    Part { name: "bulk", what: "an INSERT of many rows", run: bulk::run },
    Part { name: "sequences", what: "many sequences in one backend", run: sequences::run },
    Part { name: "rate", what: "the rate of a layout", run: rate::run },
    Part { name: "load", what: "transactions of several clients, flushed to disk", run: load::run },
    Part { name: "reading", what: "reading stored IDs", run: reading::run },
    Part { name: "large", what: "a table that outgrows memory", run: large::run },
    Part { name: "leases", what: "IDs with and without leases", run: leases::run },
    Part { name: "registry", what: "a registry of many nodes", run: registry::run },
    Part { name: "homed", what: "plain and homed IDs", run: homed::run },
    Part { name: "hashing", what: "hash tables of IDs", run: hashing::run },
    Part { name: "retention", what: "the removal of a month", run: retention::run },
    Part { name: "instructions", what: "instructions under valgrind", run: instructions::run },
];

/// Whether everything is measured, at its full size: then every limit must be met. The number of rounds does not matter:
/// too few of them miss the limit.
fn is_full(plan: &Plan) -> bool {
    let has_part = |part: &Part| plan.parts.iter().any(|planned| planned.name == part.name);
    plan.scale == 1.0
        && PARTS.iter().all(has_part)
        && CLIENTS.iter().all(|clients| plan.clients.contains(clients))
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
    Report::new(plan, is_full(plan), contenders, findings, started.elapsed())
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS, PARTS, Plan, is_full};

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
        assert!(is_full(&full()));
        assert!(is_full(&Plan { rounds: 1, ..full() }));
        assert!(!is_full(&Plan { parts: PARTS.iter().skip(1).collect(), ..full() }));
        assert!(!is_full(&Plan { clients: vec![1, 32], ..full() }));
        assert!(!is_full(&Plan { scale: 0.5, ..full() }));
    }
}
