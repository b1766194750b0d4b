//! The folder `monitoring/`: Prometheus and both exporters on a server whose problems come and go, and what `metrics.sql` returns.

mod metrics;
mod prometheus;

use pg_snowflake_examples::{command, run, with_packages};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::process::backend_pid;
use pg_snowflake_harness::{SUPERUSER, Shutdown, anchor_of, top};
use prometheus::{Alert, JOBS, Prometheus};
use std::collections::BTreeSet;
use std::fs;
use std::thread::spawn;

const FOLDER: &str = "../monitoring";
const METRICS: &str = include_str!("../../monitoring/metrics.sql");
const RULES: &str = include_str!("../../monitoring/rules.yml");

/// The tables of the server. Their columns generate IDs without a problem.
const TABLES: &str = "
    CREATE TABLE posts (id bigint PRIMARY KEY);
    CREATE SEQUENCE posts_id_seq OWNED BY posts.id;
    ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5);
    CREATE TABLE likes (id bigint PRIMARY KEY);
    CREATE SEQUENCE likes_id_seq OWNED BY likes.id;
    ALTER TABLE likes ALTER id SET DEFAULT snowflake_nextval('likes_id_seq', 5);
    CREATE SEQUENCE events_id_seq;
    CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval('events_id_seq', 5)) PARTITION BY RANGE (id);
    SELECT FROM snowflake_create_partitions('events', '1 day')";

#[test]
fn promtool_accepts_the_files_and_each_alert_passes_its_test() {
    let Some(dir) = with_packages("promtool", FOLDER, &["prometheus"]) else { return };
    let promtool = |arguments: &[&str]| {
        run(command("package/usr/bin/promtool", dir.path()).args(arguments));
    };
    promtool(&["check", "config", "prometheus.yml"]);
    promtool(&["check", "rules", "rules.yml"]);
    promtool(&["test", "rules", "rules_test.yml"]);
}

/// promtool passes a rule without a test.
#[test]
fn each_severity_of_each_alert_has_a_test() {
    let tests = include_str!("../../monitoring/rules_test.yml");
    let tested: BTreeSet<(&str, &str)> = tests
        .split("alertname: ")
        .skip(1)
        .flat_map(|test| {
            let name = test.lines().next().expect("a name");
            let severities = test.split("severity: \"").skip(1);
            severities.map(move |rest| (name, rest.split('"').next().expect("a severity")))
        })
        .collect();
    let rules: BTreeSet<(&str, &str)> = RULES
        .split("- alert: ")
        .skip(1)
        .map(|rule| {
            let (_, rest) = rule.split_once("severity: ").expect("each alert has a severity");
            (rule.lines().next().expect("a name"), rest.split('}').next().expect("a severity"))
        })
        .collect();
    assert!(rules.len() > 20, "{rules:?}");
    assert_eq!(tested, rules, "left: rules_test.yml, right: rules.yml");
}

