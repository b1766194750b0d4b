//! The tables of a run, or of the recorded runs of several majors in the same cells.

use crate::bench::backend::LOOP;
use crate::bench::bulk::ROWS;
use crate::bench::contender::Contender;
use crate::bench::contenders::ALL;
use crate::bench::floor::FLOORS;
use crate::bench::limit::{Bound, Limit, Verdict};
use crate::bench::plan::{CLIENTS, scaled};
use crate::bench::samples::{Measure, Samples, Spread};
use crate::bench::{hashing, homed, large, leases, limits, reading, registry, retention};
use pg_snowflake_harness::record::thousands;
use std::fmt::{self, Display, Formatter};

/// A page of several majors has room for one number of clients; it is also the one whose CPU time is shown.
const CLIENTS_OF_CPU: u32 = 8;

/// What was measured on one server.
pub(super) struct Run {
    /// As in "18.6".
    pub(super) version: String,
    pub(super) limits: Vec<Limit>,
    /// What the server had.
    pub(super) contenders: Vec<&'static Contender>,
    pub(super) samples: Samples,
    pub(super) is_full: bool,
}

impl Run {
    /// A full run on that major, of which a contender is left that was measured.
    pub(super) fn recorded(version: String, major: u32, samples: Samples) -> Self {
        let mut contenders = ALL.to_vec();
        contenders.retain(|contender| samples.has(contender.name));
        Run { version, limits: limits::on(major), contenders, samples, is_full: true }
    }

    pub(super) fn verdicts(&self) -> Vec<Verdict> {
        self.limits.iter().map(|limit| self.verdict(limit)).collect()
    }

    /// A limit by a contender that this server lacks is not judged; a note says which that is.
    pub(super) fn verdict(&self, limit: &Limit) -> Verdict {
        let has = |name| self.contenders.iter().any(|contender| contender.name == name);
        let lacks_one =
            ALL.iter().any(|contender| limit.is_about(contender.name) && !has(contender.name));
        limit.verdict(&self.samples, self.is_full && !lacks_one)
    }
}

/// How many limits are met.
fn in_short(version: &str, verdicts: &[Verdict]) -> String {
    let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
    let is_undecided =
        |verdict: &Verdict| matches!(verdict, Verdict::Undecided(_) | Verdict::TooNoisy(_));
    let rest = [
        ("undecided", count(is_undecided)),
        ("missed", count(Verdict::is_miss)),
        ("not measured", count(|verdict| *verdict == Verdict::Unknown)),
    ];
    let rest = rest.into_iter().filter(|(_, count)| *count > 0);
    let were = |count| if count == 1 { "was" } else { "were" };
    let rest = rest.map(|(what, count)| format!("; {count} {} {what}", were(count)));
    format!(
        "On PostgreSQL {version}, {} of the {} limits were met{}.",
        count(|verdict| matches!(verdict, Verdict::Met(_))),
        verdicts.len(),
        rest.collect::<String>()
    )
}

/// A table with a row for each name and its title.
struct Table {
    title: String,
    rows: Vec<(&'static str, &'static str)>,
    columns: Vec<Column>,
}

/// A column: its heading, its measure, and how many decimals are shown.
struct Column {
    heading: String,
    measure: Measure,
    decimals: usize,
}

/// As Markdown.
pub(super) struct Tables<'a> {
    pub(super) runs: &'a [Run],
    pub(super) scale: f64,
}

impl Display for Tables<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        if self.runs.len() > 1 {
            writeln!(
                f,
                "A cell shows the medians on PostgreSQL {}, or one figure if they are equal. A dash means that no value was measured.\n",
                self.versions(" / ")
            )?;
        }
        for table in tables(self.scale, self.runs.len() == 1) {
            self.table(f, &table)?;
        }
        self.limits(f)
    }
}

