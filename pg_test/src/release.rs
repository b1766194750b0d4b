//! The version of the head, its two extensions, the releases, whose install SQL is kept in `sql/releases`, and the release that tests
//! of an update make from the head's SQL.

pub mod rehearsal;

use crate::{installation, top};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = include_str!("../../Cargo.toml");

/// The extensions of the library. Both have the version of `Cargo.toml`, and each release has both.
pub const EXTENSIONS: [Extension; 2] = [SNOWFLAKE, REGISTRY];

pub const SNOWFLAKE: Extension = Extension { name: "pg_snowflake", folder: "sql" };
pub const REGISTRY: Extension = Extension { name: "pg_snowflake_registry", folder: "sql/registry" };

pub struct Extension {
    /// Its name in `CREATE EXTENSION`.
    pub name: &'static str,
    /// The folder with its upgrade scripts.
    pub folder: &'static str,
}

impl Extension {
    /// The file that `CREATE EXTENSION` of that version reads.
    pub fn install_script(&self, version: &str) -> String {
        format!("{}--{version}.sql", self.name)
    }

    /// The file that `ALTER EXTENSION` reads for that step.
    pub fn upgrade_script(&self, from: &str, to: &str) -> String {
        format!("{}--{from}--{to}.sql", self.name)
    }

    /// Its install SQL of that release in the tree.
    pub fn released(&self, version: &str) -> String {
        format!("{FOLDER}/{}", self.install_script(version))
    }

    /// Its upgrade script of that step in the tree.
    pub fn upgrade(&self, from: &str, to: &str) -> String {
        format!("{}/{}", self.folder, self.upgrade_script(from, to))
    }
}

/// The version that the tests make, older than every release.
pub const REHEARSED: &str = "0.8.0";

/// The folder of the install SQL of the releases. It is missing before the first release.
pub const FOLDER: &str = "sql/releases";

/// The checksums of the released SQL. Its paths begin at the top of the tree.
pub const SUMS: &str = "sql/releases/SHA256SUMS";

/// The releases that the tree at `top` keeps, oldest first.
pub fn versions(top: &Path) -> Vec<String> {
    let files = fs::read_dir(top.join(FOLDER)).into_iter().flatten();
    let mut versions: Vec<String> = files.filter_map(|file| version_in(&file.expect("sql/releases can be listed").path())).collect();
    versions.sort_by_key(|version| order(version).expect("a release is numbered x.y.z"));
    versions
}

/// All versions that databases are updated from: the one that the tests make, and the releases.
pub fn older() -> Vec<String> {
    [REHEARSED.to_owned()].into_iter().chain(versions(top())).collect()
}

/// The version that the tree builds, from `Cargo.toml`.
pub fn head() -> String {
    metadata("version")
}

/// The version of the packages of that version. A tilde sorts before everything, as a pre-release must.
pub fn debian_version(version: &str) -> String {
    format!("{}-1", version.replace('-', "~"))
}

/// What `[workspace.package]` of `Cargo.toml` has under that key: a text, or the first of a list.
pub fn metadata(key: &str) -> String {
    in_manifest(MANIFEST, key)
}

/// The version that the tree at `top` builds.
pub fn head_of(top: &Path) -> String {
    in_manifest(&read(&top.join("Cargo.toml")), "version")
}

fn in_manifest(manifest: &str, key: &str) -> String {
    let manifest: toml::Table = manifest.parse().expect("Cargo.toml is TOML");
    let value = &manifest["workspace"]["package"][key];
    let text = value.as_str().or_else(|| value.get(0)?.as_str());
    text.unwrap_or_else(|| panic!("Cargo.toml has no {key}")).to_owned()
}

/// The lines that still have a placeholder, as `git grep` prints them.
pub fn placeholders() -> String {
    let found = Command::new("git")
        .args(["grep", "-n", "PROJECT-OWNER", "--", ":!docs/releasing.md", ":!.github", ":!pg_test"])
        .current_dir(top())
        .output()
        .expect("git runs");
    String::from_utf8_lossy(&found.stdout).into_owned()
}

/// The scripts that update every release to the next, and then those that update the last one to the head of the tree at `top`.
pub fn upgrades(top: &Path) -> Vec<String> {
    let mut versions = versions(top);
    versions.push(head_of(top));
    let steps = versions.windows(2);
    steps.flat_map(|step| EXTENSIONS.map(|extension| extension.upgrade(&step[0], &step[1]))).collect()
}

