//! A private server: started, killed, restarted, copied, and gone at the end of its test.

use crate::cpu::usage;
use crate::memory::{self, Findings};
use crate::{fake_clock, host_name, installation, release};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use postgres::{Client, Config, NoTls};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The superuser of every cluster, and the database that [`Cluster::connect`] goes to.
pub const SUPERUSER: &str = "postgres";

/// Long enough for a crash recovery on a machine that runs other tests at the same time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The settings of every cluster.
const SETTINGS: [(&str, &str); 5] = [
    ("listen_addresses", ""),
    ("shared_buffers", "32MB"),
    // The tests kill processes, never the machine, and what a process has written the kernel keeps.
    ("fsync", "off"),
    ("log_line_prefix", "%m [%p] "),
    // The documentation shows times in it.
    ("timezone", "UTC"),
];

/// What the log of a sound server never has, whatever a test does to it.
const SIGNS_OF_A_FAULT: [&str; 4] =
    ["PANIC:", "was terminated by signal", " leak: ", "resource was not closed"];

/// How a server is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Sessions are ended, and a checkpoint is written.
    Fast,
    /// No checkpoint: the next start has to recover.
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

/// A cluster to be: settings first, then [`Builder::start`].
#[derive(Default)]
pub struct Builder {
    settings: Vec<(String, String)>,
    has_fake_clock: bool,
    is_watched: bool,
    host_name: Option<String>,
    release: Option<String>,
}

impl Builder {
    /// Adds a line to `postgresql.conf`.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Gives the server a clock that [`Cluster::set_clock`] sets.
    pub fn fake_clock(mut self) -> Self {
        self.has_fake_clock = true;
        self
    }

    /// Gives the server a host name of its own; see [`host_name::can_be_given`].
    pub fn host_name(mut self, name: &str) -> Self {
        self.host_name = Some(name.to_owned());
        self
    }

    /// Runs the server under valgrind, for [`Cluster::memory_errors`].
    pub fn watch_memory(mut self) -> Self {
        self.is_watched = true;
        self
    }

    /// Has the extension created from the install SQL of that released version; the library is the head's.
    pub fn release(mut self, version: &str) -> Self {
        self.release = Some(version.to_owned());
        self
    }

    /// Starts the server and creates the extension in the database `postgres`.
    pub fn start(self) -> Cluster {
        let mut cluster = Cluster::stopped(self.has_fake_clock);
        cluster.is_watched = self.is_watched;
        cluster.host_name = self.host_name;
        cluster.release = self.release;
        installation::unpack_data_directory(cluster.dir.path());
        cluster.configure(SETTINGS);
        cluster
            .configure(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        cluster.start();
        cluster.create_extension(&mut cluster.connect());
        cluster
    }
}

/// A server in a temporary folder, reached over a unix socket in that folder.
///
/// It belongs to the thread that starts it. When that thread ends, however it ends, the server stops: the
/// thread's unwinding drops the cluster, and where the whole process is killed, the kernel tells the server.
pub struct Cluster {
    dir: TempDir,
    bindir: PathBuf,
    postmaster: Option<Child>,
    has_fake_clock: bool,
    /// The log tells of a backend that was killed, and it was the test that killed it.
    has_killed_a_backend: bool,
    is_watched: bool,
    host_name: Option<String>,
    /// The released version of the extension's SQL; none is the head's.
    release: Option<String>,
}

impl Cluster {
    /// A server without a data directory.
    fn stopped(has_fake_clock: bool) -> Self {
        Cluster {
            dir: installation::temp_dir(),
            bindir: installation::bindir().to_owned(),
            postmaster: None,
            has_fake_clock,
            has_killed_a_backend: false,
            is_watched: false,
            host_name: None,
            release: None,
        }
    }

    /// A running server with the extension in its database `postgres`.
    #[allow(clippy::new_without_default, reason = "a server is no default value")]
    pub fn new() -> Self {
        Self::builder().start()
    }

    /// A server with settings of its own.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A hot standby that streams from this server, with a clock of its own where this server has one.
    pub fn standby(&self) -> Self {
        let mut standby = self.base_backup_with(&["--write-recovery-conf"]);
        standby.start();
        standby
    }

    /// A hot standby on a host of that name.
    pub fn standby_on_host(&self, name: &str) -> Self {
        let mut standby = self.base_backup_with(&["--write-recovery-conf"]);
        standby.start_on_host(name);
        standby
    }

