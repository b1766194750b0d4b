//! The README, pasted whole into one psql, as a reader does who tries it; and whether its figures are the recorded ones.

use super::page::{page, readme};
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

/// `./dev bench` writes the page anew, and would leave the README with what was measured before.
#[test]
fn the_figures_of_the_readme_are_those_of_the_benchmarks() {
    let (readme, benchmarks) = (readme(), page("docs/benchmarks.md"));
    let paragraphs = readme.text().split("\n\n");
    let mut claims = paragraphs.filter(|paragraph| paragraph.contains("docs/benchmarks.md"));
    let claim = claims.next().expect("the README names the benchmarks");
    let summary = benchmarks.text().split("<!-- summary: ").nth(1).expect("a summary");

    let recorded: Vec<&str> = figures(summary).collect();
    let claimed: Vec<&str> = figures(claim).collect();

    assert!(claimed.len() > 1, "{claim}");
    for figure in claimed {
        assert!(recorded.contains(&figure), "{figure} is not in\n{summary}");
    }
}

/// The words that are numbers.
fn figures(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_digit()))
        .filter(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == ','))
}
