//! Stops a server's process between two steps of its code, by gdb.

use crate::wait::PATIENCE;
use nix::unistd::Uid;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// What this user lacks to trace a server's process; `None` if nothing.
pub fn missing_requirement() -> Option<&'static str> {
    let mut try_gdb = gdb();
    try_gdb.args(["--batch", "--nx"]).stdout(Stdio::null()).stderr(Stdio::null());
    let works = try_gdb.status().is_ok_and(|status| status.success());
    (!works).then_some("gdb with the right to trace another process (kernel.yama.ptrace_scope)")
}

/// gdb; with sudo if the kernel lets only root trace a process that is not a child.
fn gdb() -> Command {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let is_open = matches!(scope.trim(), "" | "0");
    let mut command = if is_open || Uid::effective().is_root() {
        Command::new("gdb")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["--non-interactive", "gdb"]);
        sudo
    };
    // Its messages are searched for.
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// A process under gdb. It continues when this is dropped.
pub struct Debugger {
    gdb: Child,
    lines: Receiver<String>,
}

impl Debugger {
    /// Attaches to the process `pid`, to stop it when it returns from its next call of a function of the server.
    pub fn stop_at_return_of(function: &str, pid: i32) -> Self {
        let mut gdb = gdb()
            .args(["--quiet", "--nx", "--nh", "--pid", &pid.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("gdb can be run: ./dev test installs it");
        let output = BufReader::new(gdb.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut debugger = Debugger { gdb, lines };
        debugger.send(&format!("set confirm off\nbreak {function}\necho armed\\n\n"));
        debugger.wait_for("armed");
        // `finish` runs to the caller.
        debugger.send("continue\nfinish\necho stopped\\n\n");
        debugger
    }

    /// Waits until the process has returned from the function, where it stops.
    pub fn wait_until_stopped(&mut self) {
        let seen = self.wait_for("stopped");
        assert!(seen.contains("Run till exit"), "the function was not called:\n{seen}");
    }

    fn send(&mut self, commands: &str) {
        let input = self.gdb.stdin.as_mut().expect("it is piped");
        input.write_all(commands.as_bytes()).expect("gdb reads its commands");
    }

    /// What gdb prints up to a line with this end.
    fn wait_for(&mut self, end: &str) -> String {
        let mut seen = String::new();
        while !seen.ends_with(&format!("{end}\n")) {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                // gdb waits for the process, and would read no command.
                let _ = self.gdb.kill();
                panic!("gdb has not come to \"{end}\":\n{seen}");
            };
            seen += &line;
            seen.push('\n');
        }
        seen
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        // Without the breakpoint the process continues as usual.
        if let Some(input) = self.gdb.stdin.as_mut() {
            let _ = input.write_all(b"delete\ndetach\nquit\n");
        }
        let _ = self.gdb.wait();
    }
}
