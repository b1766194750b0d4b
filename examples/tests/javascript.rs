//! The JavaScript module, in Node, against the extension's own answers.

use pg_snowflake_examples::{command, has, run, with_npm};
use pg_snowflake_harness::{Cluster, SUPERUSER};
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use tempfile::tempdir;

const MODULE: &str = "../javascript";

#[test]
fn the_javascript_module_and_its_types_pass_their_tests() {
    let Some(dir) = with_npm("the JavaScript module", MODULE) else { return };
    let data = fs::canonicalize("../pg_test/data/generators.csv").unwrap();
    run(command("npm", dir.path()).arg("test").env("GENERATORS", data));
    // What a user gets.
    let packed = run(command("npm", dir.path()).args(["pack", "--dry-run", "--json"]));
    for file in ["snowflake.js", "snowflake.d.ts", "generators.js", "generators.d.ts", "find.js", "find.d.ts", "README.md"] {
        assert!(packed.contains(&format!("\"{file}\"")), "{file} is not in\n{packed}");
    }
    assert!(!packed.contains("answers"), "{packed}");
}

#[test]
fn the_javascript_module_answers_as_the_extension_does() {
    let said = compared(ANSWERS, "tests/answers.js");
    assert!(said.is_none_or(|said| said.starts_with("10000 answers")), "too few answers");
}

#[test]
fn the_javascript_module_finds_the_layouts_that_the_extension_finds() {
    let said = compared(found(), "tests/found.js");
    assert!(said.is_none_or(|said| said.starts_with("23 tables")), "too few tables");
}

/// A script, and a query that returns the extension's answers after it, a line of JSON for each.
pub type Answers = [&'static str; 2];

/// Random layouts and IDs.
const ANSWERS: Answers = [CASES, "SELECT answer(cases)::text FROM cases"];
/// Some of them, for the page: the module is compared with all, and what the page makes of an answer depends little on its numbers.
pub const SOME_ANSWERS: Answers = [CASES, "SELECT answer(cases)::text FROM cases LIMIT 1000"];
const CASES: &str = include_str!("../../javascript/tests/answers.sql");

/// The tables of the regression test, whose layouts are to be found.
pub fn found() -> Answers {
    let (tables, _) =
        include_str!("../../pg_test/sql/find_layout.sql").split_once("CREATE TABLE rows").expect("the script fills the tables first");
    let query = "
        SELECT json_build_object('copy', copy, 'rows', rows, 'layout', layout::text, 'shards', shards,
                                 'misfits', compared - fitting, 'doubt', coalesce(doubt, ''))::text
        FROM (SELECT copy, array_agg(id) AS ids, array_agg(created_at) AS times,
                     json_agg(json_build_array(id::text, (extract(epoch FROM created_at) * 1000000)::bigint)) AS rows
              FROM (SELECT DISTINCT ON (copy, id) * FROM copied) AS copied GROUP BY copy) AS copies,
             snowflake_find_layout(ids, times)";
    [tables, query]
}

/// Writes the answers of a cluster's extension into a file.
pub fn write_answers(cluster: &Cluster, [script, query]: Answers, file: &Path) {
    cluster.psql(SUPERUSER, script);
    let rows = cluster.connect().query(query, &[]).unwrap();
    let answers: String = rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect();
    fs::write(file, answers).unwrap();
}

/// What a program of the module says that compares itself with these answers; `None` if it is left out.
fn compared(answers: Answers, program: &str) -> Option<String> {
    if !has("the JavaScript module", "node", "node", &["--version"]) {
        return None;
    }
    let dir = tempdir().unwrap();
    let file = dir.path().join("answers.jsonl");
    write_answers(&Cluster::new(), answers, &file);
    // The programs import the module alone, so no packages are installed.
    let mut node = command("node", Path::new(MODULE));
    node.arg(program).stdin(Stdio::from(File::open(file).unwrap()));
    Some(run(&mut node))
}