    /// A base backup of this server, which runs on meanwhile; not started.
    pub fn base_backup(&self) -> Self {
        self.base_backup_with(&[])
    }

    fn base_backup_with(&self, options: &[&str]) -> Self {
        let copy = Cluster::stopped(self.has_fake_clock);
        let mut command = copy.command("pg_basebackup");
        command
            .arg("--host")
            .arg(self.dir.path())
            .args(["--username=postgres", "--pgdata=data", "--checkpoint=fast", "--no-sync"])
            .args(options);
        installation::run(&mut command, b"");
        copy
    }

    /// Starts a base backup, replays the WAL in `archive` up to that restore point, and opens the server there.
    pub fn start_at_restore_point(&mut self, archive: &Path, restore_point: &str) {
        let restore_command = format!("cp {}/%f %p", archive.display());
        self.configure([
            ("archive_mode", "off"),
            ("restore_command", &restore_command),
            ("recovery_target_name", restore_point),
            ("recovery_target_action", "promote"),
        ]);
        let mut touch = installation::as_server_user("touch", self.dir.path());
        installation::run(touch.arg("data/recovery.signal"), b"");
        self.start();
        self.wait_until_it_writes();
    }

    /// Makes this standby a primary, and waits until it is one.
    pub fn promote(&self) {
        self.connect().execute("SELECT pg_promote(wait => false)", &[]).expect("a standby");
        self.wait_until_it_writes();
    }

    /// Stops the server and moves its data to the installation with that `bindir`, by `pg_upgrade`; started.
    pub fn upgrade(mut self, bindir: &Path) -> Self {
        self.stop(Shutdown::Fast);
        let mut new = Cluster::stopped(false);
        bindir.clone_into(&mut new.bindir);
        installation::run(&mut installation::initdb(bindir, new.dir.path()), b"");
        new.configure(SETTINGS);
        let mut upgrade = new.command("pg_upgrade");
        upgrade.arg("--old-bindir").arg(&self.bindir).arg("--new-bindir").arg(bindir);
        upgrade.arg("--old-datadir").arg(self.dir.path().join("data"));
        upgrade.args(["--new-datadir=data", "--username=postgres", "--socketdir"]);
        upgrade.arg(new.dir.path());
        installation::run(&mut upgrade, b"");
        new.start();
        new
    }

    /// Starts the server and waits until it takes connections, after recovery where there is one to do.
    pub fn start(&mut self) {
        assert!(self.postmaster.is_none(), "the server is running");
        let log = self.log_file();
        let mut postgres = if self.is_watched {
            memory::watched_postgres(self.dir.path())
        } else {
            self.command("postgres")
        };
        postgres
            .args(["-D", "data", "-k"])
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log);
        if self.has_fake_clock {
            fake_clock::preload(&mut postgres, self.dir.path());
        }
        if let Some(name) = &self.host_name {
            host_name::give(&mut postgres, name);
        }
        // SAFETY: the closure makes one system call and touches no memory of this process.
        unsafe {
            // Rust changes the user id before it calls this, and the host name is given by then; the other way
            // round the kernel would forget it.
            postgres.pre_exec(|| Ok(set_pdeathsig(Shutdown::Immediate.signal())?));
        }
        self.postmaster = Some(postgres.spawn().expect("postgres can be run"));
        self.wait_until_up();
    }

    /// Starts the server on a host of that name, as when its disk was moved there.
    pub fn start_on_host(&mut self, name: &str) {
        self.host_name = Some(name.to_owned());
        self.start();
    }

    /// Stops the server and waits until all of its processes are gone.
    pub fn stop(&mut self, how: Shutdown) {
        let mut postmaster = self.postmaster.take().expect("the server is running");
        // The postmaster outlives its children, so its end is theirs.
        kill(pid_of(&postmaster), how.signal()).expect("the server can be signalled");
        postmaster.wait().expect("the server can be waited for");
    }

    /// Kills every process of the server at once, as a power cut would, with no chance to write a byte.
    pub fn kill_9(&mut self) {
        self.kill_postmaster_after(|children| {
            for &child in children {
                // One that ended on its own just now is dead all the same.
                let _ = kill(child, Signal::SIGKILL);
            }
        });
    }

    /// Kills the postmaster alone. Its children notice and leave; waits until they are gone.
    pub fn kill_postmaster(&mut self) {
        self.kill_postmaster_after(|_| {});
    }

