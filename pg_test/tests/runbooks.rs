//! Each message that needs an operator has a runbook in `docs/operate.md`, and each runbook an existing message.

use pg_snowflake_harness::top;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprTuple, FieldValue, LitStr, Local, Macro, Pat, Token};

/// The sources with messages, and their least number: fewer would mean that the search is wrong.
const SOURCES: [(&str, usize); 14] = [
    ("src/error.rs", 2),
    ("src/error/refusal.rs", 5),
    ("src/fence/report.rs", 4),
    ("src/lease.rs", 3),
    ("src/lease/problem.rs", 15),
    ("src/lease/refusal.rs", 3),
    ("src/monitor/replaced_default.rs", 1),
    ("src/postgres/memory.rs", 1),
    ("src/postgres/result_row.rs", 1),
    ("src/postgres/transaction.rs", 2),
    ("src/sequence/backend_clock.rs", 2),
    ("src/sequence/error.rs", 7),
    ("src/settings.rs", 2),
    ("src/shard.rs", 2),
];

#[test]
fn every_message_has_a_runbook_and_every_runbook_a_message() {
    let mut messages = BTreeSet::new();
    for (path, at_least) in SOURCES {
        let found = messages_in(&read(path));
        assert!(found.len() >= at_least, "{path}: {found:?}");
        messages.extend(found);
    }
    // What precedes the lease worker's problems in the server log.
    assert!(messages.remove("pg_snowflake: …"));
    // Of functions that a person calls, which say what to do.
    assert!(messages.remove("cannot execute … in a REPEATABLE READ or SERIALIZABLE transaction"));
    // Of the registry's errors, the others are about arguments, which only a person could pass wrongly.
    let of_registry = messages_in(&read("src/registry/refusal.rs"));
    let of_operators = ["clock of node", "node … holds", "quiet time"];
    let is_for_operators =
        |message: &String| of_operators.iter().any(|start| message.starts_with(start));
    messages.extend(of_registry.into_iter().filter(is_for_operators));
    let refusal = "cannot change table \"%s\" of the registry";
    assert!(read("sql/registry/pg_snowflake_registry.sql").contains(refusal));
    messages.insert(refusal.replace("\"%s\"", "…"));
    let page = read("docs/operate.md");
    let with_runbook: BTreeSet<String> =
        runbooks(&page).map(|(message, _)| message.to_owned()).collect();
    assert_eq!(with_runbook, messages);
}

#[test]
fn every_runbook_says_who_fixes_it_and_what_to_do() {
    let page = read("docs/operate.md");
    for (message, text) in runbooks(&page) {
        let text = text.trim().replace('\n', " ");
        let (kind, text) = text.split_once(", fixed by: ").expect(message);
        let is_place = ["*Server log", "*`snowflake_columns`"].contains(&kind);
        assert!(is_place || kind.len() == "*55000".len(), "{message}: {kind}");
        let (who, text) = text.split_once(".*").expect(message);
        let whos = who.replace(", or ", ", ").replace(", and ", ", ");
        let is_explained = |who: &str| page.contains(&format!("\n| {who} | "));
        assert!(
            who.starts_with("nobody") || whos.split(", ").all(is_explained),
            "{message}: {who}"
        );
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

/// The messages of a source: the strings of each field and variable `message`, those for the log, and those of the lease
/// worker's problems.
fn messages_in(source: &str) -> BTreeSet<String> {
    let mut messages = Messages::default();
    messages.visit_file(&syn::parse_file(source).expect("a source that compiles"));
    messages.0
}

#[derive(Default)]
struct Messages(BTreeSet<String>);

impl Messages {
    fn add_strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_strings(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse2::<LitStr>(TokenTree::from(literal).into()) {
                        self.0.insert(generalized(&text.value()));
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Messages {
    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        if field.member.to_token_stream().to_string() == "message" {
            self.add_strings(field.expr.to_token_stream());
        }
        visit::visit_field_value(self, field);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if let Some(value) = &local.init {
            if is_message(&local.pat) {
                self.add_strings(value.expr.to_token_stream());
            } else if let Pat::Tuple(names) = &local.pat
                && let Some(place) = names.elems.iter().position(is_message)
            {
                let count = names.elems.len();
                MessagesInTuples { place, count, messages: self }.visit_expr(&value.expr);
            }
        }
        visit::visit_local(self, local);
    }

    /// The first of a problem's words is its message.
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if call.func.to_token_stream().to_string() == "words"
            && let Some(message) = call.args.first()
        {
            self.add_strings(message.to_token_stream());
        }
        visit::visit_expr_call(self, call);
    }

    /// A line of the log is reported as a successful completion, followed by the message.
    fn visit_macro(&mut self, call: &'ast Macro) {
        let Ok(arguments) = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
        else {
            return;
        };
        let is_log = |argument: &Expr| {
            argument.to_token_stream().to_string().ends_with("SUCCESSFUL_COMPLETION")
        };
        if let Some(place) = arguments.iter().position(is_log) {
            self.add_strings(arguments[place + 1].to_token_stream());
        }
    }
}

fn is_message(pattern: &Pat) -> bool {
    pattern.to_token_stream().to_string() == "message"
}

/// Adds the messages of an expression whose value is a tuple with a message at that place.
struct MessagesInTuples<'a> {
    place: usize,
    /// The number of elements.
    count: usize,
    messages: &'a mut Messages,
}

impl<'ast> Visit<'ast> for MessagesInTuples<'_> {
    fn visit_expr_tuple(&mut self, tuple: &'ast ExprTuple) {
        if tuple.elems.len() == self.count {
            self.messages.add_strings(tuple.elems[self.place].to_token_stream());
        }
    }
}

/// The message with … in place of a name or a figure.
fn generalized(message: &str) -> String {
    let message = message.replace("{NAME}", "pg_snowflake");
    let mut parts = message.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('…');
        text.push_str(part.split_once('}').expect("a placeholder ends").1);
    }
    text.replace("…()", "…")
}
