//! A private server: started, killed, restarted, copied, and removed at the end of its test.

mod builder;
mod clients;
mod copies;
mod fake_clock;
pub mod host_name;

pub use builder::Builder;

use crate::process::{Frozen, children_of, pid_of, title, wait_until_gone};
use crate::valgrind::{Findings, Tool};
use crate::wait::comes_true;
use crate::{installation, memory};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use postgres::NoTls;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The superuser of every cluster, and the database of [`Cluster::connect`].
pub const SUPERUSER: &str = "postgres";

/// What the log of a correct server never contains, whatever a test does to it.
const SIGNS_OF_AN_ERROR: [&str; 4] = ["PANIC:", "was terminated by signal", " leak: ", "resource was not closed"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Sessions are ended, and a checkpoint is written.
    Fast,
    /// No checkpoint: the next start must recover.
    Immediate,
}

impl Shutdown {
    fn signal(self) -> Signal {
        match self {
            Shutdown::Fast => Signal::SIGINT,
            Shutdown::Immediate => Signal::SIGQUIT,
        }
    }
}

/// A server in a temporary folder, reached over a unix socket in that folder.
///
/// It belongs to the thread that starts it. When that thread ends, for any reason, the server stops: unwinding drops the
/// cluster, and if the whole process is killed, the kernel signals the server.
pub struct Cluster {
    dir: TempDir,
    bindir: PathBuf,
    postmaster: Option<Child>,
    /// The log reports a killed backend, and the test killed it.
    has_killed_a_backend: bool,
    options: Options,
}

/// What a server has from its builder.
#[derive(Default)]
struct Options {
    has_fake_clock: bool,
    valgrind: Option<Tool>,
    stack_bytes: Option<u64>,
    has_failing_malloc: bool,
    host_name: Option<String>,
    /// The older version of the extension's SQL; `None` for the head's.
    release: Option<String>,
}

impl Cluster {
    /// A server without a data directory.
    fn stopped(options: Options) -> Self {
        Cluster {
            dir: installation::server_dir(),
            bindir: installation::bindir().to_owned(),
            postmaster: None,
            has_killed_a_backend: false,
            options,
        }
    }

    /// One of the same kind of clock.
    fn stopped_copy(&self) -> Self {
        Self::stopped(Options { has_fake_clock: self.options.has_fake_clock, ..Options::default() })
    }

    /// Starts the server and waits until it accepts connections, after recovery if needed.
    pub fn start(&mut self) {
        assert!(self.postmaster.is_none(), "the server is running");
        let log = OpenOptions::new().create(true).append(true).open(self.log_path()).expect("a log file can be made");
        let mut postgres = match self.options.valgrind {
            Some(tool) => tool.postgres(self.dir.path()),
            None => self.command("postgres"),
        };
        postgres
            .args(["-D", "data", "-k"])
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            // The terminal's interruption, which cancels a query in `./dev psql`, would shut the server down.
            .process_group(0);
        if self.options.has_fake_clock {
            fake_clock::preload(&mut postgres, self.dir.path());
        }
        if let Some(name) = &self.options.host_name {
            host_name::set(&mut postgres, name);
        }
        if self.options.has_failing_malloc {
            memory::preload(&mut postgres, self.dir.path());
        }
        let stack_bytes = self.options.stack_bytes;
        // SAFETY: the closure makes system calls only and touches no memory of this process.
        unsafe {
            // Rust has changed the user ID before it calls this, and the host name is set by then. Otherwise the kernel
            // would clear the parent-death signal.
            postgres.pre_exec(move || {
                if let Some(bytes) = stack_bytes {
                    setrlimit(Resource::RLIMIT_STACK, bytes, bytes)?;
                }
                Ok(set_pdeathsig(Shutdown::Immediate.signal())?)
            });
        }
        self.postmaster = Some(postgres.spawn().expect("postgres can be run"));
        self.wait_until_up();
    }

    /// Starts the server on a host of that name, as when its disk was moved there.
    pub fn start_on_host(&mut self, name: &str) {
        self.options.host_name = Some(name.to_owned());
        self.start();
    }

    /// Stops the server and waits until all of its processes are gone.
    pub fn stop(&mut self, how: Shutdown) {
        self.begin_to_stop(how);
        let mut postmaster = self.postmaster.take().expect("the server is running");
        // The postmaster outlives its children, so they have ended too.
        postmaster.wait().expect("the server can be waited for");
    }

    pub fn restart(&mut self, how: Shutdown) {
        self.stop(how);
        self.start();
    }

    /// Has the server stop. [`Cluster::stop`] waits for it.
    pub fn begin_to_stop(&self, how: Shutdown) {
        kill(self.postmaster_pid(), how.signal()).expect("the server can be signalled");
    }

    /// Stops all processes of the server in the middle of what they do, as a paused virtual machine does.
    pub fn freeze(&self) -> Frozen {
        let mut frozen = Frozen::default();
        // First, so that it starts no process between the listing and the stopping.
        frozen.add(self.postmaster_pid());
        self.processes("").into_iter().for_each(|pid| frozen.add(pid));
        frozen
    }

    /// The processes of the server whose title contains that text, without the postmaster.
    pub fn processes(&self, text: &str) -> Vec<Pid> {
        let children = children_of(self.postmaster_pid());
        children.into_iter().filter(|&pid| title(pid).contains(text)).collect()
    }

