//! The extension uses no memory that is not allocated or was never written: checked by valgrind, in the SQL tests and under
//! load. Only `./dev campaign valgrind` runs this, since a server under valgrind is about 30 times slower.

use pg_snowflake_harness::ask::refused;
use pg_snowflake_harness::regress::{ISOLATION, REGRESS};
use pg_snowflake_harness::valgrind::{Findings, Tool};
use pg_snowflake_harness::{Cluster, top};
use postgres::Client;
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

/// Functions that read IDs, layouts and the clock.
const DECODING: [&str; 6] = [
    "SELECT (snowflake_decode(id)).*, snowflake_created_at(id), snowflake_explain(id) FROM posts LIMIT 200",
    "SELECT snowflake_from_base32(snowflake_to_base32(id)) = id,
            snowflake_from_uuid(snowflake_to_uuid(id)) = id FROM posts LIMIT 200",
    "SELECT snowflake_encode(now() - g * interval '1 day', g, g, 'time:42 seq:9 shard:12 epoch:2014-01-02 unit:1ms')
     FROM generate_series(1, 200) g",
    "SELECT count(*) FROM posts WHERE snowflake_between(id, now() - interval '1 minute', 'infinity')",
    "SELECT * FROM snowflake_layouts",
    "SELECT * FROM snowflake_clock()",
];

/// Calls that are refused, at any point in the call.
const REFUSED: [&str; 13] = [
    "SELECT snowflake_nextval('of_integer', 5)",
    "SELECT snowflake_nextval('posts', 5)",
    "SELECT snowflake_nextval(4294967295::oid::regclass, 5)",
    "SELECT snowflake_nextval('plain', 4096)",
    "SELECT snowflake_nextval('plain')",
    "SELECT snowflake_nextvals('plain', 5, -1)",
    "SET ROLE stranger; SELECT snowflake_nextval('plain', 5)",
    "BEGIN READ ONLY; SELECT snowflake_nextval('plain', 5)",
    "SELECT snowflake_nextval('plain', 5, 'time:41 shard:13 seq:11 epoch:2024-01-01 unit:1ms')",
    "SELECT snowflake_encode(now(), 4096, 0)",
    "SELECT snowflake_decode(-1, 'js53')",
    "SELECT snowflake_from_base32('not an ID')",
    "SELECT snowflake_from_uuid('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')",
];

fn work(client: &mut Client, session: usize) {
    for sql in SHARED.into_iter().chain(DECODING) {
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
    println!("{findings}");
    // The postmaster, its six helpers and this file's sessions: if valgrind had missed them, it would find nothing.
    assert!(findings.processes > 8, "{} processes", findings.processes);
    assert!(findings.of_the_extension.is_empty(), "the extension misuses memory, see above");
    assert!(findings.of_the_server.is_empty(), "not in valgrind.supp, see above");
}

fn scripts() -> PathBuf {
    top().join("pg_test")
}
