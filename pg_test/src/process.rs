//! Processes as the kernel shows them: their children, sleeps and memory; and processes that are stopped for a while.

use crate::wait::comes_true;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use postgres::Client;
use std::process::Child;

pub fn backend_pid(client: &mut Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).expect("a server answers").get(0)
}

/// How often a process has slept so far, waiting for something.
pub fn sleeps(pid: i32) -> u64 {
    status(pid, "voluntary_ctxt_switches:")
}

/// The private memory of a process in kB: the server's shared memory counts for every process that has touched it, and is left out.
pub fn private_memory_kb(pid: i32) -> u64 {
    status(pid, "RssAnon:")
}

/// A field of the process's status, in proc(5).
pub(crate) fn status(pid: i32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let value = status.lines().find_map(|line| line.strip_prefix(field)).expect("proc(5) has it");
    value.trim().trim_end_matches(" kB").parse().expect("a number")
}

pub(crate) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().expect("a process ID is an i32"))
}

/// The processes that `parent` started. Each is the leader of its own session, so a signal to a group does not reach them.
pub fn children_of(parent: Pid) -> Vec<Pid> {
    let children_of_thread = |thread: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(thread?.path().join("children"));
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).expect("the kernel lists a process's threads");
    // A thread may end meanwhile.
    let children: Vec<String> = threads.filter_map(|thread| children_of_thread(thread).ok()).collect();
    assert!(!children.is_empty(), "the kernel lists a process's children");
    let pids = children.iter().flat_map(|children| children.split_whitespace());
    pids.map(|pid| Pid::from_raw(pid.parse().expect("a process ID is a number"))).collect()
}

/// Kills a process, and what it and its children have started, at once, as a power cut does.
pub fn kill_with_descendants(process: Pid) {
    let mut frozen = Frozen::default();
    frozen.add_with_descendants(process);
    // SIGKILL ends a stopped process, too.
    let processes = std::mem::take(&mut frozen.0);
    for &pid in &processes {
        // It may have ended.
        let _ = kill(pid, Signal::SIGKILL);
    }
    processes.into_iter().for_each(wait_until_gone);
}

/// Waits until the process has released its memory. An orphan may stay a zombie if process 1 does not reap it.
pub fn wait_until_gone(pid: Pid) {
    assert!(comes_true(|| has_ended(state(pid))), "process {pid} survives its killing");
}

/// The letter of the process's state, in proc(5); `None` if there is no such process.
fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

fn has_ended(state: Option<char>) -> bool {
    matches!(state, None | Some('Z'))
}

/// The command line of a process; the server's processes say there what they do.
pub(crate) fn title(pid: Pid) -> String {
    let title = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&title).into_owned()
}

/// Processes that are stopped, and go on when this is dropped.
#[derive(Default)]
pub struct Frozen(Vec<Pid>);

impl Frozen {
    pub fn of(pids: impl IntoIterator<Item = Pid>) -> Self {
        let mut frozen = Frozen::default();
        pids.into_iter().for_each(|pid| frozen.add(pid));
        frozen
    }

    /// Stops a process, which may have ended, and waits until it executes nothing.
    pub(crate) fn add(&mut self, pid: Pid) {
        // No error if it has ended.
        let _ = kill(pid, Signal::SIGSTOP);
        self.0.push(pid);
        let is_stopped = || matches!(state(pid), Some('T')) || has_ended(state(pid));
        assert!(comes_true(is_stopped), "process {pid} cannot be stopped");
    }

    /// Each process before its children, so that it starts none between the listing and the stopping.
    fn add_with_descendants(&mut self, pid: Pid) {
        self.add(pid);
        if !has_ended(state(pid)) {
            children_of(pid).into_iter().for_each(|child| self.add_with_descendants(child));
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for &pid in &self.0 {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }
}
