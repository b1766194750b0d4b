//! What an id costs, here and elsewhere. `./dev bench` builds what it needs and runs it.

use clap::Parser;
use pg_snowflake_servertest::bench::{CLIENTS, PARTS, Part, Plan, run};
use pg_snowflake_servertest::record::{circumstances, record};
use std::path::PathBuf;
use std::process::ExitCode;

/// All contenders in one run, interleaved. It fails where a figure misses its limit, and with all parts, clients and
/// the full size also where a limit has no figure, or one of fewer than 9 rounds.
#[derive(Parser)]
struct Options {
    /// How often each contender has its turn.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// How large all of it is: 1 as in the documentation, 0.1 a tenth of it; a quick look, no measurement.
    #[arg(long, default_value = "1", value_parser = scale)]
    scale: f64,
    /// Some parts alone: backend, first, repeats, bulk, sequences, rate, load or instructions.
    #[arg(long, value_delimiter = ',', value_parser = part)]
    only: Vec<&'static Part>,
    /// The numbers of clients of the loads.
    #[arg(long, value_delimiter = ',', default_values_t = CLIENTS, value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: Vec<u32>,
    /// Where to write every measurement and the chart: a folder.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Where to write the tables: a Markdown file with a place for them.
    #[arg(long, requires = "revision")]
    record: Option<PathBuf>,
    /// What is recorded as measured: a version or a commit of pg_snowflake.
    #[arg(long)]
    revision: Option<String>,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= 1.0 => Ok(scale),
        _ => Err("it is above 0, and 1 at most".to_owned()),
    }
}

fn part(name: &str) -> Result<&'static Part, String> {
    PARTS.iter().find(|part| part.name == name).ok_or_else(|| {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        format!("there are: {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    let Options { rounds, scale, mut only, clients, output, record: page, revision } =
        Options::parse();
    if only.is_empty() {
        only.extend(&PARTS);
    }
    let report = run(&Plan { parts: only, rounds: rounds.into(), clients, scale });
    println!("\n{report}");
    if let Some(folder) = output {
        report.write_into(&folder);
    }
    if let (Some(page), Some(revision)) = (page, revision) {
        record(&page, "summary", &report.summary());
        record(&page, "bench", &format!("{} {report}", circumstances(&revision)));
    }
    if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
