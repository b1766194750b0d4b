//! What `./dev` does once it has found PostgreSQL and the tools, in a form that can be tested. Do not run it directly:
//! `./dev` builds it, passes the paths in variables, and cleans up if it is interrupted.

mod checks;
mod demo;
mod fuzz;
mod mutations;
mod package;
mod release_sql;
mod report;
mod tools;

use clap::Parser;
use pg_snowflake_servertest::{Cluster, SUPERUSER};
use std::path::PathBuf;
use std::process::ExitCode;
use tools::{Result, command, execute};

/// The commands are those of `./dev`, or parts of them.
#[derive(Parser)]
enum Command {
    Demo,
    /// Starts the server of `./dev psql`, prints its folder, and stops on a signal.
    Serve,
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
        Command::Demo => return demo::run(),
        Command::Serve => serve(),
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
    }
    Ok(ExitCode::SUCCESS)
}

fn release_sql(version: &str) -> Result {
    release_sql::check(version)?;
    execute(command("./dev").args(["build", &tools::major().to_string()]))?;
    release_sql::keep(version)
}

/// A server with the extension and shard 1, which lives as long as this process.
fn serve() {
    let server = Cluster::builder().background_work().start();
    let shard = "ALTER DATABASE postgres SET pg_snowflake.shard_id = 1";
    server.connect_to(SUPERUSER, SUPERUSER).batch_execute(shard).expect("a superuser may set it");
    println!("{}", server.dir().display());
    loop {
        std::thread::park();
    }
}
