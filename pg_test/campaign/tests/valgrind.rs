//! The extension uses no memory that is not allocated or was never written: checked by valgrind, in the SQL tests and under
//! load. Only `./dev campaign valgrind` runs this, since a server under valgrind is about 30 times slower.

use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::regress::{ISOLATION, REGRESS};
use pg_snowflake_harness::valgrind::{Findings, Tool};
use std::path::PathBuf;

#[test]
fn the_scripts_of_one_session_misuse_no_memory() {
    let cluster = watched();
    REGRESS.run_all(&cluster, &scripts());
    assert_none_of_the_extension(cluster.memory_errors());
}

#[test]
fn the_scripts_of_concurrent_sessions_misuse_no_memory() {
    let cluster = watched();
    ISOLATION.run_all(&cluster, &scripts());
    assert_none_of_the_extension(cluster.memory_errors());
}

#[test]
fn a_load_of_several_sessions_misuses_no_memory() {
    let cluster = watched();
    cluster.connect().batch_execute(SCHEMA).unwrap();

    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let mut client = cluster.connect();
            scope.spawn(move || (0..ROUNDS).for_each(|_| work(&mut client, session)));
        }
    });

    assert_none_of_the_extension(cluster.memory_errors());
}

const SESSIONS: usize = 4;
const ROUNDS: usize = 25;

const SCHEMA: &str = "
    CREATE SEQUENCE plain;
    CREATE SEQUENCE cached CACHE 50;
    CREATE SEQUENCE reset;
    CREATE UNLOGGED SEQUENCE unlogged;
    CREATE SEQUENCE of_integer AS integer;
    CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('plain', 5), body text);
    CREATE ROLE stranger;";

/// What every session does concurrently with the same sequences.
const SHARED: [&str; 12] = [
    "INSERT INTO posts (body) SELECT 'row' FROM generate_series(1, 100)",
    "SELECT snowflake_nextval('cached', g % 4096) FROM generate_series(1, 200) g",
    "SELECT count(*) FROM snowflake_nextvals('plain', 5, 3000)",
    "SELECT snowflake_nextval_homed('plain', 5, 64), snowflake_nextval_homed_in_ranges('plain', 5, '{[0,)}'::int8multirange)
     FROM generate_series(1, 100)",
    "SELECT count(*) FROM snowflake_nextvals_homed('plain', 5, 64, 100)",
    "SELECT snowflake_nextval('unlogged', 5, 'twitter'), snowflake_currval('unlogged')",
    "SELECT snowflake_nextval('cached', 5); SAVEPOINT p; SELECT snowflake_nextval('cached', 5); ROLLBACK TO p",
    "DECLARE ids CURSOR FOR SELECT snowflake_nextvals('plain', 5, 5000); FETCH 10 FROM ids",
    "SELECT snowflake_nextval('reset', 5), nextval('reset'), setval('reset', 1)",
    "ALTER SEQUENCE reset RESTART; SELECT snowflake_nextval('reset', 5)",
    "SELECT snowflake_nextval('plain', 5); CHECKPOINT; SELECT snowflake_nextval('plain', 5)",
    "DISCARD SEQUENCES",
];

/// Calls that are refused before and after the sequence is locked.
const REFUSED: [&str; 4] = [
    "SELECT snowflake_nextval('of_integer', 5)",
    "SELECT snowflake_nextval('plain', 4096)",
    "SET ROLE stranger; SELECT snowflake_nextval('plain', 5)",
    "BEGIN READ ONLY; SELECT snowflake_nextval('plain', 5)",
];

fn work(client: &mut Client, session: usize) {
    for sql in SHARED {
        client.batch_execute(&format!("BEGIN; {sql}; COMMIT")).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    for sql in REFUSED {
        refused(client, sql);
        client.batch_execute("ROLLBACK").unwrap();
        client.batch_execute("DISCARD ALL").unwrap();
    }
    client.batch_execute(&own_sequence(session)).unwrap();
}

/// A sequence that is created and dropped, with its memory in the session.
fn own_sequence(session: usize) -> String {
    format!(
        "CREATE TEMP SEQUENCE of_{session} CACHE 10;
         SELECT snowflake_nextval('of_{session}', 5), snowflake_currval('of_{session}');
         DROP SEQUENCE of_{session};"
    )
}

fn watched() -> Cluster {
    Cluster::builder().valgrind(Tool::Memcheck).start()
}

fn assert_none_of_the_extension(findings: Findings) {
    println!("{} processes", findings.processes);
    // The postmaster, its six helpers and this file's sessions: if valgrind had missed them, it would find nothing.
    assert!(findings.processes > 8, "{} processes", findings.processes);
    assert!(findings.of_the_extension.is_empty(), "the extension misuses memory:\n{}", findings.of_the_extension.join("\n"));
    assert!(findings.of_the_server.is_empty(), "not in valgrind.supp:\n{}", findings.of_the_server.join("\n"));
}

fn scripts() -> PathBuf {
    top().join("pg_test")
}
