//! The tables of a run, or of the recorded runs of several majors in the same cells, as Markdown.

use crate::connections::PRELOADED;
use crate::contenders::{ALL, FLOORS, OF_LAYOUTS};
use crate::instructions::LEASES;
use crate::limits::{self, Bound, Limit, Verdict};
use crate::measures::{Measure, figure, measure};
use crate::reading::{EXPRESSIONS, SPANS};
use crate::samples::{Samples, Spread};
use std::iter::once;

/// What was measured on one server.
pub struct Measured {
    /// As in "18.6". That of a beta or a release candidate has no dot.
    pub version: String,
    pub samples: Samples,
    /// Whether everything was measured at its full size: then every limit must be met. The number of rounds does not matter: too few of
    /// them miss the limit.
    pub is_full: bool,
}

/// The measures of the table of all contenders.
#[rustfmt::skip]
const MEASURES: [&str; 7] = ["ns_per_id", "ns_per_id_with_loop", "ns_per_first_id", "instructions_per_id", "wal_records_per_1000000_ids",
    "repeats_in_1000000_ids", "tps_of_100_ids_8_clients"];

/// The columns of the summary: their headings and their contenders.
const COLUMNS: [(&str, &str); 8] = [
    ("`snowflake_nextval`", "ours_cache_1"),
    ("`bigserial`", "core_cache_1"),
    ("identity column", "core_identity"),
    ("pgEdge's `snowflake.nextval`", "pgedge"),
    ("`uuidv7()`", "uuid_v7"),
    ("`gen_random_uuid()`", "uuid_v4"),
    ("the PL/pgSQL original", "copied_plpgsql"),
    ("its formula in plain SQL", "copied_sql"),
];

/// A row of the summary: a measure; or a title, a measure and the contenders that stand in for those of their columns.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

#[rustfmt::skip]
const ROWS: [Row; 15] = [
    ("", "ns_per_id", &[]),
    ("the same in the default layout", "ns_per_id", &[("ours_cache_1", "ours_postgres")]),
    ("the same with `CACHE 64`", "ns_per_id", &[("ours_cache_1", "ours_cache_64"), ("core_cache_1", "core_cache_64")]),
    ("", "ns_per_first_id", &[]),
    ("", "ms_of_a_connection", &[]),
    ("the same on a server that preloads pg_snowflake", "ms_of_a_connection", &[("ours_cache_1", "ours_preloaded")]),
    ("", "tps_of_an_insert_8_clients", &[]),
    ("", "tps_of_100_ids_8_clients", &[]),
    ("the same with `CACHE 64`", "tps_of_100_ids_8_clients", &[("ours_cache_1", "ours_cache_64"), ("core_cache_1", "core_cache_64")]),
    ("", "bulk_insert_s", &[]),
    ("the same with ready-made values", "bulk_insert_s", &[("ours_cache_1", "ready_ids"), ("uuid_v7", "ready_uuids")]),
    ("", "primary_key_bytes", &[]),
    ("", "repeats_in_1000000_ids", &[]),
    ("", "large_rows_per_s", &[]),
    ("", "large_wal_bytes_per_row", &[]),
];

/// Everything that is measured: its name in the CSV, and its title.
fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let contenders = FLOORS.iter().chain(&ALL).chain(&OF_LAYOUTS);
    contenders
        .map(|contender| (contender.name, contender.title))
        .chain(LEASES)
        .chain([PRELOADED])
        .chain(EXPRESSIONS.map(|(name, title, ..)| (name, title)))
        .chain(SPANS.map(|(name, title, ..)| (name, title)))
}

/// The title of a limit: its measure, and whose it is.
fn title(limit: &Limit) -> String {
    let title = |name| names().find(|&(other, _)| other == name).map_or(name, |(_, title)| title);
    let relative = limit.under.map(|under| format!(" relative to {}", title(under)));
    format!("{}: {}{}", limit.measure().title, title(limit.over), relative.unwrap_or_default())
}

