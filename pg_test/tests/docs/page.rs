//! Parses the pages of the documentation.

use pg_snowflake_harness::{anchor_of, top};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

/// The languages of fenced blocks. No test would check a block with a misspelt language.
const LANGUAGES: [&str; 10] = ["java", "js", "output", "python", "ruby", "rust", "sh", "sql", "text", "yaml"];

/// A page of the documentation.
pub struct Page {
    pub path: PathBuf,
    text: String,
}

/// A fenced block of a page.
pub struct Block {
    pub language: String,
    /// The session that it names, if any.
    pub session: Option<String>,
    /// The file of this repository that it quotes, if any.
    pub from: Option<String>,
    /// The node of a Citus cluster that it is for, or the output of, if any.
    pub citus: Option<usize>,
    /// The oldest major version that it is for, or the output of, if not for all.
    pub since: Option<u32>,
    pub text: String,
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Page { path, text }
    }

    /// Replaces a text by another one everywhere.
    pub fn replace(&mut self, text: &str, by: &str) {
        self.text = self.text.replace(text, by);
    }

    /// The Markdown source.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn events(&self) -> Parser<'_> {
        Parser::new_ext(&self.text, Options::ENABLE_TABLES)
    }

    /// The fenced blocks, in order.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut inside = false;
        for event in self.events() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    let CodeBlockKind::Fenced(info) = kind else {
                        panic!("{:?}: an indented block", self.path);
                    };
                    let mut block = self.empty_block(&info);
                    if block.language == "output" {
                        block.citus = blocks.last().and_then(|sql| sql.citus);
                        block.since = blocks.last().and_then(|sql| sql.since);
                    }
                    blocks.push(block);
                    inside = true;
                }
                Event::End(TagEnd::CodeBlock) => inside = false,
                Event::Text(text) if inside => {
                    blocks.last_mut().unwrap().text.push_str(&with_included_files(&text));
                }
                _ => {}
            }
        }
        blocks
    }

    /// The text of the only block that contains that.
    pub fn block_with(&self, part: &str) -> String {
        let mut blocks: Vec<Block> = self.blocks().into_iter().filter(|block| block.text.contains(part)).collect();
        assert_eq!(blocks.len(), 1, "{:?}: blocks with {part}", self.path);
        blocks.remove(0).text
    }

    fn empty_block(&self, info: &str) -> Block {
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        assert!(LANGUAGES.contains(&language), "{:?}: a block of `{language}`", self.path);
        let (session, from) = (rest.strip_prefix("session="), rest.strip_prefix("from="));
        let citus = rest.strip_prefix("citus=").and_then(|node| node.parse().ok());
        let since = rest.strip_prefix("since=").and_then(|major| major.parse().ok());
        let is_known = rest.is_empty() || session.is_some() || from.is_some() || citus.is_some() || since.is_some();
        assert!(is_known, "{:?}: a block of `{info}`", self.path);
        Block {
            language: language.to_owned(),
            session: session.map(str::to_owned),
            from: from.map(str::to_owned),
            citus,
            since,
            text: String::new(),
        }
    }

    /// The targets of its links.
    pub fn links(&self) -> Vec<String> {
        self.events()
            .filter_map(|event| match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into_string()),
                _ => None,
            })
            .collect()
    }

    /// The anchors of its headings, as GitHub generates them, and those that it sets itself.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors = Vec::new();
        let mut heading: Option<String> = None;
        for event in self.events() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|h| anchor_of(&h))),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::InlineHtml(html) => anchors.extend(html.split('"').nth(1).map(str::to_owned).filter(|_| html.starts_with("<a id="))),
                _ => {}
            }
        }
        anchors
    }
}

/// With the file of this repository in the place of psql's `\i`: the servers' OS user need not be able to read it.
fn with_included_files(text: &str) -> String {
    let line = |line: &str| match line.trim_end().strip_prefix("\\i ") {
        Some(file) => std::fs::read_to_string(top().join(file)).unwrap_or_else(|error| panic!("{file}: {error}")),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// README.md and the pages in docs/: the pages with SQL.
pub fn pages_with_sql() -> Vec<Page> {
    let mut pages = markdown_in(&top().join("docs"));
    pages.push(page("README.md"));
    pages.retain(|page| page.blocks().iter().any(|block| block.language == "sql"));
    pages
}

/// The page of that path, from the top of the source tree.
pub fn page(path: &str) -> Page {
    Page::read(top().join(path))
}

/// The part of a text between the lines that begin with these words.
pub fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let after = text.split_once(begin).unwrap_or_else(|| panic!("there is no {begin}")).1;
    let lines = after.split_once('\n').expect("more lines").1;
    lines.split_once(end).unwrap_or_else(|| panic!("there is no {end}")).0
}

/// All of them.
pub fn pages() -> Vec<Page> {
    let mut pages = markdown_in(&top().join("docs"));
    pages.extend(markdown_in(top()));
    pages
}

fn markdown_in(dir: &Path) -> Vec<Page> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{dir:?}: {error}"));
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(Page::read)
        .collect()
}
