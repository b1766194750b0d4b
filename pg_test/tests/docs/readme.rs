//! What the README quotes from other pages.

use super::page::{between, page};

/// A figure of the README: the words around it, the row and the columns of the summary that it is of, and how many of the
/// row's unit it counts.
type Claim = (&'static str, &'static str, &'static [&'static str], f64);

const OURS: &str = "`snowflake_nextval`";
const UUID: &str = "`uuidv7()`";
const KEY: &str = "bytes of their primary key";
const ROW: &str = "one-row `INSERT`s per second, 8 clients";

const CLAIMS: [Claim; 7] = [
    ("with pg_snowflake, 8 clients inserted {} rows per second,", ROW, &[OURS, "`bigserial`"], 1.0),
    ("rows took {} MB,", KEY, &[UUID], 1e6),
    ("and {} MB with pg_snowflake", KEY, &[OURS], 1e6),
    ("`uuidv7()`, 8 clients inserted {} rows per second", ROW, &[UUID], 1.0),
    ("Instagram's function took {} ns per ID;", "ns for an ID in one session", &["the PL/pgSQL original"], 1.0),
    ("pg_snowflake took {} ns per ID in", "the same in the default layout", &[OURS], 1.0),
    ("returned {} duplicates", "duplicates in 1,000,000 IDs of one session", &["its formula in plain SQL"], 1.0),
];

/// New figures of the page would leave the README with the previous ones.
#[test]
fn the_figures_of_the_readme_are_those_of_the_newest_release_rounded_to_two_digits() {
    let (readme, benchmarks) = (page("README.md"), page("docs/benchmarks.md"));
    let claims = between(readme.text(), "## Why not", "\n## ");
    let major = newest_release(benchmarks.text());
    let source = format!("from PostgreSQL {major} ");
    assert!(claims.contains(&source), "{source} is not in\n{claims}");
    let summary = between(benchmarks.text(), "<!-- summary: begin", "<!-- summary: end -->");
    assert!(summary.starts_with(&format!("| PostgreSQL {major}.")), "{summary}");

    let words: Vec<&str> = claims.split_whitespace().collect();
    let text = words.join(" ");
    for (pattern, row, contenders, size) in CLAIMS {
        let figure = size * figure_in(&text, pattern);
        for contender in contenders {
            let recorded = recorded(summary, row, contender);
            assert!(is_rounded(figure, recorded), "{pattern}: {figure}, recorded: {recorded}");
        }
    }

    let units = ["ns", "s", "rows", "MB", "bytes", "duplicates"];
    let is_given = |pair: &[&str]| pair[0] == "1,000,000" || pair == ["16", "bytes"];
    let is_figure = |pair: &&[&str]| {
        let unit = pair[1].trim_end_matches(|c: char| c.is_ascii_punctuation());
        units.contains(&unit) && !is_given(pair) && number(pair[0]).is_some()
    };
    let figures: Vec<&[&str]> = words.windows(2).filter(is_figure).collect();
    assert_eq!(figures.len(), CLAIMS.len(), "{figures:?}");
}

/// The newest major with the record of a release. Betas and release candidates have no dot in their versions.
fn newest_release(benchmarks: &str) -> u32 {
    let versions = benchmarks.lines().filter_map(|line| line.split_once(" on PostgreSQL ")?.1.split([' ', ',']).next()?.split_once('.'));
    let majors = versions.filter(|(_, minor)| minor.parse::<u32>().is_ok());
    majors.filter_map(|(major, _)| major.parse().ok()).max().expect("a release is recorded")
}

/// The number in the place of "{}".
fn figure_in(text: &str, pattern: &str) -> f64 {
    let (before, after) = pattern.split_once("{}").expect("a place for the figure");
    let figures = text.match_indices(before).filter_map(|(place, _)| {
        let (word, _) = text[place + before.len()..].split_once(after)?;
        number(word)
    });
    let figures: Vec<f64> = figures.collect();
    assert_eq!(figures.len(), 1, "{pattern}: {figures:?}");
    figures[0]
}

/// The figure of a contender in a row of the summary.
fn recorded(summary: &str, title: &str, contender: &str) -> f64 {
    let rows: Vec<Vec<&str>> = summary.lines().map(|row| row.split(" | ").collect()).collect();
    let is_its = |cell: &&str| cell.trim_end_matches(" |") == contender;
    let column = rows[0].iter().position(is_its);
    let row = rows.iter().find(|row| row[0] == format!("| {title}"));
    let cell = row.zip(column).map(|(row, column)| row[column].trim_end_matches(" |"));
    let median = cell.and_then(|cell| number(cell.split(" (").next()?));
    median.unwrap_or_else(|| panic!("{title} of {contender} is not in: {summary}"))
}

/// Whether a figure has at most two significant digits and is the recorded one, rounded.
fn is_rounded(figure: f64, recorded: f64) -> bool {
    let unit = 10_f64.powf(figure.log10().floor() - 1.0);
    let digits = figure / unit;
    let is_short = (digits - digits.round()).abs() < 1e-6;
    let beyond = recorded - (figure - unit / 2.0);
    is_short && (-1e-9..unit - 1e-9).contains(&beyond)
}

/// A number as text, such as "1,200" or "1.9".
fn number(word: &str) -> Option<f64> {
    word.replace(',', "").parse().ok()
}