impl Tables<'_> {
    fn versions(&self, separator: &str) -> String {
        let versions: Vec<&str> = self.runs.iter().map(|run| run.version.as_str()).collect();
        versions.join(separator)
    }

    /// Only what was measured; nothing if that is nothing.
    fn table(&self, f: &mut Formatter, Table { title, rows, columns }: &Table) -> fmt::Result {
        let figure = |run: &Run, name, &Column { measure, decimals, .. }: &Column| {
            run.samples.spread(measure, name).map(|Spread { median, .. }| match decimals {
                0 => thousands(median.round() as i64),
                _ => format!("{median:.decimals$}"),
            })
        };
        let cell = |name, column| in_a_cell(self.runs.iter().map(|run| figure(run, name, column)));
        let rows: Vec<String> = rows
            .iter()
            .filter_map(|(name, title)| {
                let cells: Vec<String> = columns.iter().map(|column| cell(name, column)).collect();
                let is_measured = cells.iter().any(|cell| !cell.is_empty());
                is_measured.then(|| format!("| {title} | {} |", cells.join(" | ")))
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let headings: Vec<&str> = columns.iter().map(|column| column.heading.as_str()).collect();
        writeln!(f, "### {title}\n")?;
        writeln!(f, "| | {} |", headings.join(" | "))?;
        writeln!(f, "| --- |{}", " --: |".repeat(columns.len()))?;
        rows.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        writeln!(f)
    }

    fn limits(&self, f: &mut Formatter) -> fmt::Result {
        writeln!(f, "### Limits\n")?;
        for run in self.runs {
            writeln!(f, "- {}", in_short(&run.version, &run.verdicts()))?;
        }
        writeln!(f, "\n| requirement | limit | {} |", self.versions(" | "))?;
        writeln!(f, "| --- | --: |{}", " --: |".repeat(self.runs.len()))?;
        let mut titles: Vec<&str> = Vec::new();
        for Limit { title, .. } in self.runs.iter().flat_map(|run| &run.limits) {
            if titles.contains(&title.as_str()) {
                continue;
            }
            titles.push(title);
            let bounds = self.runs.iter().map(|run| of_title(run, title).map(bound));
            let verdicts = self.runs.iter().map(|run| {
                let limit = of_title(run, title)?;
                Some(judged(limit, &run.verdict(limit)))
            });
            let verdicts: Vec<String> = verdicts.map(Option::unwrap_or_default).collect();
            writeln!(f, "| {title} | {} | {} |", in_a_cell(bounds), verdicts.join(" | "))?;
        }
        Ok(())
    }
}

/// The figures of all runs, or one if they are the same.
fn in_a_cell(figures: impl IntoIterator<Item = Option<String>>) -> String {
    let figures: Vec<Option<String>> = figures.into_iter().collect();
    match figures.as_slice() {
        [first, others @ ..] if others.iter().all(|other| other == first) => {
            first.clone().unwrap_or_default()
        }
        _ => {
            let figures =
                figures.into_iter().map(|figure| figure.unwrap_or_else(|| "–".to_owned()));
            figures.collect::<Vec<_>>().join(" / ")
        }
    }
}

fn of_title<'a>(run: &'a Run, title: &str) -> Option<&'a Limit> {
    run.limits.iter().find(|limit| limit.title == title)
}

fn bound(limit: &Limit) -> String {
    let decimals = limit.decimals();
    match limit.bound {
        Bound::AtMost(bound) => format!("≤ {bound:.decimals$}"),
        Bound::AtLeast(bound) => format!("≥ {bound:.decimals$}"),
    }
}

