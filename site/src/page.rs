//! A page of the documentation, which GitHub renders too: what differs in the site.

use anyhow::{Context, Result, bail};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The first page.
pub const README: &str = "README.md";

/// The tree that the pages are in.
pub struct Tree {
    top: PathBuf,
    repository: String,
    pages: Vec<String>,
}

/// A page for mdBook.
#[derive(Debug)]
pub struct Page {
    pub text: String,
    /// The images of the tree that it shows.
    pub images: Vec<String>,
}

impl Tree {
    pub fn new(top: &Path, repository: String, pages: Vec<String>) -> Self {
        Tree { top: top.to_owned(), repository, pages }
    }

    /// The page at a path of the tree, for the site.
    pub fn rendered(&self, path: &str, text: &str) -> Result<Page> {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let mut images = Vec::new();
        let mut link: Option<(Range<usize>, String)> = None;
        let mut is_badge = false;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. }) => {
                    is_badge = false;
                    link = Some((range, dest_url.into_string()));
                }
                Event::Start(Tag::Image { dest_url, .. }) => {
                    // A badge is an image of another site, and a link around it.
                    if dest_url.starts_with("https://") || dest_url.starts_with("../../") {
                        is_badge = true;
                        if link.is_none() {
                            edits.push((range, String::new()));
                        }
                    } else {
                        images.push(joined(path, &dest_url)?);
                    }
                }
                Event::End(TagEnd::Link) => {
                    let (range, destination) =
                        link.take().context("a link begins before it ends")?;
                    if is_badge {
                        edits.push((range, String::new()));
                    } else if let Some(to) = self.destination(path, &destination)? {
                        let at = text[range.clone()].rfind(&destination);
                        let at = range.start
                            + at.with_context(|| {
                                format!("{path}: {destination} is not an inline link")
                            })?;
                        edits.push((at..at + destination.len(), to));
                    }
                    is_badge = false;
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    // Our tests read the rest of the line, and know the language "output".
                    let language = info.split(' ').next().unwrap_or_default();
                    let language = if language == "output" { "text" } else { language };
                    if language != &*info {
                        let at = range.start
                            + text[range].find(&*info).context("the info of a block")?;
                        edits.push((at..at + info.len(), language.to_owned()));
                    }
                }
                _ => {}
            }
        }
        let mut text = text.to_owned();
        edits.sort_by_key(|(range, _)| range.start);
        for (range, by) in edits.into_iter().rev() {
            text.replace_range(range, &by);
        }
        Ok(Page { text, images })
    }

    /// Where a link leads in the site, if not where it leads on GitHub.
    fn destination(&self, from: &str, destination: &str) -> Result<Option<String>> {
        if destination.starts_with("https://")
            || destination.starts_with("mailto:")
            || destination.starts_with('#')
        {
            return Ok(None);
        }
        // Of GitHub's site, whose other pages are beside blob/main.
        let to_site = "../".repeat(from.split('/').count() + 1);
        if let Some(page) = destination.strip_prefix(&to_site) {
            return Ok(Some(format!("{}/{page}", self.repository)));
        }
        let (file, anchor) = destination.split_once('#').unwrap_or((destination, ""));
        let path = joined(from, file)?;
        if self.pages.contains(&path) {
            let Some(folder) = destination
                .strip_suffix(anchor)
                .and_then(|start| start.trim_end_matches('#').strip_suffix(README))
            else {
                return Ok(None);
            };
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            return Ok(Some(format!("{folder}index.md{anchor}")));
        }
        let kind = match self.top.join(&path) {
            path if path.is_dir() => "tree",
            path if path.is_file() => "blob",
            _ => bail!("{from}: {destination} leads nowhere"),
        };
        let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
        Ok(Some(format!("{}/{kind}/main/{path}{anchor}", self.repository)))
    }
}

/// Where a page of the tree is in the site: a folder's README is its index.
pub fn place(path: &str) -> String {
    match path.strip_suffix(README) {
        Some(folder) => format!("{folder}index.md"),
        None => path.to_owned(),
    }
}

/// The path of the tree that a relative link of a page leads to.
pub fn joined(from: &str, link: &str) -> Result<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().with_context(|| format!("{from}: {link} leaves the tree"))?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{Tree, joined, place};
    use std::path::Path;

    fn rendered(path: &str, text: &str) -> anyhow::Result<super::Page> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let pages = ["README.md", "docs/README.md", "docs/time.md"].map(str::to_owned).to_vec();
        Tree::new(top, "https://example.org/x".into(), pages).rendered(path, text)
    }

    #[test]
    fn a_link_leads_to_a_page_of_the_site_or_to_the_repository() {
        for (path, text, expected) in [
            (
                "docs/time.md",
                "[a](README.md) [b](../README.md#faq)",
                "[a](index.md) [b](../index.md#faq)",
            ),
            ("README.md", "[a](docs/time.md#x) [b](#y)", "[a](docs/time.md#x) [b](#y)"),
            ("docs/time.md", "[a](../LICENSE)", "[a](https://example.org/x/blob/main/LICENSE)"),
            (
                "docs/time.md",
                "[a](../sql/managed)",
                "[a](https://example.org/x/tree/main/sql/managed)",
            ),
            ("README.md", "[a](../../releases)", "[a](https://example.org/x/releases)"),
            ("docs/time.md", "[a](../../../releases)", "[a](https://example.org/x/releases)"),
            ("README.md", "`[a](LICENSE)`", "`[a](LICENSE)`"),
        ] {
            assert_eq!(rendered(path, text).unwrap().text, expected, "{path}: {text}");
        }
        assert!(rendered("docs/time.md", "[a](nowhere.md)").is_err());
    }

    #[test]
    fn an_image_of_another_site_is_left_out() {
        let page = rendered("README.md", "[![CI](../../ci.svg)](../../ci)\n![x](https://example.org/x.svg)\n![y](docs/images/bits.svg)\n").unwrap();
        assert_eq!(page.text, "\n\n![y](docs/images/bits.svg)\n");
        assert_eq!(page.images, ["docs/images/bits.svg"]);
    }

    #[test]
    fn a_block_has_a_language_that_the_site_can_colour() {
        let page = rendered("README.md", "```sql session=a\nSELECT 1;\n```\n\n```output\n1\n```\n")
            .unwrap();
        assert_eq!(page.text, "```sql\nSELECT 1;\n```\n\n```text\n1\n```\n");
    }

    #[test]
    fn a_path_is_that_of_the_tree() {
        assert_eq!(joined("docs/a.md", "../b/./c.md").unwrap(), "b/c.md");
        assert!(joined("a.md", "../b").is_err());
        assert_eq!(place("docs/README.md"), "docs/index.md");
    }
}
