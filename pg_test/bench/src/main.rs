//! The cost of an ID, from this extension and from its alternatives. `./dev bench` builds what it needs and runs it.
//!
//! Each part starts its own server and runs all contenders in every round, so that a disturbance of the machine affects all of them.

mod connections;
mod contenders;
mod ids;
mod instructions;
mod large;
mod limits;
mod measures;
mod reading;
mod rows;
mod run;
mod samples;
mod tables;
mod turns;

use clap::Parser;
use pg_snowflake_harness::{Cluster, top};
use run::{Part, Run, value};
use samples::Samples;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tables::Measured;

/// All parts, in their order.
const PARTS: [Part; 9] = [
    ("backend", "IDs in one backend", ids::in_one_statement),
    ("first", "the first ID of a transaction", ids::in_transactions_of_one),
    ("connections", "connections that generate one ID", connections::connections),
    ("repeats", "whether IDs of one statement repeat", ids::repeats),
    ("bulk", "an INSERT of many rows", rows::bulk),
    ("load", "transactions of several clients, flushed to disk", rows::load),
    ("reading", "reading stored IDs", reading::reading),
    ("large", "a table that outgrows memory", large::large),
    ("instructions", "instructions under valgrind", instructions::instructions),
];

/// Measures all contenders in one run, interleaved. It fails if a figure misses its limit. A run of all parts at full size also fails if
/// a limit has no figure, or one of too few rounds.
#[derive(Parser)]
struct Options {
    /// How many rounds each contender runs.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// The size of everything: 1 as in the documentation, 0.1 for a tenth of it. Below 1 the figures are only a quick look.
    #[arg(long, default_value = "1", value_parser = scale)]
    scale: f64,
    /// Only these parts: backend, first, connections, repeats, bulk, load, reading, large or instructions.
    #[arg(long, value_delimiter = ',', value_parser = PARTS.map(|(name, ..)| name))]
    only: Vec<String>,
    /// The folder for all measurements, as postgresql-VERSION.csv. Of a complete run, it is target/pg_snowflake-bench.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Measure nothing, and print the tables of docs/benchmarks.md from the measurements in the folder.
    #[arg(long)]
    tables: bool,
    /// The version or commit of pg_snowflake.
    #[arg(long, default_value = "unknown")]
    revision: String,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= 1.0 => Ok(scale),
        _ => Err("must be above 0 and at most 1".to_owned()),
    }
}

fn main() -> ExitCode {
    match bench(Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: Options) -> Result<bool, Box<dyn Error>> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let measurements = top().join(target).join("pg_snowflake-bench");
    if options.tables {
        print(&recorded(&options.output.unwrap_or(measurements))?);
        return Ok(true);
    }
    let started = Instant::now();
    let (version, lacking, mut run) = {
        let server = Cluster::new();
        let mut client = server.connect();
        let version: String = value(&mut client, "SHOW server_version");
        let run = Run::new(options.rounds.into(), options.scale, &mut client);
        (version, run::lacking(&mut client), run)
    };
    if !lacking.is_empty() {
        let lacking = lacking.join(", ");
        run.note(format!("This PostgreSQL lacks what a distribution's has: {lacking}."));
    }
    let is_due = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    for (_, what, part) in PARTS.iter().filter(|(name, ..)| is_due(name)) {
        println!("==> {what}");
        let began = Instant::now();
        part(&mut run);
        println!("      {:.1} s", began.elapsed().as_secs_f64());
    }
    let Run { rounds, scale, samples, notes, .. } = run;
    let is_full = scale == 1.0 && PARTS.iter().all(|(name, ..)| is_due(name));
    let is_complete = is_full && rounds == 9 && lacking.is_empty();
    let short = version.split(' ').next().unwrap_or(&version).to_owned();
    if let Some(folder) = options.output.or(is_complete.then_some(measurements)) {
        std::fs::create_dir_all(&folder)?;
        samples.write(&folder.join(format!("postgresql-{short}.csv")))?;
    }
    let size = if scale == 1.0 { String::new() } else { format!(" at {scale} of the full size") };
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    println!(
        "\npg_snowflake {} on PostgreSQL {version}. {rounds} rounds{size} took {minutes:.1} minutes. {}\n",
        options.revision,
        notes.join(" ")
    );
    let measured = [Measured { version: short, samples, is_full }];
    print(&measured);
    Ok(!limits::is_failure(&measured[0].verdicts()))
}

/// Prints the summary of the newest release, and the tables of all.
fn print(runs: &[Measured]) {
    let newest = runs.iter().max_by_key(|run| (run.version.contains('.'), run.major()));
    println!("{}\n{}", newest.map(tables::summary).unwrap_or_default(), tables::tables(runs));
}

/// The measurements in a folder, those of the newest major first.
fn recorded(folder: &Path) -> Result<Vec<Measured>, Box<dyn Error>> {
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let file = entry?.path();
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let version = stem.strip_prefix("postgresql-").ok_or(format!("whose is {stem}?"))?;
        let samples = Samples::read(&file)?;
        runs.push(Measured { version: version.to_owned(), samples, is_full: true });
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.major()));
    Ok(runs)
}
