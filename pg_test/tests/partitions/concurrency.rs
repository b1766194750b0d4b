//! Other sessions: writers, holders of locks, a second caller, a cancellation.

use super::{POSTS, created, dropped, month, partitions};
use pg_snowflake_servertest::ask::{printed, refused, run, server};
use pg_snowflake_servertest::process::backend_pid;
use pg_snowflake_servertest::wait::{Stop, StopAtEnd, comes_true, wait_for};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;

const ROUNDS: u64 = 8;

#[test]
fn inserts_never_fail_while_partitions_are_created_detached_and_dropped() {
    let (cluster, mut client) = server();
    run(&mut client, POSTS);
    created(&mut client, "'posts', '1 hour', 0");
    let (stop, inserts) = (Stop::default(), AtomicU64::new(0));
    scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        for _ in 0..2 {
            let mut writer = cluster.connect();
            let (stop, inserts) = (&stop, &inserts);
            scope.spawn(move || {
                while !stop.is_called() {
                    run(&mut writer, "INSERT INTO posts (body) VALUES ('x')");
                    inserts.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..ROUNDS {
            let wanted = inserts.load(Ordering::Relaxed) + 20;
            let more = created(&mut client, &format!("'posts', '1 hour', {}", round + 2));
            assert!(more.contains("created|") && !more.contains("failed|"), "{more}");
            let old = format!(
                "CREATE TABLE old PARTITION OF posts FOR VALUES FROM ({round}) TO ({round} + 1)"
            );
            run(&mut client, &old);
            let detach_only = round % 2 == 0;
            let gone = dropped(&mut client, &format!("'posts', '1 hour', {detach_only}"));
            assert_eq!(
                gone,
                format!("{}|public.old|", if detach_only { "detached" } else { "dropped" })
            );
            run(&mut client, "DROP TABLE IF EXISTS old");
            assert!(
                comes_true(|| inserts.load(Ordering::Relaxed) >= wanted),
                "the writers are stuck"
            );
        }
    });
    let rows = printed(&mut client, "SELECT count(*) FROM posts");
    assert_eq!(rows, inserts.load(Ordering::Relaxed).to_string());
}

#[test]
fn creation_waits_for_no_reader_and_no_writer() {
    let (cluster, mut client) = server();
    run(&mut client, POSTS);
    created(&mut client, "'posts', '1 month', 1");
    let mut other = cluster.connect();
    run(&mut other, "BEGIN; SELECT * FROM posts; INSERT INTO posts DEFAULT VALUES");

    run(&mut client, "BEGIN; SET lock_timeout = '100ms'");
    let outcome = created(&mut client, "'posts', '1 month', 2");
    assert!(outcome.contains("created|") && !outcome.contains("failed|"), "{outcome}");
    // Before the commit.
    run(
        &mut other,
        "SET lock_timeout = '100ms'; INSERT INTO posts DEFAULT VALUES; SELECT * FROM posts; COMMIT",
    );
    run(&mut client, "COMMIT");
}

#[test]
fn a_lock_that_is_not_available_is_a_row_and_the_timeout_is_restored() {
    let (cluster, mut client) = server();
    run(&mut client, &format!("{POSTS}{}{}", month("2020-06"), month("2020-07")));
    let mut holder = cluster.connect();

    // Of the table.
    run(&mut holder, "BEGIN; LOCK TABLE ONLY posts IN SHARE UPDATE EXCLUSIVE MODE");
    run(&mut client, "SET lock_timeout = '50ms'");
    for outcome in
        [created(&mut client, "'posts', '1 month', 1"), dropped(&mut client, "'posts', '1 month'")]
    {
        let lines: Vec<&str> = outcome.lines().filter(|line| !line.starts_with("gap")).collect();
        assert!(lines.len() > 1, "{outcome}");
        let are_failures = lines
            .iter()
            .all(|line| line.starts_with("failed|") && line.contains("within lock_timeout"));
        assert!(are_failures, "{outcome}");
    }
    assert_eq!(printed(&mut client, "SHOW lock_timeout"), "50ms");
    run(&mut holder, "COMMIT");

    // Of one partition: the other goes.
    run(&mut holder, "BEGIN; SELECT * FROM posts_p20200601");
    let outcome = dropped(&mut client, "'posts', '1 month'");
    let lines: Vec<&str> = outcome.lines().collect();
    assert!(lines[0].starts_with("failed|public.posts_p20200601|lock on table"), "{outcome}");
    assert_eq!(lines[1..], ["dropped|public.posts_p20200701|"]);
    run(&mut holder, "COMMIT");
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), "dropped|public.posts_p20200601|");
    assert_eq!(partitions(&mut client), "");
}

#[test]
fn a_session_without_a_lock_timeout_gets_one_for_the_call() {
    let (cluster, mut client) = server();
    run(&mut client, &format!("{POSTS}{}", month("2020-06")));
    let mut holder = cluster.connect();
    run(&mut holder, "BEGIN; SELECT * FROM posts");

    run(&mut client, "BEGIN");
    let outcome = dropped(&mut client, "'posts', '1 month'");
    assert!(outcome.starts_with("failed|public.posts_p20200601|lock on table"), "{outcome}");
    assert_eq!(printed(&mut client, "SHOW lock_timeout"), "0");
    run(&mut client, "COMMIT");
}

#[test]
fn of_two_callers_one_creates_and_the_other_finds() {
    let (cluster, mut client) = server();
    run(&mut client, POSTS);
    run(&mut client, "BEGIN");
    let first = created(&mut client, "'posts', '1 month', 1");
    assert!(!first.contains("exists|"), "{first}");
    scope(|scope| {
        let mut second = cluster.connect();
        run(&mut second, "SET lock_timeout = '10min'");
        let pid = backend_pid(&mut second);
        let call = scope.spawn(move || created(&mut second, "'posts', '1 month', 1"));
        let waits =
            format!("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = {pid}");
        wait_for(&mut cluster.connect(), &waits, "the second call waits");
        run(&mut client, "COMMIT");
        assert_eq!(call.join().unwrap(), first.replace("created", "exists"));
    });
}

#[test]
fn a_cancelled_call_changes_nothing() {
    let (cluster, mut client) = server();
    run(&mut client, &format!("{POSTS}{}{}", month("2020-06"), month("2020-07")));
    let mut holder = cluster.connect();
    // The first partition is dropped, and the call waits for the second.
    run(&mut holder, "BEGIN; SELECT * FROM posts_p20200701");
    scope(|scope| {
        let mut caller = cluster.connect();
        run(&mut caller, "SET lock_timeout = '10min'");
        let pid = backend_pid(&mut caller);
        let call = scope.spawn(move || {
            refused(&mut caller, "SELECT snowflake_drop_partitions('posts', '1 month')")
        });
        let waits =
            format!("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = {pid}");
        let mut observer = cluster.connect();
        wait_for(&mut observer, &waits, "the call waits");
        run(&mut observer, &format!("SELECT pg_cancel_backend({pid})"));
        assert_eq!(call.join().unwrap().code().code(), "57014");
    });
    assert_eq!(partitions(&mut client), "posts_p20200601 posts_p20200701");
    let held = "SELECT count(*) FROM pg_locks WHERE relation = 'posts'::regclass AND mode = 'AccessExclusiveLock'";
    assert_eq!(printed(&mut client, held), "0");
}
