//! Stops a server's process between two steps of its code, by gdb.

use nix::unistd::Uid;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Why the kernel would not let this user trace the process of a server; `None` where it would.
pub fn what_is_missing() -> Option<&'static str> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let is_open = matches!(scope.trim(), "" | "0");
    (!is_open && !Uid::effective().is_root())
        .then_some("right to trace a process that is not a child (kernel.yama.ptrace_scope)")
}

/// A process under gdb. It goes on when this is dropped.
pub struct Debugger {
    gdb: Child,
    output: BufReader<ChildStdout>,
}

impl Debugger {
    /// Attaches to the process `pid`, to stop it where it comes back from its next call of a function of the server.
    ///
    /// # Panics
    /// Where gdb cannot be run.
    pub fn stop_at_return_of(function: &str, pid: i32) -> Self {
        let mut gdb = Command::new("gdb")
            .args(["--quiet", "--nx", "--nh", "--pid", &pid.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("gdb can be run: ./dev setup installs it");
        let output = BufReader::new(gdb.stdout.take().expect("it is piped"));
        let mut debugger = Debugger { gdb, output };
        debugger.tell(&format!("set confirm off\nbreak {function}\necho armed\\n\n"));
        debugger.wait_for("armed");
        // `finish` runs to the caller.
        debugger.tell("continue\nfinish\necho stopped\\n\n");
        debugger
    }

    /// Waits until the process has come back from the function. It goes no further.
    ///
    /// # Panics
    /// Where the process ends without a call of the function.
    pub fn wait_until_stopped(&mut self) {
        let seen = self.wait_for("stopped");
        assert!(seen.contains("Run till exit"), "the function was not called:\n{seen}");
    }

    fn tell(&mut self, commands: &str) {
        let input = self.gdb.stdin.as_mut().expect("it is piped");
        input.write_all(commands.as_bytes()).expect("gdb reads its commands");
    }

    /// Reads what gdb prints up to a line that ends so.
    fn wait_for(&mut self, end: &str) -> String {
        let mut seen = String::new();
        while !seen.ends_with(&format!("{end}\n")) {
            let read = self.output.read_line(&mut seen).expect("gdb writes text");
            assert!(read > 0, "gdb has ended:\n{seen}");
        }
        seen
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        // Without the breakpoint the process goes on as if nothing had been.
        let input = self.gdb.stdin.as_mut().expect("it is piped");
        let _ = input.write_all(b"delete\ndetach\nquit\n");
        let _ = self.gdb.wait();
    }
}
