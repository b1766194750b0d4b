//! What a run measures, and what it finds.

use crate::bench::contender::Contender;
use crate::bench::samples::Samples;
use std::time::Duration;

/// The default numbers of clients.
pub const CLIENTS: [u32; 3] = [1, 8, 32];

/// Rounds of inserts for each other round. The disk is faster in one second than in the next, so many short turns show a
/// difference that few long ones hide.
pub const INSERT_ROUNDS: usize = 2;

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
    /// A number at the plan's scale.
    pub fn scaled(&self, full: i64) -> i64 {
        scaled(full, self.scale)
    }

    /// A time at the plan's scale.
    pub fn scaled_time(&self, full: Duration) -> Duration {
        full.mul_f64(self.scale)
    }
}

/// A number at a scale, at least 100.
pub fn scaled(full: i64, scale: f64) -> i64 {
    ((full as f64 * scale) as i64).max(100)
}

/// Measures that share a server.
#[derive(Debug)]
pub struct Part {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures.
    pub what: &'static str,
    /// Runs it for these contenders.
    pub run: fn(&Plan, &[&'static Contender], &mut Findings),
}

/// The results.
#[derive(Debug, Default)]
pub struct Findings {
    /// The measurements.
    pub samples: Samples,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Findings {
    /// Prints and keeps a note, once.
    pub fn note(&mut self, note: String) {
        println!("      {note}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
