//! Every SQL block of the documentation runs as it stands, in the order of its page, and what a page shows as
//! output is what comes out.

use pg_snowflake_servertest::{Cluster, SUPERUSER};
use std::path::{Path, PathBuf};

#[test]
fn the_sql_of_every_page_runs_and_prints_what_the_page_shows() {
    for page in pages() {
        let cluster = Cluster::new();
        // Pages start with it, as their readers do.
        cluster.connect().batch_execute("DROP EXTENSION pg_snowflake").unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = blocks(&text);
        assert!(blocks.iter().any(|block| block.language == "sql"), "{page:?} has no SQL");

        let mut printed = String::new();
        for block in blocks {
            match block.language {
                "sql" => printed = cluster.psql(SUPERUSER, block.text),
                "output" => {
                    let (shown, printed) = (normalized(block.text), normalized(&printed));
                    assert!(
                        printed.ends_with(&shown),
                        "{page:?} shows\n{shown}\nand this comes out\n{printed}"
                    );
                }
                _ => {}
            }
        }
    }
}

/// README.md and what is in docs/.
fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut pages = vec![top.join("README.md")];
    if let Ok(docs) = std::fs::read_dir(top.join("docs")) {
        pages.extend(
            docs.map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "md")),
        );
    }
    pages
}

/// A fenced block of a page.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    page.split("\n```")
        .skip(1)
        .step_by(2)
        .map(|fenced| {
            let (language, text) = fenced.split_once('\n').expect("a block has an end");
            Block { language, text }
        })
        .collect()
}

/// Without what differs from run to run: fresh ids, the times in them, and the widths of columns.
fn normalized(output: &str) -> String {
    let mut normalized = String::new();
    for line in output.lines().filter(|line| !line.trim().is_empty() && !is_rule(line)) {
        let mut words: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            if is_zoned_time(word) {
                // With the date before it.
                words.pop();
                words.push("TIME");
            } else if is_id(word) {
                words.push("ID");
            } else {
                words.push(word);
            }
        }
        normalized.push_str(&words.join(" "));
        normalized.push('\n');
    }
    normalized
}

/// The line under the names of the columns.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '-' | '+' | ' '))
}

fn is_zoned_time(word: &str) -> bool {
    word.contains(':') && word.ends_with("+00")
}

/// Of a time after 2013.
fn is_id(word: &str) -> bool {
    word.len() == 19 && word.bytes().all(|b| b.is_ascii_digit())
}
