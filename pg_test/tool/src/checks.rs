//! The checks and tests, in phases, and their results.

use crate::floors;
use crate::report::Report;
use crate::tools::{
    Result, about, behind, cargo, cargo_with_clippy, cargo_with_pgrx, command, execute, execute_and_read, execute_logged, major, make,
    output, passed, pg_config, run_folder, server_version, target, top,
};
use nix::unistd::geteuid;
use pg_snowflake_harness::output::step;
use pg_snowflake_harness::{Cluster, SUPERUSER, installation, release};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

/// The packages that a change of anything builds. The commands here and the build of this program select all of them: for another
/// selection, cargo would build their dependencies again, with other features.
const OURS: [&str; 5] = ["--workspace", "--exclude", "pg_snowflake", "--exclude", "pg_snowflake_examples"];
/// They have many dependencies of their own, and no API to document.
const EXAMPLES: [&str; 2] = ["--package", "pg_snowflake_examples"];
/// The fuzz crate has its own dependencies, and is not a member of the workspace.
pub const FUZZ_CRATE: &str = "pg_test/fuzz/Cargo.toml";

/// A run of the tests.
#[derive(Default)]
struct Run {
    report: Report,
}

impl Run {
    /// Runs a phase, and prints its name, its success and its time.
    fn phase(&mut self, title: &str, part: impl FnOnce(&mut Self) -> Result) -> Result {
        let started = Instant::now();
        println!();
        step(title);
        part(self).map_err(|error| format!("{error}\n==> RED: {title} (PostgreSQL {})", major()))?;
        let seconds = started.elapsed().as_secs_f64();
        println!("    {title}: green after {seconds:.1} s");
        self.report.note_phase(title, seconds);
        Ok(())
    }

    /// Runs a command that runs tests.
    fn count(&mut self, command: &mut Command) -> Result {
        execute_and_read(command, |line| self.report.read(line))
    }

    /// Runs several commands at the same time. The output of the first is shown as it arrives, that of the others after it.
    fn count_together<const N: usize>(&mut self, first: &mut Command, others: [Command; N]) -> Result {
        let others = others.map(|mut command| thread::spawn(move || execute_logged(&mut command)));
        let mut failed = Vec::from_iter(self.count(first).err());
        for other in others {
            let ended = other.join().expect("running a command does not panic");
            let (outcome, said) = ended.unwrap_or_else(|error| (Err(error), String::new()));
            print!("{said}");
            said.lines().for_each(|line| self.report.read(line));
            failed.extend(outcome.err());
        }
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
    }

    /// A phase that is one command.
    fn tests(&mut self, title: &str, command: &mut Command) -> Result {
        self.phase(title, |run| run.count(command))
    }

    /// What needs no server, except the library.
    fn lint(&mut self) -> Result {
        self.phase("format", |_| format())?;
        self.phase("clippy, and compiling the tests", |_| clippy())?;
        self.phase("docs", |_| docs())?;
        self.phase("floors", |_| floors())?;
        self.phase("shell scripts", |_| shell_scripts())?;
        self.phase("spelling", |_| spelling())
    }

    fn all(&mut self) -> Result {
        // What users get. Its crates have a folder of their own, so they are built beside all else, and it is checked beside the tests.
        let library = thread::spawn(|| output(make("release", &pg_config()).arg("all")));
        self.lint()?;
        self.tests("examples in the documentation of the crates", &mut tests(&["--doc"]))?;
        self.phase("library", |_| {
            library.join().expect("make does not panic")?;
            execute(make("release", &pg_config()).arg("install"))
        })?;
        self.phase("tests, and the library's clippy and docs", |run| {
            let mut lint = make("release", &pg_config());
            lint.arg("lint");
            let others = [lint, tests(&["--test", "campaign"]), tests(&["--lib", "--bins", "--tests"])];
            run.count_together(&mut tests(&["--test", "servers"]), others)
        })?;
        self.phase("Makefile", |_| makefile())?;
        self.report.read("left out: tests in the server: ./dev test --in-server");
        Ok(())
    }

    /// The tests that pgrx-tests runs inside a server.
    fn in_server(&mut self) -> Result {
        let major = feature();
        output(cargo_with_pgrx(&["pgrx", "init", "--no-run"]).arg(format!("--{major}")).arg(pg_config()))?;
        let mut test = cargo_with_pgrx(&["pgrx", "test", &major, "--pgdata"]);
        test.arg(run_folder().join("pgrx"));
        if geteuid().is_root() {
            test.args(["--runas", "postgres"]);
        }
        self.count(&mut test)
    }

