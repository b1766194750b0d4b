//! Released files never change, and every place that states the version states the same one.

use pg_snowflake_servertest::release;
use pg_snowflake_servertest::top;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Databases have been created from this SQL. A change would give two different databases the same version, so changes go
/// into an upgrade script.
#[test]
fn the_sql_of_a_release_never_changes() {
    let check = Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
        .current_dir(release::folder())
        .output()
        .unwrap();

    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn every_file_of_a_release_has_its_checksum() {
    let sums = read(&release::folder().join("SHA256SUMS"));
    let summed: BTreeSet<&str> =
        sums.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    let released = release::versions();

    let mut files: BTreeSet<String> =
        released.iter().map(|version| release::install_script(version)).collect();
    files.extend(
        released
            .windows(2)
            .map(|pair| format!("../{}", release::upgrade_script(&pair[0], &pair[1]))),
    );

    assert!(!released.is_empty());
    assert_eq!(summed, files.iter().map(String::as_str).collect());
}

#[test]
fn an_upgrade_script_leads_from_each_release_to_the_next_and_from_the_last_to_the_head() {
    let mut versions = release::versions();
    versions.push(release::head());

    for pair in versions.windows(2) {
        let script = release::upgrade_script(&pair[0], &pair[1]);
        assert!(release::folder().join("..").join(&script).exists(), "sql/{script} is missing");
    }
}

#[test]
fn the_head_is_not_a_released_version() {
    let head = release::head();

    assert!(
        !release::versions().contains(&head),
        "{head} is released: begin the next version in Cargo.toml"
    );
}

#[test]
fn the_changelog_has_a_dated_heading_for_each_release() {
    let changelog = read(&top().join("CHANGELOG.md"));

    for version in release::versions() {
        let heading = format!("\n## {version} - 20");
        assert!(changelog.contains(&heading), "{heading:?} is not in CHANGELOG.md");
    }
}

/// Another version builds for other servers, or not at all.
#[test]
fn the_readme_installs_the_cargo_pgrx_that_is_pinned() {
    let manifest: toml::Table = read(&top().join("Cargo.toml")).parse().unwrap();
    let pgrx = manifest["dependencies"]["pgrx"]["version"].as_str().unwrap();
    let pinned = pgrx.strip_prefix('=').expect("one version and no other");
    let readme = read(&top().join("README.md"));

    let commands: Vec<&str> =
        readme.lines().filter(|line| line.starts_with("cargo install")).collect();

    assert_eq!(commands, [format!("cargo install --locked cargo-pgrx --version {pinned}")]);
}

/// PGXN's validator, which `./dev lint` runs, checks the rest.
#[test]
fn meta_json_names_the_version_and_files_that_are_here() {
    let meta: Value = serde_json::from_str(&read(&top().join("META.json"))).unwrap();
    let head = release::head();
    let extension = &meta["provides"]["pg_snowflake"];

    assert_eq!([&meta["version"], &extension["version"]], [&head, &head]);
    let status = if head.ends_with("-dev") { "unstable" } else { "stable" };
    assert_eq!(meta["release_status"], status, "{head}");
    for file in ["file", "docfile"] {
        let file = extension[file].as_str().unwrap();
        assert!(top().join(file).exists(), "{file} is missing");
    }
}

/// Cargo.toml is where the maintainer states them.
#[test]
fn meta_json_has_the_maintainer_and_the_repository_of_cargo_toml() {
    let meta: Value = serde_json::from_str(&read(&top().join("META.json"))).unwrap();
    let resources = &meta["resources"];
    let repository = release::metadata("repository");

    assert_eq!(meta["maintainer"], release::metadata("authors"));
    assert_eq!(resources["homepage"], release::metadata("homepage"));
    assert_eq!(resources["repository"]["web"], repository);
    assert_eq!(resources["repository"]["url"], format!("{repository}.git"));
    assert_eq!(resources["bugtracker"]["web"], format!("{repository}/issues"));
}

#[test]
fn a_release_has_no_placeholder() {
    let placeholders = release::placeholders();

    assert!(release::head().ends_with("-dev") || placeholders.is_empty(), "{placeholders}");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}
