//! What a machine cannot test is left out, and a line of the output says so, which `./dev test` repeats at its end.

use crate::installation;
use std::io::{self, Write};

/// Says that something is left out of the tests, and for want of what.
pub fn left_out(what: &str, need: &str) {
    // Not by println!, which shows nothing where the test passes.
    let line = format!("\nleft out: {what}: no {need}\n");
    io::stdout().write_all(line.as_bytes()).expect("standard output is open");
}

/// Whether the installation has that module of `contrib`; where it has not, says that `what` is left out.
pub fn has_contrib(module: &str, what: &str) -> bool {
    let has = installation::has_contrib(module);
    if !has {
        left_out(what, &format!("{module} in the installation"));
    }
    has
}