fn bound(limit: &Limit) -> String {
    let decimals = limit.decimals();
    match limit.bound {
        Bound::AtMost(bound) => format!("≤ {bound:.decimals$}"),
        Bound::AtLeast(bound) => format!("≥ {bound:.decimals$}"),
    }
}

/// The median, and the interval of a time or rate.
fn with_interval(spread: Spread, is_counted: bool, figure: impl Fn(f64) -> String) -> String {
    let [low, high] = spread.interval;
    let has_interval = !is_counted && spread.count > 1;
    let interval = has_interval.then(|| format!(" ({}–{})", figure(low), figure(high)));
    figure(spread.median) + &interval.unwrap_or_default()
}

impl Measured {
    pub fn major(&self) -> u32 {
        let digits = self.version.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|major| major.parse().ok()).expect("a version begins with its major")
    }

    /// A limit by a contender that this server lacks is not judged; a note says which that is.
    pub fn verdict(&self, limit: &Limit) -> Verdict {
        let lacks = |name| !self.samples.has(name) && limit.is_about(name);
        let lacks_one = ALL.iter().any(|contender| contender.needs.is_some() && lacks(contender.name));
        limit.verdict(limit.spread(&self.samples), self.is_full && !lacks_one)
    }

    pub fn verdicts(&self) -> Vec<Verdict> {
        limits::on(self.major()).map(|limit| self.verdict(&limit)).collect()
    }

    /// The figure of a limit, the interval that decides with it, and what does not meet the limit.
    fn judged(&self, limit: &Limit) -> String {
        let decimals = limit.decimals();
        let figure = |value| format!("{value:.decimals$}");
        let spread = limit.spread(&self.samples);
        let measured = spread.map(|spread| with_interval(spread, limit.measure().is_counted, figure));
        measured.unwrap_or_default()
            + match self.verdict(limit) {
                Verdict::Met => "",
                Verdict::Undecided => " undecided",
                Verdict::TooNoisy => " too noisy",
                Verdict::Missed => " **not met**",
                Verdict::TooFewRounds => " **too few rounds**",
                Verdict::Missing => "**not measured**",
                Verdict::Unknown => "not measured",
            }
    }

    /// How many limits are met.
    fn in_short(&self) -> String {
        use Verdict::{Met, Missed, Missing, TooFewRounds, TooNoisy, Undecided, Unknown};
        let verdicts = self.verdicts();
        let count = |kinds: &[Verdict]| verdicts.iter().filter(|is| kinds.contains(is)).count();
        let rest = [
            ("undecided", count(&[Undecided, TooNoisy])),
            ("missed", count(&[Missed, TooFewRounds, Missing])),
            ("not measured", count(&[Unknown])),
        ];
        let rest = rest.into_iter().filter(|(_, count)| *count > 0);
        let rest = rest.map(|(what, count)| format!("; {count} {what}")).collect::<String>();
        let (version, met, all) = (&self.version, count(&[Met]), verdicts.len());
        format!("- On PostgreSQL {version}, {met} of the {all} limits were met{rest}.\n")
    }
}

/// The most important figures of a run, with a column for each of the best-known contenders.
pub fn summary(Measured { version, samples, .. }: &Measured) -> String {
    let mut table = heading(&format!("PostgreSQL {version}"), COLUMNS.map(|(heading, _)| heading));
    for (title, name, instead) in ROWS {
        let Measure { title: own, decimals, is_counted, .. } = *measure(name);
        let cell = |(_, contender)| {
            let other = instead.iter().find(|(column, _)| *column == contender);
            let contender = if instead.is_empty() { contender } else { other?.1 };
            let spread = samples.spread(name, contender)?;
            Some(with_interval(spread, is_counted, |value| figure(value, decimals)))
        };
        let cells = COLUMNS.map(|column| cell(column).unwrap_or_default());
        table += &row(if title.is_empty() { own } else { title }, cells);
    }
    table
}

