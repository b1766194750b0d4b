//! A database of its own for a test, on a server that tests share.
//!
//! Copying a database takes a small part of the time in which a server starts. What a test changes here is in its database.
//! What is outside of it belongs on a [`Cluster`]: a role that is not in [`ROLES`], a setting of the server, its clock, its WAL
//! and its log, its other processes, a crash.

use crate::cluster::{Builder, Cluster, SUPERUSER, assert_no_sign_of_an_error};
use crate::wait::comes_true;
use nix::libc;
use postgres::{Client, NoTls};
use std::ops::Deref;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

/// The roles of the shared server, apart from the superuser. They may log in, and a test grants them what they need in its database.
pub const ROLES: [&str; 5] = ["owner", "writer", "reader", "other", "node"];

/// What every [`Database::new`] is a copy of.
const TEMPLATE: &str = "template_with_extension";

/// What a test has left on the shared server, apart from [`ROLES`]. No test may: another one would not find what it expects.
const CHANGES: &str = "
    SELECT 'role ' || rolname FROM pg_roles
    WHERE oid >= 16384 AND (rolsuper OR rolname <> ALL ($1))
    UNION ALL SELECT 'member of ' || roleid::regrole FROM pg_auth_members WHERE member >= 16384
    UNION ALL SELECT setconfig::text FROM pg_db_role_setting WHERE setdatabase = 0
    UNION ALL SELECT name FROM pg_file_settings WHERE sourcefile LIKE '%.auto.conf'";

/// How many databases a shared server gets. Then another one is started, so that the files of a few dozen remain at a time.
const MAX_DATABASES: usize = 40;

const SETTINGS: [(&str, &str); 5] = [
    ("max_connections", "200"),
    ("max_prepared_transactions", "20"),
    // No checkpoint between two statements of a test: it would have a sequence write WAL again. Nothing else needs one,
    // because the server ends without.
    ("max_wal_size", "1TB"),
    // Nor a file of zeros for each segment.
    ("wal_init_zero", "off"),
    // Says whose a line of the log is.
    ("log_line_prefix", "%m [%p] (%d) "),
];

/// A database with the extension, or without, that only its test uses.
///
/// Its files remain until its server stops, since `DROP DATABASE` takes a checkpoint.
pub struct Database {
    server: Arc<Shared>,
    name: String,
    /// How long the log of the server was when the database was created.
    log_start: u64,
}

impl Database {
    #[allow(clippy::new_without_default, reason = "a database is not a default value")]
    pub fn new() -> Self {
        Self::copy_of(TEMPLATE)
    }

    pub fn empty() -> Self {
        Self::copy_of("template0")
    }

    pub fn restored(dump: &str) -> Self {
        let database = Self::empty();
        database.psql(dump);
        database
    }

    fn copy_of(template: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let server = server();
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let log_start = server.log_len();
        // The other way to copy takes checkpoints.
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log");
        server.connect().batch_execute(&create).expect("a superuser makes databases");
        Database { server, name, log_start }
    }

