//! The checks and tests, in phases, and their results.

use crate::report::{self, Counts, Report, table};
use crate::tools::{
    Result, about, cargo, cargo_pgrx, command, execute, execute_and_read, is_interrupted, major,
    output, pg_config, run_folder, server_version, survive_interruption, target, tool, top,
};
use nix::unistd::geteuid;
use pg_snowflake_servertest::output::step;
use pg_snowflake_servertest::{Cluster, SUPERUSER, installation, release};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The tests on real servers.
const PACKAGE: &str = "pg_snowflake_servertest";
/// The fuzz crate has its own dependencies, and is not a member of the workspace.
pub const FUZZ_CRATE: &str = "pg_test/fuzz/Cargo.toml";
/// The variable with the file into which a run on several majors collects the report of each.
const LOG: &str = "TESTS_LOG";

/// A run of the tests, and a file that also gets its report.
#[derive(Default)]
struct Run {
    report: Report,
    log: Option<PathBuf>,
}

impl Run {
    fn new() -> Self {
        survive_interruption();
        Run { report: Report::default(), log: std::env::var_os(LOG).map(PathBuf::from) }
    }

    fn note(&mut self, line: &str) {
        self.report.read(line);
        if let Some(log) = &self.log {
            append(log, line);
        }
    }

    /// Runs a phase, and prints its name, its success and its time.
    fn phase(&mut self, title: &str, part: impl FnOnce(&mut Self) -> Result) -> Result {
        let started = Instant::now();
        println!();
        step(title);
        self.note(&report::begin(title));
        part(self).map_err(|error| match is_interrupted() {
            true => format!("interrupted in: {title}"),
            false => format!("{error}\n==> RED: {title} (PostgreSQL {})", major()),
        })?;
        let seconds = started.elapsed().as_secs_f64();
        println!("    {title}: green after {seconds:.1} s");
        self.note(&report::end(seconds));
        Ok(())
    }

    /// Runs a command that runs tests.
    fn count(&mut self, command: &mut Command) -> Result {
        execute_and_read(command, |line| self.note(line))
    }

    fn lint(&mut self) -> Result {
        self.phase("format", |_| format())?;
        self.phase("clippy", |_| clippy())?;
        self.phase("docs", |_| docs())?;
        self.phase("shell scripts", |_| shell_scripts())?;
        self.phase("spelling", |_| spelling())?;
        self.phase("word list", |_| word_list())?;
        // By PGXN's own validator.
        self.phase("META.json", |_| execute(command(tool("META_VALIDATOR")?).arg("META.json")))
    }

    fn all(&mut self) -> Result {
        self.lint()?;
        self.phase("unit, property and in-server tests", Self::tests_of_the_crates)?;
        // The tests before it have replaced it by a debug library.
        self.phase("release library", |_| {
            execute(command("./dev").args(["build", &major().to_string()]))
        })?;
        self.phase("real-server tests", |run| {
            let mut test = server_tests(&["--no-fail-fast"]);
            let_upgrade(&mut test)?;
            run.count(&mut test)
        })?;
        self.phase("Makefile", |_| makefile())
    }

