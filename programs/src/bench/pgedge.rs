//! pgEdge's extension, built from its source for the servers of one run.

use pg_snowflake_harness::installation;
use pg_snowflake_harness::output::{say, step};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The options of every major's C code. Those of the server's build may be of another version of the compiler, or lack -O2.
const CFLAGS: &str = "CFLAGS=-O2 -fno-strict-aliasing -fwrapv -fexcess-precision=standard";

/// Builds the extension from a tarball, and installs it into a copy of the installation under test, which this program uses
/// from then on. The tests use the installation itself, so that stays as it is.
///
/// Returns the folder of the copy, which must outlive its servers, and the reason if the extension does not build.
///
/// # Errors
/// If the tarball cannot be unpacked.
pub fn build(tarball: &Path) -> Result<(TempDir, Option<String>), String> {
    let folder = installation::temp_dir();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).expect("a folder of ours can be written");
    let mut tar = Command::new("tar");
    tar.args(["-x", "--strip-components=1", "-C"]).arg(&source).arg("-f").arg(tarball);
    output(&mut tar).map_err(|said| format!("{}: {}", tarball.display(), said.trim_end()))?;

    let pg_config = installation::use_copy(&folder.path().join("installation"));
    step(&format!("building pgEdge's extension from {}", tarball.display()));
    let make = |target| {
        let mut make = Command::new("make");
        // The reason is found by its English words.
        make.env("LC_ALL", "C").env_remove("MAKEFLAGS");
        make.arg("-C").arg(&source).args(["USE_PGXS=1", "with_llvm=no", CFLAGS, target]);
        output(make.arg(format!("PG_CONFIG={}", pg_config.display())))
    };
    let failure = make("all").and_then(|_| make("install")).err();
    let reason = failure.map(|said| {
        say(&said);
        let error = said.lines().find(|line| line.contains("error: ")).or(said.lines().last());
        let major = installation::major(installation::bindir());
        format!(
            "pgEdge's extension does not build for PostgreSQL {major}: {}",
            error.unwrap_or("no reason is given").trim()
        )
    });
    Ok((folder, reason))
}

/// What a command wrote; an error if it failed.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}