/// The median, the interval that decides with it, and what does not meet the limit.
fn judged(limit: &Limit, verdict: &Verdict) -> String {
    let decimals = limit.decimals();
    let measured = |Spread { median, interval: [low, high], count }: &Spread| {
        let has_interval = !limit.over.0.is_exact() && *count > 1;
        let interval = has_interval.then(|| format!(" ({low:.decimals$}–{high:.decimals$})"));
        format!("{median:.decimals$}{}", interval.unwrap_or_default())
    };
    match verdict {
        Verdict::Met(spread) => measured(spread),
        Verdict::Undecided(spread) => measured(spread) + " undecided",
        Verdict::NotMet(spread) => measured(spread) + " **not met**",
        Verdict::TooNoisy(spread) => measured(spread) + " too noisy",
        Verdict::TooFewRounds(spread) => measured(spread) + " **too few rounds**",
        Verdict::Missing => "**not measured**".to_owned(),
        Verdict::Unknown => "not measured".to_owned(),
    }
}

/// A run by itself shows all of its figures. The page of several majors leaves out those that its limits or its other tables imply.
fn tables(scale: f64, is_alone: bool) -> Vec<Table> {
    let clients: &[u32] = if is_alone { &CLIENTS } else { &[CLIENTS_OF_CPU] };
    let rows = |full| thousands(scaled(full, scale));
    let per_second = |what: &str, tps: fn(u32) -> Measure, cpu_us: fn(u32) -> Measure| {
        let heading = |clients| match clients {
            1 => format!("{what}: 1 client"),
            _ => format!("{what}: {clients} clients"),
        };
        let rates = clients.iter().map(|&clients| column(&heading(clients), tps(clients), 0));
        let mut columns: Vec<Column> = rates.collect();
        columns.push(column("CPU µs of the server", cpu_us(CLIENTS_OF_CPU), 0));
        columns
    };
    let taking =
        per_second("transactions of 100 IDs per second", Measure::TakingTps, Measure::TakingCpuUs);
    let inserting =
        per_second("one-row `INSERT`s per second", Measure::InsertingTps, Measure::InsertingCpuUs);
    let inserting_async = per_second(
        "`synchronous_commit` off",
        Measure::InsertingAsyncTps,
        Measure::InsertingAsyncCpuUs,
    );
    let mut tables = vec![
        of_contenders(
            "Generating IDs",
            [
                vec![
                    column("ns per ID above the loop", Measure::IdNs, 0),
                    column("with the loop", Measure::StatementNs, 0),
                    column("100,000 sequences in turn, ns", Measure::InTurnNs(100_000), 0),
                    column("first ID of a transaction, ns", Measure::FirstIdNs, 0),
                    column("instructions", Measure::Instructions, 0),
                    column("WAL records per 1,000,000", Measure::WalRecords, 0),
                    column("duplicates in 1,000,000", Measure::Repeats, 0),
                ],
                taking,
            ]
            .into_iter()
            .flatten()
            .collect(),
        ),
        of_contenders(
            "Inserting rows",
            [
                inserting,
                vec![column("instructions", Measure::InsertInstructions, 0)],
                inserting_async,
                vec![
                    column(
                        &format!("{} rows by one `INSERT`, s", rows(ROWS)),
                        Measure::BulkSeconds,
                        2,
                    ),
                    column("bytes of their primary key", Measure::KeyBytes, 0),
                    column("WAL bytes per row", Measure::BulkWalBytes, 0),
                ],
            ]
            .into_iter()
            .flatten()
            .collect(),
        ),
        of_contenders(
            &format!("{} rows by 4 clients, a key larger than `shared_buffers`", rows(large::ROWS)),
            vec![
                column("rows per second", Measure::LargeRowsPerSecond, 0),
                column("WAL bytes per row", Measure::LargeWalBytes, 0),
                column("full-page images per 1,000 rows", Measure::LargeFullPageImages, 1),
                column("bytes of the key", Measure::LargeKeyBytes, 0),
                column("leaf density, %", Measure::LargeLeafDensity, 1),
                column("any row by ID, µs", Measure::LargeReadUs, 1),
                column("a recent row by ID, µs", Measure::LargeRecentReadUs, 1),
                column("its pages read", Measure::LargeRecentReadPages, 2),
                column("1,000 rows by time, ms", Measure::LargeSpanMs, 2),
            ],
        ),
        table(
            "Reading stored IDs: ns per row above the scan",
            reading::EXPRESSIONS.iter().map(|&(name, title, _)| (name, title)).collect(),
            vec![
                column("one process", Measure::ReadNs, 1),
                column("two parallel workers", Measure::ParallelReadNs, 1),
            ],
        ),
        table(
            "Plain and homed IDs of layout `postgres`, `CACHE 1`",
            homed::CASES.map(|(name, title, _)| (name, title)).to_vec(),
            vec![
                column("ns per ID above the loop", Measure::IdNs, 0),
                column("rate by what the layout allows", Measure::ShareOfPostgres, 3),
            ],
        ),
        table(
            "A registry of leases",
            registry::CASES.iter().map(|case| (case.name, case.title)).collect(),
            vec![
                column("claims per second", Measure::RegistryClaims, 1),
                column("in a third of the lease", Measure::RegistryShareInTime, 3),
                column("longest delay, ms", Measure::RegistryWorstDelayMs, 0),
                column("CPU s per second", Measure::RegistryCpu, 2),
                column("WAL bytes per second", Measure::RegistryWalBytes, 0),
                column("kB of the machine for a node", Measure::RegistryMachineKilobytes, 0),
                column("bytes of the table", Measure::RegistryTableBytes, 0),
                column("s until all have started", Measure::RegistryStartSeconds, 1),
                column("until all have renewed after a restart", Measure::RegistryOutageSeconds, 1),
                column("spans ended meanwhile", Measure::RegistrySpansEndedByOutage, 0),
            ],
        ),
        table(
            &format!(
                "The oldest of {} months of {} rows removed",
                retention::MONTHS,
                rows(retention::ROWS)
            ),
            retention::CASES.to_vec(),
            vec![
                column("s", Measure::RetentionSeconds, 3),
                column("WAL bytes", Measure::RetentionWalBytes, 0),
            ],
        ),
    ];
    if is_alone {
        tables.extend(details(scale));
    }
    tables
}

