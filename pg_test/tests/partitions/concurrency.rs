//! Other sessions: writers, holders of locks, a second caller. `pg_test/specs` has those that take turns.

use super::{POSTS, created, dropped};
use pg_snowflake_harness::debugger::{self, Debugger};
use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;

const ROUNDS: u64 = 8;

/// A partition of `posts` with the IDs of a month, and one row, of its 15th.
fn month(month: &str) -> String {
    let name = month.replace('-', "");
    format!(
        "CREATE TABLE posts_p{name}01 PARTITION OF posts FOR VALUES FROM (snowflake_min_id('{month}-01 00:00+00'))
             TO (snowflake_min_id(timestamptz '{month}-01 00:00+00' + interval '1 month'));
         INSERT INTO posts VALUES (snowflake_min_id('{month}-15 00:00+00'), '{month}');"
    )
}

#[test]
fn inserts_never_fail_while_partitions_are_created_detached_and_dropped() {
    let sql = format!(
        "{POSTS}CREATE TABLE posts_p20200701 PARTITION OF posts
             FOR VALUES FROM (snowflake_min_id('2020-07-01 00:00+00')) TO (snowflake_min_id(date_trunc('hour', now())));
         SELECT snowflake_create_partitions('posts', '1 hour', 0);
         INSERT INTO posts DEFAULT VALUES"
    );
    let (database, mut client) = database_with(&sql);
    let (stop, inserts) = (Stop::default(), AtomicU64::new(0));
    scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        for _ in 0..2 {
            let mut writer = database.connect();
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
            run(&mut client, &month("2020-06"));
            let detach_only = round % 2 == 0;
            let gone = dropped(&mut client, &format!("'posts', '12 months', {detach_only}"));
            assert_eq!(gone, format!("{}|public.posts_p20200601|", if detach_only { "detached" } else { "dropped" }));
            run(&mut client, "DROP TABLE IF EXISTS posts_p20200601");
            assert!(comes_true(|| inserts.load(Ordering::Relaxed) >= wanted), "the writers are stuck");
        }
    });
    assert_eq!(printed(&mut client, "SELECT count(*) - 1 FROM posts"), inserts.load(Ordering::Relaxed).to_string());
}

#[test]
fn a_lock_that_is_not_available_fails_only_what_needs_it_and_the_timeout_is_restored() {
    let (june, july) = (month("2020-06"), month("2020-07"));
    let sql = format!(
        "{POSTS}{june}{july}
         CREATE TABLE posts_p20200801 PARTITION OF posts FOR VALUES FROM (snowflake_min_id('2020-08-01 00:00+00'))
             TO (snowflake_min_id(date_trunc('month', now(), 'UTC')));
         SELECT snowflake_create_partitions('posts', '1 month', 0);
         INSERT INTO posts DEFAULT VALUES"
    );
    let (database, mut client) = database_with(&sql);
    let mut holder = database.connect();
    // Two months ahead: in the last hour of a month, the setup has created the next one.
    for timeout in ["50ms", "0"] {
        run(&mut client, &format!("BEGIN; SET lock_timeout = '{timeout}'"));
        run(&mut holder, "BEGIN; LOCK TABLE ONLY posts IN SHARE UPDATE EXCLUSIVE MODE");
        for outcome in [created(&mut client, "'posts', '1 month', 2"), dropped(&mut client, "'posts', '1 month'")] {
            let lines: Vec<&str> = outcome.lines().filter(|line| !line.starts_with("gap") && !line.starts_with("exists")).collect();
            assert!(!lines.is_empty(), "{outcome}");
            assert!(lines.iter().all(|line| line.starts_with("failed|") && line.contains("not available in time")), "{outcome}");
        }
        assert_eq!(printed(&mut client, "SHOW lock_timeout"), timeout);
        run(&mut client, "ROLLBACK");
        run(&mut holder, "COMMIT");
    }

    // Of one partition: others are created and dropped.
    for lock in ["SELECT * FROM posts_p20200601", "LOCK TABLE ONLY posts_p20200601"] {
        run(&mut holder, &format!("BEGIN; {lock}"));
        run(&mut client, "BEGIN; SET lock_timeout = '50ms'");
        let more = created(&mut client, "'posts', '1 month', 2");
        assert!(more.contains("created|") && !more.contains("failed|"), "{more}");
        let outcome = dropped(&mut client, "'posts', '1 month'");
        let lines: Vec<&str> = outcome.lines().collect();
        assert!(lines[0].starts_with("failed|public.posts_p20200601|lock on table"), "{outcome}");
        assert_eq!(lines[1..], ["dropped|public.posts_p20200701|"]);
        run(&mut client, "ROLLBACK");
        run(&mut holder, "COMMIT");
    }
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), "dropped|public.posts_p20200601|\ndropped|public.posts_p20200701|");
}

/// Between the two questions of a call, which partitions there are and which names are taken, another call commits.
#[test]
fn a_name_that_another_call_has_just_taken_for_the_same_partition_is_no_error() {
    if let Some(need) = debugger::missing_requirement() {
        left_out("the partition that another call creates between two steps", need);
        return;
    }
    let (cluster, mut client) = server_with(POSTS);
    let mut second = cluster.connect();
    let pid = backend_pid(&mut second);
    scope(|scope| {
        let mut debugger = Debugger::stop_at_return_of("makeObjectName", pid);
        let call = scope.spawn(move || created(&mut second, "'posts', '1 month', 1"));
        debugger.wait_until_stopped();
        let first = created(&mut client, "'posts', '1 month', 1");
        assert!(!first.contains("exists|"), "{first}");
        drop(debugger);
        assert_eq!(call.join().unwrap(), first.replace("created", "exists"));
    });
}
