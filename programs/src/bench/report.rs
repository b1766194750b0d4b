//! The results of a run as Markdown, and the files that go with it.

use crate::bench::chart;
use crate::bench::contender::Contender;
use crate::bench::limit::is_failure;
use crate::bench::limits;
use crate::bench::page;
use crate::bench::plan::{Findings, Plan};
use crate::bench::tables::{Run, Tables};
use pg_snowflake_harness::installation;
use pg_snowflake_harness::record::circumstances;
use std::fmt::{self, Display, Formatter};
use std::fs::write;
use std::path::Path;
use std::slice;
use std::time::Duration;

/// The results of a run.
pub struct Report {
    run: Run,
    notes: Vec<String>,
    rounds: usize,
    scale: f64,
    took: Duration,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        is_full: bool,
        contenders: Vec<&'static Contender>,
        findings: Findings,
        took: Duration,
    ) -> Self {
        let Findings { samples, notes } = findings;
        let major = installation::major(installation::bindir());
        let limits = limits::on(major);
        let run = Run { version: major.to_string(), limits, contenders, samples, is_full };
        Report { run, notes, rounds: plan.rounds, scale: plan.scale, took }
    }

    /// Writes every measurement, the chart, and what the page says about the run into a folder, as files with the major's name.
    pub fn write_into(&self, folder: &Path, revision: &str) {
        std::fs::create_dir_all(folder).expect("the folder can be made");
        let name = page::name_of(installation::major(installation::bindir()));
        let run = format!("{} {} {}", circumstances(revision), self.extent(), self.notes.join(" "));
        for (extension, text) in [
            ("csv", self.run.samples.to_csv()),
            ("svg", chart::draw(&self.run.samples, self.scale)),
            ("md", run.trim_end().to_owned()),
        ] {
            let file = folder.join(&name).with_extension(extension);
            write(file, text).expect("the file can be written");
        }
    }

    /// How much was measured, and how long it took.
    fn extent(&self) -> String {
        let minutes = self.took.as_secs_f64() / 60.0;
        let scale = match self.scale {
            1.0 => String::new(),
            scale => format!(" at {scale} of the full size"),
        };
        format!("{} rounds{scale} took {minutes:.1} minutes.", self.rounds)
    }

    /// Whether no measured figure misses its limit and, in a full run, every figure with a limit was measured, on a machine that is
    /// quiet enough.
    pub fn is_met(&self) -> bool {
        !is_failure(&self.run.verdicts())
    }
}

/// As Markdown.
impl Display for Report {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        writeln!(f, "{}\n", self.extent())?;
        for note in &self.notes {
            writeln!(f, "{note}\n")?;
        }
        write!(f, "{}", Tables { runs: slice::from_ref(&self.run), scale: self.scale })
    }
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::bench::contenders::ALL;
    use crate::bench::limit::Verdict;
    use crate::bench::limits::LIMITS;
    use crate::bench::plan::{Findings, Plan};
    use crate::bench::samples::{Measure, Samples};
    use std::time::Duration;

    fn report(ours: f64, core: f64) -> Report {
        let mut samples = Samples::default();
        for round in 0..9 {
            samples.add(round, "ours_cache_1", Measure::IdNs, ours);
            samples.add(round, "core_cache_1", Measure::IdNs, core);
        }
        let plan = Plan { parts: vec![], rounds: 9, clients: vec![], scale: 1.0, notes: vec![] };
        let findings = Findings { samples, notes: vec!["A note.".to_owned()] };
        Report::new(&plan, false, ALL.to_vec(), findings, Duration::from_secs(90))
    }

    #[test]
    fn a_missed_limit_is_reported_as_missed() {
        let report = report(1000.0, 1000.0);
        assert!(!report.is_met());
        let row = "| one session: `snowflake_nextval` relative to core's `nextval`, both `CACHE 1` | ≤ 0.60 | \
                   1.00 (1.00–1.00) **not met** |";
        assert!(report.to_string().contains(row), "{report}");
    }

    #[test]
    fn a_met_limit_and_an_unmeasured_one_are_reported_as_such() {
        let report = report(500.0, 1000.0);
        assert!(report.is_met());
        let text = report.to_string();
        assert!(text.contains("| ≤ 0.60 | 0.50 (0.50–0.50) |"), "{text}");
        assert_eq!(text.matches("| not measured |").count(), LIMITS.len() - 1, "{text}");
    }

    #[test]
    fn instructions_are_shown_to_a_thousandth_and_without_an_interval() {
        let mut report = report(500.0, 1000.0);
        let samples = &mut report.run.samples;
        samples.add(0, "ours_cache_1", Measure::InsertInstructions, 41_000.0);
        samples.add(0, "core_cache_1", Measure::InsertInstructions, 40_000.0);
        let text = report.to_string();
        assert!(text.contains("| ≤ 1.010 | 1.025 **not met** |"), "{text}");
    }

    #[test]
    fn a_full_run_without_a_measurement_fails() {
        let mut report = report(500.0, 1000.0);
        report.run.is_full = true;
        assert!(!report.is_met());
        let text = report.to_string();
        assert!(text.contains("| ≤ 0.60 | 0.50 (0.50–0.50) |"), "{text}");
        assert_eq!(text.matches("| **not measured** |").count(), LIMITS.len() - 1, "{text}");
    }

    #[test]
    fn a_limit_by_a_contender_that_is_not_there_is_no_miss() {
        let mut report = report(500.0, 1000.0);
        report.run.is_full = true;
        report.run.contenders.retain(|contender| contender.name != "pgedge");
        let of_pgedge = LIMITS.iter().filter(|limit| limit.is_about("pgedge"));
        let verdicts: Vec<Verdict> = of_pgedge.map(|limit| report.run.verdict(limit)).collect();
        assert!(
            !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == Verdict::Unknown)
        );
        let text = report.to_string();
        assert_eq!(text.matches("| not measured |").count(), verdicts.len(), "{text}");
    }

    #[test]
    fn it_begins_with_what_was_measured_and_what_was_left_out() {
        let text = report(500.0, 1000.0).to_string();
        assert!(
            text.starts_with("9 rounds took 1.5 minutes.\n\nA note.\n\n### Generating IDs\n"),
            "{text}"
        );
    }
}
