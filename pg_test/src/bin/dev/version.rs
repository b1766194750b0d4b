//! `./dev version`: writes a version, and what else Cargo.toml states once, into every file that repeats it.

use crate::tools::{Result, about, command, output, top};
use jiff::Zoned;
use pg_snowflake_servertest::output::{say, step};
use pg_snowflake_servertest::release;
use std::fs;

/// The packages of this tree in the lock files, by the line of their names.
const PACKAGES: [&str; 2] = ["name = \"pg_snowflake\"", "name = \"pg_snowflake_core\""];

/// Writes the version.
pub fn set(version: &str) -> Result {
    let head = release::head();
    if head == version {
        return Err(format!("Cargo.toml is at {version} already"));
    }
    let line = |version: &str| format!("version = \"{version}\"");
    edit("Cargo.toml", |text| text.replacen(&line(&head), &line(version), 1))?;
    for lock in ["Cargo.lock", "pg_test/fuzz/Cargo.lock"] {
        edit(lock, |text| {
            PACKAGES.iter().fold(text.to_owned(), |text, name| {
                let of = |version| format!("{name}\n{}\n", line(version));
                text.replace(&of(&head), &of(version))
            })
        })?;
    }
    edit("META.json", |text| meta(text, &head, version))?;
    let quoted = |version: &str| format!("'{version}'");
    edit("sql/managed/pg_snowflake_managed_tle.sql", |text| {
        text.replace(&quoted(&head), &quoted(version))
    })?;
    upgrade_script(&head, version)?;
    let today = Zoned::now().date().to_string();
    edit("CHANGELOG.md", |text| changelog(text, &head, version, &today))?;
    step(&format!("{head} is now {version}: read git diff"));
    let placeholders = release::placeholders();
    if !placeholders.is_empty() {
        say(&format!("placeholders, which a release must not have:\n{placeholders}"));
    }
    Ok(())
}

/// META.json of that version.
fn meta(text: &str, head: &str, version: &str) -> String {
    let status = |version: &str| match version.ends_with("-dev") {
        true => "\"release_status\": \"unstable\"",
        false => "\"release_status\": \"stable\"",
    };
    let line = |version: &str| format!("\"version\": \"{version}\"");
    text.replace(&line(head), &line(version)).replace(status(head), status(version))
}

/// CHANGELOG.md of that version: the heading of its section has the date of a release. The next version gets a new section.
fn changelog(text: &str, head: &str, version: &str, today: &str) -> String {
    let heading = |version: &str| match version.strip_suffix("-dev") {
        Some(next) => format!("\n## {next} - unreleased\n"),
        None => format!("\n## {version} - {today}\n"),
    };
    match text.contains(&heading(head)) && head.ends_with("-dev") {
        true => text.replacen(&heading(head), &heading(version), 1),
        false => text.replacen("\n## ", &format!("{}\n## ", heading(version)), 1),
    }
}

/// Renames the script that leads to the head, or begins one if the head is a release that is kept.
fn upgrade_script(head: &str, version: &str) -> Result {
    let released = release::versions();
    let from = released.last().expect("there is a release");
    let path = |version: &str| format!("sql/{}", release::upgrade_script(from, version));
    let new = path(version);
    if head == from {
        let text = format!(
            "-- From {from} to the next version.\n\
             -- Make every change of the SQL objects here too; a test compares the result with a fresh installation.\n\n\
             -- complain if script is sourced in psql, rather than via ALTER EXTENSION\n\
             \\echo Use \"ALTER EXTENSION pg_snowflake UPDATE TO '{version}'\" to load this file. \\quit\n"
        );
        fs::write(top().join(&new), text).map_err(about(top().join(&new).as_path()))?;
        return output(command("git").args(["add", &new])).map(drop);
    }
    output(command("git").args(["mv", &path(head), &new]))?;
    edit(&new, |text| text.replace(&format!("'{head}'"), &format!("'{version}'")))
}

/// Rewrites a file, in which something must change.
fn edit(name: &str, change: impl FnOnce(&str) -> String) -> Result {
    let path = top().join(name);
    let before = fs::read_to_string(&path).map_err(about(&path))?;
    let after = change(&before);
    if before == after {
        return Err(format!("{name} does not have the version that Cargo.toml has"));
    }
    fs::write(&path, after).map_err(about(&path))
}

#[cfg(test)]
mod tests {
    use super::{changelog, meta};

    #[test]
    fn the_changelog_has_the_date_of_a_release_and_then_a_section_for_the_next_version() {
        let head = "# Changelog\n\n## 0.3.0 - unreleased\n\n### Fixed\n";
        let release = "# Changelog\n\n## 0.3.0 - 2027-03-01\n\n### Fixed\n";
        let next = "# Changelog\n\n## 0.4.0 - unreleased\n\n## 0.3.0 - 2027-03-01\n\n### Fixed\n";
        assert_eq!(changelog(head, "0.3.0-dev", "0.3.0", "2027-03-01"), release);
        assert_eq!(changelog(release, "0.3.0", "0.4.0-dev", "2027-04-01"), next);
    }

    #[test]
    fn meta_json_of_a_release_is_stable() {
        let head = r#"{"version": "0.3.0-dev", "release_status": "unstable", "provides": {"version": "0.3.0-dev"}}"#;
        let release =
            r#"{"version": "0.3.0", "release_status": "stable", "provides": {"version": "0.3.0"}}"#;
        assert_eq!(meta(head, "0.3.0-dev", "0.3.0"), release);
        assert_eq!(meta(release, "0.3.0", "0.3.0-dev"), head);
    }
}
