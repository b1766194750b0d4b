//! What `./dev` does once Rust and the packages are there, in a form that can be tested. Do not run it directly:
//! `./dev` builds it, passes the paths in variables, and cleans up if it is interrupted.

mod checks;
mod citus;
mod demo;
mod fuzz;
mod mutations;
mod package;
mod private_postgres;
mod release_sql;
mod report;
mod tools;
mod version;

use citus::Citus;
use clap::Parser;
use pg_snowflake_servertest::{Cluster, SUPERUSER, installation, release};
use private_postgres::PrivatePostgres;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use tools::{Result, command, execute, top};

/// The commands are those of `./dev`, or parts of them.
#[derive(Parser)]
enum Command {
    /// Provides the private PostgreSQL, before any of the others.
    PrivatePostgres(PrivatePostgres),
    /// Provides Citus in it.
    Citus(Citus),
    Demo,
    Psql,
    Test,
    TestAll {
        /// The majors, each followed by "=" and a reason if it is left out.
        majors: Vec<String>,
    },
    TestShort,
    TestServer {
        name: String,
    },
    Figures,
    Examples,
    Lint,
    Valgrind,
    /// The program of that name, with the next major to upgrade to.
    Campaign {
        #[arg(last = true)]
        options: Vec<String>,
    },
    Mutations,
    Fuzz {
        /// Seconds for each target.
        seconds: u32,
    },
    Package,
    /// Puts the files that a clean system needs for its test into a folder.
    PackageFiles {
        folder: PathBuf,
    },
    /// Tests the tarball on a copy of the servers' installation.
    PackageTry {
        folder: PathBuf,
    },
    /// Tests the installed extension.
    Smoke,
    ReleaseSql {
        version: String,
    },
    Version {
        version: String,
    },
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("dev: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::PrivatePostgres(postgres) => postgres.provide()?,
        Command::Citus(citus) => citus.provide()?,
        Command::Demo => return demo::run(),
        Command::Psql => return psql(),
        Command::Test => checks::all()?,
        Command::TestAll { majors } => checks::on_all_majors(&majors)?,
        Command::TestShort => checks::short()?,
        Command::TestServer { name } => checks::named(&name)?,
        Command::Figures => checks::figures()?,
        Command::Examples => checks::examples()?,
        Command::Lint => checks::lint()?,
        Command::Valgrind => checks::under_valgrind()?,
        Command::Campaign { options } => checks::campaign(&options)?,
        Command::Mutations => mutations::run()?,
        Command::Fuzz { seconds } => fuzz::run(seconds)?,
        Command::Package => package::make()?,
        Command::PackageFiles { folder } => package::files(&folder)?,
        Command::PackageTry { folder } => package::try_tarball(&folder)?,
        Command::Smoke => package::smoke(),
        Command::ReleaseSql { version } => release_sql(&version)?,
        Command::Version { version } => version::set(top(), &version)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn release_sql(version: &str) -> Result {
    release_sql::check(top(), version)?;
    execute(command("./dev").args(["build", &tools::major().to_string()]))?;
    release_sql::keep(top(), version, &release::extensions())
}

/// psql on a server that has the extension and shard 1, in the terminal's foreground.
fn psql() -> Result<ExitCode> {
    let server = Cluster::builder().background_work().start();
    let shard = "ALTER DATABASE postgres SET pg_snowflake.shard_id = 1";
    server.connect_to(SUPERUSER, SUPERUSER).batch_execute(shard).expect("a superuser may set it");
    // psql uses it to cancel a query.
    tools::survive_interruption();
    let mut psql = command(installation::bindir().join("psql"));
    psql.args(["-U", SUPERUSER, "-d", SUPERUSER, "-h"]).arg(server.dir()).stdin(Stdio::inherit());
    let status = psql.status().map_err(|error| format!("cannot run psql: {error}"))?;
    // None if a signal has ended it.
    Ok(status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}
