//! The output of the programs: steps and their details.

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
