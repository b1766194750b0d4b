//! Whole pages pasted into one psql, as a reader may do.

use super::page::{Block, Page, pages_with_sql};
use super::{blocks_here, fresh_cluster, normalized};
use pg_snowflake_harness::SUPERUSER;

/// Alone, each block begins with the defaults of a new session. Here each begins with what earlier blocks left behind.
/// Pages that need two sessions are left out.
#[test]
fn the_sql_of_a_page_runs_in_one_session_of_psql() {
    let pages: Vec<Page> = pages_with_sql().into_iter().filter(takes_one_session).collect();
    assert!(pages.iter().any(|page| page.path.ends_with("README.md")));
    std::thread::scope(|scope| {
        for page in &pages {
            scope.spawn(move || paste(page));
        }
    });
}

fn takes_one_session(page: &Page) -> bool {
    page.blocks().iter().all(|block| block.session.is_none())
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
