//! Other sessions: writers, holders of locks, a second caller.

use super::{ARCHIVE, POSTS, created, dropped, month, old_posts, three_levels};
use pg_snowflake_harness::debugger::{self, Debugger};
use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;

const ROUNDS: u64 = 8;

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
fn creation_waits_for_no_reader_and_no_writer() {
    let (database, mut client) = database_with(POSTS);
    created(&mut client, "'posts', '1 month', 1");
    let mut other = database.connect();
    run(&mut other, "BEGIN; SELECT * FROM posts; INSERT INTO posts DEFAULT VALUES");

    run(&mut client, "BEGIN; SET lock_timeout = '100ms'");
    let outcome = created(&mut client, "'posts', '1 month', 2");
    assert!(outcome.contains("created|") && !outcome.contains("failed|"), "{outcome}");
    // Before the commit.
    run(&mut other, "SET lock_timeout = '100ms'; INSERT INTO posts DEFAULT VALUES; SELECT * FROM posts; COMMIT");
    run(&mut client, "COMMIT");
}

/// A session without a timeout gets one for the call.
#[test]
fn a_lock_that_is_not_available_fails_only_what_needs_it_and_the_timeout_is_restored() {
    let (database, mut client) = old_posts(&["2020-06", "2020-07"], "2020-08");
    let mut holder = database.connect();
    for timeout in ["50ms", "0"] {
        run(&mut client, &format!("BEGIN; SET lock_timeout = '{timeout}'"));
        run(&mut holder, "BEGIN; LOCK TABLE ONLY posts IN SHARE UPDATE EXCLUSIVE MODE");
        for outcome in [created(&mut client, "'posts', '1 month', 1"), dropped(&mut client, "'posts', '1 month'")] {
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
        let more = created(&mut client, "'posts', '1 month', 1");
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

/// It has inserted before, and so holds a lock on the table, as the other caller does.
#[test]
fn of_two_callers_that_have_inserted_one_creates_and_the_other_finds() {
    let (database, mut client) = database_with(POSTS);
    created(&mut client, "'posts', '1 month', 0");
    let mut second = database.connect();
    run(&mut second, "SET lock_timeout = '10min'");
    for caller in [&mut client, &mut second] {
        run(caller, "BEGIN; INSERT INTO posts DEFAULT VALUES");
    }
    let first = created(&mut client, "'posts', '1 month', 1");
    assert!(first.contains("created|"), "{first}");
    let call = |second: &mut Client| {
        let rows = created(second, "'posts', '1 month', 1");
        run(second, "COMMIT");
        rows
    };
    let (rows, ()) = while_it_waits(&mut client, &mut second, call, |client| run(client, "INSERT INTO posts DEFAULT VALUES; COMMIT"));
    assert_eq!(rows, first.replace("created", "exists"));
    assert_eq!(printed(&mut client, "SELECT count(*) FROM posts"), "3");
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

/// The rows of a call that waits for a lock of the holder, whose transaction commits then.
fn call_while_held(database: &Database, holder: &mut Client, call: fn(&mut Client, &str) -> String, arguments: &str) -> String {
    let mut caller = database.connect();
    run(&mut caller, "SET lock_timeout = '10min'");
    while_it_waits(holder, &mut caller, |caller| call(caller, arguments), |holder| run(holder, "COMMIT")).0
}

#[test]
fn the_partition_that_was_old_goes_even_if_another_table_has_its_name_meanwhile() {
    let (database, mut client) = old_posts(&["2020-06"], "2020-07");
    run(&mut client, "CREATE TABLE precious AS SELECT 1");
    let mut other = database.connect();
    let sql =
        "BEGIN; SELECT FROM posts; ALTER TABLE posts_p20200601 RENAME TO archive_p20200601; ALTER TABLE precious RENAME TO posts_p20200601";
    run(&mut other, sql);
    assert_eq!(call_while_held(&database, &mut other, dropped, "'posts', '1 month'"), "dropped|public.archive_p20200601|");
    assert_eq!(printed(&mut client, "SELECT count(*) FROM posts_p20200601"), "1");
}

/// The proof is of the moment of the removal. Other partitions are removed.
#[test]
fn a_partition_that_another_session_changes_while_the_call_waits_is_not_removed() {
    for change in [
        "ALTER TABLE posts_p20200601 RENAME TO precious",
        "ALTER TABLE posts_p20200701 RENAME TO precious",
        "ALTER TABLE posts DETACH PARTITION posts_p20200701",
        "ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5, 'discord')",
        "DROP TABLE posts_p20200501",
    ] {
        let is_dropped = change.starts_with("DROP");
        let months = if is_dropped { ["2020-05", "2020-06"].as_slice() } else { &["2020-06"] };
        let (database, mut client) = old_posts(months, "2020-07");
        let mut other = database.connect();
        run(&mut other, &format!("BEGIN; SELECT FROM posts; {change}"));
        let outcome = call_while_held(&database, &mut other, dropped, "'posts', '1 month'");
        let changed = |name| format!("failed|public.{name}|another session has changed partition public.{name}");
        let (expected, left) = match is_dropped {
            true => (changed("posts_p20200501") + "\ndropped|public.posts_p20200601|", "0"),
            false => (changed("posts_p20200601"), "1"),
        };
        assert_eq!(outcome, expected, "{change}");
        assert_eq!(printed(&mut client, "SELECT count(*) FROM posts WHERE body = '2020-06'"), left);
    }
}

#[test]
fn a_foreign_table_that_is_attached_below_while_the_call_waits_is_not_dropped() {
    let (database, mut client) = three_levels();
    let mut other = database.connect();
    run(&mut other, &format!("BEGIN; SELECT FROM posts; {ARCHIVE}"));
    let outcome = call_while_held(&database, &mut other, dropped, "'posts', '1 month'");
    assert_eq!(outcome, "failed|public.posts_p20200601|another session has changed partition public.posts_p20200601");
    assert_eq!(printed(&mut client, "SELECT 'archive'::regclass"), "archive");
}

#[test]
fn the_table_itself_gets_its_partitions_even_if_another_has_its_name_meanwhile() {
    let (database, mut client) = database_with(POSTS);
    let mut other = database.connect();
    run(&mut other, "BEGIN; ALTER TABLE posts RENAME TO renamed; CREATE TABLE posts (id bigint) PARTITION BY RANGE (id)");
    let outcome = call_while_held(&database, &mut other, created, "'posts', '1 day', 0");
    assert!(outcome.starts_with("created|public.renamed_p"), "{outcome}");
    assert_eq!(printed(&mut client, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'posts'::regclass"), "0");
}

/// An insert locks the referencing table first, and then the table.
#[test]
fn a_drop_and_an_insert_into_a_referencing_table_do_not_deadlock() {
    let (database, mut client) = old_posts(&["2020-06"], "2020-07");
    run(&mut client, "INSERT INTO posts DEFAULT VALUES; CREATE TABLE comments (post_id bigint REFERENCES posts)");
    let id = printed(&mut client, "SELECT max(id) FROM posts");
    let mut reader = database.connect();
    run(&mut reader, "BEGIN; LOCK TABLE posts IN ACCESS SHARE MODE; LOCK TABLE comments IN ACCESS SHARE MODE");
    let [mut caller, mut writer] = [database.connect(), database.connect()];
    run(&mut caller, "SET lock_timeout = '10min'");
    let insert = format!("INSERT INTO comments VALUES ({id})");
    let insert = |reader: &mut Client| while_it_waits(reader, &mut writer, |writer| run(writer, &insert), |reader| run(reader, "COMMIT"));
    let (outcome, _) = while_it_waits(&mut reader, &mut caller, |caller| dropped(caller, "'posts', '1 month'"), insert);
    assert_eq!(outcome, "dropped|public.posts_p20200601|");
    assert_eq!(printed(&mut client, "SELECT count(*) FROM comments"), "1");
}
