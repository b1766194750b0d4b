//! Every SQL block of the documentation runs as it stands, in the order of its page, and prints the output that the page shows.
//!
//! A block with "from=FILE" is a part of that file, which other tests run.
//!
//! A block of "sql" is a separate session of psql. One of "sql session=NAME" runs in a session with the database of that
//! name, which stays open to the end of the page: for transactions that are open at the same time. One of "sql citus=NODE" runs on
//! that server, `db-NODE` in the text, of four that have Citus: the page makes them a cluster.
//! One of "sql since=MAJOR" is left out on older major versions, with the output that follows it.

use pg_snowflake_harness::citus::Fleet;
use pg_snowflake_harness::clock::set_to;
use pg_snowflake_harness::copied;
use pg_snowflake_harness::installation::{as_server_user, bindir, has_contrib, has_major, major, run as run_program, temp_dir};
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::record::checksum_of_code;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

mod buckets;
mod created_at;
mod generators;
mod import;
mod large_tables;
mod page;
mod presets;
mod readme;
mod reference;
mod removal;

use page::{Block, Page, pages, pages_with_sql};

#[test]
fn the_sql_of_every_page_runs_and_prints_what_the_page_shows() {
    std::thread::scope(|scope| {
        for page in pages_with_sql() {
            scope.spawn(move || {
                if let Some(newest) = page.blocks().iter().filter_map(|block| block.since).max() {
                    has_major(newest, &format!("the SQL of {:?} for later major versions", page.path));
                }
                if has_what_it_needs(&page) {
                    let cluster = fresh_cluster(page.text());
                    run_page(&page, |block| block.citus.is_none().then_some(&cluster));
                }
            });
        }
    });
}

/// Whoever changes that code runs the campaign again, or says on the page why its result still holds.
#[test]
fn the_page_of_the_campaign_is_about_the_code_of_today() {
    let (sum, page) = (checksum_of_code(), fs::read_to_string(top().join("docs/proof.md")).unwrap());
    assert!(page.contains(&sum), "run ./dev campaign, or add {sum} to the versions below its results, and what has changed");
}

#[test]
fn the_sql_for_citus_runs_and_prints_what_the_page_shows() {
    if !has_contrib("citus", "the SQL for Citus in the documentation") {
        return;
    }
    let fleet = Fleet::apart(4);
    let mut page = page::page("docs/engines.md");
    for (node, mut client) in fleet.connections().into_iter().enumerate() {
        run(&mut client, "DROP EXTENSION pg_snowflake");
        page.replace(&format!("'db-{node}'"), &format!("'{}'", fleet.address(node)));
    }
    run_page(&page, |block| Some(&fleet.nodes[block.citus?]));
}

/// The other script measures queries of its own, and makes the tables.
#[test]
fn the_script_about_other_uses_of_the_hash_prints_a_figure_for_each() {
    let database = Database::empty();
    let tables = include_str!("../../docs/hashing/measure.sql");
    database.psql(&format!("\\set rows 3000\n\\set rounds 1\n{tables}"));
    // The script goes on after an error, which may be a query over the timeout.
    assert_eq!(printed(&mut database.connect(), "SELECT count(DISTINCT query) FROM timings WHERE took IS NOT NULL"), "2");
    let said = database.psql(include_str!("../../docs/hashing/elsewhere.sql"));
    for figure in [
        "BRIN bloom",
        "correlation",
        "hash index, searches, Rows Removed by Index Recheck",
        "Memoize",
        "NOT IN",
        "rows of 16 hash partitions",
    ] {
        assert!(said.contains(figure), "{figure}:\n{said}");
    }
}

#[test]
fn the_script_about_the_sql_edition_prints_a_ratio_for_each_function() {
    let database = Database::empty();
    database.psql(include_str!("../../sql/managed/pg_snowflake_managed.sql"));
    database.psql(copied::PLPGSQL);
    let steps = include_str!("../../docs/benchmarks/sql-edition.sql");
    let printed = database.psql(&format!("\\set rounds 1\n\\set calls 5\n{steps}"));
    for title in ["the original", "7 also reads the clock", "the SQL edition", "2 with ASSERT"] {
        assert!(printed.contains(title), "{title}:\n{printed}");
    }
}

/// Alone, each block begins with the defaults of a new session. Here each begins with what earlier blocks left behind.
/// Pages that need two sessions are left out.
#[test]
fn the_sql_of_a_page_runs_in_one_session_of_psql() {
    let pages: Vec<Page> = pages_with_sql().into_iter().filter(|page| page.blocks().iter().all(|block| block.session.is_none())).collect();
    assert!(pages.iter().any(|page| page.path.ends_with("README.md")));
    std::thread::scope(|scope| {
        for page in pages.iter().filter(|page| has_what_it_needs(page)) {
            scope.spawn(move || paste(page));
        }
    });
}

fn paste(page: &Page) {
    let blocks = blocks_here(page);
    let of_language = |language: &'static str| {
        let is_shown = move |block: &&Block| block.language == language && block.from.is_none() && block.citus.is_none();
        blocks.iter().filter(is_shown).map(|block| &*block.text)
    };
    let session: String = of_language("sql").collect();

    let printed = normalized(&fresh_cluster(page.text()).psql(SUPERUSER, &session));

    let mut rest = printed.as_str();
    for shown in of_language("output").map(normalized) {
        let found = rest.split_once(&shown);
        let path = &page.path;
        rest = found.unwrap_or_else(|| panic!("{path:?} shows\n{shown}\nand this comes out\n{rest}")).1;
    }
}

