//! The results of a run as Markdown, and the files that go with it.

use crate::bench::backend::LOOP;
use crate::bench::bulk::ROWS;
use crate::bench::contender::Contender;
use crate::bench::contenders::ALL;
use crate::bench::floor::{self, COMPARED, FLOORS};
use crate::bench::limit::{Bound, Limit, Verdict, is_failure};
use crate::bench::limits::LIMITS;
use crate::bench::plan::{CLIENTS, Findings, Plan, scaled};
use crate::bench::samples::{MIN_FOR_INTERVAL, Measure, Samples, Spread};
use crate::bench::sequences::COUNTS;
use crate::bench::{chart, hashing, homed, large, leases, reading, registry, retention, summary};
use crate::record::thousands;
use std::fmt::{self, Display, Formatter};
use std::fs::write;
use std::path::Path;
use std::time::Duration;

/// The results of a run.
pub struct Report {
    contenders: Vec<&'static Contender>,
    samples: Samples,
    notes: Vec<String>,
    rounds: usize,
    scale: f64,
    is_full: bool,
    took: Duration,
}

/// A column of a table with a row for each contender: its heading, its measure and how to show it.
type Column = (String, Measure, fn(Spread) -> String);

impl Report {
    pub(super) fn new(
        plan: &Plan,
        is_full: bool,
        contenders: Vec<&'static Contender>,
        findings: Findings,
        took: Duration,
    ) -> Self {
        let Findings { samples, notes } = findings;
        Report { contenders, samples, notes, rounds: plan.rounds, scale: plan.scale, is_full, took }
    }

    /// Writes every measurement and the chart into a folder, as files of that name.
    pub fn write_into(&self, folder: &Path, name: &str) {
        std::fs::create_dir_all(folder).expect("the folder can be made");
        let file = |extension| folder.join(name).with_extension(extension);
        write(file("csv"), self.samples.to_csv()).expect("the file can be written");
        write(file("svg"), chart::draw(&self.samples, self.scale))
            .expect("the file can be written");
    }

    /// The most important figures, as Markdown.
    pub fn summary(&self) -> String {
        summary::of(&self.verdicts(), &self.contenders, &self.samples)
    }

    /// Whether no measured figure misses its limit and, in a full run, every figure with a limit was measured, on a machine that is
    /// quiet enough.
    pub fn is_met(&self) -> bool {
        !is_failure(&self.verdicts())
    }

    fn verdicts(&self) -> Vec<Verdict> {
        LIMITS.iter().map(|limit| self.verdict(limit)).collect()
    }

    /// A limit by a contender that this server lacks is not judged; a note says which that is.
    fn verdict(&self, limit: &Limit) -> Verdict {
        let has = |name| self.contenders.iter().any(|contender| contender.name == name);
        let lacks_one =
            ALL.iter().any(|contender| limit.is_about(contender.name) && !has(contender.name));
        limit.verdict(&self.samples, self.is_full && !lacks_one)
    }

    fn limits(&self, f: &mut Formatter) -> fmt::Result {
        writeln!(f, "| requirement | limit | median | quartiles | 95 % interval | rounds | |")?;
        writeln!(f, "| --- | --: | --: | --: | --: | --: | --- |")?;
        for limit in LIMITS.iter() {
            writeln!(f, "{}", limit_row(limit, &self.verdict(limit)))?;
        }
        Ok(())
    }

    /// A table of the contenders that have any of the measures; nothing if no contender has one.
    fn table(&self, f: &mut Formatter, title: &str, columns: &[Column]) -> fmt::Result {
        let mut rows = vec![(LOOP, "the empty loop")];
        rows.extend(FLOORS);
        rows.extend(self.contenders.iter().map(|contender| (contender.name, contender.title)));
        self.table_of(f, title, rows, columns)
    }

