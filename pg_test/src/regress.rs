//! PostgreSQL's own test drivers, `pg_regress` and `pg_isolation_regress`, run against a private server.
//!
//! They come with the server's development files. They are called directly because their wrappers silently pass a test
//! without an expected file.

use crate::installation::{self, option};
use crate::{Cluster, SUPERUSER, top};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;
use std::thread;

#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Its path below `pg_config --pkglibdir`.
    program: &'static str,
    tests: &'static str,
    extension: &'static str,
}

/// Runs `sql/*.sql` with psql and compares with `expected/*.out`.
pub const REGRESS: Driver = Driver { program: "pgxs/src/test/regress/pg_regress", tests: "sql", extension: "sql" };

/// Runs the steps of `specs/*.spec` in their sessions and compares with `expected/*.out`.
pub const ISOLATION: Driver = Driver { program: "pgxs/src/test/isolation/pg_isolation_regress", tests: "specs", extension: "spec" };

impl Driver {
    /// Runs every test in `input`, each in a fresh database with the extension, several at a time. Those with batches run before, one by
    /// one: a role or database that another test creates has a session drop what is left of a batch, whose numbers the output has.
    pub fn run_all(self, cluster: &Cluster, input: &Path) {
        let tests = self.tests_in(input);
        assert!(!tests.is_empty(), "no tests in {}", input.display());
        let text =
            |test: &str| fs::read_to_string(input.join(format!("{}/{test}.{}", self.tests, self.extension))).expect("a test can be read");
        let (batches, others): (Vec<&String>, Vec<&String>) = tests.iter().partition(|test| text(test).contains("nextvals"));
        let failures = Mutex::new(Vec::new());
        let run = |test: &String| {
            if let Err(failure) = self.run(cluster, input, test) {
                failures.lock().expect("no test panics").push(failure);
            }
        };
        batches.into_iter().for_each(run);
        let next = Mutex::new(others.into_iter());
        let take = || next.lock().expect("no test panics").next();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(test) = take() {
                        run(test);
                    }
                });
            }
        });
        let failures = failures.into_inner().expect("no test panics");
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    fn tests_in(self, input: &Path) -> BTreeSet<String> {
        names_in(&input.join(self.tests), self.extension)
    }

    /// Runs one test, in a fresh database with the extension. The error has the differences.
    fn run(self, cluster: &Cluster, input: &Path, test: &str) -> Result<(), String> {
        let driver = self.installed();
        // The servers' OS user may not be able to read the folder of the tests, and before PostgreSQL 16 the expected output
        // must be beside them. So each test runs in a folder with its own files.
        let dir = cluster.dir().join(format!("regress_{test}"));
        self.copy_test(input, test, &dir);
        let database = format!("regression_{test}");
        cluster.fresh_database(&database);
        let output_dir = dir.join("output");
        let output = installation::as_server_user(driver, &dir)
            .arg(option("--outputdir", &output_dir))
            .arg(option("--bindir", installation::bindir()))
            .arg(option("--host", cluster.dir()))
            .args(["--port=5432", "--user", SUPERUSER])
            .args(["--dbname", &database, "--use-existing"])
            .arg(test)
            .output()
            .unwrap_or_else(|error| panic!("{} cannot be run: {error}", self.program));
        if !output.status.success() {
            keep_differences(test, &output_dir);
        }
        let has_run = output_dir.join("results").join(format!("{test}.out")).exists();
        match output.status.success() && has_run {
            true => Ok(()),
            false => Err(format!("{test}: {}\n{}", output.status, report(&output, &output_dir))),
        }
    }

    fn copy_test(self, input: &Path, test: &str, dir: &Path) {
        for folder in [self.tests, "expected"] {
            fs::create_dir_all(dir.join(folder)).expect("a folder can be made");
        }
        for file in [format!("{}/{test}.{}", self.tests, self.extension), format!("expected/{test}.out")] {
            fs::copy(input.join(&file), dir.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
        // What scripts include or read, from PG_ABS_SRCDIR.
        fs::create_dir(dir.join("data")).expect("a folder can be made");
        let folders = BTreeSet::from([top().join("pg_test/data"), input.join("data")]);
        for file in folders.iter().filter(|folder| folder.exists()).flat_map(|folder| fs::read_dir(folder).expect("a folder can be listed"))
        {
            let file = file.expect("a folder can be listed");
            fs::copy(file.path(), dir.join("data").join(file.file_name())).expect("a file can be copied");
        }
        installation::chown_to_server_user(dir);
    }

    fn installed(self) -> PathBuf {
        let path = installation::pg_config("--pkglibdir").join(self.program);
        assert!(path.exists(), "{} is missing; it comes with PostgreSQL's development files", path.display());
        path
    }
}

/// Checks that each test in `input` has expected output, and each expected output a test.
pub fn assert_complete(input: &Path) {
    let specs = input.join(ISOLATION.tests).exists().then(|| ISOLATION.tests_in(input));
    let tests = &REGRESS.tests_in(input) | &specs.unwrap_or_default();
    assert_eq!(tests, names_in(&input.join("expected"), "out"), "left: the tests, right: the outputs");
}

/// The names of the files in a folder, without their extension. The folder must have no other files.
fn names_in(dir: &Path, extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    files
        .map(|file| {
            let path = file.expect("a folder can be listed").path();
            assert!(path.extension().is_some_and(|found| found == extension), "{} is not a .{extension} file", path.display());
            let name = path.file_stem().expect("a file has a name");
            name.to_str().expect("a name in UTF-8").to_owned()
        })
        .collect()
}

/// If `REGRESS_OUTPUT` names a folder, as in CI, copies the differences and the results there.
fn keep_differences(test: &str, output_dir: &Path) {
    let Some(folder) = std::env::var_os("REGRESS_OUTPUT") else { return };
    let kept = Path::new(&folder).join(test);
    fs::create_dir_all(&kept).expect("the folder that REGRESS_OUTPUT names can be written");
    let files = ["regression.diffs".into(), PathBuf::from(format!("results/{test}.out"))];
    for file in files.iter().filter(|file| output_dir.join(file).exists()) {
        let name = file.file_name().expect("a file has a name");
        fs::copy(output_dir.join(file), kept.join(name)).expect("a file can be copied");
    }
}

/// The output of the driver, and the differences that it found.
fn report(output: &Output, output_dir: &Path) -> String {
    let diffs = match fs::read_to_string(output_dir.join("regression.diffs")) {
        Err(error) if error.kind() == ErrorKind::NotFound => "no differences written".into(),
        diffs => diffs.expect("the differences can be read"),
    };
    format!("{}{}\n{diffs}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
