//! Runs episodes of many faults in parallel, within a time budget.

use crate::Fault;
use crate::plan::{Plan, Turn};
use crate::report::Report;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

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

/// The short form of one fault, for a test.
pub fn short_form(name: &str) {
    let fault = Fault::named(name).expect("a fault of the campaign");
    let report = run(&Plan {
        faults: vec![(fault, fault.short)],
        seed: fastrand::u64(..),
        first_episode: 0,
        has_leases: true,
        budget: None,
        at_a_time: 1,
    });
    println!("{report}");
    assert!(report.is_sound(), "{name} breaks its promise");
}
