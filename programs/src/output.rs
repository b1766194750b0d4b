//! The output of the programs: steps, their details, and claims that hold or do not.

use std::process::ExitCode;
use std::time::Duration;

/// Prints the next step.
pub fn step(what: &str) {
    println!("==> {what}");
}

/// Prints a detail of the step, indented below it.
pub fn say(what: &str) {
    for line in what.lines() {
        println!("      {line}");
    }
}

/// The claims of a program, and whether all of them held.
#[derive(Default)]
pub struct Claims {
    broken: usize,
}

impl Claims {
    /// Prints whether a claim holds.
    pub fn check(&mut self, holds: bool, claim: &str) {
        let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
        say(&format!("{verdict}: {claim}"));
        self.broken += usize::from(!holds);
    }

    /// Success if all claims held.
    pub fn verdict(self) -> ExitCode {
        if self.broken == 0 {
            step("all of it holds; stopping the servers and removing what they wrote");
            ExitCode::SUCCESS
        } else {
            step(&format!("{} of the claims above do not hold", self.broken));
            ExitCode::FAILURE
        }
    }
}

/// A duration in milliseconds, to the hundredth.
pub fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
