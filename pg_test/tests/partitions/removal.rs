//! Which partitions are dropped or detached, and which never.

use super::proof::posts_of;
use super::{POSTS, created, dropped, filled_from, month, old_posts, partition, partitions, server_at_noon};
use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{Refusal, assert_refused, database, printed, run};
use postgres::Client;

/// It could have IDs of any layout.
const HISTORY_IS_KEPT: &str = "kept|public.posts_history||2026-07-01 00:00:00+00|has no lower bound. To remove it by hand, run: \
    ALTER TABLE public.posts DETACH PARTITION public.posts_history;";

#[test]
fn partitions_whose_ids_are_all_older_are_dropped() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, POSTS);
    let sql = "CREATE TABLE posts_history PARTITION OF posts FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2026-07-01 00:00+00'));
        CREATE TABLE posts_default PARTITION OF posts DEFAULT";
    run(&mut client, sql);
    for name in ["2026-07", "2026-08", "2026-09", "2026-10", "2026-11"] {
        run(&mut client, &month(name));
    }
    let sql = "CREATE TABLE posts_future PARTITION OF posts FOR VALUES FROM (snowflake_min_id('2026-12-01 00:00+00')) TO (MAXVALUE)";
    run(&mut client, sql);

    // August ended more than two months before 23 November, September less.
    let call = "SELECT action, partition, starts, ends, message FROM snowflake_drop_partitions('posts', '2 months')";
    assert_eq!(
        printed(&mut client, call),
        format!(
            "{HISTORY_IS_KEPT}
dropped|public.posts_p20260701|2026-07-01 00:00:00+00|2026-08-01 00:00:00+00|
dropped|public.posts_p20260801|2026-08-01 00:00:00+00|2026-09-01 00:00:00+00|"
        )
    );
    assert_eq!(printed(&mut client, call), HISTORY_IS_KEPT);
    assert_eq!(printed(&mut client, "SELECT string_agg(body, ' ' ORDER BY body) FROM posts"), "2026-09 2026-10 2026-11");
    assert_eq!(partitions(&mut client), "posts_history posts_p20260901 posts_p20261001 posts_p20261101 posts_future posts_default");

    run(&mut client, "ALTER TABLE posts DETACH PARTITION posts_history");
    // However short the age: not the current partition, nor the default one, nor one without an upper bound.
    assert_eq!(
        dropped(&mut client, "'posts', '1 microsecond', true"),
        "detached|public.posts_p20260901|\ndetached|public.posts_p20261001|"
    );
    assert_eq!(partitions(&mut client), "posts_p20261101 posts_future posts_default");
    assert_eq!(printed(&mut client, "SELECT body FROM posts_p20261001"), "2026-10");
}

#[test]
fn what_depends_on_a_partition_keeps_it_and_the_others_go() {
    let (_database, mut client) = old_posts(&["2020-06", "2020-07", "2020-08", "2020-09"], "2020-10");
    let before = partitions(&mut client);
    let sql = "CREATE TABLE comments (post_id bigint REFERENCES posts);
        INSERT INTO comments SELECT id FROM posts WHERE body = '2020-07';
        CREATE VIEW of_june AS SELECT * FROM posts_p20200601;
        CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w";
    run(&mut client, sql);
    let found = dropped(&mut client, "'posts', '1 month'");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 4, "{found}");
    assert!(
        lines[0].starts_with("failed|public.posts_p20200601|cannot drop table public.posts_p20200601 because other objects depend"),
        "{found}"
    );
    assert!(lines[0].contains("view public.of_june depends on"), "{found}");
    assert!(
        lines[1].starts_with("failed|public.posts_p20200701|") && lines[1].contains("still referenced from table \"comments\""),
        "{found}"
    );
    assert_eq!(lines[2..], ["dropped|public.posts_p20200801|", "dropped|public.posts_p20200901|"]);
    assert_eq!(partitions(&mut client), before.replace(" posts_p20200801 posts_p20200901", ""));

    run(&mut client, "TRUNCATE comments; DROP VIEW of_june");
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), "dropped|public.posts_p20200601|\ndropped|public.posts_p20200701|");
}

