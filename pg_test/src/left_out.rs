//! What a test says where the machine has not what it needs.

use std::io::{self, Write};

/// Says that something is left out of the tests, and for want of what.
pub fn left_out(what: &str, need: &str) {
    // Not by println!, which shows nothing where the test passes.
    let line = format!("\nleft out: {what}: no {need}\n");
    io::stdout().write_all(line.as_bytes()).expect("standard output is open");
}
