//! The site of the documentation, in Chromium, and its page that takes IDs apart against the extension's own answers.

use crate::javascript::{SOME_ANSWERS, found as found_layouts, write_answers};
use pg_snowflake_examples::{command, run, with_npm};
use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::{Cluster, top};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::{env, fs};
use tempfile::TempDir;

const TESTS: &str = "../docs/site/tests";

#[test]
fn the_site_has_no_dead_link_and_lists_each_runbook() {
    let Some(dir) = with_browser() else { return };
    run(node_test(&dir, "site.test.js").env("DOCS", top().join("docs")));
}

#[test]
fn the_page_that_takes_ids_apart_answers_as_the_extension_does() {
    let Some(dir) = with_browser() else { return };
    let cluster = Cluster::new();
    let [answers, found] = ["answers.jsonl", "found.jsonl"].map(|name| dir.path().join(name));
    write_answers(&cluster, SOME_ANSWERS, &answers);
    write_answers(&cluster, found_layouts(), &found);
    let statements = dir.path().join("statements.jsonl");
    let mut node = node_test(&dir, "id.test.js");
    run(node.env("ANSWERS", answers).env("FOUND", found).env("STATEMENTS", &statements));
    what_it_shows_runs(&cluster, &fs::read_to_string(statements).unwrap());
}

/// Runs the SQL that the page shows, and compares what it returns with what the extension returns of the same IDs.
fn what_it_shows_runs(cluster: &Cluster, statements: &str) {
    let mut client = cluster.connect();
    client.batch_execute("SET pg_snowflake.shard_id = 1; SET timezone = 'UTC'").unwrap();
    for line in statements.lines() {
        let shown: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().expect(line).to_owned();
        let decoded = &shown["decoded"];
        let us: i64 = text(&decoded["unix_us"]).parse().unwrap();
        for query in shown["queries"].as_array().unwrap() {
            let query = text(query);
            let fields = "(extract(epoch FROM created_at) * 1000000)::int8, shard_id::int8, seq::int8";
            let of = format!("SELECT {fields} FROM ({}) AS shown", query.trim_end_matches(';'));
            let row = client.query_one(&of, &[]).unwrap_or_else(|error| panic!("{query}: {error}"));
            // to_timestamp() computes with a double.
            let difference: i64 = row.get::<_, i64>(0) - us;
            assert!(difference.abs() <= 1 + us.abs() / 1_000_000_000_000, "{query}: {difference} us");
            assert_eq!(decoded["shard_id"], row.get::<_, i64>(1), "{query}");
            assert_eq!(decoded["seq"], row.get::<_, i64>(2), "{query}");
        }
        let table = text(&shown["table"]);
        client.batch_execute(&format!("BEGIN; {table} ROLLBACK")).unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}

/// A file of the tests, run on the site.
fn node_test(dir: &TempDir, file: &str) -> Command {
    let mut node = command("node", dir.path());
    node.args(["--test", file]).env("SITE", site());
    node.env("CHROMIUM", browser().expect("a folder of `with_browser`"));
    node
}

/// The tests of the site with what they need; `None` if they are left out.
fn with_browser() -> Option<Arc<TempDir>> {
    if browser().is_none() {
        left_out("the site", "Chromium on this machine");
        return None;
    }
    with_npm("the site", TESTS)
}

/// The browser that CHROMIUM names, Debian's, or the one of GitHub's machines with Ubuntu.
fn browser() -> Option<PathBuf> {
    let named = env::var_os("CHROMIUM").map(PathBuf::from);
    let installed = ["/usr/bin/chromium", "/usr/bin/google-chrome"].map(PathBuf::from);
    named.or_else(|| installed.into_iter().find(|path| path.exists()))
}

/// The site of this tree, which is built once.
fn site() -> &'static Path {
    static SITE: OnceLock<PathBuf> = OnceLock::new();
    SITE.get_or_init(|| {
        let site = Path::new(env!("CARGO_TARGET_TMPDIR")).join("site");
        run(command("docs/site/build.sh", top()).arg(&site));
        site
    })
}
