//! What `metrics.sql` returns, and to whom.

use super::METRICS;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, run};
use pg_snowflake_harness::process::backend_pid;
use pg_snowflake_harness::sequence::counter_in_an_hour;
use pg_snowflake_harness::wait::{wait_for, wait_until_it_waits_for_the_clock};
use pg_snowflake_harness::{Cluster, SUPERUSER, Shutdown};
use postgres::Client;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::spawn;

const EXPORTER: &str = "snowflake_exporter";

const FUNCTIONS: [&str; 4] = ["columns", "server", "leases", "partitions"];

/// One column that generates IDs, and a superuser's connection.
const TABLE: &str = "
    CREATE SEQUENCE posts_id_seq;
    CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5));
    INSERT INTO posts DEFAULT VALUES";

/// A server whose database has these objects and the metrics, and connections of a superuser and of the exporter.
fn with_metrics(objects: &str) -> (Cluster, Client, Client) {
    let cluster = Cluster::new();
    let mut superuser = cluster.connect();
    run(&mut superuser, objects);
    cluster.psql(SUPERUSER, METRICS);
    let exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    (cluster, superuser, exporter)
}

/// How many rows each function returns.
fn rows_of_each(client: &mut Client) -> [String; 4] {
    FUNCTIONS.map(|function| printed(client, &format!("SELECT count(*) FROM snowflake_metrics.{function}()")))
}

/// Checks that psql stops the script in that database with an error that contains these texts.
fn assert_script_refused(cluster: &Cluster, database: &str, texts: &[&str]) {
    let psql = catch_unwind(AssertUnwindSafe(|| cluster.psql(database, METRICS)));
    let error = psql.expect_err(&format!("not refused: {texts:?}"));
    let error = error.downcast_ref::<String>().expect("a panic has a text");
    for text in texts {
        assert!(error.contains(text), "no {text:?} in {error}");
    }
}

#[test]
fn the_role_of_the_exporter_can_read_the_metrics_and_nothing_else() {
    let objects = format!("{TABLE}; CREATE EXTENSION pg_snowflake_registry; CREATE ROLE other LOGIN");
    let (cluster, mut superuser, mut exporter) = with_metrics(&objects);
    let mut other = cluster.connect_to("other", SUPERUSER);
    let denied = |message| Refusal { sqlstate: "42501", message, hint: "" };
    for function in FUNCTIONS {
        let call = format!("SELECT * FROM snowflake_metrics.{function}()");
        run(&mut exporter, &call);
        assert_refused(&mut other, &call, denied("permission denied for schema snowflake_metrics"));
    }
    run(&mut superuser, "GRANT USAGE ON SCHEMA snowflake_metrics TO other");
    for function in FUNCTIONS {
        let call = format!("SELECT * FROM snowflake_metrics.{function}()");
        assert_refused(&mut other, &call, denied("permission denied for function"));
    }
    for (statement, message) in [
        ("SELECT FROM posts", "permission denied for table posts"),
        ("SELECT last_value FROM posts_id_seq", "permission denied for sequence posts_id_seq"),
        ("INSERT INTO posts DEFAULT VALUES", "permission denied for table posts"),
        ("SELECT snowflake_nextval('posts_id_seq', 5)", "permission denied for sequence posts_id_seq"),
        ("SELECT FROM snowflake_lease_status()", "permission denied for function snowflake_lease_status"),
        ("SELECT FROM snowflake_registry.shards", "permission denied for schema snowflake_registry"),
        ("SET ROLE snowflake_metrics", "permission denied to set role"),
        ("CREATE TABLE snowflake_metrics.t ()", "permission denied for schema snowflake_metrics"),
    ] {
        assert_refused(&mut exporter, statement, denied(message));
    }
    // Nor can the functions write, whoever calls them.
    let owners = "SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = 'snowflake_metrics'::regnamespace";
    assert_eq!(printed(&mut superuser, owners), "snowflake_metrics");
    run(&mut superuser, "SET ROLE snowflake_metrics");
    for (statement, message) in [
        ("INSERT INTO posts VALUES (1)", "permission denied for table posts"),
        ("SELECT setval('posts_id_seq', 1)", "permission denied for sequence posts_id_seq"),
        ("CREATE TABLE snowflake_metrics.t ()", "permission denied for schema snowflake_metrics"),
    ] {
        assert_refused(&mut superuser, statement, denied(message));
    }
}

