//! Each message that needs an operator has a runbook in `docs/operate.md`, and each runbook an existing message.

use pg_snowflake_servertest::top;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, FieldValue, LitStr, Local, Macro, Token};

/// The sources with messages, and their least number: fewer would mean that the search is wrong.
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
    std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
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

/// The messages of a source: the strings of each field and variable `message`, and those for the log.
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
        if local.pat.to_token_stream().to_string() == "message"
            && let Some(value) = &local.init
        {
            self.add_strings(value.expr.to_token_stream());
        }
        visit::visit_local(self, local);
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

/// The message with … in place of a name or a figure.
fn generalized(message: &str) -> String {
    let mut parts = message.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('…');
        text.push_str(part.split_once('}').expect("a placeholder ends").1);
    }
    text.replace("…()", "…")
}