    /// Unit and property tests, the doc tests of the core crate, and the tests that pgrx-tests runs inside a server.
    fn tests_of_the_crates(&mut self) -> Result {
        self.count(&mut cargo(&["test", "--package", "pg_snowflake_core"]))?;
        let mut test = cargo_pgrx(&["test", &format!("pg{}", major()), "--pgdata"])?;
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
    let mut run = Run::new();
    run.all().map_err(|error| format!("{error}; what comes after it was not run"))?;
    run.show_green("all green")
}

/// What needs no server.
pub fn lint() -> Result {
    Run::new().lint()
}

/// Behaviour with the release library: what can differ on a second major. Format, clippy, docs, the campaign and the
/// tests inside a server are part of [`all`].
pub fn short() -> Result {
    let mut run = Run::new();
    run.phase("behaviour on real servers", |run| {
        run.count(&mut server_tests(&["--no-fail-fast", "--test", "servers"]))
    })?;
    run.show_green("the short suite is green")
}

/// The tests on real servers whose name contains `name`, including the timed ones.
pub fn named(name: &str) -> Result {
    let mut run = Run::new();
    let binaries = ["--test", "servers", "--test", "campaign", "--test", "figures"];
    run.phase(&format!("tests named {name}"), |run| {
        run.count(server_tests(&["--no-fail-fast"]).args(binaries).args(["--", name]))
    })?;
    if run.report.counts() == Counts::default() {
        return Err(format!("no test on real servers has \"{name}\" in its name"));
    }
    print!("\n{}", run.report);
    Ok(())
}

/// Tests of rates and delays, which need the machine to themselves.
pub fn figures() -> Result {
    let mut run = Run::new();
    run.phase("rates and delays", |run| {
        run.count(&mut server_tests(&["--no-fail-fast", "--test", "figures"]))
    })?;
    run.show_green("rates and delays are as they should be")
}

/// The SQL tests and a load of several sessions, on servers under valgrind.
pub fn under_valgrind() -> Result {
    let mut run = Run::new();
    // One at a time. Their findings are shown even if there are none.
    let mut test = server_tests(&["--test", "valgrind", "--", "--test-threads=1", "--nocapture"]);
    run.phase("servers under valgrind", |run| run.count(&mut test))?;
    run.show_green("nothing is wrong with the memory")
}

/// The campaign's program with these options.
pub fn campaign(options: &[String]) -> Result {
    let mut campaign = cargo(&["run", "--quiet", "--package", PACKAGE, "--bin", "campaign", "--"]);
    let_upgrade(&mut campaign)?;
    step(&format!("the campaign on {}", server_version()?));
    execute(campaign.args(options).env("PG_CONFIG", pg_config()))
}

/// Makes a command test upgrades if a major to upgrade to is installed, and builds the extension for it.
fn let_upgrade(test: &mut Command) -> Result {
    let supported = std::env::var("SUPPORTED").unwrap_or_default();
    let supported: Vec<u32> = supported.split(' ').filter_map(|major| major.parse().ok()).collect();
    let installation = PathBuf::from(tool("INSTALLATION")?);
    let is_in_system =
        |major| Path::new(&format!("/usr/lib/postgresql/{major}/bin/postgres")).exists();
    let is_private =
        |major| installation.with_file_name(format!("postgresql-{major}")).join("version").exists();
    let next = match std::env::var("UPGRADE_TO") {
        Err(_) => next_major(major(), &supported, is_in_system, is_private),
        Ok(wanted) => Some(later_major(&wanted, major(), &supported)?),
    };
    if let Some(next) = next {
        step(&format!("building for PostgreSQL {next} too, to upgrade to"));
        let mut pg_config = String::new();
        let mut build = command("./dev");
        execute_and_read(build.args(["pg-config", &next.to_string()]), |line| {
            pg_config = line.to_owned()
        })?;
        test.env("PG_CONFIG_NEXT", pg_config);
    }
    Ok(())
}

/// The major to upgrade to that the caller chose.
fn later_major(wanted: &str, major: u32, supported: &[u32]) -> Result<u32> {
    let later = || supported.iter().copied().filter(|&next| next > major);
    wanted.parse().ok().filter(|&next| later().any(|major| major == next)).ok_or_else(|| {
        let later = later().map(|major| major.to_string()).collect::<Vec<_>>().join(", ");
        let choice = if later.is_empty() {
            "there is no later one".into()
        } else {
            format!("choose from {later}")
        };
        format!("cannot upgrade PostgreSQL {major} to UPGRADE_TO={wanted}: {choice}")
    })
}

/// The lowest supported major above this one that is installed, in the system or privately, and has the same origin: a
/// minor release of another day may not understand the catalog of this one.
fn next_major(
    major: u32,
    supported: &[u32],
    is_in_system: impl Fn(u32) -> bool,
    is_private: impl Fn(u32) -> bool,
) -> Option<u32> {
    let is_of_same_origin = |next: u32| {
        is_in_system(next) == is_in_system(major) && (is_in_system(next) || is_private(next))
    };
    supported.iter().copied().filter(|&next| next > major && is_of_same_origin(next)).min()
}

/// Drivers and ORMs.
pub fn examples() -> Result {
    let mut run = Run::new();
    let mut test = cargo(&["test", "--package", "pg_snowflake_examples", "--no-fail-fast"]);
    test.env("PG_CONFIG", pg_config());
    run.phase("drivers and ORMs", |run| run.count(&mut test))?;
    run.show_green("the examples are green")
}

/// Runs everything on each of these majors, one after the other, even after a failure. A major with "=" and a reason is
/// left out.
pub fn on_all_majors(majors: &[String]) -> Result {
    survive_interruption();
    let mut reports = Vec::new();
    let mut is_green = true;
    for entry in majors {
        let (major, reason) = reason_in(entry);
        println!();
        step(&format!("PostgreSQL {major}"));
        let log = run_folder().join(format!("tests-{major}.log"));
        append(&log, "");
        if let Some(reason) = reason {
            println!("left out: {reason}");
            append(&log, &format!("left out: {reason}"));
        } else {
            let tests = execute(command("./dev").args(["test", major]).env(LOG, &log));
            is_green &= tests.is_ok();
        }
        if is_interrupted() {
            return Err("interrupted".to_owned());
        }
        let lines = std::fs::read_to_string(&log).map_err(about(&log))?;
        let mut report = Report::parse(&lines);
        if report == Report::default() {
            // It did not reach the first phase.
            report.read(&report::begin("setup"));
        }
        reports.push((major.to_owned(), report));
    }
    print!("\n{}", table(&reports));
    if is_green { Ok(()) } else { Err("not all majors are green".to_owned()) }
}

/// A major, and the reason for leaving it out.
fn reason_in(entry: &str) -> (&str, Option<&str>) {
    entry.split_once('=').map_or((entry, None), |(major, reason)| (major, Some(reason)))
}

fn append(log: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(log);
    file.and_then(|mut file| writeln!(file, "{line}")).expect("the log can be written");
}

/// Tests of this package; without other arguments, all except the tests that run only on request.
fn server_tests(arguments: &[&str]) -> Command {
    let mut test = cargo(&["test", "--package", PACKAGE]);
    test.args(arguments).env("PG_CONFIG", pg_config());
    test
}

fn format() -> Result {
    execute(&mut cargo(&["fmt", "--all", "--check"]))?;
    execute(&mut cargo(&["fmt", "--manifest-path", FUZZ_CRATE, "--check"]))
}

fn clippy() -> Result {
    const REFUSE_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];
    let features = features();
    execute(
        cargo(&["clippy", "--workspace", "--all-targets", "--no-default-features"])
            .args(["--features", &features])
            .args(REFUSE_WARNINGS),
    )?;
    // They are not targets of "all", since they run only on request.
    execute(
        cargo(&["clippy", "--package", PACKAGE, "--test", "valgrind", "--test", "figures"])
            .args(REFUSE_WARNINGS),
    )?;
    // The targets too. Nothing is linked here, so the engine, which needs a C++ compiler, can be absent: naming a library is
    // enough.
    execute(
        cargo(&["clippy", "--manifest-path", FUZZ_CRATE, "--all-targets", "--features", "targets"])
            .arg("--target-dir")
            .arg(target())
            .args(REFUSE_WARNINGS)
            .env("CUSTOM_LIBFUZZER_PATH", target().join("libFuzzer.a")),
    )
}