    /// Sets a parameter for the sessions that begin from then on, as a line of `postgresql.conf` does on a server of its own.
    #[must_use]
    pub fn setting(self, parameter: &str, value: &str) -> Self {
        let set = format!("ALTER DATABASE {} SET {parameter} = '{value}'", self.name);
        self.server.connect().batch_execute(&set).expect("a parameter of a session");
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn connect(&self) -> Client {
        self.connect_as(SUPERUSER)
    }

    pub fn connect_as(&self, role: &str) -> Client {
        self.server.connect_to(role, &self.name)
    }

    pub fn connect_with_options(&self, role: &str, options: &str) -> Result<Client, postgres::Error> {
        self.server.config(role, &self.name).options(options).connect(NoTls)
    }

    pub fn psql(&self, script: &str) -> String {
        self.psql_as(SUPERUSER, script)
    }

    pub fn psql_as(&self, role: &str, script: &str) -> String {
        self.server.psql_as(role, &self.name, script)
    }

    pub fn dump(&self) -> String {
        self.server.dump(&self.name)
    }

    /// What its sessions have written to the log so far.
    pub fn log(&self) -> String {
        self.lines_of_log(|name| name == self.name)
    }

    pub fn pgbench(&self, options: &[String], script: &str) -> String {
        self.server.pgbench(&self.name, options, script)
    }

    /// The log since the creation, of the databases that `is_wanted`. Those without a database are of the server itself.
    fn lines_of_log(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut is_in = false;
        let log = self.server.log_from(self.log_start);
        let wanted = log.split_inclusive('\n').filter(|line| {
            // The lines of a message after its first begin with a tab.
            if let Some((_, rest)) = line.split_once("] (").filter(|_| !line.starts_with('\t')) {
                is_in = rest.split_once(") ").is_some_and(|(database, _)| is_wanted(database));
            }
            is_in
        });
        wanted.collect()
    }

    /// Ends the sessions that the test has left. What they write to the log is in it then. Returns the [`CHANGES`].
    fn end_sessions(&self) -> Result<Vec<String>, postgres::Error> {
        let mut client = self.server.config(SUPERUSER, SUPERUSER).connect(NoTls)?;
        let sessions = "FROM pg_stat_activity WHERE datname = $1";
        let end = format!("SELECT pg_terminate_backend(pid) {sessions}");
        client.execute(&end, &[&self.name])?;
        let count = client.prepare(&format!("SELECT count(*) {sessions}"))?;
        let have_ended = comes_true(|| {
            let left = client.query_one(&count, &[&self.name]);
            left.map_or(true, |row| row.get::<_, i64>(0) == 0)
        });
        assert!(have_ended, "sessions of {} do not end", self.name);
        let changes = client.query(CHANGES, &[&&ROLES[..]])?;
        Ok(changes.iter().map(|row| row.get(0)).collect())
    }
}

impl Drop for Database {
    /// Fails the test as [`Cluster`] does, by what the sessions of the database and the server itself have logged meanwhile.
    fn drop(&mut self) {
        let ended = self.end_sessions();
        if thread::panicking() {
            eprintln!("log of the database {}:\n{}", self.name, self.log());
        } else {
            assert_no_sign_of_an_error(&self.lines_of_log(|name| name == self.name || name.is_empty()));
            let changes = ended.expect("the server is up");
            assert!(changes.is_empty(), "tests have left on the shared server: {changes:?}");
        }
    }
}

/// A server that databases share. It stops with the last of them, once another one gets the new ones.
struct Shared {
    server: Cluster,
    /// How many it has got.
    databases: AtomicUsize,
    /// Ends the thread that has started the server, to which a [`Cluster`] belongs.
    _starter: Sender<()>,
}

impl Deref for Shared {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.server
    }
}

/// The one that gets the new databases.
static SERVER: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// The shared server for a new database.
fn server() -> Arc<Shared> {
    static AT_EXIT: Once = Once::new();
    // SAFETY: the function neither unwinds nor returns to anything that has ended.
    AT_EXIT.call_once(|| assert_eq!(unsafe { libc::atexit(stop_server) }, 0, "there is room"));
    // If a start has failed, the next test tries again.
    let mut current = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let is_full = |server: &Arc<Shared>| server.databases.fetch_add(1, Ordering::Relaxed) >= MAX_DATABASES;
    if current.as_ref().is_none_or(is_full) {
        *current = Some(Arc::new(start()));
    }
    Arc::clone(current.as_ref().expect("it was started"))
}

/// Starts one from a thread that lives as long as it.
fn start() -> Shared {
    let (to_caller, from_starter) = sync_channel(0);
    let (starter, end) = channel::<()>();
    thread::spawn(move || {
        let builder = SETTINGS.iter().fold(Builder::default(), |builder, (name, value)| builder.setting(name, value));
        to_caller.send(builder.start()).expect("the caller waits");
        // Nothing is sent: it ends when the server is dropped.
        end.recv().expect_err("the sender is dropped");
    });
    let server: Cluster = from_starter.recv().expect("the server starts");
    server.fresh_database(TEMPLATE);
    let mut client = server.connect();
    for role in ROLES {
        client.batch_execute(&format!("CREATE ROLE {role} LOGIN")).expect("a new server");
    }
    Shared { server, databases: AtomicUsize::new(1), _starter: starter }
}

/// Stops the server and removes its folder. Rust drops nothing that is static.
extern "C" fn stop_server() {
    let stop = || drop(SERVER.lock().unwrap_or_else(PoisonError::into_inner).take());
    if catch_unwind(stop).is_err() {
        // SAFETY: it ends the process, whose other threads have nothing left to do.
        unsafe { libc::_exit(101) };
    }
}
