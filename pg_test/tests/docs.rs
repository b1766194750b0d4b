//! Every SQL block of the documentation runs as it stands, in the order of its page, and what a page shows as
//! output is what comes out.
//!
//! A block with "from=FILE" is a part of that file, which other tests run.
//!
//! A block of "sql" is a session of psql of its own. One of "sql session=NAME" is run in a session with the database of
//! that name, which stays open to the end of the page: for transactions that are open at the same time.

use pg_snowflake_servertest::left_out::has_contrib;
use pg_snowflake_servertest::{Cluster, SUPERUSER};
use postgres::Client;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[test]
fn the_sql_of_every_page_runs_and_prints_what_the_page_shows() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        if text.contains("EXTENSION postgres_fdw")
            && !has_contrib("postgres_fdw", &format!("the SQL of {page:?}"))
        {
            continue;
        }
        run_page(&page, &blocks(&text));
    }
}

#[test]
fn a_part_of_a_program_on_a_page_is_a_part_of_the_program() {
    let mut parts = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text) {
            let Some(file) = block.from else { continue };
            let program = std::fs::read_to_string(top().join(file))
                .unwrap_or_else(|error| panic!("{page:?}: {file}: {error}"));
            assert!(program.contains(block.text), "{page:?}: {file} has no\n{}", block.text);
            parts += 1;
        }
    }
    assert!(parts > 0, "no page shows a part of a program");
}

fn run_page(page: &Path, blocks: &[Block]) {
    let cluster = Cluster::builder().setting("wal_level", "logical").start();
    // Pages start with it, as their readers do.
    cluster.connect().batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    assert!(blocks.iter().any(|block| block.language == "sql"), "{page:?} has no SQL");

    let mut sessions: HashMap<&str, Client> = HashMap::new();
    let mut printed = String::new();
    for block in blocks {
        match (block.language, block.session) {
            ("sql", None) => printed = cluster.psql(SUPERUSER, block.text),
            ("sql", Some(name)) => {
                let session =
                    sessions.entry(name).or_insert_with(|| cluster.connect_to(SUPERUSER, name));
                let run = session.batch_execute(block.text);
                run.unwrap_or_else(|error| panic!("{page:?}: {}: {error:?}", block.text));
            }
            ("output", _) => {
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

/// README.md and what is in docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![top().join("README.md")];
    if let Ok(docs) = std::fs::read_dir(top().join("docs")) {
        pages.extend(
            docs.map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "md")),
        );
    }
    pages
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A fenced block of a page.
struct Block<'a> {
    language: &'a str,
    /// The session that it is for, where it says so.
    session: Option<&'a str>,
    /// The file of this repository that it is a part of, where it says so.
    from: Option<&'a str>,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    page.split("\n```")
        .skip(1)
        .step_by(2)
        .map(|fenced| {
            let (info, text) = fenced.split_once('\n').expect("a block has an end");
            let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
            let (session, from) = (rest.strip_prefix("session="), rest.strip_prefix("from="));
            Block { language, session, from, text }
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