#[test]
fn the_runbook_of_each_alert_exists() {
    let urls = RULES.lines().filter_map(|line| line.trim().strip_prefix("runbook_url: "));
    let mut count = 0;
    for url in urls {
        let path = url.strip_prefix("https://github.com/PROJECT-OWNER/pg_snowflake/blob/main/");
        let (page, anchor) = path.and_then(|path| path.split_once('#')).expect("a section here");
        let text = fs::read_to_string(top().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        let mut headings = text.lines().filter(|line| line.starts_with('#'));
        let is_target = |line: &str| anchor_of(line.trim_start_matches('#').trim()) == anchor;
        // A short runbook is a row of a table.
        assert!(text.contains(&format!("| <a id=\"{anchor}\"></a>")) || headings.any(is_target), "{page} has no #{anchor}");
        count += 1;
    }
    assert!(count > 10, "{count} runbooks");
}

#[test]
fn each_problem_fires_its_alerts_through_both_exporters_until_it_is_over() {
    let packages = ["prometheus-sql-exporter", "prometheus-postgres-exporter", "prometheus"];
    let Some(dir) = with_packages("Prometheus", FOLDER, &packages) else { return };
    let mut registry = Registry::start();
    let server = registry.node("db-1").setting("pg_snowflake.owned_shards", "5").setting("pg_snowflake.lease", "5s").start();
    let execute = |script: &str| server.psql(SUPERUSER, script);
    execute(TABLES);
    execute(METRICS);
    first_id(&mut server.connect(), "INSERT INTO posts DEFAULT VALUES RETURNING id");
    let prometheus = Prometheus::start(dir, &server);
    // The last ones of both jobs of sql_exporter.
    let last = ["pg_snowflake_leases_shards", "pg_snowflake_partitions_ahead_seconds"];
    prometheus.wait_for("metrics of both exporters", || {
        JOBS.iter().all(|job| {
            let metrics = prometheus.metrics_of(job);
            last.iter().all(|&metric| metrics.contains(metric))
        })
    });
    expect(&prometheus, &[]);
    assert_rules_and_page_name_what_both_exporters_export(&prometheus);

    // An hour in counters of the layout postgres.
    execute("SELECT setval('posts_id_seq', last_value + 3600::bigint * 1024000) FROM posts_id_seq");
    expect(&prometheus, &["ColumnError warning", "ColumnError critical", "Lead warning", "Lead critical"]);
    let named = |alert: &Alert| alert.labels["sequence"] == "public.posts_id_seq";
    assert!(prometheus.firing().iter().all(named), "{:?}", prometheus.firing());
    execute("SELECT setval('posts_id_seq', last_value - 3600::bigint * 1024000) FROM posts_id_seq");
    expect(&prometheus, &[]);

    registry.cluster.stop(Shutdown::Immediate);
    expect(
        &prometheus,
        &[
            "LeaseMissing warning",
            "LeaseMissing critical",
            "LeaseNotRenewed warning",
            "LeaseNotRenewed critical",
            "RegistryDoesNotAnswer warning",
            "RegistryDoesNotAnswer critical",
        ],
    );
    registry.cluster.start();
    expect(&prometheus, &[]);

    // 2^40 ms are 34 years.
    execute(
        "DO $$ BEGIN
             EXECUTE format(
                 $ddl$ALTER TABLE likes ALTER id SET DEFAULT snowflake_nextval('likes_id_seq', 5, %L)$ddl$,
                 'time:40 seq:10 shard:12 unit:1ms epoch:'
                     || (now() + interval '100 days' - 2::numeric ^ 40 * interval '1 ms')::date);
         END $$",
    );
    expect(&prometheus, &["LayoutEnds warning", "LayoutEnds critical"]);
    execute("ALTER TABLE likes ALTER id SET DEFAULT snowflake_nextval('likes_id_seq', 5)");
    expect(&prometheus, &[]);

    // 200 IDs a second are fewer than any machine requests.
    execute(
        "CREATE SEQUENCE busy_id_seq;
         CREATE TABLE busy (id bigint DEFAULT snowflake_nextval('busy_id_seq', 5, 'time:40 seq:1 shard:12 unit:10ms epoch:2020-01-01'))",
    );
    let calls = [(); 4].map(|()| {
        let mut busy = server.connect();
        let insert = "INSERT INTO busy SELECT FROM generate_series(1, 1000000)";
        (backend_pid(&mut busy), spawn(move || busy.batch_execute(insert).is_err()))
    });
    expect(&prometheus, &["SessionsWait warning"]);
    for (pid, call) in calls {
        execute(&format!("SELECT pg_cancel_backend({pid})"));
        assert!(call.join().expect("the statement ends"), "the statement has inserted all rows");
    }
    expect(&prometheus, &[]);
}

/// Waits until these alerts fire, each for the series of both exporters, and no others.
fn expect(prometheus: &Prometheus, alerts: &[&str]) {
    let of_job = |job| alerts.iter().map(move |alert| format!("{job}: PgSnowflake{alert}"));
    let expected: BTreeSet<String> = JOBS.into_iter().flat_map(of_job).collect();
    prometheus.wait_for(&format!("exactly {expected:?}"), || {
        let firing = prometheus.firing();
        firing.iter().map(ToString::to_string).collect::<BTreeSet<_>>() == expected
    });
}

/// Both exporters return the same series, which are those that docs/prometheus.md lists, and the rules name no others.
fn assert_rules_and_page_name_what_both_exporters_export(prometheus: &Prometheus) {
    let [of_postgres_exporter, of_sql_exporter] = JOBS.map(|job| prometheus.series_of(job));
    assert_eq!(of_postgres_exporter, of_sql_exporter, "left: {}, right: {}", JOBS[0], JOBS[1]);
    let exported = prometheus.metrics_of(JOBS[0]);
    let page = fs::read_to_string(top().join("docs/prometheus.md")).expect("the page exists");
    assert_eq!(metrics_in(&page), exported, "left: docs/prometheus.md, right: the exporters");
    let in_rules = metrics_in(RULES);
    assert!(in_rules.len() > 15, "{in_rules:?}");
    assert!(in_rules.is_subset(&exported), "{in_rules:?} is not in {exported:?}");
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    let prefixes = ["columns", "server", "leases", "partitions"].map(|table| format!("pg_snowflake_{table}_"));
    let is_metric = |word: &&str| prefixes.iter().any(|prefix| word.starts_with(prefix));
    words.filter(is_metric).map(str::to_owned).collect()
}
