//! `./dev release`: writes a version, and what else Cargo.toml states once, into every file that repeats it.

use crate::tools::{Result, about, command, output};
use jiff::Zoned;
use jiff::fmt::rfc2822;
use pg_snowflake_harness::output::{say, step};
use pg_snowflake_harness::release::{self, EXTENSIONS, Extension};
use std::fs;
use std::path::Path;

/// The packages of this tree in the lock files, by the line of their names.
const PACKAGES: [&str; 3] = ["name = \"pg_snowflake\"", "name = \"pg_snowflake_ids\"", "name = \"pg_snowflake_policies\""];

/// The files of the JavaScript module with the version.
const JAVASCRIPT: [&str; 2] = ["javascript/package.json", "javascript/package-lock.json"];

/// Writes the version into the tree at `top`.
pub fn set(top: &Path, version: &str) -> Result {
    let head = release::head_of(top);
    if head == version {
        return Err(format!("Cargo.toml is at {version} already"));
    }
    let releases = release::versions(top);
    if !head.ends_with("-dev") && !releases.contains(&head) {
        return Err(format!("the SQL of {head} is not kept, and the next version changes it: ./dev release --sql {head}"));
    }
    let edit = |name: &str, change: &dyn Fn(&str) -> String| edit(&top.join(name), change);
    let line = |version: &str| format!("version = \"{version}\"");
    edit("Cargo.toml", &|text| text.replacen(&line(&head), &line(version), 1))?;
    for lock in ["Cargo.lock", "pg_test/fuzz/Cargo.lock"] {
        edit(lock, &|text| {
            PACKAGES.iter().fold(text.to_owned(), |text, name| {
                let entry = |version| format!("{name}\n{}\n", line(version));
                text.replace(&entry(&head), &entry(version))
            })
        })?;
    }
    for package in JAVASCRIPT {
        edit(package, &|text| json(text, &head, version))?;
    }
    edit("META.json", &|text| meta(text, &head, version))?;
    let quoted = |version: &str| format!("'{version}'");
    edit("sql/managed/pg_snowflake_managed_tle.sql", &|text| text.replace(&quoted(&head), &quoted(version)))?;
    if let Some(from) = releases.last() {
        EXTENSIONS.iter().try_for_each(|extension| upgrade(top, extension, from, &head, version))?;
    }
    let now = Zoned::now();
    let today = now.date().to_string();
    edit("CHANGELOG.md", &|text| changelog(text, &head, version, &today))?;
    let now = rfc2822::to_string(&now).map_err(|error| error.to_string())?;
    edit("debian/changelog", &|_| debian_changelog(version, &now))?;
    step(&format!("{head} is now {version}: read git diff"));
    let placeholders = release::placeholders();
    if !placeholders.is_empty() {
        say(&format!("placeholders, which a release must not have:\n{placeholders}"));
    }
    Ok(())
}

/// META.json of that version.
fn meta(text: &str, head: &str, version: &str) -> String {
    let status = |version: &str| format!("\"release_status\": \"{}\"", release::status(version));
    json(text, head, version).replace(&status(head), &status(version))
}

