//! Programs that run beside a server, and end with their test.

use crate::command;
use nix::unistd::Pid;
use pg_snowflake_harness::installation::{as_server_user, remove_pg_variables};
use pg_snowflake_harness::process::kill_with_descendants;
use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::panicking;
use tempfile::TempDir;

/// A program that ends with the test, as does what it has started. What it has written is shown if the test fails.
pub struct Program {
    process: Child,
    log: PathBuf,
}

impl Program {
    /// Starts it. It appends to the log.
    pub fn start(mut command: Command, log: PathBuf) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let process = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        Program { process, log }
    }

    pub fn pid(&self) -> i32 {
        self.process.id().try_into().unwrap()
    }

    /// What it has written so far, and before it the programs with the same log.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended, which the test has noticed by what is missing.
        kill_with_descendants(Pid::from_raw(self.pid()));
        let _ = self.process.wait();
        if panicking() {
            eprintln!("{}", self.log());
        }
    }
}

/// A program of the unpacked packages. If the test is killed, the kernel kills the program.
pub fn program(dir: &TempDir, name: &str) -> Command {
    let mut program = command("setpriv", dir.path());
    program.arg("--pdeathsig=KILL").arg(dir.path().join("package/usr/bin").join(name));
    remove_pg_variables(&mut program);
    program
}

/// The same for the program that the caller adds, to run in `dir` as the servers' OS user.
pub fn program_of_server_user(dir: &Path) -> Command {
    let mut command = as_server_user("setpriv", dir);
    command.env("HOME", dir).arg("--pdeathsig=KILL");
    command
}

/// TCP ports that were free a moment ago.
pub fn free_ports<const N: usize>() -> [u16; N] {
    // All at once, so that they differ.
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
