//! The output of the programs: steps and their details.

pub fn step(what: &str) {
    println!("==> {what}");
}

pub fn say(what: &str) {
    for line in what.lines() {
        println!("      {line}");
    }
}