    fn show_green(&self, what: &str) -> Result {
        println!();
        step(&format!("{what} on {}", server_version()?));
        print!("{}", self.report);
        Ok(())
    }
}

/// Everything.
pub fn all() -> Result {
    let mut run = Run::default();
    run.all().map_err(|error| format!("{error}; what comes after it was not run"))?;
    run.show_green("all green")
}

/// What needs no server.
pub fn lint() -> Result {
    let mut run = Run::default();
    run.lint()?;
    run.phase("library's clippy and docs", |_| execute(make("release", &pg_config()).arg("lint")))?;
    run.phase("clippy of the examples", |_| compile(&EXAMPLES, &["--all-targets"]))
}

/// Behaviour with the library that builds fast: what can differ on a second major. Format, clippy, docs and the campaign are part of
/// [`all`].
pub fn short() -> Result {
    let mut run = Run::default();
    run.tests("behaviour on real servers", &mut tests(&["--test", "servers"]))?;
    run.show_green("the short suite is green")
}

/// The tests on real servers whose name contains `name`.
pub fn named(name: &str) -> Result {
    let mut run = Run::default();
    let binaries = ["servers", "campaign", "bench"].map(|binary| ["--test", binary]);
    let binaries = [binaries.as_flattened(), &["--bin", "bench", "--bin", "dev", "--", name]].concat();
    run.tests(&format!("tests named {name}"), &mut tests(&binaries))?;
    if !run.report.has_tests() {
        return Err(format!("no test on real servers has \"{name}\" in its name"));
    }
    print!("\n{}", run.report);
    Ok(())
}

/// Tests of rates and delays, which need the machine to themselves.
pub fn delays() -> Result {
    let mut run = Run::default();
    run.tests("rates and delays", &mut tests(&["--test", "delays"]))?;
    run.show_green("rates and delays are as they should be")
}

/// The SQL tests and a load of several sessions, on servers under valgrind.
pub fn under_valgrind() -> Result {
    let mut run = Run::default();
    // One at a time. Their findings are shown even if there are none.
    let mut test = tests(&["--test", "valgrind", "--", "--test-threads=1", "--nocapture"]);
    run.tests("servers under valgrind", &mut test)?;
    run.show_green("nothing is wrong with the memory")
}

/// The tests that need pgrx-tests and cargo-pgrx.
pub fn in_server() -> Result {
    let mut run = Run::default();
    run.phase("in-server tests", Run::in_server)?;
    run.show_green("the in-server tests are green")
}

/// Drivers and ORMs.
pub fn examples() -> Result {
    let mut run = Run::default();
    run.phase("clippy, and compiling the tests", |_| compile(&EXAMPLES, &["--all-targets"]))?;
    run.tests("drivers and ORMs", &mut several_at_a_time(example_tests(&["--lib", "--test", "examples"])))?;
    run.show_green("the examples are green")
}

/// Programs around the server: those whose tests' names contain `name`, or all.
pub fn surroundings(name: Option<&str>) -> Result {
    let mut run = Run::default();
    let arguments: Vec<&str> = ["--test", "surroundings", "--"].into_iter().chain(name).collect();
    run.tests("programs around the server", &mut example_tests(&arguments))?;
    if !run.report.has_tests() {
        return Err(format!("no test with a program around the server has \"{}\" in its name", name.unwrap_or_default()));
    }
    run.show_green("the surroundings are green")
}

fn example_tests(arguments: &[&str]) -> Command {
    tests_of(&EXAMPLES, arguments)
}

/// The tests of [`OURS`]; without other arguments, all except those that run only by name.
fn tests(arguments: &[&str]) -> Command {
    several_at_a_time(tests_of(&OURS, arguments))
}

fn tests_of(packages: &[&str], arguments: &[&str]) -> Command {
    let mut test = cargo_with_clippy(&["test"]);
    test.args(packages).arg("--no-fail-fast").args(arguments);
    test
}

/// Of tests that often wait: for a session, the end of a lease, or a program.
fn several_at_a_time(mut test: Command) -> Command {
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        test.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
    test
}

fn format() -> Result {
    execute(&mut cargo(&["fmt", "--all", "--check"]))?;
    execute(&mut cargo(&["fmt", "--manifest-path", FUZZ_CRATE, "--check"]))
}