/// A table whose partition of June 2020 has partitions, and these too.
pub fn three_levels() -> (Database, Client) {
    let (database, mut client) = old_posts(&[], "2020-07");
    let sql = "ALTER TABLE posts DROP CONSTRAINT posts_pkey;
        CREATE TABLE posts_p20200601 PARTITION OF posts
            FOR VALUES FROM (snowflake_min_id('2020-06-01 00:00+00')) TO (snowflake_min_id('2020-07-01 00:00+00'))
            PARTITION BY HASH (id);
        CREATE TABLE june_0 PARTITION OF posts_p20200601 FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY LIST (body);
        CREATE TABLE june_a PARTITION OF june_0 FOR VALUES IN ('a');
        INSERT INTO posts SELECT snowflake_min_id('2020-06-05 00:00+00'), 'a'; INSERT INTO posts DEFAULT VALUES;
        CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w";
    run(&mut client, sql);
    (database, client)
}

pub const ARCHIVE: &str = "CREATE FOREIGN TABLE archive PARTITION OF june_0 FOR VALUES IN ('b') SERVER s";

#[test]
fn a_partition_that_contains_a_foreign_table_at_any_level_is_left() {
    let (_database, mut client) = three_levels();
    run(&mut client, &format!("{ARCHIVE}; CREATE FOREIGN TABLE first PARTITION OF posts FOR VALUES FROM (0) TO (5) SERVER s"));
    let skipped = "skipped|public.first|is a foreign table. Its rows are on another server; detach and drop it by hand
skipped|public.posts_p20200601|contains foreign table public.archive, whose rows are on another server; detach and drop it by hand";
    for detach_only in ["false", "true"] {
        assert_eq!(dropped(&mut client, &format!("'posts', '1 month', {detach_only}")), skipped);
    }
    run(&mut client, "DROP FOREIGN TABLE archive, first");
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), "dropped|public.posts_p20200601|");
}

/// The whole tree of a partition is dropped, or none of it.
#[test]
fn what_needs_a_table_below_a_partition_keeps_the_whole_tree() {
    let (_database, mut client) = three_levels();
    let setup = "ALTER TABLE june_a ADD UNIQUE (id); GRANT ALL ON SCHEMA public TO other;
        CREATE FUNCTION is_true() RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'";
    run(&mut client, setup);
    let cases = [
        (
            "CREATE TABLE likes (post_id bigint REFERENCES june_a (id))",
            "cannot drop table public.posts_p20200601 because other objects depend on it: \
             constraint likes_post_id_fkey on table public.likes depends on table public.june_a",
            "DROP TABLE likes",
        ),
        (
            "ALTER EXTENSION plpgsql ADD TABLE june_a",
            "cannot drop table public.posts_p20200601 because other objects depend on it: \
             extension plpgsql depends on table public.june_0",
            "ALTER EXTENSION plpgsql DROP TABLE june_a",
        ),
        (
            "ALTER TABLE june_a OWNER TO other, ADD CONSTRAINT planted CHECK (is_true())",
            "table \"public.june_a\" has another owner than the tables that use it: \
             Its expressions would be evaluated with the privileges of role postgres, but it belongs to role other",
            "ALTER TABLE june_a DROP CONSTRAINT planted",
        ),
    ];
    for (needs, message, no_longer) in cases {
        run(&mut client, needs);
        let found = dropped(&mut client, "'posts', '1 month'");
        assert_eq!(found, format!("failed|public.posts_p20200601|{message}"));
        assert_eq!(printed(&mut client, "SELECT body FROM june_a"), "a");
        run(&mut client, no_longer);
    }
    // As in core, the owner of the tree may drop a table of another role, and the publication remains.
    run(&mut client, "CREATE PUBLICATION of_june FOR TABLE june_a, posts_p20200701");
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), "dropped|public.posts_p20200601|");
    let published = "SELECT tablename FROM pg_publication_tables WHERE pubname = 'of_june'";
    assert_eq!(printed(&mut client, published), "posts_p20200701");
}