fn details(scale: f64) -> [Table; 4] {
    [
        of_contenders(
            "IDs without a pause, by what the layout allows",
            vec![
                column("`postgres`, 1,024,000 per s", Measure::ShareOfPostgres, 3),
                column("`twitter`, 4,096,000 per s", Measure::ShareOfTwitter, 3),
            ],
        ),
        table(
            "The rows of a span of time",
            reading::SPANS.iter().map(|&(name, title, ..)| (name, title)).collect(),
            vec![
                column("rows per second", Measure::SpanRowsPerSecond, 0),
                column("bytes of the index", Measure::SpanIndexBytes, 0),
            ],
        ),
        table(
            "IDs with and without leases, `CACHE 1`",
            vec![(leases::WITHOUT, "without"), (leases::WITH, "with")],
            vec![
                column("ns per ID above the loop", Measure::IdNs, 0),
                column("first ID of a transaction, ns", Measure::FirstIdNs, 0),
                column("instructions", Measure::Instructions, 0),
                column("of a first ID", Measure::FirstIdInstructions, 0),
            ],
        ),
        table(
            &format!("Hash tables of {} IDs", thousands(scaled(hashing::ROWS, scale))),
            hashing::CASES.to_vec(),
            vec![
                column("distinct hashes", Measure::DistinctHashes, 0),
                column("HashAggregate, s", Measure::AggregateSeconds, 2),
                column("its memory, kB", Measure::AggregateKilobytes, 0),
                column("hash join, s", Measure::JoinSeconds, 2),
            ],
        ),
    ]
}

fn table(title: &str, rows: Vec<(&'static str, &'static str)>, columns: Vec<Column>) -> Table {
    Table { title: title.to_owned(), rows, columns }
}