/// Whoever may create roles could otherwise read all data, as a role that waits for the script.
#[test]
fn a_role_that_gives_others_the_privileges_of_the_script_is_refused() {
    let cluster = Cluster::new();
    let mut superuser = cluster.connect();
    run(&mut superuser, "CREATE ROLE attacker LOGIN CREATEROLE; CREATE ROLE friend");
    let readers = "SELECT count(*) FROM pg_auth_members WHERE roleid = 'pg_read_all_data'::regrole";
    let name = |role: &str| format!("role \"{role}\" has more privileges than this script gives it");
    for (role, setup, detail) in [
        ("snowflake_metrics", "CREATE ROLE snowflake_metrics LOGIN", "It can log in"),
        ("snowflake_metrics", "CREATE ROLE snowflake_metrics SUPERUSER", "It has SUPERUSER"),
        ("snowflake_metrics", "CREATE ROLE snowflake_metrics CREATEROLE", "It has CREATEROLE"),
        ("snowflake_metrics", "CREATE ROLE snowflake_metrics CREATEDB", "It has CREATEDB"),
        ("snowflake_metrics", "CREATE ROLE snowflake_metrics REPLICATION", "It has REPLICATION"),
        ("snowflake_metrics", "CREATE ROLE snowflake_metrics BYPASSRLS", "It has BYPASSRLS"),
        ("snowflake_metrics", "SET ROLE attacker; CREATE ROLE snowflake_metrics ROLE attacker; RESET ROLE", "It has the member attacker"),
        ("snowflake_metrics", "CREATE ROLE snowflake_metrics IN ROLE friend", "It is a member of friend"),
        // As a security definer, a function would read all data for whoever calls it.
        (
            "snowflake_metrics",
            "CREATE ROLE snowflake_metrics;
             CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
             ALTER FUNCTION f OWNER TO snowflake_metrics",
            "It owns 1 objects",
        ),
        ("snowflake_exporter", "CREATE ROLE snowflake_exporter SUPERUSER", "It has SUPERUSER"),
        ("snowflake_exporter", "CREATE ROLE snowflake_exporter CREATEROLE", "It has CREATEROLE"),
        (
            "snowflake_exporter",
            "CREATE ROLE snowflake_exporter LOGIN;
             CREATE TABLE t (); CREATE TABLE u ();
             ALTER TABLE t OWNER TO snowflake_exporter; ALTER TABLE u OWNER TO snowflake_exporter",
            "It owns 2 objects",
        ),
    ] {
        run(&mut superuser, setup);
        assert_script_refused(&cluster, SUPERUSER, &[&name(role), detail, "HINT"]);
        assert_eq!(printed(&mut superuser, readers), "0");
        run(&mut superuser, &format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
    run(&mut superuser, "CREATE ROLE snowflake_metrics ADMIN postgres");
    cluster.psql(SUPERUSER, METRICS);
    run(&mut superuser, "GRANT snowflake_exporter TO friend");
    cluster.psql(SUPERUSER, METRICS);
    drop(cluster.fresh_database("other"));
    cluster.psql("other", METRICS);
    run(&mut superuser, "GRANT snowflake_metrics TO friend");
    assert_script_refused(&cluster, SUPERUSER, &["It has the member friend"]);
}

#[test]
fn without_the_extension_the_script_says_so() {
    let cluster = Cluster::builder().without_extension().start();
    assert_script_refused(&cluster, SUPERUSER, &["extension \"pg_snowflake\" is not installed in database \"postgres\"", "HINT"]);
}

#[test]
fn what_others_own_is_neither_dropped_nor_changed() {
    let cluster = Cluster::new();
    let mut superuser = cluster.connect();
    run(&mut superuser, "CREATE ROLE other; CREATE SCHEMA snowflake_metrics AUTHORIZATION other");
    run(&mut superuser, "CREATE TABLE snowflake_metrics.t ()");
    let belongs = ["schema \"snowflake_metrics\" belongs to role \"other\"", "HINT"];
    assert_script_refused(&cluster, SUPERUSER, &belongs);
    run(&mut superuser, "DROP TABLE snowflake_metrics.t; DROP SCHEMA snowflake_metrics");
    cluster.psql(SUPERUSER, METRICS);
    run(&mut superuser, "CREATE FUNCTION snowflake_metrics.own() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    cluster.psql(SUPERUSER, METRICS);
    let owner = "SELECT proowner::regrole FROM pg_proc WHERE proname = 'own'";
    assert_eq!(printed(&mut superuser, owner), "postgres");
    run(&mut superuser, "CREATE VIEW board AS SELECT * FROM snowflake_metrics.server()");
    assert_script_refused(&cluster, SUPERUSER, &["view public.board depends on function"]);
    assert_eq!(printed(&mut superuser, "SELECT count(*) FROM board"), "1");
}

#[test]
fn default_privileges_let_nobody_else_call_the_functions() {
    let cluster = Cluster::new();
    let mut superuser = cluster.connect();
    run(
        &mut superuser,
        "CREATE ROLE \"A B\" LOGIN;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO \"A B\";
         ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO \"A B\", PUBLIC",
    );
    let grantees = "
        SELECT DISTINCT kind, grantee::regrole::text, privilege_type
        FROM (SELECT 'function' AS kind, proacl AS acl FROM pg_proc WHERE pronamespace = 'snowflake_metrics'::regnamespace
              UNION ALL SELECT 'schema', nspacl FROM pg_namespace WHERE nspname = 'snowflake_metrics') AS objects,
            aclexplode(acl)
        ORDER BY 1, 3, 2";
    for _ in 0..2 {
        cluster.psql(SUPERUSER, METRICS);
        assert_eq!(
            printed(&mut superuser, grantees),
            "function|snowflake_exporter|EXECUTE\n\
             function|snowflake_metrics|EXECUTE\n\
             schema|postgres|CREATE\n\
             schema|postgres|USAGE\n\
             schema|snowflake_exporter|USAGE"
        );
    }
}

#[test]
fn the_extension_can_move_to_another_schema() {
    let (_cluster, mut superuser, mut exporter) = with_metrics(
        "CREATE SEQUENCE posts_id_seq;
         CREATE TABLE posts (id snowflake DEFAULT snowflake_nextval('posts_id_seq', 5)) PARTITION BY RANGE (id);
         CREATE SCHEMA moved",
    );
    run(&mut superuser, "ALTER EXTENSION pg_snowflake SET SCHEMA moved");
    assert_eq!(rows_of_each(&mut exporter), ["1", "1", "0", "1"]);
}

/// In a schema that comes first in everybody's search path, everybody may create what fits the functions' calls better than core's.
#[test]
fn no_planted_object_is_called() {
    let cluster = Cluster::new();
    let mut superuser = cluster.connect();
    run(&mut superuser, TABLE);
    run(&mut superuser, "ALTER TABLE posts RENAME TO parts; CREATE TABLE posts (LIKE parts INCLUDING DEFAULTS) PARTITION BY RANGE (id)");
    run(&mut superuser, "SELECT FROM snowflake_create_partitions('posts', '1 day')");
    run(
        &mut superuser,
        "CREATE SCHEMA planted;
         CREATE FUNCTION planted.caught() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE 'caught'; END $$;
         CREATE FUNCTION planted.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT planted.caught()::text';
         CREATE FUNCTION planted.regexp_match(text, text) RETURNS text[] LANGUAGE sql AS 'SELECT ARRAY[planted.caught()::text]';
         CREATE FUNCTION planted.extract(text, interval) RETURNS numeric LANGUAGE sql AS 'SELECT planted.caught()::text::numeric';
         CREATE FUNCTION planted.greater(interval, interval) RETURNS boolean LANGUAGE sql AS 'SELECT planted.caught() IS NULL';
         CREATE OPERATOR planted.> (LEFTARG = interval, RIGHTARG = interval, FUNCTION = planted.greater);
         CREATE FUNCTION planted.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT planted.caught() IS NULL';
         CREATE OPERATOR planted.= (LEFTARG = text, RIGHTARG = text, FUNCTION = planted.equal);
         CREATE FUNCTION planted.minus(timestamptz, timestamptz) RETURNS interval LANGUAGE sql AS 'SELECT planted.caught()::text::interval';
         CREATE OPERATOR planted.- (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = planted.minus);
         CREATE VIEW planted.pg_stat_activity AS SELECT *, planted.caught() FROM pg_catalog.pg_stat_activity;
         CREATE VIEW planted.pg_inherits AS SELECT *, planted.caught() FROM pg_catalog.pg_inherits;
         ALTER DATABASE postgres SET search_path = planted, public, pg_catalog",
    );
    // They are found where nobody looks out for them.
    let mut anybody = cluster.connect();
    let caught = Refusal { sqlstate: "P0001", message: "caught", hint: "" };
    assert_refused(&mut anybody, "SELECT current_setting('work_mem')", caught);
    cluster.psql(SUPERUSER, METRICS);
    let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    run(&mut exporter, "CREATE TEMPORARY TABLE pg_class AS SELECT 1; CREATE TEMPORARY TABLE pg_inherits AS SELECT 1");
    for function in FUNCTIONS {
        run(&mut exporter, &format!("SELECT * FROM snowflake_metrics.{function}()"));
    }
    let partitions = "SELECT count(*) FROM snowflake_metrics.partitions()";
    assert_eq!(printed(&mut exporter, partitions), "1");
}

/// The extension is in a schema with a name that needs quotes, and the script runs twice.
#[test]
fn without_a_registry_there_is_no_row_of_leases_and_no_error() {
    let cluster = Cluster::builder().without_extension().start();
    let mut superuser = cluster.connect();
    run(&mut superuser, "CREATE SCHEMA \"A B\"; CREATE EXTENSION pg_snowflake SCHEMA \"A B\"");
    cluster.psql(SUPERUSER, METRICS);
    cluster.psql(SUPERUSER, METRICS);
    let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    assert_eq!(rows_of_each(&mut exporter), ["0", "1", "0", "0"]);
    let server = "SELECT max_lead_seconds, max_wait_seconds, leases_on, restart_needed FROM snowflake_metrics.server()";
    assert_eq!(printed(&mut exporter, server), "0.1|1|0|0");
    drop(exporter);
    run(
        &mut superuser,
        "DROP SCHEMA snowflake_metrics CASCADE;
         DROP OWNED BY snowflake_exporter, snowflake_metrics;
         DROP ROLE snowflake_exporter, snowflake_metrics;
         DROP EXTENSION pg_snowflake",
    );
}

#[test]
fn settings_and_fences_are_those_of_the_database() {
    let cluster = Cluster::new();
    cluster.psql(SUPERUSER, METRICS);
    run(
        &mut cluster.connect(),
        "LOAD 'pg_snowflake';
         ALTER DATABASE postgres SET pg_snowflake.max_lead = '2h';
         ALTER DATABASE postgres SET pg_snowflake.max_wait = 0",
    );
    let server = "SELECT max_lead_seconds, max_wait_seconds, owned_shards_set, allowed_hosts_set FROM snowflake_metrics.server()";
    for (fence, expected) in [
        ("SET pg_snowflake.owned_shards = '5'", "7200|0|1|0"),
        ("RESET pg_snowflake.owned_shards", "7200|0|0|0"),
        ("SET pg_snowflake.allowed_hosts = 'db-1'", "7200|0|0|1"),
    ] {
        run(&mut cluster.connect(), &format!("LOAD 'pg_snowflake'; ALTER DATABASE postgres {fence}"));
        // A session keeps the settings with which it began.
        let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
        assert_eq!(printed(&mut exporter, server), expected, "{fence}");
    }
}

#[test]
fn a_registry_that_is_set_by_a_reload_needs_a_restart() {
    let mut cluster = Cluster::builder().setting("shared_preload_libraries", "pg_snowflake").start();
    cluster.psql(SUPERUSER, METRICS);
    let mode = "SELECT leases_on, restart_needed FROM snowflake_metrics.server()";
    let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    assert_eq!(printed(&mut exporter, mode), "0|0");
    cluster.psql(SUPERUSER, "ALTER SYSTEM SET pg_snowflake.registry = 'host=/nowhere'; SELECT pg_reload_conf()");
    let is_known = "SELECT current_setting('pg_snowflake.registry') <> ''";
    wait_for(&mut cluster.connect(), is_known, "the reload is known");
    let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    assert_eq!(printed(&mut exporter, mode), "0|1");
    drop(exporter);
    cluster.stop(Shutdown::Fast);
    cluster.start();
    let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    assert_eq!(printed(&mut exporter, mode), "1|0");
}

#[test]
fn sessions_of_the_database_that_wait_for_the_clock_are_counted() {
    let (cluster, mut observer, mut exporter) = with_metrics("");
    let mut waiting = || printed(&mut exporter, "SELECT sessions_waiting FROM snowflake_metrics.server()");
    assert_eq!(waiting(), "0");
    let calls = [cluster.fresh_database("other"), cluster.connect()].map(|mut client| {
        let sequence = format!("CREATE SEQUENCE s START {}; SET pg_snowflake.max_wait = '1h'", counter_in_an_hour());
        run(&mut client, &sequence);
        let pid = backend_pid(&mut client);
        let call = spawn(move || client.simple_query("SELECT snowflake_nextval('s', 5)").is_err());
        wait_until_it_waits_for_the_clock(&mut observer, pid);
        (pid, call)
    });
    assert_eq!(waiting(), "1", "the session of the other database does not count");
    for (pid, call) in calls {
        run(&mut observer, &format!("SELECT pg_cancel_backend({pid})"));
        assert!(call.join().expect("the call ends"), "the call has returned an ID");
    }
    assert_eq!(waiting(), "0");
}

#[test]
fn steps_of_the_clock_are_counted_with_the_largest() {
    let cluster = Cluster::builder().fake_clock().start();
    cluster.psql(SUPERUSER, METRICS);
    let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    let steps = "SELECT clock_regressions_total, round(clock_largest_regression_seconds / 3600),
                        clock_forward_jumps_total, round(clock_largest_forward_jump_seconds / 3600),
                        clock_seconds BETWEEN extract(epoch FROM now()) AND extract(epoch FROM clock_timestamp())
                 FROM snowflake_metrics.server()";
    for (hours, expected) in [(0.0, "0|0|0|0|t"), (-10.0, "1|10|0|0|t"), (-15.0, "2|10|0|0|t"), (0.0, "2|10|1|15|t"), (10.0, "2|10|2|15|t")]
    {
        cluster.set_clock(3600.0 * hours);
        assert_eq!(printed(&mut exporter, steps), expected, "{hours} hours");
    }
}

#[test]
fn twenty_columns_with_an_error_are_named_and_all_others_of_a_layout_are_one_group() {
    let tables = |from: i32, to: i32, kind: &str, layout: &str| {
        let table = |i| {
            format!(
                "CREATE SEQUENCE s{i} AS {kind};
                 CREATE TABLE t{i} (id bigint DEFAULT snowflake_nextval('s{i}', 5, '{layout}'));"
            )
        };
        (from..to).map(table).collect::<String>()
    };
    let objects = [tables(100, 125, "integer", "postgres"), tables(200, 207, "bigint", "postgres"), tables(300, 303, "bigint", "twitter")];
    let (_cluster, _, mut exporter) = with_metrics(&objects.concat());
    let groups = "
        SELECT layout, count(*), sum(count), sum(with_error), min(table_name), max(table_name), max(sequence), max(column_name)
        FROM snowflake_metrics.columns() GROUP BY layout, table_name = '' ORDER BY 1, 2";
    assert_eq!(
        printed(&mut exporter, groups),
        "postgres|1|12|5||||\n\
         postgres|20|20|20|public.t100|public.t119|public.s119|id\n\
         twitter|1|3|0||||"
    );
}

#[test]
fn the_twenty_layouts_with_the_most_columns_have_series_of_their_own() {
    let (_cluster, _, mut exporter) = with_metrics(
        "DO $$ BEGIN
            FOR i IN 1..24 LOOP
                EXECUTE format('CREATE SEQUENCE s%1$s; CREATE TABLE t%1$s (
                    a bigint DEFAULT snowflake_nextval(''s%1$s'', 1, ''time:41 shard:10 seq:12 epoch:2024-01-%1$s unit:1ms''))',
                    lpad(i::text, 2, '0'));
            END LOOP;
            CREATE SEQUENCE s; CREATE SEQUENCE n AS integer;
            -- The layout with the most columns, whose name is not the first.
            CREATE TABLE a (a bigint DEFAULT snowflake_nextval('s', 5, 'twitter'), b bigint DEFAULT snowflake_nextval('s', 5, 'twitter'));
            -- A layout of its own with an error.
            CREATE TABLE z (z bigint DEFAULT snowflake_nextval('n', 1, 'time:41 shard:10 seq:12 epoch:2024-02-01 unit:1ms'));
        END $$",
    );
    let groups = "
        SELECT CASE WHEN layout LIKE '%2024-01%' THEN 'january' WHEN layout LIKE '%2024-02%' THEN 'february' ELSE layout END,
            table_name, count(*), sum(count), bool_and(ids_per_second = 4096000)
        FROM snowflake_metrics.columns() GROUP BY 1, 2 ORDER BY 1";
    assert_eq!(
        printed(&mut exporter, groups),
        "february|public.z|1|1|t\n\
         january||19|19|t\n\
         other||1|5|t\n\
         twitter||1|2|t"
    );
}

#[test]
fn a_column_that_is_too_far_ahead_is_named_with_its_lead_and_a_maxvalue_counts() {
    let (_cluster, mut superuser, mut exporter) = with_metrics(TABLE);
    let named =
        "SELECT table_name, count, with_error, max_lead_seconds BETWEEN 3000 AND 3600, min_ids_left < 2000000000, min_seconds_left > 1e9
                 FROM snowflake_metrics.columns()";
    assert_eq!(printed(&mut exporter, named), "|1|0|f|f|t");
    run(&mut superuser, "SELECT setval('posts_id_seq', last_value + 3600::bigint * 1024000) FROM posts_id_seq");
    assert_eq!(printed(&mut exporter, named), "public.posts|1|1|t|f|t");
    run(
        &mut superuser,
        "DO $$ BEGIN
             EXECUTE format('ALTER SEQUENCE posts_id_seq MAXVALUE %s', (SELECT last_value + 1000 FROM posts_id_seq));
         END $$",
    );
    assert_eq!(printed(&mut exporter, named), "public.posts|1|1|t|t|t");
}

#[test]
fn partitions_count_up_to_the_first_gap() {
    let (cluster, mut superuser, mut exporter) = with_metrics(
        "CREATE SEQUENCE posts_id_seq;
         CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('posts_id_seq', 5)) PARTITION BY RANGE (id)",
    );
    run(&mut exporter, "SET lock_timeout = '10s'");
    let now = printed(&mut exporter, "SELECT now()");
    let mut hours = |expected: &str| {
        let query = "SELECT round(ahead_seconds / 3600)::text, round(step_seconds / 3600)::text FROM snowflake_metrics.partitions()";
        assert_eq!(printed(&mut exporter, query), expected);
    };
    let mut partition = |name: &str, from: &str, to: &str| {
        run(
            &mut superuser,
            &format!(
                "DO $$ BEGIN EXECUTE format('CREATE TABLE {name} PARTITION OF posts FOR VALUES FROM (%s) TO (%s)', {from}, {to}); END $$"
            ),
        );
    };
    let at = |hours: i32| format!("snowflake_min_id(timestamptz '{now}' + interval '{hours} hours')::text");
    hours("0|NaN");
    partition("of_the_past", "'MINVALUE'", &at(-20));
    hours("0|NaN");
    partition("of_the_present", &at(-20), &at(10));
    // The lock of a partition is not waited for.
    let mut holder = cluster.connect();
    run(&mut holder, "BEGIN; LOCK TABLE of_the_present IN ACCESS EXCLUSIVE MODE");
    hours("10|30");
    run(&mut holder, "ROLLBACK");
    partition("after_a_gap", &at(20), &at(40));
    hours("10|30");
    partition("in_the_gap", &at(10), &at(20));
    hours("40|20");
    partition("of_the_future", &at(40), "'MAXVALUE'");
    hours("Infinity|NaN");
}

/// Their bounds are texts of anybody.
#[test]
fn tables_that_are_partitioned_by_several_columns_have_no_metrics() {
    let (_cluster, _, mut exporter) = with_metrics(
        "CREATE SEQUENCE s;
         CREATE TABLE t (id bigint DEFAULT snowflake_nextval('s', 5), note text) PARTITION BY RANGE (id, note);
         CREATE TABLE p PARTITION OF t FOR VALUES FROM (0, '') TO (9223372036854775807, ') TO (junk');
         CREATE TABLE u (id bigint DEFAULT snowflake_nextval('s', 5)) PARTITION BY RANGE (id)",
    );
    let tables = "SELECT table_name FROM snowflake_metrics.partitions()";
    assert_eq!(printed(&mut exporter, tables), "public.u");
}

#[test]
fn the_hundred_tables_whose_partitions_run_out_first_have_metrics() {
    let (_cluster, _, mut exporter) = with_metrics(
        "DO $$ BEGIN
            CREATE SEQUENCE s;
            FOR i IN 1..103 LOOP
                EXECUTE format('CREATE TABLE t%s (id bigint DEFAULT snowflake_nextval(''s'', 5)) PARTITION BY RANGE (id)', i);
            END LOOP;
            CREATE TABLE p1 PARTITION OF t1 FOR VALUES FROM (0) TO (MAXVALUE);
            EXECUTE format('CREATE TABLE p2 PARTITION OF t2 FOR VALUES FROM (0) TO (%s)', snowflake_min_id(now() + interval '2 days'));
            EXECUTE format('CREATE TABLE p3 PARTITION OF t3 FOR VALUES FROM (0) TO (%s)', snowflake_min_id(now() + interval '1 day'));
            EXECUTE format('CREATE TABLE p4 PARTITION OF t4 FOR VALUES FROM (0) TO (%s)', snowflake_min_id(now() + interval '1 hour'));
        END $$",
    );
    let tables = "
        SELECT count(*), count(*) FILTER (WHERE ahead_seconds > 0), string_agg(table_name, ' ') FILTER (WHERE ahead_seconds > 0)
        FROM snowflake_metrics.partitions()";
    assert_eq!(printed(&mut exporter, tables), "100|1|public.t4");
}

#[test]
fn the_script_about_the_cost_prints_series_and_times() {
    let cluster = Cluster::new();
    cluster.psql(SUPERUSER, METRICS);
    let script = include_str!("../../../docs/prometheus/measure.sql");
    let printed = cluster.psql(SUPERUSER, &format!("\\set tables 30\n\\set rounds 2\n{script}"));
    let rows: Vec<Vec<&str>> =
        printed.lines().map(|line| line.split('|').map(str::trim).collect()).filter(|row: &Vec<&str>| row.len() == 5).collect();
    let series: Vec<(&str, &str, &str)> = rows[1..].iter().map(|row| (row[0], row[1], row[2])).collect();
    let expected = [
        ("columns", "no error", "6"),
        ("partitions", "no error", "2"),
        ("server", "no error", "12"),
        ("leases", "no error", "0"),
        ("columns", "all have errors", "126"),
        ("partitions", "all have errors", "2"),
        ("server", "all have errors", "12"),
        ("leases", "all have errors", "0"),
    ];
    assert_eq!(series, expected, "{printed}");
    let is_time = |time: &str| time.parse::<f64>().is_ok();
    assert!(rows[1..].iter().all(|row| is_time(row[3]) && is_time(row[4])), "{printed}");
}
