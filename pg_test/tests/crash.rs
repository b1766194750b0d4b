//! No crash causes a duplicate ID.

use pg_snowflake_harness::id::{SEQS, count_repeats, counter, first_counter_at, now_ms};
use pg_snowflake_harness::sequence::{counter_in_an_hour, state, take, take_one};
use pg_snowflake_harness::wait::wait_for_more_rows;
use pg_snowflake_harness::{Cluster, Shutdown};
use postgres::Client;

/// How far the WAL's counter is ahead of the issued ones: 100 ms at full rate.
const LOGGED_AHEAD: i64 = 100 * SEQS;

#[test]
fn a_killed_server_never_repeats_an_id() {
    let mut cluster = cluster_with_posts();
    insert_through_kills(&mut cluster);
}

/// After a restart the clock alone would hide a counter that fell back. With the sequence an hour ahead of the clock, it
/// hides nothing.
#[test]
fn a_killed_server_never_repeats_an_id_even_an_hour_ahead_of_the_clock() {
    let mut cluster = cluster_with_posts();
    put_ahead_of_the_clock(&mut cluster.connect());
    insert_through_kills(&mut cluster);
    let last = take_one(&mut cluster.connect(), "SELECT max(id) FROM posts");
    assert!(counter(last) > first_counter_at(now_ms()), "the clock has had no effect");
}

#[test]
fn a_crash_resumes_the_counter_at_most_100_ms_ahead_and_never_behind() {
    let ways_to_crash: [fn(&mut Cluster); 2] = [Cluster::kill_9, |cluster| cluster.stop(Shutdown::Immediate)];
    let mut cluster = cluster_with_posts();
    put_ahead_of_the_clock(&mut cluster.connect());
    for crash in ways_to_crash {
        for count in [1, 1000, 150_000] {
            let issued = last_counter(&mut cluster.connect(), count);
            crash(&mut cluster);
            cluster.start();
            let resumed = state(&mut cluster.connect(), "posts_id_seq").last_value;
            assert!((issued..=issued + LOGGED_AHEAD).contains(&resumed), "issued {count} ids up to {issued}, resumed at {resumed}");
        }
    }
}

#[test]
fn a_crash_resumes_above_ids_that_were_issued_after_a_checkpoint() {
    let mut cluster = cluster_with_posts();
    let mut client = cluster.connect();
    put_ahead_of_the_clock(&mut client);
    last_counter(&mut client, 1);
    client.batch_execute("CHECKPOINT").unwrap();
    // Without the checkpoint these would need no record: tests/wal.rs.
    let issued = last_counter(&mut client, 100);
    cluster.kill_9();
    cluster.start();

    let resumed = state(&mut cluster.connect(), "posts_id_seq").last_value;
    assert!(resumed >= issued, "issued up to {issued}, resumed at {resumed}");
}

#[test]
fn a_clean_restart_skips_nothing() {
    let mut cluster = cluster_with_posts();
    let mut client = cluster.connect();
    put_ahead_of_the_clock(&mut client);
    // The page is clean after this, so only the IDs' changes can bring it to disk.
    client.batch_execute("CHECKPOINT").unwrap();
    let issued = last_counter(&mut client, 1000);

    cluster.stop(Shutdown::Fast);
    cluster.start();

    assert_eq!(last_counter(&mut cluster.connect(), 1), issued + 1);
}

/// A server with a table of IDs from the extension. They have no unique index, which would reject a repeat before the test
/// could see it.
fn cluster_with_posts() -> Cluster {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
    cluster
        .connect()
        .batch_execute(
            "CREATE SEQUENCE posts_id_seq;
             CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('posts_id_seq', 5), body text)",
        )
        .unwrap();
    cluster
}

fn put_ahead_of_the_clock(client: &mut Client) {
    let in_an_hour = counter_in_an_hour();
    client.execute("SELECT setval('posts_id_seq', $1)", &[&in_an_hour]).unwrap();
}

/// Takes this many IDs in one transaction, and returns the last one's counter.
fn last_counter(client: &mut Client, count: i32) -> i64 {
    let query = "SELECT max(snowflake_nextval('posts_id_seq', 5)) FROM generate_series(1, $1)";
    counter(client.query_one(query, &[&count]).unwrap().get(0))
}

/// Kills the server several times while four clients insert, and checks after each restart that nothing repeats and that
/// IDs continue above every committed one.
fn insert_through_kills(cluster: &mut Cluster) {
    let mut committed_before = Vec::new();
    for round in 0..5 {
        let highest_before = committed_before.iter().max().copied().unwrap_or(0);
        let acknowledged = insert_until_killed(cluster);
        cluster.start();
        let committed = take(&mut cluster.connect(), "SELECT id FROM posts");

        assert!(acknowledged.len() > 1000, "round {round} has too little load: {}", acknowledged.len());
        assert!(acknowledged.iter().all(|&id| id > highest_before), "round {round} continues below");
        assert_eq!(count_repeats(committed.clone()), 0, "round {round}");
        assert_eq!(missing_from(&committed, acknowledged), 0, "round {round} lost what it committed");
        committed_before = committed;
    }
    let next = take_one(&mut cluster.connect(), "SELECT snowflake_nextval('posts_id_seq', 5)");
    assert!(committed_before.iter().all(|&id| id < next));
}

/// The IDs of all transactions whose commit was acknowledged to the four clients until the server was killed.
fn insert_until_killed(cluster: &mut Cluster) -> Vec<i64> {
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let client = cluster.connect();
            std::thread::spawn(|| insert_until_disconnected(client))
        })
        .collect();
    wait_for_more_rows(&mut cluster.connect(), "posts", 4000);
    cluster.kill_9();
    clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
}

fn insert_until_disconnected(mut client: Client) -> Vec<i64> {
    let insert = "INSERT INTO posts (body) SELECT 'x' FROM generate_series(1, 10) RETURNING id";
    let mut acknowledged = Vec::new();
    loop {
        match client.query(insert, &[]) {
            Ok(rows) => acknowledged.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(error) => {
                assert!(error.as_db_error().is_none(), "{error:?}");
                return acknowledged;
            }
        }
    }
}

/// How many of `ids` are not among `committed`.
fn missing_from(committed: &[i64], ids: Vec<i64>) -> usize {
    let mut sorted = committed.to_vec();
    sorted.sort_unstable();
    ids.into_iter().filter(|id| sorted.binary_search(id).is_err()).count()
}
