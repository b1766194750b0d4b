//! The runbooks, and the lines by which a search finds them.

use crate::sources::{Texts, texts_in};
use anyhow::{Result, ensure};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The page of the runbooks, in the tree.
pub const PATH: &str = "docs/operate.md";

/// The outputs that PostgreSQL's tests are compared with, in the tree: whole errors.
pub const OUTPUTS: &str = "pg_test/expected";

/// The sources of the errors, in the tree.
pub const SOURCES: &str = "src";

/// The source with the reasons for which a registry refuses a lease, and the message whose detail they are.
const REASONS: &str = "src/registry/reason.rs";
const REFUSAL: &str = "registry refused the lease of …";

/// The headings of runbooks, which are messages with … for their variable parts, and the errors with these messages.
pub struct Runbooks {
    messages: Vec<(String, Regex)>,
    lines: BTreeMap<String, BTreeSet<String>>,
}

impl Runbooks {
    /// Those of a page.
    pub fn parse(page: &str) -> Result<Self> {
        let mut messages = Vec::new();
        let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for chapter in page.split("\n## ").filter(|chapter| chapter.starts_with("Runbooks")) {
            for heading in chapter.lines().filter_map(|line| line.strip_prefix("### ")) {
                let pattern = regex::escape(heading).replace('…', ".+");
                messages.push((heading.to_owned(), Regex::new(&format!("^{pattern}$"))?));
                lines.entry(heading.to_owned()).or_default().insert(heading.to_owned());
            }
        }
        ensure!(!messages.is_empty(), "{PATH}: no runbooks");
        // The longest heading of a message says most about it.
        messages.sort_by_key(|(heading, _)| std::cmp::Reverse(heading.len()));
        Ok(Runbooks { messages, lines })
    }

    /// Adds the errors of an output of psql: the message, the detail and the hint of each that has a runbook.
    pub fn add_errors(&mut self, output: &str) {
        let mut heading = None;
        for line in output.lines() {
            let (label, text) = line.split_once(":  ").unwrap_or_default();
            match label {
                "ERROR" => {
                    let of = self.messages.iter().find(|(_, message)| message.is_match(text));
                    heading = of.map(|(heading, _)| heading);
                }
                "DETAIL" | "HINT" => {}
                _ => heading = None,
            }
            if let Some(heading) = heading {
                self.lines.entry(heading.clone()).or_default().insert(text.to_owned());
            }
        }
    }

    /// Adds the texts of the errors that no output shows, from a source.
    ///
    /// # Errors
    /// If the source is not Rust.
    pub fn add_texts(&mut self, path: &Path, source: &str) -> Result<()> {
        let is_message = |text: &str| self.messages.iter().any(|(heading, _)| heading == text);
        for Texts { message, texts } in texts_in(source, is_message)? {
            let of_reasons = path.ends_with(REASONS).then(|| REFUSAL.to_owned());
            if let Some(heading) = message.or(of_reasons) {
                let sentences = texts.into_iter().filter(|text| is_sentence(text));
                self.lines.entry(heading).or_default().extend(sentences);
            }
        }
        Ok(())
    }

    /// A script for `theme/search.js`.
    pub fn script(&self) -> Result<String> {
        Ok(format!("const linesOfRunbooks = {};\n", serde_json::to_string(&self.lines)?))
    }
}

/// Whether it is not a part of a sentence, which other errors can have, too.
fn is_sentence(text: &str) -> bool {
    text.split_whitespace().count() >= 3
        && text.starts_with(|first: char| first.is_uppercase() || first == '…')
        && text.ends_with(['.', ';', ':', '…'])
}

#[cfg(test)]
mod tests {
    use super::{REFUSAL, Runbooks};

    const PAGE: &str = "# Operate\n\n## Alerts\n\n### lost …\n\n## Runbooks\n\n### shard … is lost\n\nText.\n\n### … is lost\n\n\
                        ## Runbooks of leases\n\n### no answer\n";

    #[test]
    fn a_runbook_has_the_lines_of_the_errors_with_its_message() {
        let mut runbooks = Runbooks::parse(PAGE).unwrap();
        runbooks.add_errors(
            "SELECT 1;\nERROR:  shard 5 is lost\nDETAIL:  It was 5.\nHINT:  Find it.\n\\echo\nDETAIL:  Of nothing.\n\
             ERROR:  another\nDETAIL:  Of another.\nERROR:  no answer\nLINE 1: SELECT\nHINT:  Of no answer.\n",
        );
        assert_eq!(
            runbooks.script().unwrap(),
            "const linesOfRunbooks = {\"no answer\":[\"no answer\"],\
             \"shard … is lost\":[\"Find it.\",\"It was 5.\",\"shard 5 is lost\",\"shard … is lost\"],\"… is lost\":[\"… is lost\"]};\n"
        );
    }

    #[test]
    fn a_runbook_has_the_texts_of_its_message_in_the_sources() {
        let page = format!("# Operate\n\n## Runbooks\n\n### {REFUSAL}\n\n### no answer\n");
        let source =
            "fn a() { (\"no answer\", \"Wait for it.\", \"for it\") } fn b() { \"It is held.\" }";
        let of = |path: &str| {
            let mut runbooks = Runbooks::parse(&page).unwrap();
            runbooks.add_texts(path.as_ref(), source).unwrap();
            runbooks.lines
        };
        assert_eq!(
            of("src/lease.rs")["no answer"],
            ["Wait for it.", "no answer"].map(String::from).into()
        );
        assert_eq!(of("src/lease.rs")[REFUSAL], [REFUSAL.to_owned()].into());
        let with_reasons = ["It is held.", REFUSAL].map(String::from).into();
        assert_eq!(of("tree/src/registry/reason.rs")[REFUSAL], with_reasons);
    }

    #[test]
    fn a_page_without_runbooks_is_an_error() {
        assert!(Runbooks::parse("# Operate\n\n## Alerts\n\n### lost …\n").is_err());
    }
}