fn docs() -> Result {
    execute(
        cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"])
            .args(["--no-default-features", "--features", &features()])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn features() -> String {
    format!("pg{} pg_test", major())
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

/// Finds words that `pg_test/words.txt` replaces: in prose, comments, messages and names.
fn word_list() -> Result {
    const LIST: &str = "pg_test/words.txt";
    let list = std::fs::read_to_string(top().join(LIST)).map_err(about(Path::new(LIST)))?;
    let mut found = String::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let [pattern, instead, paths] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            return Err(format!("{LIST}: three columns are needed: {line}"));
        };
        // Its status is 1 if it finds nothing, and above if it cannot search.
        let mut search = command("git");
        search.args(["grep", "-n", "-I", "-P", "-e", pattern, "--"]).args(paths.split(' '));
        // What users have, and the list itself.
        search.args([":!sql/releases", ":!*lock*", ":!*.csv"]).arg(format!(":!{LIST}"));
        let result = search.output().map_err(|error| error.to_string())?;
        if result.status.code().is_none_or(|status| status > 1) {
            return Err(format!("{LIST}: {pattern}: {}", String::from_utf8_lossy(&result.stderr)));
        }
        for place in String::from_utf8_lossy(&result.stdout).lines() {
            found.push_str(&format!("{place}\n    write: {instead}\n"));
        }
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(format!("words that {LIST} replaces:\n{found}")),
    }
}

fn tracked_files(patterns: &[&str]) -> Result<Vec<String>> {
    let files = output(command("git").arg("ls-files").args(patterns))?;
    Ok(files.lines().map(str::to_owned).collect())
}

/// The make targets that PostgreSQL users know, from scratch, into a separate folder and against a throwaway server.
fn makefile() -> Result {
    let make = || -> Result<Command> {
        let mut make = command("make");
        make.args(["--no-print-directory", "--silent"]);
        make.arg(format!("PG_CONFIG={}", pg_config().display()));
        let cargo_pgrx = PathBuf::from(tool("CARGO_PGRX")?);
        let tools = cargo_pgrx.parent().unwrap_or(top()).to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [tools].into_iter().chain(std::env::split_paths(&path));
        make.env("PATH", std::env::join_paths(folders).map_err(|error| error.to_string())?);
        Ok(make)
    };
    let destination = run_folder().join("destination");
    execute(command("make").args(["--silent", "PG_CONFIG=none", "clean"]))?;
    let server = Cluster::new();
    execute(make()?.arg("installcheck").env("PGHOST", server.dir()).env("PGUSER", SUPERUSER))?;
    output(&mut make()?)?;
    execute(make()?.arg(format!("DESTDIR={}", destination.display())).arg("install"))?;
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

#[cfg(test)]
mod tests {
    use super::{later_major, next_major, reason_in};

    #[test]
    fn an_upgrade_goes_to_the_next_major_of_the_same_origin() {
        let supported = [19, 18, 17, 16, 15];
        let next = |major, in_system: &[u32], private: &[u32]| {
            next_major(
                major,
                &supported,
                |major| in_system.contains(&major),
                |major| private.contains(&major),
            )
        };
        // The private folder also has copies of the system's installations.
        assert_eq!(next(15, &[15], &[15, 16, 18]), None);
        assert_eq!(next(15, &[15, 17, 18], &[15]), Some(17));
        assert_eq!(next(16, &[15], &[15, 16, 17, 18]), Some(17));
        assert_eq!(next(16, &[18], &[16, 17, 18]), Some(17));
        assert_eq!(next(18, &[], &[15, 18]), None);
        assert_eq!(next(17, &[17, 20], &[17]), None, "20 is not supported");
    }

    #[test]
    fn an_upgrade_goes_to_a_supported_later_major() {
        let to = |wanted, major| later_major(wanted, major, &[19, 18, 17, 16, 15]);
        assert_eq!(to("19", 16), Ok(19));
        assert_eq!(
            to("16", 16).unwrap_err(),
            "cannot upgrade PostgreSQL 16 to UPGRADE_TO=16: choose from 19, 18, 17"
        );
        assert_eq!(
            to("18", 19).unwrap_err(),
            "cannot upgrade PostgreSQL 19 to UPGRADE_TO=18: there is no later one"
        );
        for (wanted, major) in [("15", 16), ("20", 16), ("", 16)] {
            assert!(to(wanted, major).is_err(), "{wanted} from {major}");
        }
    }

    #[test]
    fn a_major_can_carry_the_reason_for_leaving_it_out() {
        assert_eq!(reason_in("18"), ("18", None));
        assert_eq!(reason_in("16=apt has none: a=b"), ("16", Some("apt has none: a=b")));
    }
}