fn json(text: &str, head: &str, version: &str) -> String {
    let line = |version: &str| format!("\"version\": \"{version}\"");
    text.replace(&line(head), &line(version))
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

/// debian/changelog of that version. The files in its packages have that date.
fn debian_changelog(version: &str, date: &str) -> String {
    format!(
        "pg-snowflake ({}) unstable; urgency=medium\n\n  * pg_snowflake {version}. Its changes are in CHANGELOG.md.\n\n \
         -- {}  {date}\n",
        release::debian_version(version),
        release::metadata("authors")
    )
}

/// Renames the script that updates the last release of an extension to the head, or begins one if the head is that release.
fn upgrade(top: &Path, extension: &Extension, from: &str, head: &str, version: &str) -> Result {
    let path = |version: &str| top.join(extension.upgrade(from, version));
    let git = |command_of_git: &str| {
        let mut git = command("git");
        git.arg(command_of_git).current_dir(top);
        git
    };
    let new = path(version);
    if head == from {
        let text = format!(
            "-- From {from} to the next version.\n\
             -- Make every change of the SQL objects here too; a test compares the result with a fresh installation.\n\n\
             -- complain if script is sourced in psql, rather than via ALTER EXTENSION\n\
             \\echo Use \"ALTER EXTENSION {} UPDATE TO '{version}'\" to load this file. \\quit\n",
            extension.name
        );
        fs::write(&new, text).map_err(about(&new))?;
        return output(git("add").arg(&new)).map(drop);
    }
    output(git("mv").arg(path(head)).arg(&new))?;
    edit(&new, |text| text.replace(&format!("'{head}'"), &format!("'{version}'")))
}

/// Rewrites a file, in which something must change.
fn edit(path: &Path, change: impl FnOnce(&str) -> String) -> Result {
    let before = fs::read_to_string(path).map_err(about(path))?;
    let after = change(&before);
    if before == after {
        return Err(format!("{} does not have the version that Cargo.toml has", path.display()));
    }
    fs::write(path, after).map_err(about(path))
}

#[cfg(test)]
mod tests {
    use super::{JAVASCRIPT, set};
    use crate::release_sql::{check, keep};
    use crate::tools::{command, output};
    use pg_snowflake_harness::release::{EXTENSIONS, FOLDER, SUMS, head_of, problems};
    use std::fs;
    use std::path::Path;
    use tempfile::TempDir;

    const NONE: [&str; 0] = [];

    /// A copy of what has the version, and of what the releases keep, in a repository of its own.
    fn copy_of_this_tree() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut files = vec!["Cargo.toml", "Cargo.lock", "pg_test/fuzz/Cargo.lock", "META.json"];
        files.extend(["CHANGELOG.md", "debian", "sql"]);
        files.extend(JAVASCRIPT);
        output(command("cp").args(["-a", "--parents"]).args(files).arg(folder.path())).unwrap();
        let git = |arguments: &[&str]| output(command("git").args(arguments).current_dir(folder.path()));
        git(&["init", "--quiet"]).unwrap();
        git(&["add", "--all"]).unwrap();
        folder
    }

    fn release(top: &Path, version: &str) {
        if head_of(top) != version {
            set(top, version).unwrap();
        }
        check(top, version).unwrap();
        for extension in EXTENSIONS {
            let installed = top.join(extension.install_script(version));
            fs::write(installed, format!("SELECT '{version}';\n")).unwrap();
        }
        keep(top, version, top).unwrap();
    }

    /// The problems after an edit of a file, which is undone.
    fn problems_after(top: &Path, file: &Path, edit: impl FnOnce(&Path)) -> Vec<String> {
        let before = fs::read(file).unwrap();
        edit(file);
        let problems = problems(top);
        fs::write(file, before).unwrap();
        problems
    }

    #[test]
    fn a_tree_is_released_twice_and_keeps_what_is_released() {
        let folder = copy_of_this_tree();
        let (tree, first) = (folder.path(), "97.0.0-rc1");

        // The SQL of a release is kept before the next version changes it.
        set(tree, first).unwrap();
        assert_eq!(problems(tree), NONE);
        let refused = set(tree, "98.0.0-dev").unwrap_err();
        assert!(refused.contains(&format!("./dev release --sql {first}")), "{refused}");
        assert_eq!(head_of(tree), first);

        release(tree, first);
        assert!(problems(tree).iter().any(|line| line.contains("begin the next version")));
        let text = |file: &str| fs::read_to_string(tree.join(file)).unwrap();
        assert!(text("META.json").contains("\"release_status\": \"testing\""), "{}", text("META.json"));
        set(tree, "98.0.0-dev").unwrap();
        assert_eq!(problems(tree), NONE);
        assert!(text("META.json").contains("\"release_status\": \"unstable\""), "{}", text("META.json"));
        assert!(text("CHANGELOG.md").contains("\n## 98.0.0 - unreleased\n"), "{}", text("CHANGELOG.md"));
        // In the form that dpkg parses.
        let debian = text("debian/changelog");
        assert!(debian.starts_with("pg-snowflake (98.0.0~dev-1) unstable; urgency=medium\n\n  * "), "{debian}");
        assert!(debian.lines().nth(4).is_some_and(|line| line.starts_with(" -- ") && line.contains(">  ")), "{debian}");
        for extension in EXTENSIONS {
            let begun = text(&extension.upgrade(first, "98.0.0-dev"));
            assert!(begun.contains(&format!("ALTER EXTENSION {} UPDATE TO '98.0.0-dev'", extension.name)), "{begun}");
        }

        release(tree, "98.0.0");
        assert!(text("META.json").contains("\"release_status\": \"stable\""), "{}", text("META.json"));
        let refused = check(tree, "98.0.0").unwrap_err();
        assert!(refused.contains("what is released does not change"), "{refused}");
        set(tree, "99.0.0-dev").unwrap();
        assert_eq!(problems(tree), NONE);
        for file in JAVASCRIPT {
            assert!(text(file).contains("\"version\": \"99.0.0-dev\""), "{}", text(file));
        }

        let append = |file: &Path| {
            fs::write(file, fs::read_to_string(file).unwrap() + "SELECT 1;\n").unwrap();
        };
        let remove = |file: &Path| fs::remove_file(file).unwrap();
        let empty = |file: &Path| fs::write(file, "").unwrap();
        let assert_found = |file: &str, edit: &dyn Fn(&Path), expected: &str| {
            let found = problems_after(tree, &tree.join(file), edit);
            assert!(found.iter().any(|line| line.contains(expected)), "{expected}: {found:?}");
        };
        for extension in EXTENSIONS {
            let kept = extension.released("98.0.0");
            let released = extension.upgrade(first, "98.0.0");
            let coming = extension.upgrade("98.0.0", "99.0.0-dev");
            assert_eq!(problems_after(tree, &tree.join(&coming), append), NONE);
            assert_found(&released, &append, &format!("{released}: FAILED"));
            assert_found(&kept, &append, &format!("{kept}: FAILED"));
            assert_found(&kept, &remove, &format!("{kept}: FAILED open or read"));
            assert_found(&coming, &remove, &format!("{coming} is missing"));
            assert_found(SUMS, &empty, &format!("differ in {kept}"));
        }
        assert_found("CHANGELOG.md", &empty, "is not in CHANGELOG.md");
        assert_eq!(problems(tree), NONE);
    }

    #[test]
    fn a_release_is_kept_anew_until_the_next_version_changes_either_extension() {
        let folder = copy_of_this_tree();
        let (tree, first) = (folder.path(), "97.0.0");
        release(tree, first);
        set(tree, "98.0.0-dev").unwrap();
        fs::remove_dir_all(tree.join(FOLDER)).unwrap();
        assert_eq!(check(tree, first), Ok(()));
        for extension in EXTENSIONS {
            let script = extension.upgrade(first, "98.0.0-dev");
            let begun = fs::read_to_string(tree.join(&script)).unwrap();
            fs::write(tree.join(&script), format!("{begun}SELECT 1;\n")).unwrap();
            let refused = check(tree, first).unwrap_err();
            assert!(refused.starts_with(&format!("{script} changes the SQL")), "{refused}");
            fs::write(tree.join(&script), begun).unwrap();
        }
        let refused = check(tree, "96.0.0").unwrap_err();
        assert!(refused.starts_with("Cargo.toml is at 98.0.0-dev, not at 96.0.0"), "{refused}");
        output(command("git").args(["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "1"]).current_dir(tree)).unwrap();
        output(command("git").args(["tag", &format!("v{first}")]).current_dir(tree)).unwrap();
        let refused = check(tree, first).unwrap_err();
        assert!(refused.starts_with(&format!("v{first} is tagged")), "{refused}");
    }
}
