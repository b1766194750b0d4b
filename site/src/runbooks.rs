//! The runbooks, and the lines by which a search finds them.

use anyhow::{Result, ensure};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// The page of the runbooks, in the tree.
pub const PATH: &str = "docs/operate.md";

/// The outputs that PostgreSQL's tests are compared with, in the tree: whole errors.
pub const OUTPUTS: &str = "pg_test/expected";

/// The headings of runbooks, which are messages with … for their variable parts, and the errors with these messages.
pub struct Runbooks {
    messages: Vec<(String, Regex)>,
    lines: BTreeMap<String, BTreeSet<String>>,
}

impl Runbooks {
    /// Those of a page.
    pub fn parse(page: &str) -> Result<Self> {
        let mut messages = Vec::new();
        for chapter in page.split("\n## ").filter(|chapter| chapter.starts_with("Runbooks")) {
            for heading in chapter.lines().filter_map(|line| line.strip_prefix("### ")) {
                let pattern = regex::escape(heading).replace('…', ".+");
                messages.push((heading.to_owned(), Regex::new(&format!("^{pattern}$"))?));
            }
        }
        ensure!(!messages.is_empty(), "{PATH}: no runbooks");
        // The longest heading of a message says most about it.
        messages.sort_by_key(|(heading, _)| std::cmp::Reverse(heading.len()));
        Ok(Runbooks { messages, lines: BTreeMap::new() })
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

    /// A script for `theme/search.js`.
    pub fn script(&self) -> Result<String> {
        Ok(format!("const linesOfRunbooks = {};\n", serde_json::to_string(&self.lines)?))
    }
}

#[cfg(test)]
mod tests {
    use super::Runbooks;

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
             \"shard … is lost\":[\"Find it.\",\"It was 5.\",\"shard 5 is lost\"]};\n"
        );
    }

    #[test]
    fn a_page_without_runbooks_is_an_error() {
        assert!(Runbooks::parse("# Operate\n\n## Alerts\n\n### lost …\n").is_err());
    }
}
