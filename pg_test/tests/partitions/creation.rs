//! Which partitions are created, with which bounds, names and properties.

use super::{POSTS, created, month, server_at_noon};
use pg_snowflake_harness::ask::{Bad, Refusal, assert_each_refused, assert_refused, database, printed, run};
use pg_snowflake_harness::id::{Fields, compose};
use postgres::Client;

/// The units of steps, of which a call creates two, in any session. What a call finds has the bounds that it wants.
#[test]
fn ranges_are_aligned_to_utc_whatever_the_session_is_set_to() {
    let (_cluster, mut client) = server_at_noon();
    for (step, layout, expected) in [
        ("1 hour", "postgres", "p20261123_110000 11-23 11, p20261123_120000 11-23 12, p20261123_130000 11-23 13"),
        ("6 hours", "twitter", "p20261123_060000 11-23 06, p20261123_120000 11-23 12, p20261123_180000 11-23 18"),
        ("24 hours", "js53", "p20261123 11-23 00, p20261124 11-24 00"),
        ("7 days", "instagram", "p20261123 11-23 00, p20261130 11-30 00"),
        ("3 months", "discord", "p20261001 10-01 00, p20270101 01-01 00"),
    ] {
        for zone in ["America/New_York", "Pacific/Kiritimati"] {
            let call = format!("FROM snowflake_create_partitions('t', interval '{step}', 1, '{layout}')");
            let sql = format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (id bigint) PARTITION BY RANGE (id);
                 SET timezone = '{zone}'; SET datestyle = 'SQL, DMY'; SET intervalstyle = 'sql_standard'; SELECT {call};
                 SET timezone = 'UTC'; SET datestyle = 'ISO'; RESET intervalstyle"
            );
            run(&mut client, &sql);
            let found = format!(
                "SELECT string_agg(substring(partition::text FROM 10) || to_char(starts, ' MM-DD HH24'), ', ') {call} WHERE action = 'exists'"
            );
            assert_eq!(printed(&mut client, &found), expected, "{step} {layout} {zone}");
        }
    }
}

/// By the formula of an ID, instead of snowflake_min_id().
#[test]
fn a_partition_has_the_ids_of_its_span_and_no_other() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, POSTS);
    created(&mut client, "'posts', '1 month', 0");
    let id = |unix_ms, shard, seq| compose(Fields { unix_ms, shard, seq });
    let (starts_ms, ends_ms) = (1_793_491_200_000, 1_796_083_200_000);
    for inside in [id(starts_ms, 0, 0), id(ends_ms - 1, 4095, 1023)] {
        run(&mut client, &format!("INSERT INTO posts VALUES ({inside})"));
    }
    for outside in [id(starts_ms - 1, 4095, 1023), id(ends_ms, 0, 0)] {
        let none = Refusal { sqlstate: "23514", message: "no partition", hint: "" };
        assert_refused(&mut client, &format!("INSERT INTO posts VALUES ({outside})"), none);
    }
}

fn bounds_of(client: &mut Client, table: &str) -> String {
    let sql = format!(
        "SELECT c.relname || ' ' || pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
         WHERE inhparent = '{table}'::regclass ORDER BY c.relname"
    );
    printed(client, &sql)
}

#[test]
fn a_second_call_creates_nothing_and_reports_what_exists() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, POSTS);
    let call = "SELECT action, partition, starts, ends FROM snowflake_create_partitions('posts', '1 month', 2)";
    let rows = "created|public.posts_p20261101|2026-11-01 00:00:00+00|2026-12-01 00:00:00+00
created|public.posts_p20261201|2026-12-01 00:00:00+00|2027-01-01 00:00:00+00
created|public.posts_p20270101|2027-01-01 00:00:00+00|2027-02-01 00:00:00+00";
    assert_eq!(printed(&mut client, call), rows);
    let before = bounds_of(&mut client, "posts");

    // A call that has nothing to do needs no lock that another holds.
    run(&mut client, "SET lock_timeout = '1ms'");
    assert_eq!(printed(&mut client, call), rows.replace("created", "exists"));
    assert_eq!(bounds_of(&mut client, "posts"), before);
}

/// Rows in the default partition prevent their range alone.
#[test]
fn gaps_and_the_default_partition_are_reported() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, &format!("{POSTS}{}{}CREATE TABLE posts_default PARTITION OF posts DEFAULT", month("2026-06"), month("2026-08")));
    let call = "SELECT action, partition, starts, ends, message FROM snowflake_create_partitions('posts', '1 month', 0)";
    let mut gap = |from, to| {
        let [first, last] = [from, to].map(|day| first_id(&mut client, day));
        format!("gap||{from} 00:00:00+00|{to} 00:00:00+00|no partition has the values FROM ('{first}') TO ('{last}')\n")
    };
    let gaps = gap("2026-07-01", "2026-08-01") + &gap("2026-09-01", "2026-11-01");
    let made = "created|public.posts_p20261101|2026-11-01 00:00:00+00|2026-12-01 00:00:00+00|";
    assert_eq!(printed(&mut client, call), format!("{made}\n{gaps}default|public.posts_default|||has no rows"));

    run(&mut client, "INSERT INTO posts VALUES (snowflake_min_id('2026-12-24 18:00+00'), 'early')");
    let found = created(&mut client, "'posts', '1 month', 2");
    let lines: Vec<&str> = found.lines().filter(|line| !line.starts_with("gap||")).collect();
    assert_eq!((lines[0], lines[2]), ("exists|public.posts_p20261101|", "created|public.posts_p20270101|"));
    assert!(lines[1].starts_with("failed||") && lines[1].contains("Move these rows"), "{found}");
    assert!(lines[3].starts_with("default|public.posts_default|has rows"), "{found}");
    assert_eq!(found.lines().count() - lines.len(), 3, "{found}");
}

