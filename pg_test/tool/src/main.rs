//! What `./dev` does once Rust and the packages are there, in a form that can be tested. Do not run it directly:
//! `./dev` builds it, passes the paths in variables, and cleans up if it is interrupted.

mod checks;
mod citus;
mod floors;
mod fuzz;
mod image;
mod mutations;
mod package;
mod private_postgres;
mod release_sql;
mod report;
mod tools;
mod version;

use citus::Citus;
use clap::Parser;
use pg_snowflake_harness::release;
use private_postgres::PrivatePostgres;
use std::process::ExitCode;
use tools::{Result, top};

/// The commands are those of `./dev`, or parts of them.
#[derive(Parser)]
enum Command {
    /// Provides the private PostgreSQL, before any of the others.
    PrivatePostgres(PrivatePostgres),
    /// Provides Citus in it.
    Citus(Citus),
    Test,
    TestShort,
    TestServer {
        name: String,
    },
    TestInServer,
    Delays,
    Examples,
    Surroundings {
        /// Part of the names of the tests to run; all without it.
        name: Option<String>,
    },
    Lint,
    Valgrind,
    Mutations,
    Fuzz {
        /// Seconds for each target.
        #[arg(default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
        seconds: u32,
    },
    Image,
    Package {
        major: u32,
    },
    ReleaseSql {
        /// That of a release, as 0.9.0.
        #[arg(value_parser = release::parse)]
        version: String,
    },
    Version {
        /// As 0.9.0 for a release, and 0.10.0-dev after it.
        #[arg(value_parser = |text: &str| release::parse(text.strip_suffix("-dev").unwrap_or(text)).map(|_| text.to_owned()))]
        version: String,
    },
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dev: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result {
    match command {
        Command::PrivatePostgres(postgres) => postgres.provide(),
        Command::Citus(citus) => citus.provide(),
        Command::Test => checks::all(),
        Command::TestShort => checks::short(),
        Command::TestServer { name } => checks::named(&name),
        Command::TestInServer => checks::in_server(),
        Command::Delays => checks::delays(),
        Command::Examples => checks::examples(),
        Command::Surroundings { name } => checks::surroundings(name.as_deref()),
        Command::Lint => checks::lint(),
        Command::Valgrind => checks::under_valgrind(),
        Command::Mutations => mutations::run(),
        Command::Fuzz { seconds } => fuzz::run(seconds),
        Command::Image => image::build(),
        Command::Package { major } => package::build(major),
        Command::ReleaseSql { version } => {
            release_sql::check(top(), &version)?;
            release_sql::keep(top(), &version, &release::extensions())
        }
        Command::Version { version } => version::set(top(), &version),
    }
}
