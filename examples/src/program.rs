//! Running a program.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A program to run in `dir`.
pub fn command(program: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null());
    command
}

/// Runs a command to its end, and returns its standard output. What it wrote is shown if the test fails.
pub fn run(command: &mut Command) -> String {
    let output = run_to_end(command);
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command to its end, and shows what it wrote if the test fails.
pub fn run_to_end(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    output
}