/// Of all but the library, which [`make`] checks as it is built.
fn clippy() -> Result {
    compile(&OURS, &["--all-targets"])?;
    // They are not targets of "all", since they run only by name.
    compile(&OURS, &["--test", "servers", "--test", "campaign", "--test", "valgrind", "--test", "delays"])?;
    // Nothing is linked here, so the engine, which needs a C++ compiler, can be absent: naming a library is enough.
    execute(
        behind(&cargo(&["clippy", "--manifest-path", FUZZ_CRATE, "--all-targets", "--features", "targets", "--", "-D", "warnings"]))
            .env("CUSTOM_LIBFUZZER_PATH", target().join("libFuzzer.a")),
    )
}

/// Compiles these targets of these packages, and fails if clippy warns of one.
fn compile(packages: &[&str], targets: &[&str]) -> Result {
    passed("CLIPPY_DRIVER").map_err(|_| "Rust has no clippy on this machine: rustup component add clippy")?;
    let build = || {
        let mut build = cargo_with_clippy(&["build"]);
        behind(build.args(packages).args(targets))
    };
    execute(&mut build())?;
    // cargo repeats the warnings of what is compiled, whatever else the user lets it say.
    let (outcome, said) = execute_logged(build().env("CARGO_TERM_QUIET", "false").env("CARGO_BUILD_WARNINGS", "warn"))?;
    outcome?;
    if said.contains(") generated ") { Err("clippy warns, as shown above".into()) } else { Ok(()) }
}

fn docs() -> Result {
    let mut doc = cargo(&["doc", "--no-deps", "--document-private-items"]);
    execute(behind(doc.args(OURS)).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The feature of Cargo.toml for the major.
fn feature() -> String {
    format!("pg{}", major())
}

fn shell_scripts() -> Result {
    let scripts = tracked_files(&["*.sh", "dev", ".ci/run"])?;
    execute(command("shellcheck").arg("--external-sources").args(scripts))
}

/// Checks the spelling of prose: in code, names are joined words.
fn spelling() -> Result {
    // A misspelt layout, which shows the error; a word of SQL, and one of Rust.
    let known = ["--ignore-words-list", "twiter,inout,crate"];
    execute(command("codespell").args(known).args(tracked_files(&["*.md", "*.sql"])?))
}

/// Checks which modules of the library use which others.
fn floors() -> Result {
    let read = |file: String| Ok((std::fs::read_to_string(top().join(&file)).map_err(about(file.as_ref()))?, file));
    floors::check(&tracked_files(&["src/*.rs"])?.into_iter().map(read).collect::<Result<Vec<_>>>()?)
}

fn tracked_files(patterns: &[&str]) -> Result<Vec<String>> {
    let files = output(command("git").arg("ls-files").args(patterns))?;
    Ok(files.lines().map(str::to_owned).collect())
}

/// The targets that PostgreSQL users know, of the library that is built, and against a throwaway server.
fn makefile() -> Result {
    let make = || make("release", &pg_config());
    let destination = run_folder().join("destination");
    let server = Cluster::new();
    // The scripts are tests of their own above, so one of each kind is enough; CI's test of the packages runs all of them.
    let named = output(make().args(["--dry-run", "installcheck"]))?;
    for script in tracked_files(&["pg_test/sql/*", "pg_test/specs/*"])? {
        let name = Path::new(&script).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !named.contains(&format!(" --dbname=contrib_regression {name}\n")) {
            return Err(format!("make installcheck leaves out {script}"));
        }
    }
    execute(
        make().args(["installcheck", "REGRESS=install", "ISOLATION=sequence_ddl"]).env("PGHOST", server.dir()).env("PGUSER", SUPERUSER),
    )?;
    execute(make().arg(format!("DESTDIR={}", destination.display())).arg("install"))?;
    let extensions = release::extensions();
    let files = [
        installation::pg_config("--pkglibdir").join("pg_snowflake.so"),
        extensions.join("pg_snowflake.control"),
        extensions.join("pg_snowflake_registry.control"),
        extensions.join(format!("pg_snowflake_registry--{}.sql", release::head())),
    ];
    files.iter().try_for_each(|file| {
        // DESTDIR is followed by the full path of the folder.
        let mut installed = destination.clone().into_os_string();
        installed.push(file);
        execute(command("cmp").arg(installed).arg(file))
    })
}
