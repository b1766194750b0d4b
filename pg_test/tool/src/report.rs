//! What a run of the tests says at its end: the time of each phase, the tests that passed, and what was left out.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// A run of the tests so far.
#[derive(Debug, Default)]
pub struct Report {
    phases: Vec<(String, f64)>,
    passed: u32,
    failed: u32,
    ignored: u32,
    /// What was left out because something is missing, and how often that was reported.
    left_out: BTreeMap<String, u32>,
}

impl Report {
    pub fn note_phase(&mut self, title: &str, seconds: f64) {
        self.phases.push((title.to_owned(), seconds));
    }

    /// Reads a line of the output of tests: the summary of a test binary, or what a test reports as left out.
    pub fn read(&mut self, line: &str) {
        if let Some(what) = line.strip_prefix("left out: ") {
            *self.left_out.entry(what.to_owned()).or_default() += 1;
        } else if let Some(summary) = line.strip_prefix("test result: ") {
            // "ok. 12 passed; 0 failed; 1 ignored; …"
            let count = |result: &str| {
                let part = summary.split([';', '.']).find_map(|part| part.trim().strip_suffix(result));
                part.and_then(|number| number.trim().parse::<u32>().ok()).unwrap_or_default()
            };
            self.passed += count("passed");
            self.failed += count("failed");
            self.ignored += count("ignored");
        }
    }

    pub fn has_tests(&self) -> bool {
        self.passed + self.failed + self.ignored > 0
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, seconds) in &self.phases {
            writeln!(f, "{seconds:>8.1} s  {title}")?;
        }
        for (what, times) in &self.left_out {
            writeln!(f, "left out: {what} ({times})")?;
        }
        let total: f64 = self.phases.iter().map(|(_, seconds)| seconds).sum();
        let Report { passed, failed, ignored, .. } = self;
        writeln!(f, "{passed} tests passed, {failed} failed, {ignored} ignored in {total:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn the_summaries_of_all_test_binaries_are_added_up_and_omissions_are_repeated() {
        let mut report = Report::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s",
            "left out: routing: no postgres_fdw in the installation",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "left out: routing: no postgres_fdw in the installation",
        ] {
            report.read(line);
        }
        report.note_phase("tests", 61.25);

        assert!(report.has_tests());
        assert_eq!(
            report.to_string(),
            "    61.2 s  tests\n\
             left out: routing: no postgres_fdw in the installation (2)\n\
             16 tests passed, 2 failed, 1 ignored in 61.2 s\n"
        );
    }
}
