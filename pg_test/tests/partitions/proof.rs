//! What is removed is proved to be old. The rest is kept, and its row has the reason and the command to detach it.

use super::{created, dropped, partition, partitions, server_at_noon, set_hours_from_noon};
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, run};
use postgres::Client;

/// A table `posts` whose default generates IDs of shard 0 in a layout.
pub fn posts_of(client: &mut Client, layout: &str) {
    let sql = format!(
        "CREATE SEQUENCE posts_id_seq;
         CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 0, '{layout}'), body text)
             PARTITION BY RANGE (id)"
    );
    run(client, &sql);
}

/// The rows of a call in which nothing is removed; their reasons contain these words, and each has the command.
fn assert_kept(client: &mut Client, arguments: &str, expected: &[(&str, &str)]) {
    let before = partitions(client);
    let found = dropped(client, arguments);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{found}");
    for (line, (partition, reason)) in lines.iter().zip(expected) {
        let command = format!(": ALTER TABLE public.posts DETACH PARTITION {partition};");
        assert!(line.starts_with(&format!("kept|{partition}|")) && line.contains(reason), "{reason}: {line}");
        assert!(line.ends_with(&command), "{line}");
    }
    assert_eq!(partitions(client), before);
}

/// Names with quotes are quoted in the command, which can be run as it is.
#[test]
fn a_partition_by_hand_is_kept_until_its_name_says_when_it_begins() {
    let (_cluster, mut client) = server_at_noon();
    let layout = "postgres";
    posts_of(&mut client, layout);
    run(&mut client, &partition("\"of \"\"june\"", "2026-06-01", "2026-07-01", layout));
    run(&mut client, &partition("posts_p20260701", "2026-07-01", "2026-11-01", layout));
    created(&mut client, "'posts', '1 month', 0");
    run(&mut client, "INSERT INTO posts DEFAULT VALUES");

    let name = "public.\"of \"\"june\"";
    let reason = "is not named after the start of its range, 2026-06-01 00:00:00+00";
    assert_kept(&mut client, "'posts', '3 months'", &[(name, reason)]);
    run(&mut client, "ALTER TABLE \"of \"\"june\" RENAME TO \"june\"\"_p20260601\"");
    assert_eq!(dropped(&mut client, "'posts', '3 months', true"), "detached|public.\"june\"\"_p20260601\"|");

    run(&mut client, "ALTER TABLE \"june\"\"_p20260601\" RENAME TO june");
    let lower =
        "ALTER TABLE posts ATTACH PARTITION june FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2026-07-01 00:00+00', 'postgres'))";
    run(&mut client, lower);
    assert_kept(&mut client, "'posts', '3 months'", &[("public.june", "has no lower bound")]);
    let command = dropped(&mut client, "'posts', '3 months'");
    run(&mut client, command.split_once("run: ").unwrap().1);
    assert_eq!(dropped(&mut client, "'posts', '3 months'"), "");
}

#[test]
fn a_gap_up_to_now_keeps_what_is_before_it_until_it_is_filled() {
    let (_cluster, mut client) = server_at_noon();
    let layout = "twitter";
    posts_of(&mut client, layout);
    run(&mut client, &partition("posts_p20260601", "2026-06-01", "2026-07-01", layout));
    run(&mut client, &partition("posts_p20260801", "2026-08-01", "2026-11-01", layout));
    created(&mut client, "'posts', '1 month', 0");
    run(&mut client, "INSERT INTO posts DEFAULT VALUES");
    let june = "public.posts_p20260601";
    let reason = "no partition has the IDs from 2026-07-01 00:00:00+00 to 2026-08-01 00:00:00+00";
    assert_kept(&mut client, "'posts', '4 months'", &[(june, reason)]);

    run(&mut client, &partition("july", "2026-07-01", "2026-08-01", layout));
    let reason = "is before partition public.july, which is not named after the start of its range, 2026-07-01";
    assert_kept(&mut client, "'posts', '4 months'", &[(june, reason)]);
    run(&mut client, "ALTER TABLE july RENAME TO posts_p20260701");
    assert_eq!(dropped(&mut client, "'posts', '4 months'"), format!("dropped|{june}|"));
}

/// The hours from noon on 2026-11-23 to the 15th of a month.
fn hours_until(client: &mut Client, month: &str) -> f64 {
    let sql = format!("SELECT extract(epoch FROM timestamptz '{month}-15 12:00+00' - '2026-11-23 12:00+00') / 3600");
    printed(client, &sql).parse().unwrap()
}

