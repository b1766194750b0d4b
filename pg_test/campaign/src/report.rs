//! The campaign's progress and its final tables.

use crate::Fault;
use crate::Kind::{self, BesideCore, OfAServer, OfAShard, OfTheSqlEdition};
use crate::plan::{Outcome, Plan, Turn};
use crate::tally::Tally;
use pg_snowflake_harness::installation::{self, left_out};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};
use thousands::Separable;

/// How often progress is reported.
const INTERVAL: Duration = Duration::from_secs(5);

/// The kinds of faults, each with the title of its table.
const KINDS: [(Kind, &str); 4] = [
    (OfAServer, "fault"),
    (BesideCore, "fault, beside core"),
    (OfTheSqlEdition, "fault, with the SQL edition"),
    (OfAShard, "fault, of servers that want the same shard"),
];

/// A column of figures: its title, the figure, and whose tables have it.
type Column = (&'static str, fn(&Tally) -> u64, &'static [Kind]);

const COLUMNS: [Column; 13] = [
    ("steps", |tally| tally.steps, &[BesideCore]),
    ("unlike core", |tally| tally.unlike_core, &[BesideCore]),
    ("IDs returned", |tally| tally.returned, &[OfAServer, BesideCore, OfTheSqlEdition, OfAShard]),
    ("by all but one server", |tally| tally.by_others, &[OfAShard]),
    ("of these promised", |tally| tally.promised, &[OfAServer, BesideCore, OfTheSqlEdition]),
    ("repeats", |tally| tally.repeats, &[OfAServer, BesideCore, OfTheSqlEdition, OfAShard]),
    ("out of order", |tally| tally.out_of_order, &[OfAServer, OfTheSqlEdition]),
    ("in ticks of two servers", |tally| tally.in_shared_ticks, &[OfAShard]),
    ("locks left behind", |tally| tally.locks_left, &[OfTheSqlEdition]),
    ("not promised, repeated", |tally| tally.repeats_unpromised, &[OfAServer, OfTheSqlEdition]),
    ("refused for the clock", |tally| tally.refused, &[OfAServer, OfTheSqlEdition]),
    ("refused", |tally| tally.refused, &[OfAShard]),
    ("repeats of the PL/pgSQL original", |tally| tally.copied_repeats, &[OfTheSqlEdition]),
];

pub struct Report {
    seed: u64,
    first_episode: u64,
    has_leases: bool,
    until_broken: bool,
    rows: Vec<Row>,
    started: Instant,
    last_reported: Instant,
}

struct Row {
    fault: &'static Fault,
    wanted: i32,
    /// Rounds that are done or running.
    begun: i32,
    done: i32,
    episodes: u64,
    tally: Tally,
    broken: u32,
    failed: u32,
}

impl Row {
    /// How often the fault happened, and how many episodes were wrong.
    fn times(&self) -> String {
        let mut times = self.done.to_string();
        if self.done != self.wanted {
            times += &format!(" of {}", self.wanted);
        }
        if self.broken > 0 {
            times += &format!(", **promise broken in {} episodes**", self.broken);
        }
        if self.failed > 0 {
            times += &format!(", **{} episodes failed**", self.failed);
        }
        times
    }
}

impl Report {
    pub(super) fn begin(plan: &Plan) -> Self {
        let row = |&(fault, wanted): &(&'static Fault, i32)| Row {
            fault,
            wanted,
            begun: 0,
            done: 0,
            episodes: 0,
            tally: Tally::default(),
            broken: 0,
            failed: 0,
        };
        let rows: Vec<Row> = plan.faults.iter().map(row).collect();
        for (name, reason) in rows.iter().filter_map(|row| Some((row.fault.name, row.fault.left_out()?))) {
            left_out(&format!("the campaign's fault {name}"), reason);
        }
        println!("seed {}", plan.seed);
        let now = Instant::now();
        let Plan { seed, first_episode, has_leases, until_broken, .. } = *plan;
        Report { seed, first_episode, has_leases, until_broken, rows, started: now, last_reported: now }
    }

    /// An episode of the fault with the smallest part done, so that a short budget serves all faults equally.
    pub(super) fn next_turn(&mut self) -> Option<Turn> {
        if self.until_broken && self.is_broken() {
            return None;
        }
        let share = |row: &Row| f64::from(row.begun) / f64::from(row.wanted);
        let row = self
            .rows
            .iter_mut()
            .filter(|row| row.begun < row.wanted && row.fault.left_out().is_none())
            .min_by(|one, other| share(one).total_cmp(&share(other)))?;
        let rounds = row.fault.per_episode.min(row.wanted - row.begun);
        let episode = self.first_episode + row.episodes;
        row.begun += rounds;
        row.episodes += 1;
        Some(Turn { fault: row.fault, episode, rounds })
    }

    pub(super) fn enter(&mut self, turn: &Turn, outcome: Outcome) {
        let row = self.rows.iter_mut().find(|row| row.fault.name == turn.fault.name);
        let row = row.expect("the turn is of this plan");
        let again = || turn.reproduce(self.seed, self.has_leases);
        match outcome {
            Some(tally) => {
                row.done += turn.rounds;
                row.tally += tally;
                if !tally.is_sound() && self.has_leases {
                    row.broken += 1;
                    println!("BROKEN: {tally:?}\n  again: {}", again());
                }
            }
            None => {
                row.failed += 1;
                println!("FAILED, see above\n  again: {}", again());
            }
        }
        if self.last_reported.elapsed() > INTERVAL {
            self.last_reported = Instant::now();
            println!("{}", self.progress());
        }
    }

