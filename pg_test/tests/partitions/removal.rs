//! Which partitions are dropped or detached, and which never.

use super::{POSTS, created, dropped, month, partitions, server_at_noon, set_hours_from_noon};
use pg_snowflake_servertest::ask::{Bad, assert_each_refused, printed, run};

#[test]
fn partitions_whose_ids_are_all_older_are_dropped() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, POSTS);
    run(
        &mut client,
        "CREATE TABLE posts_history PARTITION OF posts FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2026-07-01 00:00+00'));
         CREATE TABLE posts_default PARTITION OF posts DEFAULT",
    );
    for name in ["2026-07", "2026-08", "2026-09", "2026-10", "2026-11"] {
        run(&mut client, &month(name));
    }
    run(
        &mut client,
        "CREATE TABLE posts_future PARTITION OF posts FOR VALUES FROM (snowflake_min_id('2026-12-01 00:00+00')) TO (MAXVALUE)",
    );

    // August ended more than two months before 23 November, September less.
    let call = "SELECT action, partition, starts, ends, message FROM snowflake_drop_partitions('posts', '2 months')";
    assert_eq!(
        printed(&mut client, call),
        "dropped|public.posts_history||2026-07-01 00:00:00+00|
dropped|public.posts_p20260701|2026-07-01 00:00:00+00|2026-08-01 00:00:00+00|
dropped|public.posts_p20260801|2026-08-01 00:00:00+00|2026-09-01 00:00:00+00|"
    );
    assert_eq!(printed(&mut client, call), "");
    assert_eq!(
        printed(&mut client, "SELECT string_agg(body, ' ' ORDER BY body) FROM posts"),
        "2026-09 2026-10 2026-11"
    );
    assert_eq!(
        partitions(&mut client),
        "posts_p20260901 posts_p20261001 posts_p20261101 posts_future posts_default"
    );

    // However short the age: not the current partition, nor the default one, nor one without an upper bound.
    assert_eq!(
        dropped(&mut client, "'posts', '1 microsecond', true"),
        "detached|public.posts_p20260901|\ndetached|public.posts_p20261001|"
    );
    assert_eq!(partitions(&mut client), "posts_p20261101 posts_future posts_default");
    assert_eq!(printed(&mut client, "SELECT body FROM posts_p20261001"), "2026-10");
}

#[test]
fn a_clock_an_hour_off_neither_drops_what_is_current_nor_lets_an_insert_fail() {
    let (cluster, mut client) = server_at_noon();
    run(&mut client, POSTS);
    // An hour behind: the partitions that are made are those of an hour ago.
    set_hours_from_noon(&cluster, -1.0);
    created(&mut cluster.connect(), "'posts', '1 hour', 0");
    set_hours_from_noon(&cluster, 0.0);
    run(&mut cluster.connect(), "INSERT INTO posts DEFAULT VALUES");

    // An hour ahead: the partition of now looks old, but is kept.
    set_hours_from_noon(&cluster, 1.0);
    let mut ahead = cluster.connect();
    dropped(&mut ahead, "'posts', '1 microsecond'");
    created(&mut ahead, "'posts', '1 hour', 0");
    set_hours_from_noon(&cluster, 0.0);
    assert_eq!(printed(&mut cluster.connect(), "SELECT count(*) FROM posts"), "1");
    run(&mut cluster.connect(), "INSERT INTO posts DEFAULT VALUES");
}

#[test]
fn what_depends_on_a_partition_keeps_it_and_the_others_go() {
    let (_cluster, mut client) = server_at_noon();
    run(
        &mut client,
        &format!(
            "{POSTS}{}{}{}{}",
            month("2026-06"),
            month("2026-07"),
            month("2026-08"),
            month("2026-09")
        ),
    );
    run(
        &mut client,
        "CREATE TABLE comments (post_id bigint REFERENCES posts);
         INSERT INTO comments SELECT id FROM posts WHERE body = '2026-07';
         CREATE VIEW of_june AS SELECT * FROM posts_p20260601;
         CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w",
    );
    let found = dropped(&mut client, "'posts', '1 month'");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 4, "{found}");
    assert!(lines[0].starts_with("failed|public.posts_p20260601|cannot drop table public.posts_p20260601 because other objects depend"), "{found}");
    assert!(lines[0].contains("view public.of_june depends on"), "{found}");
    assert!(
        lines[1].starts_with("failed|public.posts_p20260701|")
            && lines[1].contains("still referenced from table \"comments\""),
        "{found}"
    );
    assert_eq!(lines[2..], ["dropped|public.posts_p20260801|", "dropped|public.posts_p20260901|"]);
    assert_eq!(partitions(&mut client), "posts_p20260601 posts_p20260701");

    run(&mut client, "TRUNCATE comments; DROP VIEW of_june");
    assert_eq!(
        dropped(&mut client, "'posts', '1 month'"),
        "dropped|public.posts_p20260601|\ndropped|public.posts_p20260701|"
    );
}

#[test]
fn a_foreign_partition_is_left_to_its_owner() {
    let (_cluster, mut client) = server_at_noon();
    run(
        &mut client,
        "CREATE TABLE posts (id bigint) PARTITION BY RANGE (id); CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;
         CREATE FOREIGN TABLE archive PARTITION OF posts FOR VALUES FROM (0) TO (5) SERVER s",
    );
    assert_eq!(
        dropped(&mut client, "'posts', '1 month'"),
        "skipped|public.archive|is a foreign table. Its rows are on another server; detach and drop it by hand"
    );
}

#[test]
fn bad_input_is_refused() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, &format!("{POSTS}{}; CREATE TABLE plain (id bigint)", month("2026-06")));
    for (arguments, sqlstate, message, allowed) in [
        ("NULL, '1 day'", "22004", "\"parent\"", ""),
        ("'posts', NULL", "22004", "\"older_than\"", ""),
        ("'posts', '1 day', NULL", "22004", "\"detach_only\"", ""),
        ("'posts', '1 day', true, NULL", "22004", "\"layout\"", ""),
        ("'plain', '1 day'", "42809", "public.plain is not a partitioned table", ""),
        ("'posts', '0'", "22023", "must be positive", "24 months"),
        ("'posts', '-1 day'", "22023", "must be positive", "24 months"),
        ("'posts', '2 months -1 day'", "22023", "must be positive", "No part"),
        ("'posts', '100000 years'", "22015", "out of range", "-9999"),
    ] {
        let sql = format!("SELECT * FROM snowflake_drop_partitions({arguments})");
        assert_each_refused(&mut client, &[Bad { sql: &sql, sqlstate, message, allowed }]);
    }
    assert_eq!(partitions(&mut client), "posts_p20260601");
}