    /// IDs as multiples of the functions that do the least for them; nothing if they were not measured.
    fn multiples_of_the_floor(&self, f: &mut Formatter) -> fmt::Result {
        let multiple = |measure, name, floor| self.samples.ratio((measure, name), (measure, floor));
        let rows: Vec<String> = COMPARED
            .into_iter()
            .filter_map(|(name, title, floor, measure, _)| {
                let time = multiple(measure, name, floor)?;
                let instructions = multiple(Measure::Instructions, name, floor);
                let instructions = instructions.map(hundredths).unwrap_or_default();
                let time = with_quartiles_in_hundredths(time);
                Some(format!("| {title} | {} | {time} | {instructions} |", floor::title(floor)))
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n### IDs as multiples of the floor\n")?;
        writeln!(f, "| | relative to | by time | by instructions |\n| --- | --- | --: | --: |")?;
        rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }

    /// The same of what is named, each with its title.
    fn table_of(
        &self,
        f: &mut Formatter,
        title: &str,
        mut rows: Vec<(&str, &str)>,
        columns: &[Column],
    ) -> fmt::Result {
        let cell =
            |&(_, measure, show): &Column, name| self.samples.spread(measure, name).map(show);
        rows.retain(|(name, _)| columns.iter().any(|column| cell(column, name).is_some()));
        if rows.is_empty() {
            return Ok(());
        }
        let headings: Vec<&str> = columns.iter().map(|(heading, ..)| heading.as_str()).collect();
        writeln!(f, "\n### {title}\n")?;
        writeln!(f, "| | {} |", headings.join(" | "))?;
        writeln!(f, "| --- |{}", " --: |".repeat(columns.len()))?;
        for (name, title) in rows {
            let cells: Vec<String> =
                columns.iter().map(|column| cell(column, name).unwrap_or_default()).collect();
            writeln!(f, "| {title} | {} |", cells.join(" | "))?;
        }
        Ok(())
    }
}

/// As Markdown.
impl Display for Report {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let minutes = self.took.as_secs_f64() / 60.0;
        write!(f, "{} rounds in {minutes:.1} minutes", self.rounds)?;
        if self.scale != 1.0 {
            write!(f, ", at {} of the full size", self.scale)?;
        }
        writeln!(f, ".\n")?;
        self.limits(f)?;
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        self.table(
            f,
            "IDs in one backend",
            &[
                column("ns per ID above the loop", Measure::IdNs, with_quartiles),
                column("with the loop", Measure::StatementNs, whole),
                column("first ID of a transaction, ns", Measure::FirstIdNs, with_quartiles),
                column("instructions", Measure::Instructions, whole),
                column("CPU s per 1,000,000", Measure::IdCpuSeconds, hundredths),
                column("WAL records per 1,000,000", Measure::WalRecords, whole),
                column("WAL bytes per 1,000,000", Measure::WalBytes, whole),
                column("repeats per 1,000,000", Measure::Repeats, whole),
            ],
        )?;
        self.multiples_of_the_floor(f)?;
        self.table(
            f,
            "Transactions per second: 100 IDs each",
            &by_clients(Measure::TakingTps, Measure::TakingCpuUs),
        )?;
        let mut inserts = by_clients(Measure::InsertingTps, Measure::InsertingCpuUs);
        inserts.push(column("instructions", Measure::InsertInstructions, whole));
        self.table(f, "Transactions per second: one row inserted each", &inserts)?;
        self.table(
            f,
            "Transactions per second: one row inserted each, `synchronous_commit` off",
            &by_clients(Measure::InsertingAsyncTps, Measure::InsertingAsyncCpuUs),
        )?;
        self.table(
            f,
            &format!("{} rows by one `INSERT`", thousands(scaled(ROWS, self.scale))),
            &[
                column("s", Measure::BulkSeconds, with_quartiles_in_hundredths),
                column("CPU s", Measure::BulkCpuSeconds, hundredths),
                column("bytes of the primary key", Measure::KeyBytes, whole),
                column("WAL bytes per row", Measure::BulkWalBytes, whole),
            ],
        )?;
        let in_turn = COUNTS.map(|count| {
            let heading = match count {
                1 => "one sequence".to_owned(),
                _ => thousands(count.into()),
            };
            (heading, Measure::InTurnNs(count), with_quartiles as fn(Spread) -> String)
        });
        self.table(
            f,
            "Sequences that one backend uses in turn: ns per ID above the loop",
            &in_turn,
        )?;
        self.table(
            f,
            "IDs without a pause, by what the layout allows",
            &[
                column("`postgres`, 1,024,000 per s", Measure::ShareOfPostgres, thousandths),
                column("`twitter`, 4,096,000 per s", Measure::ShareOfTwitter, thousandths),
            ],
        )?;
        self.table_of(
            f,
            "Reading stored IDs: ns per row above the scan",
            reading::EXPRESSIONS.iter().map(|&(name, title, _)| (name, title)).collect(),
            &[
                column("one process", Measure::ReadNs, with_quartiles_in_tenths),
                column("two parallel workers", Measure::ParallelReadNs, with_quartiles_in_tenths),
            ],
        )?;
        self.table_of(
            f,
            "The rows of a span of time",
            reading::SPANS.iter().map(|&(name, title, ..)| (name, title)).collect(),
            &[
                column("rows per second", Measure::SpanRowsPerSecond, with_quartiles),
                column("bytes of the index", Measure::SpanIndexBytes, whole),
            ],
        )?;
        self.table_of(
            f,
            "IDs with and without leases, `CACHE 1`",
            vec![(leases::WITHOUT, "without"), (leases::WITH, "with")],
            &[
                column("ns per ID above the loop", Measure::IdNs, with_quartiles),
                column("first ID of a transaction, ns", Measure::FirstIdNs, with_quartiles),
                column("instructions", Measure::Instructions, whole),
                column("of a first ID", Measure::FirstIdInstructions, whole),
            ],
        )?;
        self.table_of(
            f,
            "A registry of leases: its renewals",
            registry::CASES.iter().map(|case| (case.name, case.title)).collect(),
            &[
                column("claims wanted per second", Measure::RegistryClaimsWanted, tenths),
                column("answered", Measure::RegistryClaims, tenths),
                column("in a third of the lease", Measure::RegistryShareInTime, thousandths),
                column("longest delay, ms", Measure::RegistryWorstDelayMs, whole),
                column("spans ended", Measure::RegistrySpansEnded, whole),
                column("commits per second", Measure::RegistryCommits, tenths),
                column("WAL bytes per second", Measure::RegistryWalBytes, whole),
                column("CPU s per second", Measure::RegistryCpu, hundredths),
                column("HOT updates", Measure::RegistryHotShare, thousandths),
            ],
        )?;
        self.table_of(
            f,
            "A registry of leases: its memory, and all nodes at once",
            registry::CASES.iter().map(|case| (case.name, case.title)).collect(),
            &[
                column("private kB of a backend", Measure::RegistryPrivateKilobytes, whole),
                column("kB of the machine for a node", Measure::RegistryMachineKilobytes, whole),
                column("bytes of the table", Measure::RegistryTableBytes, whole),
                column("s until all have started", Measure::RegistryStartSeconds, tenths),
                column("s of a restart of the registry", Measure::RegistryRestartSeconds, tenths),
                column("s until all have renewed", Measure::RegistryOutageSeconds, tenths),
                column("spans ended meanwhile", Measure::RegistrySpansEndedByOutage, whole),
            ],
        )?;
        self.table_of(
            f,
            "Plain and homed IDs of layout `postgres`, `CACHE 1`",
            homed::CASES.map(|(name, title, _)| (name, title)).to_vec(),
            &[
                column("ns per ID above the loop", Measure::IdNs, with_quartiles),
                column("rate by what the layout allows", Measure::ShareOfPostgres, thousandths),
            ],
        )?;
        self.table_of(
            f,
            &format!("Hash tables of {} IDs", thousands(scaled(hashing::ROWS, self.scale))),
            hashing::CASES.to_vec(),
            &[
                column("distinct hashes", Measure::DistinctHashes, whole),
                column("HashAggregate, s", Measure::AggregateSeconds, with_quartiles_in_hundredths),
                column("its memory, kB", Measure::AggregateKilobytes, whole),
                column("hash join, s", Measure::JoinSeconds, with_quartiles_in_hundredths),
            ],
        )?;
        self.table_of(
            f,
            &format!(
                "The oldest of {} months of {} rows removed",
                retention::MONTHS,
                thousands(scaled(retention::ROWS, self.scale))
            ),
            retention::CASES.to_vec(),
            &[
                column("s", Measure::RetentionSeconds, thousandths),
                column("WAL bytes", Measure::RetentionWalBytes, whole),
            ],
        )?;
        let rows = thousands(scaled(large::ROWS, self.scale));
        self.table(
            f,
            &format!("{rows} rows by 4 clients, a key larger than `shared_buffers`"),
            &[
                column("rows per second", Measure::LargeRowsPerSecond, with_quartiles),
                column("WAL bytes per row", Measure::LargeWalBytes, whole),
                column("full-page images per 1,000 rows", Measure::LargeFullPageImages, tenths),
                column("checkpoints", Measure::LargeCheckpoints, whole),
                column("pages of the key read per 1,000 rows", Measure::LargeKeyReads, tenths),
                column("bytes of the key", Measure::LargeKeyBytes, whole),
                column("leaf density, %", Measure::LargeLeafDensity, tenths),
            ],
        )?;
        self.table(
            f,
            "Reading that table",
            &[
                column("any row by ID, µs", Measure::LargeReadUs, tenths),
                column("pages read", Measure::LargeReadPages, hundredths),
                column("a recent row by ID, µs", Measure::LargeRecentReadUs, tenths),
                column("pages read", Measure::LargeRecentReadPages, hundredths),
                column("1,000 rows by time, ms", Measure::LargeSpanMs, hundredths),
                column(
                    "size of the index on `created_at`, bytes",
                    Measure::LargeTimeIndexBytes,
                    whole,
                ),
            ],
        )
    }
}

fn column(heading: &str, measure: Measure, show: fn(Spread) -> String) -> Column {
    (heading.to_owned(), measure, show)
}

fn by_clients(tps: fn(u32) -> Measure, cpu_us: fn(u32) -> Measure) -> Vec<Column> {
    let heading = |clients| match clients {
        1 => "1 client".to_owned(),
        _ => format!("{clients} clients"),
    };
    let mut columns: Vec<Column> = CLIENTS
        .iter()
        .map(|&clients| (heading(clients), tps(clients), with_quartiles as _))
        .collect();
    columns.push(column("CPU µs of the server, 8 clients", cpu_us(8), whole));
    columns
}

fn limit_row(limit: &Limit, verdict: &Verdict) -> String {
    let decimals = limit.decimals();
    let bound = match limit.bound {
        Bound::AtMost(bound) => format!("≤ {bound:.decimals$}"),
        Bound::AtLeast(bound) => format!("≥ {bound:.decimals$}"),
    };
    let title = &limit.title;
    let measured = |spread: &Spread, verdict: &str| {
        let Spread { lower_quartile, median, upper_quartile, interval, count } = spread;
        let between = |low, high| format!("{low:.decimals$}–{high:.decimals$}");
        let quartiles = between(*lower_quartile, *upper_quartile);
        // The value of an exact figure decides, not its interval.
        let interval = match limit.over.0.is_exact() || *count < MIN_FOR_INTERVAL {
            true => String::new(),
            false => between(interval[0], interval[1]),
        };
        format!(
            "| {title} | {bound} | {median:.decimals$} | {quartiles} | {interval} | {count} | {verdict} |"
        )
    };
    match verdict {
        Verdict::Met(spread) => measured(spread, "met"),
        Verdict::Undecided(spread) => measured(spread, "undecided"),
        Verdict::NotMet(spread) => measured(spread, "**not met**"),
        Verdict::TooNoisy(spread) => measured(spread, "too noisy"),
        Verdict::TooFewRounds(spread) => measured(spread, "**too few rounds**"),
        Verdict::Missing => format!("| {title} | {bound} | | | | | **not measured** |"),
        Verdict::Unknown => format!("| {title} | {bound} | | | | | not measured |"),
    }
}

fn whole(spread: Spread) -> String {
    thousands(spread.median.round() as i64)
}

fn with_quartiles(spread: Spread) -> String {
    let [lower, median, upper] = [spread.lower_quartile, spread.median, spread.upper_quartile]
        .map(|figure| thousands(figure.round() as i64));
    format!("{median} ({lower}–{upper})")
}

fn with_quartiles_in_hundredths(spread: Spread) -> String {
    let Spread { lower_quartile, median, upper_quartile, .. } = spread;
    format!("{median:.2} ({lower_quartile:.2}–{upper_quartile:.2})")
}

fn with_quartiles_in_tenths(spread: Spread) -> String {
    let Spread { lower_quartile, median, upper_quartile, .. } = spread;
    format!("{median:.1} ({lower_quartile:.1}–{upper_quartile:.1})")
}

fn tenths(spread: Spread) -> String {
    format!("{:.1}", spread.median)
}

fn hundredths(spread: Spread) -> String {
    format!("{:.2}", spread.median)
}

fn thousandths(spread: Spread) -> String {
    format!("{:.3}", spread.median)
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::bench::contenders::ALL;
    use crate::bench::limit::Verdict;
    use crate::bench::limits::LIMITS;
    use crate::bench::samples::{Measure, Samples};
    use std::time::Duration;

    fn report(ours: f64, core: f64) -> Report {
        let mut samples = Samples::default();
        for round in 0..9 {
            samples.add(round, "ours_cache_1", Measure::IdNs, ours);
            samples.add(round, "core_cache_1", Measure::IdNs, core);
        }
        Report {
            contenders: ALL.to_vec(),
            samples,
            notes: vec!["A note.".to_owned()],
            rounds: 9,
            scale: 1.0,
            is_full: false,
            took: Duration::from_secs(90),
        }
    }

    #[test]
    fn a_missed_limit_is_reported_as_missed() {
        let report = report(1000.0, 1000.0);
        assert!(!report.is_met());
        let row = "| one backend: `snowflake_nextval` relative to core's `nextval`, both `CACHE 1` | ≤ 0.60 | 1.00 | \
                   1.00–1.00 | 1.00–1.00 | 9 | **not met** |";
        assert!(report.to_string().contains(row), "{report}");
    }

    #[test]
    fn a_met_limit_and_an_unmeasured_one_are_reported_as_such() {
        let report = report(500.0, 1000.0);
        assert!(report.is_met());
        let text = report.to_string();
        assert!(text.contains("| ≤ 0.60 | 0.50 | 0.50–0.50 | 0.50–0.50 | 9 | met |"), "{text}");
        assert_eq!(text.matches("| not measured |").count(), LIMITS.len() - 1, "{text}");
    }

    #[test]
    fn instructions_are_shown_to_a_thousandth_and_without_an_interval() {
        let mut report = report(500.0, 1000.0);
        report.samples.add(0, "ours_cache_1", Measure::InsertInstructions, 41_000.0);
        report.samples.add(0, "core_cache_1", Measure::InsertInstructions, 40_000.0);
        let text = report.to_string();
        assert!(text.contains("| ≤ 1.010 | 1.025 | 1.025–1.025 |  | 1 | **not met** |"), "{text}");
    }

    #[test]
    fn a_full_run_without_a_measurement_fails() {
        let report = Report { is_full: true, ..report(500.0, 1000.0) };
        assert!(!report.is_met());
        let text = report.to_string();
        assert!(text.contains("| ≤ 0.60 | 0.50 | 0.50–0.50 | 0.50–0.50 | 9 | met |"), "{text}");
        assert_eq!(text.matches("| **not measured** |").count(), LIMITS.len() - 1, "{text}");
    }

    #[test]
    fn a_limit_by_a_contender_that_is_not_there_is_no_miss() {
        let mut contenders = ALL.to_vec();
        contenders.retain(|contender| contender.name != "pgedge");
        let report = Report { is_full: true, contenders, ..report(500.0, 1000.0) };
        let of_pgedge = LIMITS.iter().filter(|limit| limit.is_about("pgedge"));
        let verdicts: Vec<Verdict> = of_pgedge.map(|limit| report.verdict(limit)).collect();
        assert!(
            !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == Verdict::Unknown)
        );
        let text = report.to_string();
        assert_eq!(text.matches("| not measured |").count(), verdicts.len(), "{text}");
    }

    #[test]
    fn a_table_has_the_contenders_that_were_measured() {
        let text = report(1234.4, 2000.0).to_string();
        let table = "### IDs in one backend\n\n\
            | | ns per ID above the loop | with the loop | first ID of a transaction, ns | instructions | CPU s per 1,000,000 | \
            WAL records per 1,000,000 | WAL bytes per 1,000,000 | repeats per 1,000,000 |\n\
            | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n\
            | core `nextval`, `CACHE 1` | 2,000 (2,000–2,000) |  |  |  |  |  |  |  |\n\
            | `snowflake_nextval`, `CACHE 1` | 1,234 (1,234–1,234) |  |  |  |  |  |  |  |\n";
        assert!(text.contains(table), "{text}");
        assert!(!text.contains("one row inserted"), "{text}");
        assert!(text.starts_with("9 rounds in 1.5 minutes.\n"), "{text}");
        assert!(text.contains("\nA note.\n"), "{text}");
    }
}
