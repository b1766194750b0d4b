//! A host name of a server's own, by a UTS namespace: the product sees what it would see on another machine.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::sethostname;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Gives the process that the command starts, and all its children, this host name.
///
/// An ordinary user, as the servers' is, may do that inside a user namespace, where the system lets users make one.
pub fn give(command: &mut Command, name: &str) {
    let name = name.to_owned();
    let enter = move || -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWUTS)?;
        Ok(sethostname(&name)?)
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// Whether the system lets users give a process another host name.
pub fn can_be_given() -> bool {
    let dir = std::env::temp_dir();
    let mut hostname = crate::installation::as_server_user("hostname", &dir);
    give(&mut hostname, "db-7");
    hostname.output().is_ok_and(|output| output.stdout == b"db-7\n")
}