    fn kill_postmaster_after(&mut self, first: impl FnOnce(&[Pid])) {
        let mut postmaster = self.postmaster.take().expect("the server is running");
        let pid = pid_of(&postmaster);
        // Stopped first, so that it starts nothing between the listing and the killing.
        kill(pid, Signal::SIGSTOP).expect("the server can be stopped");
        waitpid(pid, Some(WaitPidFlag::WUNTRACED)).expect("the server can be waited for");
        let children = children_of(pid);
        first(&children);
        postmaster.kill().expect("the server can be killed");
        postmaster.wait().expect("the server can be waited for");
        children.into_iter().for_each(wait_until_gone);
    }

    /// Kills one backend, at which the postmaster ends all the others and recovers as after a crash; waits for
    /// that.
    pub fn kill_backend(&mut self, pid: i32) {
        self.has_killed_a_backend = true;
        let restarts = self.restarts_in_log();
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("the backend can be killed");
        let deadline = Instant::now() + PATIENCE;
        while self.restarts_in_log() == restarts {
            assert!(Instant::now() < deadline, "the server does not restart:\n{}", self.log());
            sleep(Duration::from_millis(5));
        }
        self.wait_until_up();
    }

    fn restarts_in_log(&self) -> usize {
        self.log().matches("all server processes terminated; reinitializing").count()
    }

    /// Stops the server, and gives what valgrind found in it since it was made; see [`Builder::watch_memory`].
    pub fn memory_errors(mut self) -> Findings {
        assert!(self.is_watched, "nobody watches the memory of this server");
        self.stop(Shutdown::Fast);
        Findings::read(self.dir.path())
    }

    /// Sets the server's clock that many seconds off the true one; see [`Builder::fake_clock`].
    pub fn set_clock(&self, seconds_off: f64) {
        assert!(self.has_fake_clock, "this server has the true clock");
        fake_clock::set(self.dir.path(), seconds_off);
    }

    /// A superuser's connection to the database `postgres`.
    pub fn connect(&self) -> Client {
        self.connect_to(SUPERUSER, SUPERUSER)
    }

    /// A connection of that role to that database.
    pub fn connect_to(&self, role: &str, database: &str) -> Client {
        self.config(role, database)
            .connect(NoTls)
            .unwrap_or_else(|error| panic!("{role} cannot connect to {database}: {error:?}"))
    }

    /// A connection of that role to the database `postgres` with these options, as from `PGOPTIONS`.
    pub fn connect_with_options(
        &self,
        role: &str,
        options: &str,
    ) -> Result<Client, postgres::Error> {
        self.config(role, SUPERUSER).options(options).connect(NoTls)
    }

    /// A superuser's connection to a new database of that name, with the extension; one that is there is dropped.
    pub fn fresh_database(&self, name: &str) -> Client {
        let mut client = self.connect();
        for statement in [
            format!("DROP DATABASE IF EXISTS {name}"),
            format!("CREATE DATABASE {name} TEMPLATE template0"),
        ] {
            client.batch_execute(&statement).expect("a superuser makes databases");
        }
        let mut client = self.connect_to(SUPERUSER, name);
        self.create_extension(&mut client);
        client
    }

    fn create_extension(&self, client: &mut Client) {
        let create = match &self.release {
            None => "CREATE EXTENSION pg_snowflake".to_owned(),
            Some(version) => {
                release::install_all();
                format!("CREATE EXTENSION pg_snowflake VERSION '{version}'")
            }
        };
        client.batch_execute(&create).expect("the extension can be created");
    }

