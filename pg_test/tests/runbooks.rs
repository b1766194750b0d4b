//! Each message that needs an operator has a runbook in `docs/operate.md`, and each runbook an existing message.

use pg_snowflake_harness::top;
use pg_snowflake_policies::messages::{TABLES, registry};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_message_has_a_runbook_and_every_runbook_a_message() {
    let of_sql = registry::table_changed("%s");
    for text in [of_sql.message, of_sql.detail.unwrap()] {
        assert!(read("sql/registry/pg_snowflake_registry.sql").contains(&text), "{text}");
    }
    let messages = messages();
    let page = read("docs/operate.md");
    let with_runbook: BTreeSet<&str> = runbooks(&page).map(|(message, _)| message).collect();
    assert_eq!(with_runbook, messages.keys().map(String::as_str).collect());
}

#[test]
fn every_runbook_says_who_fixes_it_and_what_to_do() {
    let page = read("docs/operate.md");
    let messages = messages();
    for (message, text) in runbooks(&page) {
        let text = text.trim().replace('\n', " ");
        let (kind, text) = text.split_once(", fixed by: ").expect(message);
        let is_place = ["*Server log", "*`snowflake_columns`"].contains(&kind);
        let sqlstate = messages[message];
        assert!(is_place || kind == format!("*{sqlstate}"), "{message}: {kind}, not {sqlstate}");
        let (who, text) = text.split_once(".*").expect(message);
        let whos = who.replace(", or ", ", ").replace(", and ", ", ");
        let is_explained = |who: &str| page.contains(&format!("\n| {who} | "));
        assert!(who.starts_with("nobody") || whos.split(", ").all(is_explained), "{message}: {who}");
        assert!(text.contains("**What to do:**"), "{message}");
    }
}

#[test]
fn every_alert_links_its_runbook() {
    let page = read("docs/operate.md");
    let chapter = page.split("\n## ").find(|chapter| chapter.starts_with("Alerts\n"));
    let chapter = chapter.expect("a chapter of alerts");
    let alerts: Vec<&str> = chapter.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(alerts.len() >= 11, "{alerts:?}");
    for alert in alerts {
        assert!(alert.contains("](#"), "{alert}");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The sections of the chapters of runbooks: the message, which is the heading, and the text below it.
fn runbooks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let chapters = page.split("\n## ").filter(|chapter| chapter.starts_with("Runbooks"));
    let sections = chapters.flat_map(|chapter| chapter.split("\n### ").skip(1));
    sections.map(|section| section.split_once('\n').expect("a text below the heading"))
}

/// The headings of the messages with a runbook, and the SQLSTATE of each.
fn messages() -> BTreeMap<String, &'static str> {
    let with_runbook = TABLES.into_iter().flatten().filter(|message| message.has_runbook);
    with_runbook.map(|message| (message.heading(), message.sqlstate)).collect()
}