    pub fn is_broken(&self) -> bool {
        self.rows.iter().any(|row| row.broken > 0)
    }

    pub fn is_sound(&self) -> bool {
        !self.is_broken() && self.rows.iter().all(|row| row.failed == 0)
    }

    pub fn is_complete(&self) -> bool {
        self.rows.iter().all(|row| row.done == row.wanted || row.fault.left_out().is_some())
    }

    /// Whether the function that the SQL edition replaces has repeated IDs, wherever it ran. Otherwise the run proves nothing.
    pub fn is_conclusive(&self) -> bool {
        let mut rows = self.rows.iter().filter(|row| row.fault.kind() == OfTheSqlEdition && row.done > 0);
        rows.all(|row| row.tally.copied_repeats > 0)
    }

    fn progress(&self) -> String {
        let rounds: Vec<String> = self.rows.iter().map(|row| format!("{} {}/{}", row.fault.name, row.done, row.wanted)).collect();
        let total = total(&self.rows);
        format!(
            "{:4.1} min: {} IDs returned, {} repeats; {}",
            self.started.elapsed().as_secs_f64() / 60.0,
            total.returned,
            total.repeats,
            rounds.join(", ")
        )
    }

    /// As in ", upgrades to PostgreSQL 19"; empty if no server is upgraded.
    fn upgrades(&self) -> String {
        let is_planned = self.rows.iter().any(|row| row.fault.name == "upgrade");
        installation::next_bindir()
            .ok()
            .filter(|_| is_planned)
            .map_or_else(String::new, |bindir| format!(", upgrades to PostgreSQL {}", installation::major(bindir)))
    }
}

fn total<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Tally {
    let mut total = Tally::default();
    rows.into_iter().for_each(|row| total += row.tally);
    total
}

/// As Markdown.
impl Display for Report {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        writeln!(
            f,
            "Seed {}, {:.1} minutes{}{}.",
            self.seed,
            self.started.elapsed().as_secs_f64() / 60.0,
            self.upgrades(),
            if self.has_leases { "" } else { ", without leases" }
        )?;
        KINDS.into_iter().try_for_each(|(kind, title)| {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.fault.kind() == kind).collect();
            let columns: Vec<Column> = COLUMNS.into_iter().filter(|(.., kinds)| kinds.contains(&kind)).collect();
            table(f, title, &rows, &columns)
        })
    }
}

fn table(f: &mut Formatter, title: &str, rows: &[&Row], columns: &[Column]) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let titles: Vec<&str> = columns.iter().map(|&(title, ..)| title).collect();
    writeln!(f, "\n| {title} | times | {} |", titles.join(" | "))?;
    writeln!(f, "| --- |{}", " --: |".repeat(1 + columns.len()))?;
    for row in rows {
        let title = row.fault.title;
        if let Some(reason) = row.fault.left_out() {
            writeln!(f, "| {title} | left out: no {reason} |{}", " |".repeat(columns.len()))?;
        } else {
            line(f, title, &row.times(), &row.tally, columns)?;
        }
    }
    line(f, "all", "", &total(rows.iter().copied()), columns)
}

fn line(f: &mut Formatter, title: &str, times: &str, tally: &Tally, columns: &[Column]) -> fmt::Result {
    let figures = columns.iter().map(|(_, figure, _)| figure(tally).separate_with_commas());
    writeln!(f, "| {title} | {times} | {} |", figures.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FAULTS;

    /// The report and the first episode of a run of a fault, with the SQL edition, that has three.
    fn begun(until_broken: bool) -> (Report, Turn) {
        let fault = FAULTS.iter().find(|fault| fault.kind() == OfTheSqlEdition).unwrap();
        let faults = vec![(fault, 3 * fault.per_episode)];
        let plan = Plan { faults, seed: 0, first_episode: 0, has_leases: true, budget: None, until_broken, at_a_time: 1 };
        let mut report = Report::begin(&plan);
        let turn = report.next_turn().unwrap();
        (report, turn)
    }

    #[test]
    fn a_run_in_which_the_replaced_function_repeats_no_id_proves_nothing() {
        let (mut report, turn) = begun(false);
        assert!(report.is_conclusive());
        report.enter(&turn, Some(Tally::default()));
        assert!(report.is_sound() && !report.is_conclusive());
        report.enter(&turn, Some(Tally { copied_repeats: 1, ..Tally::default() }));
        assert!(report.is_conclusive());
    }

    #[test]
    fn a_run_until_a_promise_is_broken_begins_no_episode_after_it() {
        for until_broken in [true, false] {
            let (mut report, turn) = begun(until_broken);
            assert!(report.next_turn().is_some());
            report.enter(&turn, Some(Tally { repeats: 1, ..Tally::default() }));
            assert_eq!(report.next_turn().is_none(), until_broken);
        }
    }
}
