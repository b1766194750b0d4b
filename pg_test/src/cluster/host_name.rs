//! A separate host name for a server, by a UTS namespace: the product sees what it would see on another machine.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::sethostname;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Sets the host name of the process that the command starts, and of all its children.
///
/// An ordinary user, as the servers' is, may do that inside a user namespace, if the system lets users create one.
pub fn set(command: &mut Command, name: &str) {
    let name = name.to_owned();
    let enter = move || -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWUTS)?;
        Ok(sethostname(&name)?)
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// Whether the system lets users set the host name of a process.
pub fn can_be_set() -> bool {
    let dir = std::env::temp_dir();
    let mut hostname = crate::installation::as_server_user("hostname", &dir);
    set(&mut hostname, "db-7");
    hostname.output().is_ok_and(|output| output.stdout == b"db-7\n")
}