/// With a row for each contender, the loop and the floor.
fn of_contenders(title: &str, columns: Vec<Column>) -> Table {
    let mut rows = vec![(LOOP, "the empty loop")];
    rows.extend(FLOORS);
    rows.extend(ALL.iter().map(|contender| (contender.name, contender.title)));
    table(title, rows, columns)
}

fn column(heading: &str, measure: Measure, decimals: usize) -> Column {
    Column { heading: heading.to_owned(), measure, decimals }
}

#[cfg(test)]
mod tests {
    use super::{Run, Table, Tables, bound, in_a_cell, in_short, judged};
    use crate::bench::limit::{Limit, Verdict};
    use crate::bench::limits;
    use crate::bench::samples::{Measure, Samples, Spread};
    use pg_snowflake_harness::record::between;
    use pg_snowflake_harness::top;

    fn run(version: &str, major: u32, ours: f64, has_uuids: bool) -> Run {
        let mut samples = Samples::default();
        for round in 0..27 {
            samples.add(round, "ours_cache_1", Measure::IdNs, ours);
            samples.add(round, "core_cache_1", Measure::IdNs, 100.0);
            samples.add(round, "core_cache_1", Measure::WalRecords, 30_304.0);
        }
        if has_uuids {
            samples.add(0, "uuid_v7", Measure::IdNs, 1234.4);
        }
        Run { is_full: false, ..Run::recorded(version.to_owned(), major, samples) }
    }

    fn tables(runs: &[Run]) -> String {
        Tables { runs, scale: 1.0 }.to_string()
    }

    #[test]
    fn a_cell_has_the_figures_of_all_runs_or_one_if_they_are_the_same() {
        let runs = [
            run("19.1", 19, 50.0, true),
            run("18.6", 18, 50.0, true),
            run("15.2", 15, 40.0, false),
        ];
        let text = tables(&runs);
        let table = "### Generating IDs\n\n\
            | | ns per ID above the loop | with the loop | 100,000 sequences in turn, ns | first ID of a transaction, ns | \
            instructions | WAL records per 1,000,000 | duplicates in 1,000,000 | transactions of 100 IDs per second: 8 clients | \
            CPU µs of the server |\n\
            | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n\
            | core `nextval`, `CACHE 1` | 100 |  |  |  |  | 30,304 |  |  |  |\n\
            | `snowflake_nextval`, `CACHE 1` | 50 / 50 / 40 |  |  |  |  |  |  |  |  |\n\
            | `uuidv7()` | 1,234 / 1,234 / – |  |  |  |  |  |  |  |  |\n";
        assert!(text.contains(table), "{text}");
        assert!(!text.contains("### Inserting rows"), "{text}");
    }

    #[test]
    fn a_run_by_itself_shows_all_clients_and_several_show_one_number_of_them() {
        let with_loads = || {
            let mut run = run("19.1", 19, 50.0, true);
            for clients in [1, 8, 32] {
                run.samples.add(0, "ours_cache_1", Measure::TakingTps(clients), 100.0);
            }
            run.samples.add(0, "ours_cache_1", Measure::ShareOfPostgres, 1.0);
            run
        };
        let (alone, several) = (tables(&[with_loads()]), tables(&[with_loads(), with_loads()]));
        for figure in [": 1 client | ", ": 32 clients | ", "### IDs without a pause"] {
            assert!(alone.contains(figure), "{figure}: {alone}");
            assert!(!several.contains(figure), "{figure}: {several}");
        }
        assert!(several.contains(": 8 clients | "), "{several}");
    }

