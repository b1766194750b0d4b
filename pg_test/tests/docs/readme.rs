//! What the README quotes from other pages.

use super::page::page;

/// What a figure of the README counts, and how many of it are one in the record.
const UNITS: [(&str, f64); 6] =
    [("ns", 1.0), ("s", 1.0), ("rows", 1.0), ("duplicates", 1.0), ("bytes", 1.0), ("MB", 1e6)];

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
    let recorded: Vec<f64> = summary.split_whitespace().filter_map(number).collect();
    let words: Vec<&str> = claims.split_whitespace().collect();
    let claimed: Vec<f64> = words
        .windows(2)
        .filter_map(|pair| {
            let unit = pair[1].trim_end_matches(|c: char| c.is_ascii_punctuation());
            let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
            number(pair[0]).map(|number| number * size)
        })
        .collect();
    assert!(claimed.len() >= 12, "{claimed:?}");
    for figure in claimed {
        let is_so = recorded.iter().any(|&recorded| is_rounded(figure, recorded));
        assert!(is_so, "{figure} is not in\n{summary}");
    }
}

/// The newest major with the record of a release. Betas and release candidates have no dot in their versions.
fn newest_release(benchmarks: &str) -> u32 {
    let versions = benchmarks.lines().filter_map(|line| {
        line.split_once(", PostgreSQL ")?.1.split([' ', ',']).next()?.split_once('.')
    });
    let majors = versions.filter(|(_, minor)| minor.parse::<u32>().is_ok());
    majors.filter_map(|(major, _)| major.parse().ok()).max().expect("a release is recorded")
}

/// Whether a figure has two significant digits and is the recorded one, rounded.
fn is_rounded(figure: f64, recorded: f64) -> bool {
    let unit = 10_f64.powf(figure.log10().floor() - 1.0);
    let digits = figure / unit;
    (digits - digits.round()).abs() < 1e-6 && (figure - recorded).abs() <= unit / 2.0 + 1e-9
}

/// A word that is a number, such as "1,200" or "1.9".
fn number(word: &str) -> Option<f64> {
    let word = word.trim_matches(|c: char| !c.is_ascii_digit());
    word.replace(',', "").parse().ok()
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, after) = text.split_once(begin).unwrap_or_else(|| panic!("there is no {begin}"));
    after.split_once(end).unwrap_or_else(|| panic!("there is no {end} after {begin}")).0
}
