//! Each message that needs an operator has a runbook in `docs/operate.md`, and each runbook an existing message.

use pg_snowflake_harness::{anchor_of, top};
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
    let with_runbook: Vec<&str> = runbooks(&page).iter().map(|runbook| runbook.message).collect();
    let once: BTreeSet<&str> = with_runbook.iter().copied().collect();
    assert_eq!(once, messages.keys().map(String::as_str).collect());
    assert_eq!(with_runbook.len(), once.len());
}

#[test]
fn every_runbook_says_who_fixes_it_and_what_to_do() {
    let page = read("docs/operate.md");
    let messages = messages();
    for Runbook { message, place, who, what } in runbooks(&page) {
        let is_place = ["Server log", "`snowflake_columns`"].contains(&&*place);
        let sqlstate = messages[message];
        assert!(is_place || place == sqlstate, "{message}: {place}, not {sqlstate}");
        let whos = who.replace(", or ", ", ").replace(", and ", ", ");
        let is_explained = |who: &str| page.contains(&format!("\n| {who} | "));
        assert!(who.starts_with("nobody") || whos.split(", ").all(is_explained), "{message}: {who}");
        assert!(what.len() > 20, "{message}: {what}");
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

/// A message, its SQLSTATE or where it appears, who can run the commands, and what to do.
struct Runbook<'a> {
    message: &'a str,
    place: String,
    who: String,
    what: String,
}

/// The sections of the chapters of runbooks, with the message as the heading, and the rows of their tables of short ones.
fn runbooks(page: &str) -> Vec<Runbook<'_>> {
    let chapters = page.split("\n## ").filter(|chapter| chapter.starts_with("Runbooks"));
    chapters
        .flat_map(|chapter| {
            let sections = chapter.split("\n### ").skip(1).map(of_section);
            sections.chain(chapter.lines().filter_map(of_row))
        })
        .collect()
}

fn of_section(section: &str) -> Runbook<'_> {
    let (message, text) = section.split_once('\n').expect("a text below the heading");
    let text = text.trim().replace('\n', " ");
    let (place, text) = text.split_once(", fixed by: ").expect(message);
    let (who, text) = text.split_once(".*").expect(message);
    let (_, what) = text.split_once("**What to do:**").expect(message);
    Runbook { message, place: place.trim_start_matches('*').to_owned(), who: who.to_owned(), what: what.to_owned() }
}

/// The anchor of the row is that of a heading.
fn of_row(line: &str) -> Option<Runbook<'_>> {
    let (anchor, row) = line.strip_prefix("| <a id=\"")?.split_once("\"></a>")?;
    let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
    let [message, by, what] = cells[..] else { panic!("{line}") };
    assert_eq!(anchor, anchor_of(message));
    let (place, who) = by.split_once("; ").expect(line);
    Some(Runbook { message, place: place.to_owned(), who: who.to_owned(), what: what.to_owned() })
}

/// The headings of the messages with a runbook, and the SQLSTATE of each.
fn messages() -> BTreeMap<String, &'static str> {
    TABLES.into_iter().flatten().filter(|message| message.has_runbook).map(|message| (message.heading(), message.sqlstate)).collect()
}
