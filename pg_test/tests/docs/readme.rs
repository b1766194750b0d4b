//! The README, pasted whole into one psql, as a reader does who tries it.

use super::page::readme;
use super::{fresh_cluster, normalized};
use pg_snowflake_servertest::SUPERUSER;

/// A block by itself begins with the defaults of a new session; here each begins with what those before it left behind.
#[test]
fn the_sql_of_the_readme_runs_in_one_session_of_psql() {
    let blocks = readme().blocks();
    let of_language = |language: &'static str| {
        blocks.iter().filter(move |block| block.language == language).map(|block| &*block.text)
    };
    let session: String = of_language("sql").collect();
    assert!(of_language("sql").count() > 1, "{session}");

    let printed = normalized(&fresh_cluster().psql(SUPERUSER, &session));

    let mut rest = printed.as_str();
    for shown in of_language("output").map(normalized) {
        let found = rest.split_once(&shown);
        rest = found.unwrap_or_else(|| panic!("it shows\n{shown}\nand this comes out\n{rest}")).1;
    }
}
