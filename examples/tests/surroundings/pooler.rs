//! A program between clients and servers, of a package that is unpacked and not installed.

use pg_snowflake_examples::package_with_needs;
use pg_snowflake_examples::program::{Program, program_of_server_user};
use pg_snowflake_harness::installation::as_server_user;
use pg_snowflake_harness::wait::comes_true;
use pg_snowflake_harness::{SUPERUSER, installation};
use postgres::{Client, Config, NoTls};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The number in the name of its socket, which is in a folder of its own.
pub const PORT: u16 = 5432;

/// A package, unpacked for one test after another.
pub struct Package {
    dir: TempDir,
    /// Below `usr/sbin`.
    program: &'static str,
}

impl Package {
    /// `None` if the distribution does not have it.
    pub fn get(name: &str, package: &str, program: &'static str) -> Option<Self> {
        package_with_needs(name, package).map(|dir| Package { dir, program })
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts it with its files in [`Package::dir`], and waits until it takes connections.
    pub fn start(&self, arguments: &[&str]) -> Pooler {
        let files = self.dir().join("package/usr");
        let libraries = fs::read_dir(files.join("lib")).into_iter().flatten().map(|entry| entry.unwrap().path());
        let libraries: Vec<String> = libraries.map(|path| path.display().to_string()).collect();
        let mut command = program_of_server_user(self.dir());
        command.env("LD_LIBRARY_PATH", libraries.join(":")).arg(files.join("sbin").join(self.program)).args(arguments);
        let pooler = Pooler { program: Program::start(command, self.dir().join("log")), config: config(self.dir()) };
        assert!(comes_true(|| pooler.config.connect(NoTls).is_ok()), "{}", pooler.program.log());
        pooler
    }
}

fn config(dir: &Path) -> Config {
    Config::new().host_path(dir).port(PORT).user(SUPERUSER).dbname(SUPERUSER).clone()
}

/// It runs. It ends with the test.
pub struct Pooler {
    program: Program,
    pub config: Config,
}

impl Pooler {
    pub fn connect(&self) -> Client {
        self.config.connect(NoTls).unwrap_or_else(|error| panic!("{error:?}\n{}", self.program.log()))
    }

    /// What psql prints of a script, its error included, in a session of its own.
    pub fn psql(&self, dir: &Path, script: &str) -> String {
        let mut psql: Command = as_server_user(installation::bindir().join("psql"), dir);
        psql.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-p", &PORT.to_string(), "-U", SUPERUSER, "-h"]).arg(dir);
        let output = psql.args(["-c", script, SUPERUSER]).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).trim_end().to_owned()).concat()
    }
}