/// The table of all contenders, and the limits that a run did not meet.
pub fn tables(runs: &[Measured]) -> String {
    let versions: Vec<&str> = runs.iter().map(|run| run.version.as_str()).collect();
    let mut text = match versions.as_slice() {
        [_] => String::new(),
        _ => format!(
            "A cell shows the medians on PostgreSQL {}, or one figure if they are equal. A dash means that no value was measured.\n",
            versions.join(" / ")
        ),
    };
    text += "\n### Generating IDs\n\n";
    text += &heading("", MEASURES.iter().map(|name| measure(name).title));
    for (name, title) in names() {
        let cells = MEASURES.iter().map(|of| {
            in_a_cell(runs.iter().map(|run| {
                let median = run.samples.spread(of, name)?.median;
                Some(figure(median, measure(of).decimals))
            }))
        });
        let cells: Vec<String> = cells.collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            text += &row(title, cells);
        }
    }
    text += "\n### Limits\n\n";
    runs.iter().for_each(|run| text += &run.in_short());
    text += "\nThese are the limits that a run did not meet:\n\n";
    text += &heading("requirement", once("limit").chain(versions));
    let of_runs: Vec<Vec<Limit>> = runs.iter().map(|run| limits::on(run.major()).collect()).collect();
    let mut titles: Vec<String> = Vec::new();
    for limit in of_runs.iter().flatten() {
        if titles.contains(&title(limit)) {
            continue;
        }
        titles.push(title(limit));
        let of_title = of_runs.iter().map(|limits| limits.iter().find(|other| title(other) == title(limit)));
        let of_title: Vec<Option<&Limit>> = of_title.collect();
        let bounds = of_title.iter().map(|limit| Some(bound((*limit)?)));
        let judged = || runs.iter().zip(&of_title).filter_map(|(run, limit)| Some((run, (*limit)?)));
        if judged().all(|(run, limit)| matches!(run.verdict(limit), Verdict::Met | Verdict::Unknown)) {
            continue;
        }
        let verdicts = runs.iter().zip(&of_title);
        let verdicts = verdicts.map(|(run, limit)| limit.map(|limit| run.judged(limit)));
        text += &row(&title(limit), once(in_a_cell(bounds)).chain(verdicts.map(Option::unwrap_or_default)));
    }
    text
}

/// The figures of all runs, or one if they are the same.
fn in_a_cell(figures: impl IntoIterator<Item = Option<String>>) -> String {
    let figures: Vec<Option<String>> = figures.into_iter().collect();
    if figures.iter().all(|figure| *figure == figures[0]) {
        return figures[0].clone().unwrap_or_default();
    }
    let figures = figures.into_iter().map(|figure| figure.unwrap_or_else(|| "–".to_owned()));
    figures.collect::<Vec<_>>().join(" / ")
}

fn heading<'a>(first: &str, columns: impl IntoIterator<Item = &'a str>) -> String {
    let columns: Vec<String> = columns.into_iter().map(str::to_owned).collect();
    let line = format!("| --- |{}\n", " --: |".repeat(columns.len()));
    row(first, columns) + &line
}

