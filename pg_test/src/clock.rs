//! A wall clock that a test sets under a running server, by libfaketime, and what sessions see of it. The product has no
//! test hook. The monotonic clock is not changed.

use crate::Cluster;
use crate::crew::{Crew, Place};
use crate::process::backend_pid;
use crate::sequence::{counter_in_an_hour, state};
use crate::wait::wait_until_it_waits_for_the_clock;
use postgres::Client;
use std::thread::spawn;
use std::time::{Duration, Instant};

/// How many sessions of [`inserting_clients`] there are.
pub const CLIENTS: usize = 4;

/// The insert of [`inserting_clients`], which returns the new ID.
pub const INSERT: &str = "INSERT INTO posts DEFAULT VALUES RETURNING id";

/// A server whose clock a test sets, with a table `posts` of shard 5 and its sequence `posts_id_seq`.
pub fn cluster_with_posts() -> Cluster {
    let cluster = Cluster::builder().fake_clock().start();
    cluster
        .connect()
        .batch_execute(
            "CREATE SEQUENCE posts_id_seq;
             CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5));
             ALTER SEQUENCE posts_id_seq OWNED BY posts.id",
        )
        .expect("a new database");
    cluster
}

/// Starts sessions that insert one row after the other, on a server of [`cluster_with_posts`].
pub fn inserting_clients(cluster: &Cluster) -> Crew<Report> {
    let worker = |mut client: Client| move |place: &Place| insert_until_stopped(&mut client, place);
    Crew::start((0..CLIENTS).map(|_| worker(cluster.connect())).collect())
}

/// What one of [`inserting_clients`] saw.
pub struct Report {
    pub ids: Vec<i64>,
    pub errors: Vec<String>,
    pub slowest: Duration,
    pub last_success: Instant,
    pub clock: ClockReport,
}

impl Report {
    /// Whether calls were refused, all of them because of the clock.
    pub fn was_refused_for_the_clock(&self) -> bool {
        let names_the_cause =
            |error: &String| error.contains("stepped back too far") || error.contains("is too far ahead of the server clock");
        self.errors.len() > 10 && self.errors.iter().all(names_the_cause)
    }
}

fn insert_until_stopped(client: &mut Client, place: &Place) -> Report {
    let statement = client.prepare(INSERT).expect("a sound statement");
    let (mut ids, mut errors, mut slowest) = (Vec::new(), Vec::new(), Duration::ZERO);
    let mut last_success = Instant::now();
    while !place.must_stop() {
        let asked = Instant::now();
        match client.query_one(&statement, &[]) {
            Ok(row) => {
                ids.push(row.get(0));
                last_success = Instant::now();
            }
            Err(error) => errors.push(error.as_db_error().expect("the server answers").to_string()),
        }
        place.has_done(1);
        slowest = slowest.max(asked.elapsed());
    }
    Report { ids, errors, slowest, last_success, clock: ClockReport::read(client) }
}

/// A row of `snowflake_clock()`.
#[derive(Debug)]
pub struct ClockReport {
    /// How far the high-water mark is above the reading, in milliseconds.
    pub ahead_ms: f64,
    pub regressions: i64,
    pub largest_regression_ms: f64,
    pub forward_jumps: i64,
    pub largest_forward_jump_ms: f64,
    pub since_regression_ms: Option<f64>,
    pub since_forward_jump_ms: Option<f64>,
}

impl ClockReport {
    /// What the session knows about the clock now.
    pub fn read(client: &mut Client) -> Self {
        let row = client
            .query_one(
                "SELECT extract(epoch FROM high_water_mark - reading)::float8 * 1000, regressions,
                        extract(epoch FROM largest_regression)::float8 * 1000, forward_jumps,
                        extract(epoch FROM largest_forward_jump)::float8 * 1000,
                        extract(epoch FROM reading - last_regression)::float8 * 1000,
                        extract(epoch FROM reading - last_forward_jump)::float8 * 1000
                 FROM snowflake_clock()",
                &[],
            )
            .expect("the extension is there");
        ClockReport {
            ahead_ms: row.get(0),
            regressions: row.get(1),
            largest_regression_ms: row.get(2),
            forward_jumps: row.get(3),
            largest_forward_jump_ms: row.get(4),
            since_regression_ms: row.get(5),
            since_forward_jump_ms: row.get(6),
        }
    }
}

/// A way to end another session's call.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Cancel,
    Terminate,
}

/// Lets a call wait for the clock, ends it, and returns how long that took.
pub fn end_a_waiting_call(cluster: &Cluster, how: End) -> Duration {
    let (function, sqlstate) = match how {
        End::Cancel => ("pg_cancel_backend", "57014"),
        End::Terminate => ("pg_terminate_backend", "57P01"),
    };
    let mut observer = cluster.connect();
    let mut waiting = cluster.connect();
    observer
        .batch_execute(&format!("DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s; SELECT setval('s', {})", counter_in_an_hour()))
        .expect("a superuser");
    // To wait for an hour less the lead is permitted.
    waiting.batch_execute("SET pg_snowflake.max_wait = '1h'").expect("a superuser");
    let pid = backend_pid(&mut waiting);
    let call = spawn(move || {
        let error = waiting.query_one("SELECT snowflake_nextval('s', 5)", &[]).unwrap_err();
        (Instant::now(), error.code().map(|code| code.code().to_owned()))
    });

    wait_until_it_waits_for_the_clock(&mut observer, pid);
    let before = state(&mut observer, "s");
    let asked = Instant::now();
    observer.execute(&format!("SELECT {function}($1)"), &[&pid]).expect("a superuser");
    let (ended, code) = call.join().expect("the call ends in an error");

    // The client of a terminated session may see only the end of the connection.
    assert!(code.as_deref().is_none_or(|code| code == sqlstate), "{code:?}");
    assert_eq!(state(&mut observer, "s"), before, "something was taken");
    ended - asked
}
