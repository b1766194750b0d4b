//! The released versions, whose install SQL is kept in `sql/releases`, and the version of the head.

use crate::{installation, top};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

const MANIFEST: &str = include_str!("../../Cargo.toml");

/// The folder of the install SQL of the releases.
pub fn folder() -> PathBuf {
    top().join("sql/releases")
}

/// The released versions, oldest first.
pub fn versions() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("sql/releases can be listed");
    let mut versions: Vec<String> = files
        .filter_map(|file| version_in(&file.expect("sql/releases can be listed").path()))
        .collect();
    versions.sort_by_key(|version| numbers(version));
    versions
}

/// The version that the tree builds, from `Cargo.toml`.
pub fn head() -> String {
    metadata("version")
}

/// What `[workspace.package]` of `Cargo.toml` has under that key: a text, or the first of a list.
pub fn metadata(key: &str) -> String {
    let manifest: toml::Table = MANIFEST.parse().expect("Cargo.toml is TOML");
    let value = &manifest["workspace"]["package"][key];
    let text = value.as_str().or_else(|| value.get(0)?.as_str());
    text.unwrap_or_else(|| panic!("Cargo.toml has no {key}")).to_owned()
}

/// The lines that still have a placeholder, as `git grep` prints them.
pub fn placeholders() -> String {
    let found = Command::new("git")
        .args(["grep", "-n", "PROJECT-OWNER", "--", ":!CONTRIBUTING.md", ":!.github", ":!pg_test"])
        .current_dir(top())
        .output()
        .expect("git runs");
    String::from_utf8_lossy(&found.stdout).into_owned()
}

/// The file that `CREATE EXTENSION` of that version reads.
pub fn install_script(version: &str) -> String {
    format!("pg_snowflake--{version}.sql")
}

/// The file that `ALTER EXTENSION` reads for that step.
pub fn upgrade_script(from: &str, to: &str) -> String {
    format!("pg_snowflake--{from}--{to}.sql")
}

/// Puts the install SQL of the releases beside that of the head in the installation under test, so that a test can
/// start from one.
pub(crate) fn install_all() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let extensions = installation::pg_config("--sharedir").join("extension");
        for version in versions() {
            let script = install_script(&version);
            // Another test binary may be doing the same. No one must see half of a file.
            let passing = extensions.join(format!("{script}.{}", std::process::id()));
            fs::copy(folder().join(&script), &passing)
                .and_then(|_| fs::rename(&passing, extensions.join(&script)))
                .unwrap_or_else(|error| panic!("{}: {error}", extensions.display()));
        }
    });
}

fn version_in(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.strip_prefix("pg_snowflake--")?.strip_suffix(".sql")?.to_owned())
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().expect("a release is numbered x.y.z")).collect()
}
