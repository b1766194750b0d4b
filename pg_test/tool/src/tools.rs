//! Running other programs, and the paths on this machine that `./dev` passes.

use pg_snowflake_harness::installation;
pub use pg_snowflake_harness::top;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An error is a message for the person at the terminal.
pub type Result<T = ()> = std::result::Result<T, String>;

pub fn target() -> PathBuf {
    top().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The folder of this run, which `./dev` removes.
pub fn run_folder() -> PathBuf {
    std::env::temp_dir()
}

pub fn major() -> u32 {
    installation::major(installation::bindir())
}

/// As in "PostgreSQL 15.20 (Debian …)".
pub fn server_version() -> Result<String> {
    let version = output(command(installation::bindir().join("postgres")).arg("--version"))?;
    Ok(version.trim().replace("postgres (PostgreSQL)", "PostgreSQL"))
}

/// What `./dev` passes in the environment.
pub fn passed(variable: &str) -> Result<PathBuf> {
    let value = std::env::var_os(variable).map(PathBuf::from);
    value.ok_or_else(|| format!("{variable} is not set: ./dev sets it"))
}

/// A command in the top of the tree, without standard input.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(top()).stdin(Stdio::null());
    command
}

/// cargo, with these arguments.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = command("cargo");
    cargo.args(arguments);
    cargo
}

/// cargo, which has clippy compile the packages of the workspace, and so check them, as `./dev` has it compile this program. Checked
/// apart, their dependencies would be compiled once more. It optimizes less than rustc, and no test depends on that.
pub fn cargo_with_clippy(arguments: &[&str]) -> Command {
    let mut cargo = cargo(arguments);
    if let Ok(driver) = passed("CLIPPY_DRIVER") {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
    }
    cargo
}

/// A [`command`] with a lower priority, for what may run beside the compilation of the library, whose last crate has one thread.
pub fn behind(command: &Command) -> Command {
    let mut nice = self::command("nice");
    nice.arg(command.get_program()).args(command.get_args());
    nice.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    nice
}

/// cargo, for what is built with pgrx.
pub fn cargo_with_pgrx(arguments: &[&str]) -> Command {
    let mut cargo = cargo(arguments);
    cargo.env("PGRX_HOME", target().join("pgrx"));
    cargo
}

/// make, for that installation, with the profile of a library.
pub fn make(profile: &str, pg_config: &Path) -> Command {
    let mut make = command("make");
    make.args(["--no-print-directory", "--silent", &format!("PROFILE={profile}")]);
    make.arg(format!("PG_CONFIG={}", pg_config.display()));
    make
}

pub fn pg_config() -> PathBuf {
    installation::bindir().join("pg_config")
}

/// Runs a command, which writes to our output.
pub fn execute(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| cannot_run(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs a command, passes on its standard output as it arrives, and calls `read` for each line.
pub fn execute_and_read(command: &mut Command, mut read: impl FnMut(&str)) -> Result {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_run(command, &error))?;
    let mut stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        // The reader of our output may be gone, but the command must still be waited for.
        let _ = std::io::stdout().write_all(&line);
        read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    let status = child.wait().map_err(|error| cannot_run(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs a command that may write a lot, and returns how it ended and what it wrote, in order.
pub fn execute_logged(command: &mut Command) -> Result<(Result, String)> {
    let folder = run_folder();
    let about = about(&folder);
    let mut log = tempfile::tempfile().map_err(&about)?;
    command.stdout(log.try_clone().map_err(&about)?).stderr(log.try_clone().map_err(&about)?);
    let outcome = execute(command);
    let mut said = Vec::new();
    log.rewind().and_then(|()| log.read_to_end(&mut said)).map_err(&about)?;
    Ok((outcome, String::from_utf8_lossy(&said).into_owned()))
}

pub fn last_lines(said: &str, count: usize) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Runs a command, and returns its standard output. The error contains what it wrote.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| cannot_run(command, &error))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}\n{stdout}{stderr}", shown(command), output.status))
}

fn cannot_run(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run {}: {error}", shown(command))
}

/// The command, roughly as somebody would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// An error with the name of its file.
pub fn about(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}
