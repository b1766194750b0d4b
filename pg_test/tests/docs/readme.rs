//! What the README quotes from other pages.

use super::page::page;

/// A figure of the README: the words around it, the line of the summary and the contenders that it is of, and how many of the
/// line's unit it counts.
type Claim = (&'static str, &'static str, &'static [&'static str], f64);

const OURS: &str = "`snowflake_nextval`, `CACHE 1`";
const UUID: &str = "`uuidv7()`";
const KEY: &str = "Bytes of a primary key of 1,000,000 rows";
const BULK: &str = "Seconds for 1,000,000 rows in one `INSERT`";
const WAL: &str = "WAL bytes of such a row";

const CLAIMS: [Claim; 12] = [
    (
        "inserted {} rows per second with either",
        "One-row `INSERT`s per second, 8 clients",
        &[OURS, "core `nextval`, `CACHE 1`"],
        1.0,
    ),
    ("took {} MB with UUIDv7", KEY, &[UUID], 1e6),
    ("and {} MB with pg_snowflake", KEY, &[OURS], 1e6),
    ("took {} s with `uuidv7()`", BULK, &[UUID], 1.0),
    ("and {} s with pg_snowflake", BULK, &[OURS], 1.0),
    ("ready-made values, {} s and", BULK, &["`uuidv7()`, ready-made"], 1.0),
    ("s and {} s. The WAL", BULK, &["`snowflake_nextval`, ready-made"], 1.0),
    ("took {} bytes,", WAL, &[UUID], 1.0),
    ("and {} bytes with pg_snowflake", WAL, &[OURS], 1.0),
    ("takes {} ns,", "Nanoseconds for an ID in one backend", &["the PL/pgSQL original"], 1.0),
    (
        "and {} ns with pg_snowflake",
        "The same in the default layout",
        &["`snowflake_nextval`"],
        1.0,
    ),
    ("returned {} duplicates", "Repeats per 1,000,000 IDs", &["its formula in plain SQL"], 1.0),
];

/// `./dev bench` rewrites the page, and would leave the README with the previous figures.
#[test]
fn the_figures_of_the_readme_are_those_of_the_newest_release_rounded_to_two_digits() {
    let (readme, benchmarks) = (page("README.md"), page("docs/benchmarks.md"));
    let claims = between(readme.text(), "## Why not", "\n## ");
    let major = newest_release(benchmarks.text());
    for source in [format!("from PostgreSQL {major} "), format!("postgresql-{major}.svg")] {
        assert!(claims.contains(&source), "{source} is not in\n{claims}");
    }
    let mark = |name| format!("<!-- summary {major}: {name} -->");
    let summary = between(benchmarks.text(), &mark("begin"), &mark("end"));

    let words: Vec<&str> = claims.split_whitespace().collect();
    let text = words.join(" ");
    for (pattern, line, contenders, size) in CLAIMS {
        let figure = size * figure_in(&text, pattern);
        for contender in contenders {
            let recorded = recorded(summary, line, contender);
            assert!(is_rounded(figure, recorded), "{pattern}: {figure}, recorded: {recorded}");
        }
    }

    let units = ["ns", "s", "rows", "MB", "bytes", "duplicates"];
    let is_figure = |pair: &&[&str]| {
        let unit = pair[1].trim_end_matches(|c: char| c.is_ascii_punctuation());
        units.contains(&unit) && pair[0] != "1,000,000" && number(pair[0]).is_some()
    };
    let figures: Vec<&[&str]> = words.windows(2).filter(is_figure).collect();
    assert_eq!(figures.len(), CLAIMS.len(), "{figures:?}");
}

/// The newest major with the record of a release. Betas and release candidates have no dot in their versions.
fn newest_release(benchmarks: &str) -> u32 {
    let versions = benchmarks.lines().filter_map(|line| {
        line.split_once(", PostgreSQL ")?.1.split([' ', ',']).next()?.split_once('.')
    });
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

/// The figure of a contender in a line of the summary.
fn recorded(summary: &str, line: &str, contender: &str) -> f64 {
    let figures = between(summary, &format!("- {line}: "), ".\n");
    let of_contender = figures.split("; ").filter_map(|item| item.rsplit_once(' '));
    let found =
        of_contender.filter(|(name, _)| *name == contender).find_map(|(_, figure)| number(figure));
    found.unwrap_or_else(|| panic!("{contender} is not in: {figures}"))
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

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, after) = text.split_once(begin).unwrap_or_else(|| panic!("there is no {begin}"));
    after.split_once(end).unwrap_or_else(|| panic!("there is no {end} after {begin}")).0
}
