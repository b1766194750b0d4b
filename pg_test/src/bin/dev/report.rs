//! The report of a test run: the lines that a run on several majors parses, and the text for people.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

/// How many tests passed, failed, and were ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u32,
    pub failed: u32,
    pub ignored: u32,
}

/// A phase of a run. It is red until it succeeds.
#[derive(Debug, PartialEq)]
struct Phase {
    title: String,
    counts: Counts,
    /// How long it took, if it succeeded.
    seconds: Option<f64>,
}

/// A run of the tests so far.
#[derive(Debug, Default, PartialEq)]
pub struct Report {
    phases: Vec<Phase>,
    /// What was left out because something is missing, and how often that was reported.
    left_out: BTreeMap<String, u32>,
}

/// The line that begins a phase.
pub fn begin(title: &str) -> String {
    format!("phase: {title}")
}

/// The line that ends a successful phase.
pub fn end(seconds: f64) -> String {
    format!("green: {seconds:.1}")
}

impl Report {
    /// Parses the lines of a report.
    pub fn parse(lines: &str) -> Self {
        let mut report = Report::default();
        lines.lines().for_each(|line| report.read(line));
        report
    }

    /// Reads a line: one of [`begin`] or [`end`], the summary of a test binary, or what a test reports as left out.
    pub fn read(&mut self, line: &str) {
        if let Some(title) = line.strip_prefix("phase: ") {
            let (title, counts) = (title.to_owned(), Counts::default());
            self.phases.push(Phase { title, counts, seconds: None });
        } else if let Some(what) = line.strip_prefix("left out: ") {
            *self.left_out.entry(what.to_owned()).or_default() += 1;
        } else if let Some(phase) = self.phases.last_mut() {
            if let Some(seconds) = line.strip_prefix("green: ") {
                phase.seconds = seconds.parse().ok();
            } else if let Some(summary) = line.strip_prefix("test result: ") {
                phase.counts.add(Counts::of(summary));
            }
        }
    }

    /// The tests of all phases together.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.phases.iter().for_each(|phase| counts.add(phase.counts));
        counts
    }

    /// The cell of that phase in the table of majors; empty if it was not reached.
    fn cell(&self, title: &str) -> String {
        let Some(phase) = self.phases.iter().find(|phase| phase.title == title) else {
            return String::new();
        };
        let Counts { passed, failed, ignored } = phase.counts;
        match phase.seconds {
            None if failed > 0 => format!("RED, {failed} of {} failed", passed + failed),
            None => "RED".to_owned(),
            Some(seconds) if passed == 0 => format!("green in {seconds:.1} s"),
            Some(seconds) if ignored == 0 => format!("{passed} tests in {seconds:.1} s"),
            Some(seconds) => format!("{passed} tests in {seconds:.1} s, {ignored} ignored"),
        }
    }
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// From "ok. 12 passed; 0 failed; 1 ignored; …".
    fn of(summary: &str) -> Self {
        let count = |of: &str| {
            let part = summary.split([';', '.']).find_map(|part| part.trim().strip_suffix(of));
            part.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
        };
        Counts { passed: count("passed"), failed: count("failed"), ignored: count("ignored") }
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { passed, failed, ignored } = self;
        write!(f, "{passed} tests passed, {failed} failed, {ignored} ignored")
    }
}

/// What was left out, the time of each phase if there are several, and the number of tests.
impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = || self.phases.iter().filter_map(|phase| Some((phase, phase.seconds?)));
        if self.phases.len() > 1 {
            for (phase, seconds) in done() {
                writeln!(f, "{seconds:>8.1} s  {}", phase.title)?;
            }
        }
        for (what, times) in &self.left_out {
            writeln!(f, "left out: {what} ({times})")?;
        }
        let total: f64 = done().map(|(_, seconds)| seconds).sum();
        if self.counts() == Counts::default() {
            writeln!(f, "{total:.1} s")
        } else {
            writeln!(f, "{} in {total:.1} s", self.counts())
        }
    }
}

/// Phases in rows and majors in columns, and below it what was left out on which major.
pub fn table(majors: &[(String, Report)]) -> String {
    let mut titles: Vec<&str> = Vec::new();
    for phase in majors.iter().flat_map(|(_, report)| &report.phases) {
        if !titles.contains(&phase.title.as_str()) {
            titles.push(&phase.title);
        }
    }
    let mut columns =
        vec![std::iter::once("").chain(titles.iter().copied()).map(str::to_owned).collect()];
    columns.extend(majors.iter().map(|(major, report)| -> Vec<String> {
        let cells = titles.iter().map(|title| report.cell(title));
        std::iter::once(format!("PostgreSQL {major}")).chain(cells).collect()
    }));
    let mut table = in_columns(&columns);
    for (major, report) in majors {
        for (what, times) in &report.left_out {
            writeln!(table, "PostgreSQL {major}: left out: {what} ({times})")
                .expect("a string can be written to");
        }
    }
    table
}

/// Columns of the same height side by side, each as wide as its widest cell.
fn in_columns(columns: &[Vec<String>]) -> String {
    let mut lines = vec![String::new(); columns[0].len()];
    for column in columns {
        let width = column.iter().map(String::len).max().unwrap_or_default();
        for (line, cell) in lines.iter_mut().zip(column) {
            *line += &format!("{cell:<width$}  ");
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::{Counts, Report, begin, end, table};

    const GREEN: &str =
        "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out";
    const RED: &str =
        "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";

    fn report(lines: &[&str]) -> Report {
        Report::parse(&lines.join("\n"))
    }

    #[test]
    fn the_summaries_of_all_test_binaries_are_added_up() {
        let report = report(&[&begin("a"), GREEN, GREEN, &end(1.0), &begin("b"), RED]);

        assert_eq!(report.counts(), Counts { passed: 28, failed: 2, ignored: 2 });
    }

    #[test]
    fn an_omission_is_shown_once_with_its_count() {
        let left_out = "left out: routing: no postgres_fdw in the installation";
        let lines = [&begin("a"), left_out, GREEN, left_out, &end(2.04)];

        assert_eq!(
            report(&lines).to_string(),
            "left out: routing: no postgres_fdw in the installation (2)\n\
             12 tests passed, 0 failed, 1 ignored in 2.0 s\n"
        );
    }

    #[test]
    fn each_of_several_phases_is_shown_with_its_time() {
        let lines = [&begin("format"), &end(0.5), &begin("tests"), GREEN, &end(61.25)];

        assert_eq!(
            report(&lines).to_string(),
            "     0.5 s  format\n    61.2 s  tests\n12 tests passed, 0 failed, 1 ignored in 61.7 s\n"
        );
    }

    #[test]
    fn majors_stand_side_by_side() {
        let majors = [
            ("18", report(&[&begin("setup"), &end(3.0), &begin("tests"), GREEN, &end(9.0)])),
            ("17", report(&[&begin("setup"), &end(4.0), &begin("tests"), RED])),
            ("16", report(&["left out: all: no apt has it", &begin("setup")])),
        ];
        let majors = majors.map(|(major, report)| (major.to_owned(), report));

        let expected = "
       PostgreSQL 18                 PostgreSQL 17       PostgreSQL 16
setup  green in 3.0 s                green in 4.0 s      RED
tests  12 tests in 9.0 s, 1 ignored  RED, 2 of 6 failed
PostgreSQL 16: left out: all: no apt has it (1)
";
        assert_eq!(table(&majors), expected.trim_start_matches('\n'));
    }
}