fn first_id(client: &mut Client, day: &str) -> String {
    printed(client, &format!("SELECT snowflake_min_id('{day} 00:00+00')"))
}

#[test]
fn a_long_name_is_truncated_between_characters() {
    let (_database, mut client) = database();
    let table = format!("{}x", "ä".repeat(31));
    run(&mut client, &format!("CREATE TABLE {table} (id bigint) PARTITION BY RANGE (id)"));
    let made = created(&mut client, &format!("'{table}', '1 month', 0"));
    let start = made.strip_prefix(&format!("created|public.\"{}_p", "ä".repeat(26)));
    let start = start.and_then(|rest| rest.strip_suffix("\"|")).expect("a truncated name");
    assert!(start.len() == 8 && start.bytes().all(|byte| byte.is_ascii_digit()), "{made}");

    // Another table with the same beginning.
    let other = format!("{}y", "ä".repeat(31));
    run(&mut client, &format!("CREATE TABLE {other} (id bigint) PARTITION BY RANGE (id)"));
    let taken = Bad {
        sql: &format!("SELECT snowflake_create_partitions('{other}', '1 month', 2)"),
        sqlstate: "42P07",
        message: "is already in use",
        allowed: "truncated to 63 bytes",
    };
    assert_each_refused(&mut client, &[taken]);
    assert_eq!(bounds_of(&mut client, &other), "");
}

#[test]
fn a_range_that_meets_another_object_is_refused_before_anything_is_done() {
    let (_cluster, mut client) = server_at_noon();
    let setup = "CREATE TABLE overlapped (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE half PARTITION OF overlapped
            FOR VALUES FROM (snowflake_min_id('2026-12-10 00:00+00')) TO (snowflake_min_id('2026-12-20 00:00+00'));
        CREATE TABLE named (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE named_p20261201 (id bigint);
        CREATE TABLE typed (id bigint) PARTITION BY RANGE (id);
        CREATE TYPE typed_p20261201 AS ENUM ('x')";
    run(&mut client, setup);
    let tables = "SELECT count(*) FROM pg_class";
    let before = printed(&mut client, tables);
    for (table, sqlstate, message, allowed) in [
        ("overlapped", "42P17", "public.half of table public.overlapped overlaps", "from 2026-12-01"),
        ("named", "42P07", "public.named_p20261201", "ATTACH PARTITION"),
        ("typed", "42P07", "public.typed_p20261201", "rename"),
    ] {
        let sql = &format!("SELECT * FROM snowflake_create_partitions('{table}', '1 month', 2)");
        assert_each_refused(&mut client, &[Bad { sql, sqlstate, message, allowed }]);
        assert_eq!(printed(&mut client, tables), before, "{table}");
    }
}

#[test]
fn partitions_end_with_the_layout() {
    let (cluster, mut client) = server_at_noon();
    run(&mut client, "CREATE TABLE posts (id bigint) PARTITION BY RANGE (id)");
    let found = printed(
        &mut client,
        "SELECT action, count(*), max(ends), max(message) FROM snowflake_create_partitions('posts', '10 years', 20, 'js53')
         GROUP BY 1 ORDER BY 1",
    );
    assert_eq!(found, "created|7|2090-01-01 00:00:00+00|\nfailed|1||layout \"js53\" has no IDs after 2089-09-06 15:47:35.552+00");
    let last = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'posts_p20800101'";
    assert!(printed(&mut client, last).ends_with(&format!("TO ('{}')", 1_i64 << 53)));
    // Before the epoch of js53, in 2019.
    super::set_hours_from_noon(&cluster, -24.0 * 365.0 * 7.0);
    let early = Refusal { sqlstate: "55000", message: "outside the time range of layout \"js53\"", hint: "clock" };
    assert_refused(&mut cluster.connect(), "SELECT snowflake_create_partitions('posts', '1 day', 1, 'js53')", early);
}

#[test]
fn a_table_partitioned_by_shard_gets_its_ranges_in_each_partition() {
    let (_cluster, mut client) = server_at_noon();
    let sql = "CREATE SEQUENCE ids; CREATE SCHEMA shard_1; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;
        CREATE TABLE posts (id bigint NOT NULL, body text) PARTITION BY HASH (id snowflake_shard_ops);
        CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 0) PARTITION BY RANGE (id);
        CREATE TABLE shard_1.posts PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1) PARTITION BY RANGE (id);
        CREATE FOREIGN TABLE posts_2 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 2) SERVER s;
        CREATE TABLE posts_3 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3)";
    run(&mut client, sql);
    assert_eq!(
        created(&mut client, "'posts', '1 month', 1"),
        "skipped|public.posts_2|is a foreign table; call the function on the server that has its rows
skipped|public.posts_3|is not partitioned
created|public.posts_0_p20261101|
created|public.posts_0_p20261201|
created|shard_1.posts_p20261101|
created|shard_1.posts_p20261201|"
    );
    run(
        &mut client,
        "DROP FOREIGN TABLE posts_2; INSERT INTO posts SELECT snowflake_nextval('ids', shard), 'x' FROM generate_series(0, 1) AS shard",
    );
    assert_eq!(
        printed(&mut client, "SELECT tableoid::regclass, snowflake_shard_id(id) FROM posts ORDER BY 1"),
        "posts_0_p20261101|0\nshard_1.posts_p20261101|1"
    );
    // A partition is a parent, too.
    assert_eq!(created(&mut client, "'posts_0', '1 month', 0"), "exists|public.posts_0_p20261101|");
    let dropped = "SELECT DISTINCT action FROM snowflake_drop_partitions('posts', '1 month')";
    assert_eq!(printed(&mut client, dropped), "skipped");
}