/// Whoever detached it wants its rows.
#[test]
fn what_is_being_detached_at_any_level_is_not_dropped() {
    let (database, mut client) = three_levels();
    let mut reader = database.connect();
    let interrupt = |client: &mut Client, reader: &mut Client, parent: &str, partition: &str| {
        run(reader, &format!("BEGIN; SELECT FROM {parent}"));
        run(client, "SET lock_timeout = '1ms'");
        let detach = format!("ALTER TABLE {parent} DETACH PARTITION {partition} CONCURRENTLY");
        assert_refused(client, &detach, Refusal { sqlstate: "55P03", message: "lock timeout", hint: "" });
        run(client, "RESET lock_timeout");
        run(reader, "ROLLBACK");
    };
    interrupt(&mut client, &mut reader, "june_0", "june_a");
    let expected = "failed|public.posts_p20200601|has a partition that is being detached. If no session does so, run: \
        ALTER TABLE public.june_0 DETACH PARTITION public.june_a FINALIZE;";
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), expected);
    run(&mut client, "ALTER TABLE june_0 DETACH PARTITION june_a FINALIZE");
    assert_eq!(dropped(&mut client, "'posts', '1 month'"), "dropped|public.posts_p20200601|");
    assert_eq!(printed(&mut client, "SELECT body FROM june_a"), "a");

    // A partition by shard.
    let sql = "CREATE TABLE shards (LIKE posts) PARTITION BY LIST (body);
        CREATE TABLE one PARTITION OF shards FOR VALUES IN ('1') PARTITION BY RANGE (id);
        CREATE TABLE two PARTITION OF shards FOR VALUES IN ('2') PARTITION BY RANGE (id)";
    run(&mut client, sql);
    interrupt(&mut client, &mut reader, "shards", "one");
    let made = created(&mut client, "'shards', '1 month', 0");
    let skipped =
        "skipped|public.one|is being detached. If no session does so, run: ALTER TABLE public.shards DETACH PARTITION public.one FINALIZE;";
    assert!(made.starts_with(&format!("{skipped}\ncreated|public.two_p")), "{made}");
}

#[test]
fn an_omitted_layout_is_that_of_the_default() {
    let (_cluster, mut client) = server_at_noon();
    for layout in ["instagram", "postgres", "js53", "twitter", "sonyflake", "time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms"] {
        posts_of(&mut client, layout);
        run(&mut client, &partition("posts_p20260601", "2026-06-01", "2026-07-01", layout));
        run(&mut client, &partition("posts_p20260701", "2026-07-01", "2026-11-01", layout));
        let made = created(&mut client, "'posts', '1 month', 0");
        assert!(made.starts_with("created|public.posts_p20261101|"), "{made}");
        run(&mut client, "INSERT INTO posts DEFAULT VALUES");
        assert_eq!(dropped(&mut client, "'posts', '3 months'"), "dropped|public.posts_p20260601|", "{layout}");
        assert_eq!(printed(&mut client, "SELECT count(*) FROM posts"), "1");
        run(&mut client, "DROP TABLE posts; DROP SEQUENCE posts_id_seq");
    }
}

