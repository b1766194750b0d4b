//! `snowflake_nextvals()`: many IDs at the cost of a few.

use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::id::{count_repeats, counter, is_increasing};
use pg_snowflake_servertest::process::{backend_pid, private_memory_kb};
use pg_snowflake_servertest::sequence::{Ahead, state, take, take_one};
use pg_snowflake_servertest::wait::wait_for;
use postgres::Client;
use std::thread::sleep;
use std::time::Duration;

const TEN_MILLION: i64 = 10_000_000;

/// Row by row, and through a tuplestore, as for a function in FROM.
const FORMS: [&str; 2] = [
    "SELECT count(*) FROM (SELECT snowflake_nextvals('s', 5, 10000000)) AS ids",
    "SELECT count(*) FROM snowflake_nextvals('s', 5, 10000000)",
];

#[test]
fn a_batch_has_as_many_ids_as_asked_for_and_takes_no_more() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(1);
    let mut next = start;
    for count in [1, 2, 1023, 1024, 1025, 5000] {
        let ids = take(&mut client, &format!("SELECT snowflake_nextvals('s', 5, {count})"));

        let counters: Vec<i64> = ids.into_iter().map(counter).collect();
        assert_eq!(counters, (next..next + count).collect::<Vec<_>>());
        next += count;
        assert_eq!(state(&mut client, "s").last_value, next - 1);
    }
}

#[test]
fn a_batch_of_no_ids_leaves_the_sequence_unchanged() {
    let Ahead { cluster: _cluster, mut client, .. } = Ahead::caching(1);
    let before = state(&mut client, "s");

    assert!(take(&mut client, "SELECT snowflake_nextvals('s', 5, 0)").is_empty());

    assert_eq!(state(&mut client, "s"), before);
}

#[test]
fn a_batch_fetches_a_run_of_counters_from_the_page_at_a_time() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(1);
    client
        .batch_execute(
            "BEGIN; DECLARE ids CURSOR FOR SELECT snowflake_nextvals('s', 5, 3000); FETCH 1 FROM ids",
        )
        .unwrap();
    assert_eq!(state(&mut client, "s").last_value, start + 1023);

    client.batch_execute("MOVE 1023 FROM ids").unwrap();
    assert_eq!(state(&mut client, "s").last_value, start + 1023);

    client.batch_execute("MOVE 1 FROM ids").unwrap();
    assert_eq!(state(&mut client, "s").last_value, start + 2047);

    client.batch_execute("MOVE ALL FROM ids").unwrap();
    assert_eq!(state(&mut client, "s").last_value, start + 2999);
}

#[test]
fn concurrent_batches_and_single_ids_never_repeat() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "1min").start();
    cluster.connect().batch_execute("CREATE SEQUENCE s").unwrap();
    let queries = [
        "SELECT snowflake_nextval('s', 5) FROM generate_series(1, 500)",
        "SELECT snowflake_nextvals('s', 5, 500)",
        "SELECT * FROM snowflake_nextvals('s', 5, 5000)",
        "SELECT snowflake_nextvals('s', 5, g) FROM generate_series(1, 30) AS g",
    ];
    let by_client: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let clients: Vec<_> = queries
            .iter()
            .map(|query| {
                let mut client = cluster.connect();
                scope.spawn(move || (0..100).flat_map(|_| take(&mut client, query)).collect())
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });

    assert!(by_client.iter().all(|ids| is_increasing(ids)));
    assert_eq!(count_repeats(by_client.concat()), 0);
}

#[test]
fn ten_million_ids_take_little_memory() {
    for form in FORMS {
        let (cluster, mut client) = unhurried();
        let pid = backend_pid(&mut client);
        take(&mut client, "SELECT snowflake_nextvals('s', 5, 5000)");
        let before = private_memory_kb(pid);

        // The session outlives its query, so that its process can be inspected.
        let query = std::thread::spawn(move || (take_one(&mut client, form), client));
        let mut highest = before;
        while !query.is_finished() {
            highest = highest.max(private_memory_kb(pid));
            sleep(Duration::from_millis(5));
        }

        let (count, _client) = query.join().unwrap();
        assert_eq!(count, TEN_MILLION);
        // The IDs alone would be 80 MB. A tuplestore takes work_mem, which is 4 MB, and then a file.
        assert!(highest - before < 16 * 1024, "{form}: {before} kB before, {highest} kB meanwhile");
        let spilled = cluster.log().contains("temporary file: path");
        assert_eq!(spilled, form == FORMS[1], "{form} spilled to disk: {spilled}");
    }
}

#[test]
fn a_batch_can_be_cancelled() {
    // So many that they take minutes: the cancel arrives in time, however late it is.
    for form in FORMS.map(|form| form.replace("10000000", &i32::MAX.to_string())) {
        let (cluster, mut client) = unhurried();
        let mut other = cluster.connect();
        let pid = backend_pid(&mut client);
        let first = counter(take_one(&mut client, "SELECT snowflake_nextval('s', 5)"));
        let query = std::thread::spawn(move || client.query_one(&form, &[]).map(|_| ()));
        let has_begun = format!("SELECT last_value > {first} FROM s");
        wait_for(&mut other, &has_begun, "the batch has begun");

        other.execute("SELECT pg_cancel_backend($1)", &[&pid]).unwrap();
        let error = query.join().unwrap().expect_err("the query was cancelled");

        assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error:?}");
        let taken = state(&mut other, "s").last_value - first;
        assert!(taken < i64::from(i32::MAX), "continued for {taken} ids");
        // What it had taken is used up, and the sequence continues.
        let next = counter(take_one(&mut other, "SELECT snowflake_nextval('s', 5)"));
        assert!(next > first + taken);
    }
}

/// A sequence `s` that may run ahead of the clock, so that the batch and not the clock sets the pace.
fn unhurried() -> (Cluster, Client) {
    let cluster = Cluster::builder()
        .setting("pg_snowflake.max_lead", "2h")
        .setting("log_temp_files", "0")
        .start();
    let mut client = cluster.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();
    (cluster, client)
}
