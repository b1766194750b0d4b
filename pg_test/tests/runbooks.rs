//! Each message that wakes somebody has its runbook in `docs/operate.md`, and no runbook is for a message of the past.

use std::collections::BTreeSet;
use std::path::Path;

/// The sources with messages, and how many there are at least: fewer would be a fault of the search.
const SOURCES: [(&str, usize); 4] = [
    ("src/error.rs", 16),
    ("src/fence/report.rs", 4),
    ("src/result_row.rs", 1),
    ("src/sequence/backend_clock.rs", 2),
];

#[test]
fn every_message_has_a_runbook_and_every_runbook_a_message() {
    let mut messages = BTreeSet::new();
    for (path, at_least) in SOURCES {
        let found = messages_in(&read(path));
        assert!(found.len() >= at_least, "{path}: {found:?}");
        messages.extend(found);
    }
    assert_eq!(runbooks(&read("docs/operate.md")), messages);
}

#[test]
fn every_runbook_says_what_to_do() {
    let page = read("docs/operate.md");
    for runbook in runbook_chapter(&page).split("\n### ").skip(1) {
        assert!(runbook.contains("What to do:"), "{runbook}");
    }
}

fn read(path: &str) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(top.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn runbook_chapter(page: &str) -> &str {
    let chapter = page.split_once("\n## Runbooks\n").expect("a chapter of runbooks").1;
    chapter.split("\n## ").next().expect("a first part")
}

fn runbooks(page: &str) -> BTreeSet<String> {
    runbook_chapter(page)
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .map(str::to_owned)
        .collect()
}

/// The messages of a source: the strings of each `message: …` and `let message = …`, up to the next field or the end of
/// the statement, and those that go to the log.
fn messages_in(source: &str) -> BTreeSet<String> {
    let fields = after_each(source, "message: ", &["detail", ";"]);
    let variables = after_each(source, "let message = ", &["};"]);
    let log_lines = after_each(source, "SUCCESSFUL_COMPLETION,", &["),"]);
    [fields, variables, log_lines]
        .into_iter()
        .flatten()
        .flat_map(strings)
        .map(|text| generalized(&text))
        .collect()
}

/// What follows each `start` up to the first of the `ends`.
fn after_each<'a>(source: &'a str, start: &str, ends: &[&str]) -> Vec<&'a str> {
    let up_to_end = |rest: &'a str| {
        let end = ends.iter().filter_map(|end| rest.find(end)).min();
        &rest[..end.unwrap_or(rest.len())]
    };
    source.split(start).skip(1).map(up_to_end).collect()
}

/// The string literals of a piece of Rust.
fn strings(code: &str) -> Vec<String> {
    let unquoted: Vec<&str> = code.split('"').collect();
    let literals = unquoted.iter().skip(1).step_by(2);
    // A backslash at the end of a line joins the next to it.
    let join = |literal: &&str| {
        let mut lines = literal.split("\\\n");
        let first = lines.next().unwrap_or_default().to_owned();
        lines.fold(first, |text, line| text + line.trim_start())
    };
    literals.map(join).collect()
}

/// The message with … where it has a name or a figure.
fn generalized(message: &str) -> String {
    let mut parts = message.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('…');
        text.push_str(part.split_once('}').expect("a placeholder ends").1);
    }
    text.replace("…()", "…")
}