#[test]
fn a_clock_years_ahead_makes_nothing_old() {
    let (cluster, mut client) = server_at_noon();
    let layout = "postgres";
    posts_of(&mut client, layout);
    run(&mut client, &partition("posts_p20260601", "2026-06-01", "2026-11-01", layout));
    created(&mut client, "'posts', '1 month', 4");
    run(&mut client, "INSERT INTO posts DEFAULT VALUES");
    let rows = "SELECT count(*) FROM posts";
    // Within the partitions that are created ahead, as long as no row has been inserted by that clock.
    set_hours_from_noon(&cluster, hours_until(&mut client, "2027-02"));
    let mut ahead = cluster.connect();
    let reason = "is not old compared with the newest ID of the table, of 2026-11-23 12:0";
    assert_kept(&mut ahead, "'posts', '2 months'", &[("public.posts_p20260601", reason), ("public.posts_p20261101", reason)]);

    // Beyond them, also if rows have been inserted.
    set_hours_from_noon(&cluster, hours_until(&mut client, "2030-02"));
    let mut ahead = cluster.connect();
    let refusal = Refusal { sqlstate: "55000", message: "would have the IDs of now", hint: "" };
    assert_refused(&mut ahead, "SELECT snowflake_drop_partitions('posts', '24 months')", refusal);
    created(&mut ahead, "'posts', '1 month', 1");
    run(&mut ahead, "INSERT INTO posts DEFAULT VALUES");
    let found = dropped(&mut ahead, "'posts', '24 months'");
    assert_eq!(found.lines().count(), 6, "{found}");
    let gap = "no partition has the IDs from 2027-04-01 00:00:00+00 to 2030-02-01 00:00:00+00";
    assert!(found.lines().all(|line| line.starts_with("kept|") && line.contains(gap)), "{found}");
    assert_eq!(printed(&mut ahead, rows), "2");
}

/// To the function it looks as if the clock were ahead.
#[test]
fn a_table_without_new_rows_keeps_its_last_ones() {
    let (_cluster, mut client) = server_at_noon();
    let layout = "js53";
    posts_of(&mut client, layout);
    for (name, from, to) in [
        ("posts_p20260601", "2026-06-01", "2026-07-01"),
        ("posts_p20260701", "2026-07-01", "2026-08-01"),
        ("posts_p20260801", "2026-08-01", "2026-11-01"),
    ] {
        run(&mut client, &partition(name, from, to, layout));
    }
    created(&mut client, "'posts', '1 month', 0");
    run(&mut client, "INSERT INTO posts VALUES (snowflake_encode('2026-07-15 00:00+00', 5, 0, 'js53'))");
    let reason = "newest ID of the table, of 2026-07-15 00:00:00+00";
    assert_kept(&mut client, "'posts', '1 month'", &[("public.posts_p20260601", reason), ("public.posts_p20260701", reason)]);
    // What has been read is not locked until the end of the transaction, but free for others.
    run(&mut client, "BEGIN");
    dropped(&mut client, "'posts', '1 month'");
    let locked = "SELECT count(*) FROM pg_locks WHERE relation::regclass::text LIKE 'posts_p%'";
    assert_eq!(printed(&mut client, locked), "0");
    run(&mut client, "COMMIT");
    // Without any row nothing can be lost.
    run(&mut client, "TRUNCATE posts");
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), "dropped|public.posts_p20260601|\ndropped|public.posts_p20260701|");
}

#[test]
fn under_a_table_partitioned_by_shard_each_table_has_its_own_proof() {
    let (_cluster, mut client) = server_at_noon();
    let sql = "CREATE SEQUENCE ids;
        CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('ids', 5, 'twitter')) PARTITION BY HASH (id);
        CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY RANGE (id);
        CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 1) PARTITION BY RANGE (id)";
    run(&mut client, sql);
    for (table, name) in [("posts_0", "posts_0_p20260601"), ("posts_1", "june")] {
        let june = partition(name, "2026-06-01", "2026-11-01", "twitter");
        run(&mut client, &june.replace("OF posts", &format!("OF {table}")));
    }
    created(&mut client, "'posts', '1 month', 0");
    run(&mut client, "INSERT INTO posts SELECT snowflake_nextval('ids', 5, 'twitter') FROM generate_series(1, 50)");
    let found = dropped(&mut client, "'posts', '1 hour'");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 2, "{found}");
    assert_eq!(lines[0], "dropped|public.posts_0_p20260601|");
    assert!(
        lines[1].starts_with("kept|public.june|") && lines[1].ends_with("run: ALTER TABLE public.posts_1 DETACH PARTITION public.june;"),
        "{found}"
    );
}

/// Renaming a schema takes no lock on its tables. Here, it happens between the statements that detach and drop a partition.
#[test]
fn a_schema_that_is_renamed_meanwhile_costs_no_row_of_another_table() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, "CREATE SEQUENCE posts_id_seq");
    for schema in ["app", "staging"] {
        let old = partition("posts_p20260101", "2026-01-01", "2026-02-01", "postgres");
        let rest = partition("posts_p20260201", "2026-02-01", "2026-12-01", "postgres");
        let sql = format!(
            "CREATE SCHEMA {schema}; SET search_path = {schema}, public;
             CREATE TABLE posts (id bigint PRIMARY KEY, body text) PARTITION BY RANGE (id); {old} {rest}
             INSERT INTO posts VALUES (snowflake_encode('2026-01-02Z', 5, 1), '{schema}'), (snowflake_nextval('posts_id_seq', 5), '{schema}');
             RESET search_path"
        );
        run(&mut client, &sql);
    }
    let sql = "CREATE FUNCTION swap() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'staging') THEN
                ALTER SCHEMA app RENAME TO old; ALTER SCHEMA staging RENAME TO app;
            END IF;
        END $$;
        CREATE EVENT TRIGGER swap ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.swap()";
    run(&mut client, sql);

    let call = "SELECT action, message FROM snowflake_drop_partitions('app.posts', '9 months', false, 'postgres')";
    let failed = "failed|another session has changed partition app.posts_p20260101";
    assert_eq!(printed(&mut client, call), failed);
    for schema in ["app", "staging"] {
        let rows = format!("SELECT count(*) FROM {schema}.posts WHERE body = '{schema}'");
        assert_eq!(printed(&mut client, &rows), "2");
    }
}
