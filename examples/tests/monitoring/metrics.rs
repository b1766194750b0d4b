//! What `metrics.sql` returns, and to whom; the script in `monitoring/tests` has what one session shows.

use super::METRICS;
use pg_snowflake_harness::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::spawn;

const EXPORTER: &str = "snowflake_exporter";

/// A server whose database has these objects and the metrics, and connections of a superuser and of the exporter.
fn with_metrics(objects: &str) -> (Cluster, Client, Client) {
    let (cluster, superuser) = server_with(objects);
    cluster.psql(SUPERUSER, METRICS);
    let exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    (cluster, superuser, exporter)
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

/// Whoever may create roles could otherwise read all data, as a role that waits for the script.
#[test]
fn a_role_that_gives_others_the_privileges_of_the_script_is_refused() {
    let (cluster, mut superuser) = server_with("CREATE ROLE attacker LOGIN CREATEROLE; CREATE ROLE friend");
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
    let (cluster, mut superuser) = server_with("CREATE ROLE other; CREATE SCHEMA snowflake_metrics AUTHORIZATION other");
    run(&mut superuser, "CREATE TABLE snowflake_metrics.t ()");
    let belongs = ["schema \"snowflake_metrics\" belongs to role \"other\"", "HINT"];
    assert_script_refused(&cluster, SUPERUSER, &belongs);
    run(&mut superuser, "DROP TABLE snowflake_metrics.t; DROP SCHEMA snowflake_metrics");
    cluster.psql(SUPERUSER, METRICS);
    run(&mut superuser, "CREATE FUNCTION snowflake_metrics.own() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    cluster.psql(SUPERUSER, METRICS);
    assert_eq!(printed(&mut superuser, "SELECT proowner::regrole FROM pg_proc WHERE proname = 'own'"), "postgres");
    run(&mut superuser, "CREATE VIEW board AS SELECT * FROM snowflake_metrics.server()");
    assert_script_refused(&cluster, SUPERUSER, &["view public.board depends on function"]);
    assert_eq!(printed(&mut superuser, "SELECT count(*) FROM board"), "1");
}

#[test]
fn a_registry_that_is_set_by_a_reload_needs_a_restart() {
    let mut cluster = Cluster::builder().setting("shared_preload_libraries", "pg_snowflake").start();
    cluster.psql(SUPERUSER, METRICS);
    let mode = "SELECT leases_on, restart_needed FROM snowflake_metrics.server()";
    let mut exporter = cluster.connect_to(EXPORTER, SUPERUSER);
    assert_eq!(printed(&mut exporter, mode), "0|0");
    cluster.psql(SUPERUSER, "ALTER SYSTEM SET pg_snowflake.registry = 'host=/nowhere'; SELECT pg_reload_conf()");
    wait_for(&mut cluster.connect(), "SELECT pending_restart FROM pg_settings WHERE name = 'pg_snowflake.registry'", "the reload is known");
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
        run(&mut client, &format!("CREATE SEQUENCE s START {}; SET pg_snowflake.max_wait = '1h'", counter_in_an_hour()));
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
fn the_lock_of_a_partition_is_not_waited_for() {
    let (cluster, mut superuser, mut exporter) = with_metrics(
        "CREATE SEQUENCE posts_id_seq;
         CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('posts_id_seq', 5)) PARTITION BY RANGE (id);
         CREATE TABLE present PARTITION OF posts FOR VALUES FROM (0) TO (MAXVALUE)",
    );
    let mut holder = cluster.connect();
    run(&mut holder, "BEGIN; LOCK TABLE present IN ACCESS EXCLUSIVE MODE");
    for client in [&mut superuser, &mut exporter] {
        run(client, "SET lock_timeout = '10s'");
        assert_eq!(printed(client, "SELECT ahead_seconds FROM snowflake_metrics.partitions()"), "Infinity");
    }
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
