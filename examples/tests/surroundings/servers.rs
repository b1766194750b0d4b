//! Servers that another program starts, with their data directories and sockets in one temporary folder.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pg_snowflake_examples::run;
use pg_snowflake_harness::SUPERUSER;
use pg_snowflake_harness::installation::{as_server_user, bindir};
use pg_snowflake_harness::process::{Frozen, children_of, wait_until_gone};
use postgres::{Config, NoTls};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub struct Servers {
    dir: TempDir,
    /// Of each server, also in the name of its socket.
    ports: Vec<u16>,
}

impl Servers {
    pub fn new(dir: TempDir, ports: &[u16]) -> Self {
        Servers { dir, ports: ports.to_vec() }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn data(&self, member: usize) -> PathBuf {
        self.dir().join(name(member))
    }

    pub fn port(&self, member: usize) -> u16 {
        self.ports[member]
    }

    pub fn conninfo(&self, member: usize) -> String {
        format!("host={} port={} user={SUPERUSER} dbname={SUPERUSER}", self.dir().display(), self.port(member))
    }

    /// How a superuser connects to each, without a network.
    pub fn configs(&self) -> Vec<Config> {
        (0..self.ports.len()).map(|member| self.conninfo(member).parse().unwrap()).collect()
    }

    /// Makes a data directory that only the socket leads to.
    pub fn init(&self, data: &Path) {
        let mut initdb = as_server_user(bindir().join("initdb"), self.dir());
        initdb.args(["--username=postgres", "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        run(initdb.arg("--pgdata").arg(data));
        let socket = self.dir().display().to_string();
        configure(data, &[("unix_socket_directories", &socket), ("shared_buffers", "32MB"), ("fsync", "off")]);
    }

    /// Creates the table of the writers, without a key, so that a duplicate would be returned.
    pub fn create_table(&self, primary: usize) {
        let table = "CREATE EXTENSION pg_snowflake; CREATE SEQUENCE posts_id_seq;
                     CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('posts_id_seq'))";
        self.configs()[primary].connect(NoTls).unwrap().batch_execute(table).unwrap();
    }

    /// The server from which all others replicate.
    pub fn primary(&self) -> Option<usize> {
        let streams = "SELECT FROM pg_stat_replication WHERE state = 'streaming'";
        let others = self.ports.len() - 1;
        let is_primary = |config: &Config| {
            let rows = config.connect(NoTls).and_then(|mut client| client.query(streams, &[]));
            rows.is_ok_and(|rows| rows.len() == others)
        };
        self.configs().iter().position(is_primary)
    }

    /// Kills the postmaster alone. Its children notice and leave; waits until they are gone.
    pub fn kill_postmaster(&self, member: usize) {
        let postmaster = postmaster(&self.data(member)).expect("it runs");
        // First, so that it starts no process between the listing and the killing.
        let stopped = Frozen::of([postmaster]);
        let children = children_of(postmaster);
        kill(postmaster, Signal::SIGKILL).unwrap();
        drop(stopped);
        [vec![postmaster], children].concat().into_iter().for_each(wait_until_gone);
    }

    /// Removes the lock file of a killed server. To the next postgres there, an orphan that process 1 has not reaped yet is running.
    pub fn unlock(&self, member: usize) {
        fs::remove_file(self.data(member).join("postmaster.pid")).unwrap();
    }
}

impl Drop for Servers {
    /// They outlive the programs that have started them.
    fn drop(&mut self) {
        for postmaster in (0..self.ports.len()).filter_map(|member| postmaster(&self.data(member))) {
            // It may have been killed.
            let _ = kill(postmaster, Signal::SIGQUIT);
            wait_until_gone(postmaster);
        }
    }
}

pub fn name(member: usize) -> String {
    format!("db-{}", member + 1)
}

/// Adds settings, which have priority over those above.
pub fn configure(data: &Path, settings: &[(&str, &str)]) {
    let mut file = OpenOptions::new().append(true).open(data.join("postgresql.conf")).unwrap();
    settings.iter().for_each(|(name, value)| writeln!(file, "{name} = '{value}'").unwrap());
}

/// The process of the server with that data directory.
pub fn postmaster(data: &Path) -> Option<Pid> {
    let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    file.lines().next()?.parse().ok().map(Pid::from_raw)
}
