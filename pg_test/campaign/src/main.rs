//! The long form of the campaign. `./dev campaign` builds what it needs and runs it.

use clap::Parser;
use clap::builder::PossibleValuesParser;
use pg_snowflake_campaign::{FAULTS, Fault, Kind, Plan, run};
use pg_snowflake_harness::record::{checksum_of_code, circumstances, record};
use pg_snowflake_harness::top;
use std::process::ExitCode;
use std::time::Duration;

/// Injects faults into real servers under load: no returned ID may be returned twice.
#[derive(Parser)]
struct Options {
    /// Begin no episode after this many minutes.
    #[arg(long, env = "CAMPAIGN_MINUTES", default_value = "30", value_parser = minutes)]
    minutes: Duration,
    /// The seed of all choices; random by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these faults, separated by commas; those of servers that want the same shard begin with lease.
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(FAULTS.iter().map(|fault| fault.name)))]
    fault: Vec<String>,
    /// Only the faults of servers that want the same shard, without a registry: how many IDs leases keep from being repeated.
    #[arg(long)]
    without_leases: bool,
    /// The number of the first episode, to repeat one that failed.
    #[arg(long, default_value_t = 0)]
    episode: u64,
    /// How many rounds of each fault; the table in docs/proof.md has the defaults.
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    rounds: Option<i32>,
    /// Run as many rounds as the short form.
    #[arg(long, conflicts_with = "rounds")]
    short: bool,
    /// Begin no episode after one that breaks a promise, as is enough for a library that lacks a safeguard.
    #[arg(long, conflicts_with = "without_leases")]
    until_broken: bool,
    /// The version or commit of pg_snowflake. A run of all faults with their usual rounds writes its table into docs/proof.md.
    #[arg(long)]
    revision: Option<String>,
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number")?;
    Duration::try_from_secs_f64(minutes * 60.0).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let options = Options::parse();
    let is_usual = options.fault.is_empty() && options.rounds.is_none() && !options.short && !options.until_broken;
    let rounds = |fault: &Fault| match options.rounds {
        Some(rounds) => rounds,
        None if options.short => fault.short,
        None => fault.long,
    };
    let is_chosen = |fault: &&Fault| match options.fault.as_slice() {
        [] => !options.without_leases || fault.kind() == Kind::OfAShard,
        names => names.iter().any(|name| name == fault.name),
    };
    let report = run(&Plan {
        faults: FAULTS.iter().filter(is_chosen).map(|fault| (fault, rounds(fault))).collect(),
        seed: options.seed.unwrap_or_else(|| fastrand::u64(..)),
        first_episode: options.episode,
        has_leases: !options.without_leases,
        budget: Some(options.minutes),
        until_broken: options.until_broken,
        at_a_time: std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4)),
    });
    println!("\n{report}");
    if !(report.is_complete() || options.until_broken && report.is_broken()) {
        println!("The campaign did not finish, so it is not recorded. Allow more minutes.");
    } else if let Some(revision) = options.revision.filter(|_| is_usual) {
        let place = if options.without_leases { "campaign without leases" } else { "campaign" };
        record(&top().join("docs/proof.md"), place, &format!("{} Code {}. {report}", circumstances(&revision), checksum_of_code()));
    }
    if report.is_sound() && !report.is_conclusive() {
        println!("The function that the SQL edition replaces repeated no ID, so the run proves nothing. Run more rounds.");
    }
    if report.is_sound() && report.is_conclusive() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
