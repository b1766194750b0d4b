//! The cost of an ID, here and elsewhere. `./dev bench` builds what it needs and runs it.

use clap::Parser;
use pg_snowflake_harness::record::has_place;
use pg_snowflake_harness::{installation, top};
use pg_snowflake_programs::bench::{CLIENTS, PARTS, Part, Plan, build, page, pgedge, run};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures all contenders in one run, interleaved. It fails if a figure misses its limit. A run of all parts and clients at
/// full size also fails if a limit has no figure, or one of too few rounds.
#[derive(Parser)]
struct Options {
    /// How many rounds each contender runs.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// The size of everything: 1 as in the documentation, 0.1 for a tenth of it. Below 1 the figures are only a quick look.
    #[arg(long, default_value = "1", value_parser = scale)]
    scale: f64,
    /// Only these parts: backend, first, repeats, bulk, sequences, rate, load, reading, large, leases, registry,
    /// homed, hashing, retention or instructions.
    #[arg(long, value_delimiter = ',', value_parser = part)]
    only: Vec<&'static Part>,
    /// The numbers of clients of the loads.
    #[arg(long, value_delimiter = ',', default_values_t = CLIENTS, value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: Vec<u32>,
    /// pgEdge's `snowflake` as a tarball of its source. It is built for this run alone, and compared.
    #[arg(long, value_name = "FILE")]
    pgedge: Option<PathBuf>,
    /// The folder for all measurements and the chart: postgresql-MAJOR.csv, .svg and .md. Of a complete run, it is
    /// target/pg_snowflake-bench.
    #[arg(long)]
    output: Option<PathBuf>,
    /// The Markdown file, with a place for this major version, to write the results into. The folder of the measurements must have those
    /// of the other majors on the page. Of a complete run without --output, it is docs/benchmarks.md.
    #[arg(long, requires = "output")]
    record: Option<PathBuf>,
    /// Measure nothing, and write docs/benchmarks.md anew from target/pg_snowflake-bench: after a change of a limit or a title.
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

fn part(name: &str) -> Result<&'static Part, String> {
    PARTS.iter().find(|part| part.name == name).ok_or_else(|| {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        format!("choose from: {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    let Options { rounds, scale, mut only, clients, pgedge, output, record, tables, revision } =
        Options::parse();
    let documentation = top().join("docs/benchmarks.md");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let measurements = top().join(target).join("pg_snowflake-bench");
    if tables {
        return if write(&documentation, &measurements) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let is_complete = rounds == 9 && scale == 1.0 && only.is_empty() && clients == CLIENTS;
    let page = || (is_complete && output.is_none()).then_some(documentation);
    let record = record.or_else(page);
    let output = output.or_else(|| is_complete.then_some(measurements));
    if only.is_empty() {
        only.extend(&PARTS);
    }
    // The first is the folder of the servers' installation.
    let (_folder, notes) = match pgedge.map(|tarball| pgedge::build(&tarball)).transpose() {
        Ok(built) => built.unzip(),
        Err(error) => {
            eprintln!("bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    let major = installation::major(installation::bindir());
    let place = page::place_of(major);
    let places = [place.as_str()].into_iter().chain(page::OF_ALL);
    if let Some(page) = &record
        && let Some(missing) = places.into_iter().find(|place| !has_place(page, place))
    {
        eprintln!("bench: {} has no marks \"{missing}\" to write between", page.display());
        return ExitCode::FAILURE;
    }
    let mut notes: Vec<String> = notes.flatten().into_iter().collect();
    let lacking = build::lacking();
    if !lacking.is_empty() {
        notes.push(build::note(&lacking));
        if record.is_some() {
            lacking.iter().for_each(|what| eprintln!("bench: this PostgreSQL lacks {what}"));
            eprintln!("bench: figures of it are not recorded, since no user has such a server");
            return ExitCode::FAILURE;
        }
    }
    let report = run(&Plan { parts: only, rounds: rounds.into(), clients, scale, notes });
    println!("\n{report}");
    if let Some(folder) = &output {
        report.write_into(folder, &revision);
    }
    if let Some((page, folder)) = record.zip(output) {
        write(&page, &folder);
    }
    if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the page could be written, which needs the measurements of all majors on it.
fn write(page: &Path, folder: &Path) -> bool {
    let written = page::write(page, folder);
    if let Err(error) = &written {
        eprintln!("bench: {} is as before: {error}", page.display());
    }
    written.is_ok()
}
