//! What a release keeps forever: the install SQL of each extension, from which databases have been created, and the checksums of it
//! and of the script that upgrades to it. Tests reject changes to either. docs/releasing.md has the steps of a release.

use crate::tools::{Result, about, command, output};
use pg_snowflake_harness::output::step;
use pg_snowflake_harness::release::{self, EXTENSIONS};
use std::fs;
use std::path::Path;

/// Fails unless the tree at `top` builds the SQL of that version: it builds the version; or it builds the next one with no SQL change
/// yet, and the version is not tagged, so that nobody can have it.
pub fn check(top: &Path, version: &str) -> Result {
    let head = release::head_of(top);
    for extension in EXTENSIONS {
        let script = extension.released(version);
        if top.join(&script).exists() {
            return Err(format!(
                "{script} is there, and what is released does not change. If nobody has {version} yet, remove the files \
                 of that version and their lines in {} first.",
                release::SUMS
            ));
        }
        if head == version {
            continue;
        }
        let upgrade = extension.upgrade(version, &head);
        let Ok(statements) = fs::read_to_string(top.join(&upgrade)) else {
            return Err(format!("Cargo.toml is at {head}, not at {version}: run this in the tree of {version}"));
        };
        let tag = format!("refs/tags/v{version}");
        if output(command("git").args(["rev-parse", "--quiet", "--verify", &tag]).current_dir(top)).is_ok() {
            return Err(format!("v{version} is tagged, so its SQL is that of the tag: git checkout v{version}, and run this there"));
        }
        if has_statements(&statements) {
            return Err(format!("{upgrade} changes the SQL, so that of {version} is no longer here: run this in the tree of {version}"));
        }
    }
    Ok(())
}

/// Keeps the install SQL of the tree at `top`, which that folder has, as that of the version.
pub fn keep(top: &Path, version: &str, installed: &Path) -> Result {
    let folder = top.join(release::FOLDER);
    fs::create_dir_all(&folder).map_err(about(&folder))?;
    let (head, before) = (release::head_of(top), release::versions(top));
    for extension in EXTENSIONS {
        let script = installed.join(extension.install_script(&head));
        let released = extension.released(version);
        fs::copy(&script, top.join(&released)).map_err(about(&script))?;
        let upgrade = before.last().map(|from| extension.upgrade(from, version));
        let mut sum = command("sha256sum");
        let sums = output(sum.arg("--").arg(&released).args(upgrade).current_dir(top))?;
        let kept = top.join(release::SUMS);
        let earlier = fs::read_to_string(&kept).unwrap_or_default();
        fs::write(&kept, earlier + &sums).map_err(about(&kept))?;
        step(&format!("{released} is kept"));
    }
    Ok(())
}

/// Whether there is anything besides comments and the line that stops psql from running it.
fn has_statements(script: &str) -> bool {
    let is_none = |line: &str| line.is_empty() || line.starts_with("--") || line.starts_with("\\echo ");
    !script.lines().all(is_none)
}