    /// Kills every process of the server at once, as a power cut would, with no chance to write a byte.
    pub fn kill_9(&mut self) {
        self.kill_postmaster_after(|children| {
            for &child in children {
                // A process that has just ended by itself is dead too.
                let _ = kill(child, Signal::SIGKILL);
            }
        });
    }

    /// [`Cluster::kill_9`], and starts the server again.
    pub fn crash(&mut self) {
        self.kill_9();
        self.start();
    }

    /// Kills the postmaster alone. Its children notice and leave; waits until they are gone.
    pub fn kill_postmaster(&mut self) {
        self.kill_postmaster_after(|_| {});
    }

    fn kill_postmaster_after(&mut self, first: impl FnOnce(&[Pid])) {
        let mut postmaster = self.postmaster.take().expect("the server is running");
        let pid = pid_of(&postmaster);
        // Stopped first, so that it starts no process between the listing and the killing.
        kill(pid, Signal::SIGSTOP).expect("the server can be stopped");
        waitpid(pid, Some(WaitPidFlag::WUNTRACED)).expect("the server can be waited for");
        let children = children_of(pid);
        first(&children);
        postmaster.kill().expect("the server can be killed");
        postmaster.wait().expect("the server can be waited for");
        children.into_iter().for_each(wait_until_gone);
    }

    /// Kills one backend. The postmaster then ends all the others and recovers as after a crash; waits for that.
    pub fn kill_backend(&mut self, pid: i32) {
        self.has_killed_a_backend = true;
        let restarts = self.restarts_in_log();
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("the backend can be killed");
        assert!(comes_true(|| self.restarts_in_log() > restarts), "the server does not restart:\n{}", self.log());
        self.wait_until_up();
    }

    fn restarts_in_log(&self) -> usize {
        self.log().matches("all server processes terminated; reinitializing").count()
    }

    /// Stops the server, and returns what valgrind found in it since it was created; see [`Builder::valgrind`].
    pub fn memory_errors(mut self) -> Findings {
        assert_eq!(self.options.valgrind, Some(Tool::Memcheck), "this server does not run under memcheck");
        self.stop(Shutdown::Fast);
        Findings::read(self.dir.path())
    }

    pub fn has_fake_clock(&self) -> bool {
        self.options.has_fake_clock
    }

    /// Offsets the server's clock from the true one by this many seconds; see [`Builder::fake_clock`].
    pub fn set_clock(&self, seconds_off: f64) {
        assert!(self.options.has_fake_clock, "this server has the true clock");
        fake_clock::set(self.dir.path(), seconds_off);
    }

    /// The number of WAL records of that resource manager from `start` up to `end`, both LSNs.
    pub fn count_wal_records(&self, resource_manager: &str, start: &str, end: &str) -> usize {
        let mut waldump = self.command("pg_waldump");
        waldump.args(["--path=data/pg_wal", "--rmgr", resource_manager, "--start", start, "--end", end]);
        let records = installation::run(&mut waldump, b"");
        String::from_utf8_lossy(&records).lines().filter(|line| line.starts_with("rmgr:")).count()
    }

    pub fn postmaster_pid(&self) -> Pid {
        pid_of(self.postmaster.as_ref().expect("the server is running"))
    }

    /// The folder that is the server's address, and that its OS user may write to.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The log of the server since it was created; empty if it was never started.
    pub fn log(&self) -> String {
        self.log_from(0)
    }

    pub(crate) fn log_from(&self, start: u64) -> String {
        let mut log = Vec::new();
        if let Ok(mut file) = File::open(self.log_path()) {
            file.seek(SeekFrom::Start(start)).expect("a file");
            file.read_to_end(&mut log).expect("a file");
        }
        // The server logs statements in any encoding.
        String::from_utf8_lossy(&log).into_owned()
    }

    pub(crate) fn log_len(&self) -> u64 {
        std::fs::metadata(self.log_path()).map_or(0, |log| log.len())
    }

    fn command(&self, program: &str) -> Command {
        installation::as_server_user(self.bindir.join(program), self.dir.path())
    }

    fn configure<'a>(&self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let path = self.dir.path().join("data/postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(path).expect("initdb made postgresql.conf");
        for (name, value) in settings {
            writeln!(file, "{name} = '{value}'").expect("a setting can be written");
        }
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn wait_until_up(&mut self) {
        let takes_connections = comes_true(|| {
            let postmaster = self.postmaster.as_mut().expect("the server was started");
            if let Some(exit) = postmaster.try_wait().expect("a child") {
                self.postmaster = None;
                panic!("the server ended with {exit:?}:\n{}", self.log());
            }
            self.config(SUPERUSER, SUPERUSER).connect(NoTls).is_ok()
        });
        assert!(takes_connections, "the server does not come up:\n{}", self.log());
    }
}

impl Drop for Cluster {
    /// Stops the server, and fails the test if the log has an error that the statements of the test may have missed: a
    /// backend that crashed, or one that leaked a resource.
    fn drop(&mut self) {
        if self.postmaster.is_some() {
            self.stop(Shutdown::Immediate);
        }
        let mut log = self.log();
        if self.has_killed_a_backend {
            log = log.replace("was terminated by signal 9", "was killed by the test");
        }
        if std::thread::panicking() {
            eprintln!("log of the server:\n{log}");
        } else {
            assert_no_sign_of_an_error(&log);
        }
    }
}

pub(crate) fn assert_no_sign_of_an_error(log: &str) {
    let sign = SIGNS_OF_AN_ERROR.iter().find(|&&sign| log.contains(sign));
    assert!(sign.is_none(), "{sign:?} in the log of the server:\n{log}");
}
