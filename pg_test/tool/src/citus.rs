//! Citus, in the private installation of PostgreSQL.

use crate::tools::{Result, about, command, execute, execute_logged, last_lines, major, output, passed, pg_config, target};
use clap::Args;
use pg_snowflake_harness::output::step;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where it comes from. `./dev` has installed what either of them needs.
#[derive(Args)]
pub struct Citus {
    /// An installed package of the distribution.
    #[arg(long)]
    package: Option<String>,
    /// A tarball of its sources, without a package.
    #[arg(long, env = "CITUS_SOURCE")]
    source: Option<PathBuf>,
}

impl Citus {
    pub fn provide(&self) -> Result {
        let installation = passed("INSTALLATION")?;
        let kept = installation.join("citus");
        let version = match (&self.package, &self.source) {
            (Some(package), _) => output(command("dpkg-query").args(["--show", package]))?,
            (None, Some(source)) => {
                let bytes = fs::metadata(source).map_err(about(source))?.len();
                format!("{}, {bytes} bytes\n", source.display())
            }
            (None, None) => return Ok(()),
        };
        if fs::read_to_string(&kept).is_ok_and(|kept| kept == version) {
            return Ok(());
        }
        step(&format!("putting Citus into {}: {}", installation.display(), version.trim_end()));
        match (&self.package, &self.source) {
            (Some(package), _) => copy_package(package, &installation)?,
            (None, Some(source)) => build(source)?,
            (None, None) => {}
        }
        fs::write(&kept, version).map_err(about(&kept))
    }
}

/// Copies the files of a package that are PostgreSQL's.
fn copy_package(package: &str, installation: &Path) -> Result {
    let files = output(command("dpkg").args(["--listfiles", package]))?;
    let is_of_server = |file: &&str| {
        ["/usr/lib/postgresql/", "/usr/share/postgresql/"].iter().any(|top| file.starts_with(top)) && Path::new(file).is_file()
    };
    let files: Vec<&str> = files.lines().filter(is_of_server).collect();
    let mut copy = command("cp");
    copy.args(["--archive", "--parents"]).args(files).arg(installation);
    // cp looks for the folders whose attributes it keeps from where it is.
    execute(copy.current_dir("/"))
}

/// Builds it without the libraries for its reports home and for the compression of columns, and installs it.
fn build(source: &Path) -> Result {
    let folder = target().join(format!("citus-{}", major()));
    execute(command("rm").arg("-rf").arg(&folder))?;
    fs::create_dir_all(&folder).map_err(about(&folder))?;
    let mut unpack = command("tar");
    unpack.args(["-x", "--strip-components=1", "-C"]).arg(&folder).arg("-f").arg(source);
    execute(&mut unpack)?;
    let mut configure = Command::new(folder.join("configure"));
    configure.args(["--without-libcurl", "--without-lz4", "--without-zstd"]);
    configure.env("PG_CONFIG", pg_config());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let make = |argument: &str| {
        let mut make = Command::new("make");
        // PostgreSQL's own compiler of bitcode may be missing on this machine.
        make.args(["-s", "with_llvm=no", argument]);
        make
    };
    for mut step in [configure, make(&format!("-j{processors}")), make("install")] {
        // It finds the libpq of the installation, which is beside it or is the system's.
        step.current_dir(&folder).env("LD_RUN_PATH", "$ORIGIN");
        let (outcome, said) = execute_logged(&mut step)?;
        outcome.map_err(|error| format!("{}\n{error}\nCitus does not build", last_lines(&said, 50)))?;
    }
    execute(command("rm").arg("-rf").arg(&folder))
}