    /// Runs a script with psql in that database, stops at its first error, and gives what it printed.
    ///
    /// # Panics
    /// Where a statement fails.
    pub fn psql(&self, database: &str, script: &str) -> String {
        let mut psql = self.client_command("psql", database);
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]);
        let output = installation::run(&mut psql, script.as_bytes());
        String::from_utf8(output).expect("psql prints UTF-8")
    }

    /// What `pg_dump` writes for that database.
    pub fn dump(&self, database: &str) -> String {
        let dump = installation::run(&mut self.client_command("pg_dump", database), b"");
        String::from_utf8(dump).expect("the dump is UTF-8")
    }

    /// Runs a script with pgbench in that database, and gives what it printed.
    ///
    /// # Panics
    /// Where one of its clients fails.
    pub fn pgbench(&self, database: &str, options: &[String], script: &str) -> String {
        let mut pgbench = self.command("pgbench");
        pgbench.arg("--host").arg(self.dir.path());
        pgbench.args(["--username", SUPERUSER, "--no-vacuum", "--file=-"]).args(options);
        let output = installation::run(pgbench.arg(database), script.as_bytes());
        String::from_utf8(output).expect("pgbench prints UTF-8")
    }

    /// What all processes of the server have used of the processors so far, those too that have ended; to 10 ms each.
    pub fn cpu_time(&self) -> Duration {
        let postmaster = pid_of(self.postmaster.as_ref().expect("the server is running"));
        loop {
            let children = children_of(postmaster);
            let of_children: Duration =
                children.iter().filter_map(|pid| Some(usage(pid.as_raw())?.own)).sum();
            let postmaster_used = usage(postmaster.as_raw()).expect("the server is running");
            // Else one may have ended meanwhile, and be counted twice or not at all.
            if children_of(postmaster) == children {
                return of_children + postmaster_used.own + postmaster_used.of_ended_children;
            }
        }
    }

    /// The number of WAL records of that resource manager from `start` up to `end`, both LSNs.
    pub fn count_wal_records(&self, resource_manager: &str, start: &str, end: &str) -> usize {
        let mut waldump = self.command("pg_waldump");
        waldump.args([
            "--path=data/pg_wal",
            "--rmgr",
            resource_manager,
            "--start",
            start,
            "--end",
            end,
        ]);
        let records = installation::run(&mut waldump, b"");
        String::from_utf8_lossy(&records).lines().filter(|line| line.starts_with("rmgr:")).count()
    }

    /// The folder that is the server's address, and that its OS user may write to.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What the server has logged since it was made; nothing where it was never started.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn command(&self, program: &str) -> Command {
        installation::as_server_user(self.bindir.join(program), self.dir.path())
    }

    fn client_command(&self, program: &str, database: &str) -> Command {
        let mut command = self.command(program);
        command.arg("--host").arg(self.dir.path()).args([
            "--username",
            SUPERUSER,
            "--dbname",
            database,
        ]);
        command
    }

    fn config(&self, role: &str, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(self.dir.path()).user(role).dbname(database);
        config
    }

    fn configure<'a>(&self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let path = self.dir.path().join("data/postgresql.conf");
        let mut file =
            OpenOptions::new().append(true).open(path).expect("initdb made postgresql.conf");
        for (name, value) in settings {
            writeln!(file, "{name} = '{value}'").expect("a setting can be written");
        }
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn log_file(&self) -> File {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("a log file can be made")
    }

    fn wait_until_it_writes(&self) {
        let mut client = self.connect();
        let deadline = Instant::now() + PATIENCE;
        while client.query_one("SELECT pg_is_in_recovery()", &[]).expect("a server answers").get(0)
        {
            assert!(Instant::now() < deadline, "recovery does not end:\n{}", self.log());
            sleep(Duration::from_millis(5));
        }
    }

    fn wait_until_up(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.config(SUPERUSER, SUPERUSER).connect(NoTls).is_err() {
            let postmaster = self.postmaster.as_mut().expect("the server was started");
            if let Some(exit) = postmaster.try_wait().expect("a child") {
                self.postmaster = None;
                panic!("the server ended with {exit:?}:\n{}", self.log());
            }
            assert!(Instant::now() < deadline, "the server does not come up:\n{}", self.log());
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Cluster {
    /// Stops the server, and fails the test where the log tells of a fault that no statement of the test
    /// may have noticed: a backend that crashed, or one that let go of less than it took.
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
            let fault = SIGNS_OF_A_FAULT.iter().find(|&&sign| log.contains(sign));
            assert!(fault.is_none(), "{fault:?} in the log of the server:\n{log}");
        }
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().expect("a process id is an i32"))
}

/// The processes that `parent` started. Each is the leader of its own session, so no group signal finds them.
fn children_of(parent: Pid) -> Vec<Pid> {
    std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
        .expect("the kernel lists a process's children")
        .split_whitespace()
        .map(|pid| Pid::from_raw(pid.parse().expect("a process id is a number")))
        .collect()
}

/// Waits until the process has let go of its memory. An orphan may stay a zombie where process 1 reaps none.
fn wait_until_gone(pid: Pid) {
    let deadline = Instant::now() + PATIENCE;
    let is_alive = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    };
    while is_alive() {
        assert!(Instant::now() < deadline, "process {pid} survives its killing");
        sleep(Duration::from_millis(1));
    }
}