fn row(title: &str, cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {title} | {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::{Measured, bound, in_a_cell, tables, title};
    use crate::limits::{self, Verdict, is_failure};
    use crate::samples::Samples;
    use pg_snowflake_harness::top;
    use std::collections::HashSet;

    /// Nine rounds of two contenders, and two of others.
    fn run(version: &str, ours: f64, others: &[(&str, &str, f64)]) -> Measured {
        let mut samples = Samples::default();
        for round in 0..9 {
            samples.add(round, "ours_cache_1", "ns_per_id", ours);
            samples.add(round, "core_cache_1", "ns_per_id", 100.0 + 10.0 * round as f64);
        }
        for (name, measure, value) in others {
            (0..2).for_each(|round| samples.add(round, name, measure, *value));
        }
        Measured { version: version.to_owned(), samples, is_full: false }
    }

    fn has(text: &str, rows: &[&str]) {
        rows.iter().for_each(|row| assert!(text.contains(row), "{row}: {text}"));
    }

    #[test]
    fn a_cell_has_the_figures_of_all_runs_or_one_if_they_are_the_same() {
        let uuid = ("uuid_v7", "ns_per_id", 1234.4);
        // Instructions are shown to a thousandth, and without an interval.
        let counts = [("ours", 41_000.0), ("core", 40_000.0)].map(|(whose, count)| (whose.to_owned() + "_cache_1", count));
        let [ours, core] = counts.each_ref().map(|(name, count)| (&**name, "instructions_per_insert", *count));
        let runs = [run("19.1", 70.0, &[uuid, ours, core]), run("18.6", 70.0, &[uuid]), run("15.2", 98.0, &[])];
        let text = tables(&runs);
        let all = limits::on(15).count();
        has(
            &text,
            &[
                "### Generating IDs\n\n|  | ns for an ID in one session | ns for an ID with the loop |",
                "\n| core `nextval`, `CACHE 1` | 140 |  |",
                "\n| `snowflake_nextval`, `CACHE 1` | 70 / 70 / 98 |  |",
                "\n| `uuidv7()` | 1,234 / 1,234 / – |  |",
                "| requirement | limit | 19.1 | 18.6 | 15.2 |\n",
                " core `nextval`, `CACHE 1` | ≤ 0.60 | 0.50 (0.41–0.64) | 0.50 (0.41–0.64) | 0.70 (0.58–0.89) undecided |\n",
                "| ≤ 1.010 | 1.025 **not met** | not measured |",
                &format!("- On PostgreSQL 15.2, 0 of the {all} limits were met; 1 undecided; {} not measured.\n", all - 1),
            ],
        );
        assert!(!text.contains("| `gen_random_uuid()` |"), "{text}");
        // Limits that all runs have met, or had nothing to judge by.
        let all_met = tables(&[run("18.6", 50.0, &[])]);
        assert!(all_met.ends_with("| --- | --: | --: |\n"), "{all_met}");
    }

    #[test]
    fn a_full_run_fails_without_a_figure_unless_the_server_lacks_its_contender() {
        let full = Measured { is_full: true, ..run("18.6", 50.0, &[]) };
        let of = |verdict| full.verdicts().into_iter().filter(|is| *is == verdict).count();
        let lacking = ["pgedge", "uuid_v7", "ready_uuids"];
        let is_of_lacking = |limit: &limits::Limit| lacking.iter().any(|name| limit.is_about(name));
        let lacking = limits::on(18).filter(is_of_lacking).count();
        assert_eq!((of(Verdict::Met), of(Verdict::Unknown)), (1, lacking));
        assert_eq!(of(Verdict::Missing), limits::on(18).count() - lacking - 1);
        assert!(lacking > 20 && is_failure(&full.verdicts()));
        assert!(!is_failure(&run("18.6", 50.0, &[]).verdicts()));
    }

    /// A limit or a title was changed: `./dev bench --tables` prints the tables of the page anew from the measurements.
    #[test]
    fn the_limits_on_the_page_are_limits() {
        let page = std::fs::read_to_string(top().join("docs/benchmarks.md")).unwrap();
        let (_, text) = page.split_once("\n### Limits\n").expect("a section of limits");
        let rows = text.lines().skip_while(|line| !line.starts_with('|'));
        let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
        let versions = rows[0].trim_end_matches(" |").split(" | ").skip(2);
        let on = |version: &str| limits::on(run(version, 0.0, &[]).major());
        let mut limits: HashSet<String> = HashSet::new();
        for limit in versions.clone().flat_map(on) {
            let same = |version| on(version).find(|other| title(other) == title(&limit));
            let bounds = versions.clone().map(|version| same(version).as_ref().map(bound));
            limits.insert(format!("| {} | {} | ", title(&limit), in_a_cell(bounds)));
        }
        for row in &rows[2..] {
            assert!(limits.iter().any(|limit| row.starts_with(limit)), "{row} is of no limit");
        }
        let titles: HashSet<String> = limits::on(15).map(|limit| title(&limit)).collect();
        assert_eq!(titles.len(), limits::on(15).count());
    }
}
