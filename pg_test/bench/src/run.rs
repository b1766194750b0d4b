//! A run: its size, its servers, and what it finds.

use crate::contenders::{ALL, Contender, FLOOR};
use crate::samples::Samples;
pub use pg_snowflake_harness::ask::run as execute;
use pg_snowflake_harness::{Builder, Cluster, SUPERUSER, installation, top};
use postgres::Client;
use std::process::Command;
use std::time::Duration;

/// What to measure, how thoroughly, and what was found.
#[derive(Debug)]
pub struct Run {
    pub rounds: usize,
    pub scale: f64,
    /// What this PostgreSQL has.
    pub contenders: Vec<&'static Contender>,
    pub samples: Samples,
    pub notes: Vec<String>,
}

/// Measures that share a server: the name on the command line, what it measures, and how.
pub type Part = (&'static str, &'static str, fn(&mut Run));

impl Run {
    pub fn new(rounds: usize, scale: f64, client: &mut Client) -> Self {
        let samples = Samples::default();
        let mut run = Run { rounds, scale, contenders: Vec::new(), samples, notes: Vec::new() };
        for contender in &ALL {
            let version = contender.needs.map(|(query, lack)| client.query_opt(query, &[]).expect("a query of the catalog").ok_or(lack));
            match version.transpose() {
                Err(lack) => run.note(lack.to_owned()),
                Ok(row) => {
                    let version = row.and_then(|row| row.get::<_, Option<String>>(0));
                    if let Some(version) = version {
                        let title = contender.title;
                        run.note(format!("{title} is from version {version} of its extension."));
                    }
                    run.contenders.push(contender);
                }
            }
        }
        run
    }

    /// A number at the run's scale, at least 100.
    pub fn scaled(&self, full: i64) -> i64 {
        ((full as f64 * self.scale) as i64).max(100)
    }

    pub fn scaled_time(&self, full: Duration) -> Duration {
        full.mul_f64(self.scale)
    }

    /// Prints and keeps a note, once.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            println!("      {note}");
            self.notes.push(note);
        }
    }
}

/// A server with enough memory and WAL for the measurements.
pub fn server() -> Builder {
    Cluster::builder()
        .setting("shared_buffers", "1GB")
        .setting("wal_buffers", "64MB")
        .setting("max_wal_size", "16GB")
        .setting("jit", "off")
        .setting("max_parallel_workers_per_gather", "0")
        // pgEdge's extension generates no IDs without it.
        .setting("snowflake.node", "1")
}

/// Creates a contender's database, and returns a session in it.
pub fn database_of(server: &Cluster, contender: &Contender) -> Client {
    execute(&mut server.connect(), &format!("CREATE DATABASE {}", contender.name));
    let mut client = connect(server, contender);
    for statement in contender.setup {
        let is_of_floor = statement.contains(FLOOR);
        let library = if is_of_floor { compiled_floor(server) } else { String::new() };
        execute(&mut client, &statement.replace(FLOOR, &library));
    }
    client
}

/// The library of C functions, compiled as packages of extensions are.
fn compiled_floor(server: &Cluster) -> String {
    let library = server.dir().join("floor.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-fPIC", "-shared", "-fno-strict-aliasing", "-fwrapv", "-I"]);
    compiler.arg(installation::pg_config("--includedir-server"));
    compiler.arg(top().join("pg_test/bench/floor.c")).arg("-o").arg(&library);
    installation::run(&mut compiler, b"");
    library.display().to_string()
}

pub fn connect(server: &Cluster, contender: &Contender) -> Client {
    server.connect_to(SUPERUSER, contender.name)
}

/// Empties the table `posts`, so that no turn inserts into a larger table than another, creates WAL files, or writes pages that the
/// last one has left dirty.
pub fn empty(client: &mut Client) {
    execute(client, "TRUNCATE posts");
    execute(client, "CHECKPOINT");
}

pub fn value<T>(client: &mut Client, query: &str) -> T
where
    T: for<'a> postgres::types::FromSql<'a>,
{
    client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
}

/// The transactions per second that pgbench reports, with so many of each client, in a database or with a connection string. Statements
/// are prepared.
pub fn tps(server: &Cluster, database: &str, clients: u32, transactions: u32, script: &str) -> f64 {
    let options = [
        "--protocol=prepared".to_owned(),
        format!("--client={clients}"),
        // More threads would compete with the server for the processors.
        format!("--jobs={}", clients.min(2)),
        format!("--transactions={transactions}"),
    ];
    let said = server.pgbench(database, &options, script);
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
    let rate = rate.and_then(|rate| rate.parse().ok());
    rate.unwrap_or_else(|| panic!("pgbench does not report its rate:\n{said}"))
}

/// What a distribution's PostgreSQL has, and how the server says so. Otherwise it is slower than what users have, and its figures would be
/// wrong for them.
const FEATURES: [(&str, &str); 3] = [
    ("OpenSSL", "current_setting('ssl_library') = 'OpenSSL'"),
    ("a server without assertions", "current_setting('debug_assertions') = 'off'"),
    ("-O2", "EXISTS (SELECT FROM pg_config WHERE name = 'CFLAGS' AND setting ~ '-O[23](?!.*-O)')"),
];

pub fn lacking(client: &mut Client) -> Vec<&'static str> {
    let mut lacks = |query| !value::<bool>(client, &format!("SELECT {query}"));
    FEATURES.into_iter().filter(|&(_, query)| lacks(query)).map(|(name, _)| name).collect()
}