#[test]
fn three_servers_number_themselves_as_the_page_shows() {
    let parent = temp_dir();
    let folder = parent.path().join("three-servers");
    let script = fs::read(top().join("docs/leases/three-servers.sh")).expect("the script exists");
    let three_servers = |what| -> Command {
        // The servers' OS user may not be able to read the source tree, so the script comes on standard input.
        let mut bash = as_server_user("bash", parent.path());
        bash.args(["-s", what]).arg(&folder).env("PG_CONFIG", bindir().join("pg_config"));
        bash
    };

    let printed = run_program(&mut three_servers("start"), &script);
    run_program(&mut three_servers("stop"), &script);

    let printed = String::from_utf8(printed).expect("text");
    let shown = printed.replace(&folder.display().to_string(), "/tmp/three-servers");
    assert!(page::page("docs/leases.md").text().contains(&format!("```text\n{shown}```")), "{shown}");
    assert!(!folder.exists(), "the servers' folder is left");
}

#[test]
fn code_quoted_from_a_program_is_in_the_program() {
    let mut parts = 0;
    for page in pages_with_sql() {
        for Block { from, text, .. } in page.blocks() {
            let Some(file) = from else { continue };
            let program = fs::read_to_string(top().join(&file)).unwrap_or_else(|error| panic!("{:?}: {file}: {error}", page.path));
            assert!(program.contains(&text), "{:?}: {file} has no\n{text}", page.path);
            parts += 1;
        }
    }
    assert!(parts > 0, "no page shows a part of a program");
}

/// Runs the blocks for which there is a server.
fn run_page<'a>(page: &Page, server: impl Fn(&Block) -> Option<&'a Cluster>) {
    let blocks = blocks_here(page);
    let page = &page.path;
    assert!(blocks.iter().any(|block| block.language == "sql"), "{page:?} has no SQL");

    let mut sessions: HashMap<&str, Client> = HashMap::new();
    let mut printed = String::new();
    for block in &blocks {
        let Some(server) = server(block).filter(|_| block.from.is_none()) else { continue };
        match (block.language.as_str(), block.session.as_deref()) {
            ("sql", None) => printed = server.psql(SUPERUSER, &block.text),
            ("sql", Some(name)) => {
                let session = sessions.entry(name).or_insert_with(|| server.connect_to(SUPERUSER, name));
                let run = session.batch_execute(&block.text);
                run.unwrap_or_else(|error| panic!("{page:?}: {}: {error:?}", block.text));
            }
            ("output", _) => {
                let (shown, printed) = (normalized(&block.text), normalized(&printed));
                assert!(printed.ends_with(&shown), "{page:?} shows\n{shown}\nand this comes out\n{printed}");
            }
            _ => {}
        }
    }
}

/// Whether the installation has what the page's SQL needs beside the extension. A page or the script of its router creates it.
fn has_what_it_needs(page: &Page) -> bool {
    let needs_fdw = ["EXTENSION postgres_fdw", "\\i docs/routing/router.sql"].iter().any(|line| page.text().contains(line));
    !needs_fdw || has_contrib("postgres_fdw", &format!("the SQL of {:?}", page.path))
}

/// The blocks for this major version of PostgreSQL.
fn blocks_here(page: &Page) -> Vec<Block> {
    let major = major(bindir());
    page.blocks().into_iter().filter(|block| block.since.is_none_or(|since| since <= major)).collect()
}

/// A server without the extension: pages start by creating it, as their readers do. Its clock is that of the examples, if the
/// page names one.
fn fresh_cluster(page: &str) -> Cluster {
    let clock = page.lines().find_map(|line| line.strip_prefix("<!-- The clock of the examples: ")?.strip_suffix(" -->"));
    let builder = Cluster::builder().setting("wal_level", "logical").without_extension();
    let cluster = if clock.is_some() { builder.fake_clock() } else { builder }.start();
    if let Some(clock) = clock {
        set_to(&cluster, clock);
    }
    cluster
}

/// Removes what differs from run to run: fresh IDs, their times, and the widths of columns.
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

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let pages = pages();
    let broken: Vec<String> = pages
        .iter()
        .flat_map(|page| page.links().into_iter().map(move |link| (page, link)))
        .filter(|(page, link)| !is_external(link) && !leads_somewhere(&pages, page, link))
        .map(|(page, link)| format!("{}: {link}", page.path.display()))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// A link to another site, or to a page of the site that hosts the repository, is not followed: tests run without a network.
fn is_external(link: &str) -> bool {
    link.starts_with("https://") || link.starts_with("../../")
}

fn leads_somewhere(pages: &[Page], from: &Page, link: &str) -> bool {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = match file {
        "" => from.path.clone(),
        file => from.path.parent().unwrap().join(file),
    };
    let Ok(path) = fs::canonicalize(path) else { return false };
    anchor.is_empty() || has_anchor(pages, &path, anchor)
}

fn has_anchor(pages: &[Page], path: &Path, anchor: &str) -> bool {
    pages
        .iter()
        .filter(|page| fs::canonicalize(&page.path).unwrap() == path)
        .any(|page| page.anchors().iter().any(|of_page| of_page == anchor))
}