    /// A limit, a title or a verdict was changed: `./dev bench --tables` writes the page anew from the measurements.
    #[test]
    fn the_page_has_the_titles_the_limits_and_the_verdicts_that_follow_from_its_figures() {
        let page = std::fs::read_to_string(top().join("docs/benchmarks.md")).unwrap();
        let text = between(&page, "tables").unwrap();
        let rows_of = |title: &str| -> Vec<Vec<&str>> {
            let (_, text) = text.split_once(&format!("### {title}\n")).expect(title);
            let rows = text.lines().skip_while(|line| !line.starts_with('|'));
            let rows = rows.take_while(|line| line.starts_with('|'));
            rows.map(|row| row[1..row.len() - 1].split('|').map(str::trim).collect()).collect()
        };
        for Table { title, rows, columns } in super::tables(1.0, false) {
            let on_page = rows_of(&title);
            assert!(on_page[0].iter().skip(1).eq(columns.iter().map(|column| &column.heading)));
            let has = |row: &[&str]| rows.iter().any(|(_, title)| *title == row[0]);
            assert!(on_page[2..].iter().all(|row| has(row)), "{title}");
        }

        let on_page = rows_of("Limits");
        let versions = &on_page[0][2..];
        let majors = versions.iter().map(|version| {
            let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            limits::on(digits.parse().unwrap())
        });
        let limits: Vec<Vec<Limit>> = majors.collect();
        let mut verdicts: Vec<Vec<Verdict>> = limits.iter().map(|_| Vec::new()).collect();
        for row in &on_page[2..] {
            let of_row = |limits: &[Limit]| limits.iter().position(|limit| limit.title == row[0]);
            let bounds = limits.iter().map(|limits| Some(bound(&limits[of_row(limits)?])));
            assert_eq!(in_a_cell(bounds), row[1], "{}", row[0]);
            for ((limits, verdicts), cell) in limits.iter().zip(&mut verdicts).zip(&row[2..]) {
                let Some(limit) = of_row(limits).map(|n| &limits[n]) else { continue };
                let verdict = verdict_of(limit, cell);
                assert_eq!(&judged(limit, &verdict), cell, "{}", row[0]);
                verdicts.push(verdict);
            }
        }
        for ((version, limits), verdicts) in versions.iter().zip(&limits).zip(&verdicts) {
            assert_eq!(verdicts.len(), limits.len(), "{version}");
            assert!(text.contains(&format!("- {}\n", in_short(version, verdicts))), "{version}");
        }
    }

    /// That of the median and the interval in a cell. They are rounded, and so is the width between "undecided" and "too noisy".
    fn verdict_of(limit: &Limit, cell: &str) -> Verdict {
        let figures = cell.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
        let figures: Vec<f64> = figures.filter_map(|figure| figure.parse().ok()).collect();
        let Some(&median) = figures.first() else {
            return if cell.contains("**") { Verdict::Missing } else { Verdict::Unknown };
        };
        let interval = figures[1..].try_into().unwrap_or([median; 2]);
        let has_one_round = figures.len() == 1 && !limit.over.0.is_exact();
        let count = if has_one_round { 1 } else { limit.rounds };
        match limit.judge(Spread { median, interval, count }, true) {
            Verdict::Undecided(spread) if cell.ends_with(" too noisy") => Verdict::TooNoisy(spread),
            Verdict::TooNoisy(spread) if cell.ends_with(" undecided") => Verdict::Undecided(spread),
            verdict => verdict,
        }
    }

    #[test]
    fn a_limit_has_a_column_for_each_run() {
        let runs = [run("19.1", 19, 50.0, true), run("15.2", 15, 70.0, false)];
        let text = tables(&runs);
        let [all, of_15] = runs.map(|run| run.limits.len());
        for row in [
            "| requirement | limit | 19.1 | 15.2 |\n",
            "both `CACHE 1` | ≤ 0.60 | 0.50 (0.50–0.50) | 0.70 (0.70–0.70) **not met** |\n",
            "| one session: the SQL edition relative to the PL/pgSQL original | ≤ 3.60 / ≤ 1.50 | not measured | not measured |\n",
            &format!(
                "On PostgreSQL 19.1, 2 of the {all} limits were met; {} were not measured.",
                all - 2
            ),
            &format!(
                "On PostgreSQL 15.2, 0 of the {of_15} limits were met; 1 was missed; {} were not measured.",
                of_15 - 1
            ),
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }
}