#[test]
fn the_default_of_a_table_above_or_below_counts() {
    let (_database, mut client) = database();
    let sql = "CREATE SEQUENCE ids;
        CREATE DOMAIN js AS bigint DEFAULT snowflake_nextval('ids', 5, 'js53');
        CREATE TABLE above (id bigint DEFAULT snowflake_nextval('ids', 5, 'js53')) PARTITION BY HASH (id);
        CREATE TABLE above_0 PARTITION OF above FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY RANGE (id);
        ALTER TABLE above_0 ALTER id DROP DEFAULT;
        CREATE TABLE below (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE below_0 PARTITION OF below FOR VALUES FROM (MINVALUE) TO (0);
        ALTER TABLE below_0 ALTER id SET DEFAULT snowflake_nextval('ids', 5, 'js53');
        CREATE TABLE domain (id js) PARTITION BY RANGE (id);";
    run(&mut client, sql);
    for table in ["above", "below", "domain"] {
        created(&mut client, &format!("'{table}', '1 month', 0"));
        run(&mut client, &format!("INSERT INTO {table} VALUES (snowflake_nextval('ids', 5, 'js53'))"));
    }
}

/// In a layout that is not that of the IDs, the bounds of today look years old.
#[test]
fn nothing_is_dropped_if_no_remaining_partition_has_the_ids_of_now() {
    let (_cluster, mut client) = server_at_noon();
    let setup = "CREATE TABLE posts (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE by_number (id bigserial) PARTITION BY RANGE (id);
        CREATE TABLE by_number_0 PARTITION OF by_number FOR VALUES FROM (0) TO (1000000);
        CREATE TABLE by_number_1 PARTITION OF by_number FOR VALUES FROM (1000000) TO (2000000);
        CREATE TABLE by_number_default PARTITION OF by_number DEFAULT";
    run(&mut client, setup);
    created(&mut client, "'posts', '1 month', 2, 'discord'");
    let before = partitions(&mut client);
    for (table, layout) in [("posts", "postgres"), ("posts", "instagram"), ("posts", "twitter"), ("by_number", "postgres")] {
        let sql = format!("SELECT * FROM snowflake_drop_partitions('{table}', '24 months', false, '{layout}')");
        let refusal = Refusal {
            sqlstate: "55000",
            message: "would have the IDs of now",
            hint: "Pass the layout of the IDs, or create the current partitions first",
        };
        let error = assert_refused(&mut client, &sql, refusal);
        let detail = error.detail().unwrap();
        assert!(detail.contains(&format!("in layout \"{layout}\"")) && detail.contains("to 20"), "{detail}");
    }
    assert_eq!(partitions(&mut client), before);
    assert_eq!(printed(&mut client, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'by_number'::regclass"), "3");

    // Partitions of the same names, which another layout would have.
    let taken = Refusal { sqlstate: "42P07", message: "is already in use", hint: "Pass the layout and the step of the existing" };
    let error = assert_refused(&mut client, "SELECT snowflake_create_partitions('posts', '1 month')", taken);
    assert!(!error.hint().unwrap().contains("ATTACH"), "{error:?}");
}

#[test]
fn a_call_removes_at_most_50_partitions_from_the_oldest() {
    let (_cluster, mut client) = server_at_noon();
    run(&mut client, &format!("{POSTS}{}", filled_from("2026-10")));
    // One that is kept is not counted.
    let sql = "DO $$ BEGIN FOR n IN 1..54 LOOP
            EXECUTE format('CREATE TABLE %s PARTITION OF posts FOR VALUES FROM (%s) TO (%s)',
                CASE n WHEN 1 THEN 'first' ELSE to_char(date '2026-08-07' + n, '\"posts_p\"YYYYMMDD') END,
                snowflake_min_id((timestamp '2026-08-07' + n * interval '1 day') AT TIME ZONE 'UTC'),
                snowflake_min_id((timestamp '2026-08-08' + n * interval '1 day') AT TIME ZONE 'UTC'));
        END LOOP; END $$";
    run(&mut client, sql);
    let found = dropped(&mut client, "'posts', '1 month'");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 52, "{found}");
    assert!(lines[0].starts_with("kept|public.first|"), "{found}");
    assert_eq!((lines[1], lines[50]), ("dropped|public.posts_p20260809|", "dropped|public.posts_p20260927|"));
    assert_eq!(lines[51], "skipped||3 more partitions are older; call the function again");
    assert_eq!(partitions(&mut client), "first posts_p20260928 posts_p20260929 posts_p20260930 posts_p20261001 posts_p20261101");
}

/// A lack of memory, in which the next partition would fail in the same way, and a cancellation. The first partition has been dropped.
#[test]
fn an_error_of_the_server_ends_the_call_with_its_own_detail_and_changes_nothing() {
    for sqlstate in ["53200", "57014"] {
        let (_database, mut client) = old_posts(&["2020-06", "2020-07"], "2020-08");
        let before = partitions(&mut client);
        let fail = format!(
            "CREATE FUNCTION fail() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF to_regclass('posts_p20200601') IS NULL AND to_regclass('posts_p20200701') IS NULL THEN
                     RAISE 'the message' USING ERRCODE = '{sqlstate}', DETAIL = 'the detail', HINT = 'the hint';
                 END IF;
             END $$;
             CREATE EVENT TRIGGER fail ON sql_drop EXECUTE FUNCTION public.fail()"
        );
        run(&mut client, &fail);
        let raised = Refusal { sqlstate, message: "the message", hint: "the hint" };
        let error = assert_refused(&mut client, "SELECT snowflake_drop_partitions('posts', '1 month')", raised);
        assert_eq!(error.detail(), Some("the detail"));
        assert_eq!(partitions(&mut client), before);
    }
}
