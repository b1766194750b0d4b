//! The processes of a server, as the kernel shows them.

use crate::wait::comes_true;
use nix::unistd::Pid;
use std::process::Child;

pub fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().expect("a process id is an i32"))
}

/// The processes that `parent` started. Each is the leader of its own session, so no group signal finds them.
pub fn children_of(parent: Pid) -> Vec<Pid> {
    std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
        .expect("the kernel lists a process's children")
        .split_whitespace()
        .map(|pid| Pid::from_raw(pid.parse().expect("a process id is a number")))
        .collect()
}

/// Waits until the process has let go of its memory. An orphan may stay a zombie where process 1 reaps none.
pub fn wait_until_gone(pid: Pid) {
    let is_alive = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    };
    assert!(comes_true(|| !is_alive()), "process {pid} survives its killing");
}
