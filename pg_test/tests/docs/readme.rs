//! What the README quotes from other pages.

use super::page::page;

/// `./dev bench` rewrites the page, and would leave the README with the previous figures.
#[test]
fn the_figures_of_the_readme_are_those_of_the_benchmarks() {
    let (readme, benchmarks) = (page("README.md"), page("docs/benchmarks.md"));
    let (_, claims) = readme.text().split_once("## Why not").expect("the README compares");
    let (claims, _) = claims.split_once("\n## ").expect("another section follows");
    let parts = benchmarks.text().split("<!-- summary ");
    let begun = parts.filter_map(|part| part.split_once(" -->\n"));
    let summaries: Vec<&str> =
        begun.filter(|(mark, _)| mark.ends_with(": begin")).map(|(_, rest)| rest).collect();

    let recorded: Vec<&str> = summaries.iter().flat_map(|summary| figures(summary)).collect();
    let claimed: Vec<&str> = figures(claims).filter(|figure| figure.contains(',')).collect();

    assert!(claimed.len() > 1, "{claims}");
    for figure in claimed {
        assert!(recorded.contains(&figure), "{figure} is not in\n{}", summaries.concat());
    }
}

/// The words that are numbers.
fn figures(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_digit()))
        .filter(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == ','))
}
