//! The index of the documentation.

use crate::page::{README, joined, place};
use anyhow::{Result, ensure};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use std::fmt::Write;

/// The index, in the tree.
pub const PATH: &str = "docs/README.md";

/// The groups of pages, which are the headings of the index, and each page, which is the first link of an item.
#[derive(Debug, PartialEq)]
pub struct Index(Vec<(String, Vec<Entry>)>);

/// A page of the index.
#[derive(Debug, PartialEq)]
struct Entry {
    title: String,
    path: String,
}

impl Index {
    /// Reads it.
    pub fn parse(text: &str) -> Result<Self> {
        let mut groups: Vec<(String, Vec<Entry>)> = Vec::new();
        let (mut heading, mut link) = (None, None);
        let mut is_first = false;
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => {
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(HeadingLevel::H2)) => {
                    groups.push((heading.take().unwrap_or_default(), Vec::new()));
                }
                Event::Start(Tag::Item) => is_first = true,
                Event::Start(Tag::Link { dest_url, .. }) if is_first => {
                    is_first = false;
                    link = Some((dest_url.into_string(), String::new()));
                }
                Event::End(TagEnd::Link) => {
                    if let Some((destination, title)) = link.take() {
                        let Some((_, entries)) = groups.last_mut() else {
                            anyhow::bail!("{PATH}: {destination} is in no group");
                        };
                        entries.push(Entry { title, path: joined(PATH, &destination)? });
                    }
                }
                Event::Text(text) | Event::Code(text) => {
                    let title = link.as_mut().map(|(_, title)| title);
                    if let Some(title) = title.or(heading.as_mut()) {
                        title.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        ensure!(groups.iter().all(|(_, entries)| !entries.is_empty()), "{PATH}: an empty group");
        Ok(Index(groups))
    }

    /// All pages, with the two that are not in a group.
    pub fn paths(&self) -> Vec<String> {
        let pages = self.0.iter().flat_map(|(_, entries)| entries);
        [README.to_owned(), PATH.to_owned()]
            .into_iter()
            .chain(pages.map(|entry| entry.path.clone()))
            .collect()
    }

    /// The same for mdBook, with one more page.
    pub fn summary(&self, id_page: &str) -> String {
        let mut summary = format!(
            "[pg_snowflake]({})\n[Take an ID apart]({id_page})\n[All pages]({})\n",
            place(README),
            place(PATH)
        );
        for (group, entries) in &self.0 {
            writeln!(summary, "\n# {group}\n").expect("a string is writable");
            for Entry { title, path } in entries {
                writeln!(summary, "- [{title}]({})", place(path)).expect("a string is writable");
            }
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn the_index_becomes_a_summary() {
        let index = Index::parse(
            "# Documentation\n\n## Start\n\n- [Install](install.md): for [all](time.md).\n\n## Use\n\n- [*A* time](time.md)\n- [Contribute](../C.md)\n",
        )
        .unwrap();
        assert_eq!(
            index.summary("id.md"),
            "[pg_snowflake](index.md)\n[Take an ID apart](id.md)\n[All pages](docs/index.md)\n\n# Start\n\n- [Install](docs/install.md)\n\n\
             # Use\n\n- [A time](docs/time.md)\n- [Contribute](C.md)\n"
        );
        assert_eq!(
            index.paths(),
            ["README.md", "docs/README.md", "docs/install.md", "docs/time.md", "C.md"]
        );
    }

    #[test]
    fn an_index_without_a_group_is_an_error() {
        assert!(Index::parse("- [Install](install.md)\n").is_err());
        assert!(Index::parse("## Start\n").is_err());
    }
}
