//! A wall clock that a test sets under a running server, by libfaketime, and what sessions see of it. The product has no
//! test hook. The monotonic clock is not changed.

use crate::Cluster;
use crate::ask::run;
use crate::id::now_ms;
use crate::process::backend_pid;
use crate::sequence::{counter_in_an_hour, state};
use crate::wait::wait_until_it_waits_for_the_clock;
use postgres::Client;
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Inserts into `posts`, and returns the new ID.
pub const INSERT: &str = "INSERT INTO posts DEFAULT VALUES RETURNING id";

/// A server whose clock a test sets and a session, with a table `posts` of shard 5 and its sequence `posts_id_seq`.
pub fn server_with_posts() -> (Cluster, Client) {
    let cluster = Cluster::builder().fake_clock().start();
    let mut client = cluster.connect();
    let sql = "CREATE SEQUENCE posts_id_seq;
        CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5));
        ALTER SEQUENCE posts_id_seq OWNED BY posts.id";
    run(&mut client, sql);
    (cluster, client)
}

/// Sets the clock of a server to a time, such as `2026-11-23 12:00Z`.
pub fn set_to(cluster: &Cluster, time: &str) {
    let wanted = format!("SELECT extract(epoch FROM timestamptz '{time}')::float8");
    let wanted: f64 = cluster.connect().query_one(&wanted, &[]).expect("a time").get(0);
    cluster.set_clock(wanted - now_ms() as f64 / 1000.0);
}

/// A server whose clock begins at noon of a Monday, 2026-11-23.
pub fn server_at_noon() -> Cluster {
    let cluster = Cluster::builder().fake_clock().start();
    set_to(&cluster, "2026-11-23 12:00Z");
    cluster
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
