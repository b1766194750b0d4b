//! What a release keeps forever: its install SQL, from which databases have been created, and the checksums of it and of
//! the script that upgrades to it. Tests reject changes to either. CONTRIBUTING.md has the steps of a release.

use crate::tools::{Result, about, command, output};
use pg_snowflake_servertest::output::step;
use pg_snowflake_servertest::{installation, release};
use std::fs;
use std::path::{Path, PathBuf};

/// Fails if the tree at `top` does not build the SQL of that version.
pub fn check(top: &Path, version: &str) -> Result {
    let head = release::head_of(top);
    let upgrade = top.join("sql").join(release::upgrade_script(version, &head));
    Tree {
        is_kept: release::folder(top).join(release::install_script(version)).exists(),
        head: &head,
        is_tagged: || {
            let tag = format!("refs/tags/v{version}");
            let mut find = command("git");
            find.args(["rev-parse", "--quiet", "--verify", &tag]).current_dir(top);
            output(&mut find).is_ok()
        },
        upgrade: fs::read_to_string(upgrade).ok().as_deref(),
    }
    .is_of(version)
}

/// The install SQL of the installed release library.
pub fn installed() -> PathBuf {
    let extensions = installation::pg_config("--sharedir").join("extension");
    extensions.join(release::install_script(&release::head()))
}

/// Keeps the install SQL in that file as that of the version, in the tree at `top`.
pub fn keep(top: &Path, version: &str, installed: &Path) -> Result {
    let folder = release::folder(top);
    let script = release::install_script(version);
    fs::create_dir_all(&folder).map_err(about(&folder))?;
    fs::copy(installed, folder.join(&script)).map_err(about(installed))?;
    let mut files = vec![script.clone()];
    files.extend(upgrades_to(top, version)?.into_iter().map(|name| format!("../{name}")));
    let sums = output(command("sha256sum").arg("--").args(files).current_dir(&folder))?;
    let kept = folder.join("SHA256SUMS");
    let before = fs::read_to_string(&kept).unwrap_or_default();
    fs::write(&kept, before + &sums).map_err(about(&kept))?;
    step(&format!("sql/releases/{script} is kept"));
    Ok(())
}

/// The scripts in `sql` that upgrade to that version.
fn upgrades_to(top: &Path, version: &str) -> Result<Vec<String>> {
    let sql: &Path = &top.join("sql");
    let entries = fs::read_dir(sql).map_err(about(sql))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let end = format!("--{version}.sql");
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with("pg_snowflake--") && name.ends_with(&end)).collect();
    names.sort();
    Ok(names)
}

/// What determines the version of the SQL in the tree.
struct Tree<'a, IsTagged: Fn() -> bool> {
    /// The SQL of the version is already kept.
    is_kept: bool,
    /// The version that the tree builds.
    head: &'a str,
    is_tagged: IsTagged,
    /// The script that upgrades from the version to the head.
    upgrade: Option<&'a str>,
}

impl<IsTagged: Fn() -> bool> Tree<'_, IsTagged> {
    /// The tree builds that version; or it builds the next one with no SQL change yet, and the version is not tagged,
    /// so that nobody can have it.
    fn is_of(&self, version: &str) -> Result {
        let script = format!("sql/releases/{}", release::install_script(version));
        let head = self.head;
        if self.is_kept {
            return Err(format!(
                "{script} is there, and what is released does not change. If nobody has {version} yet, remove the file \
                 and its lines in sql/releases/SHA256SUMS first."
            ));
        }
        if head == version {
            return Ok(());
        }
        let Some(upgrade) = self.upgrade else {
            return Err(format!(
                "Cargo.toml is at {head}, not at {version}: run this in the tree of {version}"
            ));
        };
        if (self.is_tagged)() {
            return Err(format!(
                "v{version} is tagged, so its SQL is that of the tag: git checkout v{version}, and run this there"
            ));
        }
        if has_statements(upgrade) {
            return Err(format!(
                "sql/{} changes the SQL, so that of {version} is no longer here: run this in the tree of {version}",
                release::upgrade_script(version, head)
            ));
        }
        Ok(())
    }
}

/// Whether there is anything besides comments and the line that stops psql from running it.
fn has_statements(script: &str) -> bool {
    let is_none =
        |line: &str| line.is_empty() || line.starts_with("--") || line.starts_with("\\echo ");
    !script.lines().all(is_none)
}

#[cfg(test)]
mod tests {
    use super::{Tree, has_statements};

    const EMPTY: &str = "-- Nothing yet.\n\\echo Use \"ALTER EXTENSION\" \\quit\n\n";

    fn refusal(
        is_kept: bool,
        head: &str,
        is_tagged: bool,
        upgrade: Option<&str>,
    ) -> Option<String> {
        Tree { is_kept, head, is_tagged: || is_tagged, upgrade }.is_of("0.3.0").err()
    }

    #[test]
    fn sql_is_kept_in_the_versions_tree_or_before_the_next_changes_it() {
        assert_eq!(refusal(false, "0.3.0", true, None), None);
        assert_eq!(refusal(false, "0.4.0-dev", false, Some(EMPTY)), None);
    }

    #[test]
    fn the_sql_of_another_version_is_refused_with_the_reason() {
        let changed = "-- New.\nCREATE FUNCTION f() …;\n";
        let cases = [
            (refusal(true, "0.3.0", false, None), "what is released does not change"),
            (refusal(false, "0.5.0-dev", false, None), "Cargo.toml is at 0.5.0-dev"),
            (refusal(false, "0.4.0-dev", true, Some(EMPTY)), "v0.3.0 is tagged"),
            (refusal(false, "0.4.0-dev", false, Some(changed)), "changes the SQL"),
        ];
        for (refusal, expected) in cases {
            assert!(refusal.as_ref().is_some_and(|text| text.contains(expected)), "{refusal:?}");
        }
    }

    #[test]
    fn a_script_of_comments_has_no_statements() {
        assert!(!has_statements(EMPTY));
        assert!(has_statements("-- One.\nSELECT 1;\n"));
    }
}