/// What is wrong with the releases that the tree at `top` keeps.
///
/// Databases have been created from a release's SQL. A change would give two different databases the same version, so changes
/// go into an upgrade script, which does not change either once it is released.
pub fn problems(top: &Path) -> Vec<String> {
    let (head, versions, scripts) = (head_of(top), versions(top), upgrades(top));
    let mut problems = Vec::new();
    if !versions.is_empty() {
        problems.extend(changed_files(top));
    }
    let mut files: BTreeSet<String> = versions.iter().flat_map(|version| EXTENSIONS.map(|extension| extension.released(version))).collect();
    let released = scripts.len().saturating_sub(EXTENSIONS.len());
    files.extend(scripts[..released].iter().cloned());
    let sums = fs::read_to_string(top.join(SUMS)).unwrap_or_default();
    let summed: BTreeSet<String> = sums.lines().filter_map(|line| Some(line.split_once("  ")?.1.to_owned())).collect();
    let other = files.symmetric_difference(&summed);
    problems.extend(other.map(|file| format!("SHA256SUMS and the files differ in {file}")));
    let missing = scripts.iter().filter(|script| !top.join(script).exists());
    problems.extend(missing.map(|script| format!("{script} is missing")));
    if versions.contains(&head) {
        problems.push(format!("{head} is released: begin the next version in Cargo.toml"));
    }
    let changelog = read(&top.join("CHANGELOG.md"));
    let headings = versions.iter().map(|version| format!("\n## {version} - 20"));
    let missing = headings.filter(|heading| !changelog.contains(heading));
    problems.extend(missing.map(|heading| format!("{heading:?} is not in CHANGELOG.md")));
    problems
}

/// The lines of `sha256sum` about files that differ from their checksums.
fn changed_files(top: &Path) -> Vec<String> {
    let check = Command::new("sha256sum").args(["--check", "--strict", "--quiet", SUMS]).current_dir(top).output().expect("sha256sum runs");
    let lines: Vec<String> = String::from_utf8_lossy(&check.stdout).lines().map(str::to_owned).collect();
    match check.status.success() {
        false if lines.is_empty() => vec![String::from_utf8_lossy(&check.stderr).into_owned()],
        _ => lines,
    }
}

/// The folder of the extensions' SQL in the installation under test.
pub fn extensions() -> PathBuf {
    installation::pg_config("--sharedir").join("extension")
}

/// Writes a script into the installation under test.
fn install(script: &str, text: &str) {
    // Another test binary may be doing the same. No one must see half of a file.
    let passing = extensions().join(format!("{script}.{}", std::process::id()));
    fs::write(&passing, text)
        .and_then(|()| fs::rename(&passing, extensions().join(script)))
        .unwrap_or_else(|error| panic!("{}: {error}", passing.display()));
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn version_in(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.strip_prefix(SNOWFLAKE.name)?.strip_prefix("--")?.strip_suffix(".sql")?.to_owned())
}

/// The version, if it is the number of a release or of a candidate for one.
///
/// # Errors
/// If it is not.
pub fn parse(version: &str) -> Result<String, String> {
    order(version).map(|_| version.to_owned()).ok_or_else(|| "a version is numbered as 0.9.0, or as 0.9.0-rc1".to_owned())
}

/// The status of a version in META.json.
pub fn status(version: &str) -> &'static str {
    match version.split_once('-') {
        None => "stable",
        Some((_, "dev")) => "unstable",
        Some(_) => "testing",
    }
}

/// The numbers of a version, in the order of versions: a release comes after its candidates.
fn order(version: &str) -> Option<[u32; 4]> {
    let (release, candidate) =
        version.split_once("-rc").map_or((version, Some(u32::MAX)), |(release, number)| (release, number.parse().ok()));
    let numbers: Option<Vec<u32>> = release.split('.').map(|number| number.parse().ok()).collect();
    let [major, minor, patch] = numbers?.try_into().ok()?;
    Some([major, minor, patch, candidate?])
}

#[cfg(test)]
mod tests {
    use super::{order, parse, status};

    #[test]
    fn a_release_comes_after_its_candidates_and_before_the_next_ones() {
        let versions = ["0.9.0", "0.10.0", "1.0.0-rc1", "1.0.0-rc2", "1.0.0-rc10", "1.0.0", "1.0.1-rc1"];
        let orders = versions.map(|version| order(version).unwrap());
        assert!(orders.is_sorted_by(|one, next| one < next), "{orders:?}");
        for wrong in ["1.0", "1.0.0.0", "1.0.0-rc", "1.0.0-dev", "1.0.0-rc1-rc2", "1.0.x", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(["1.0.0", "1.0.0-rc1", "1.0.0-dev"].map(status), ["stable", "testing", "unstable"]);
    }
}
