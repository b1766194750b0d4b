//! What a release keeps forever: the install SQL of each extension, from which databases have been created, and the checksums of it
//! and of the script that upgrades to it. Tests reject changes to either. docs/releasing.md has the steps of a release.

use crate::tools::{Result, about, command, output};
use pg_snowflake_harness::output::step;
use pg_snowflake_harness::release::{self, EXTENSIONS, Extension};
use std::fs;
use std::path::Path;

/// Fails if the tree at `top` does not build the SQL of that version.
pub fn check(top: &Path, version: &str) -> Result {
    let head = release::head_of(top);
    let is_tagged = || {
        let tag = format!("refs/tags/v{version}");
        let mut find = command("git");
        find.args(["rev-parse", "--quiet", "--verify", &tag]).current_dir(top);
        output(&mut find).is_ok()
    };
    EXTENSIONS.iter().try_for_each(|extension| {
        let upgrade = top.join(extension.upgrade(version, &head));
        Tree {
            extension,
            is_kept: top.join(extension.released(version)).exists(),
            head: &head,
            is_tagged,
            upgrade: fs::read_to_string(upgrade).ok().as_deref(),
        }
        .is_of(version)
    })
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

/// What determines the version of an extension's SQL in the tree.
struct Tree<'a, IsTagged: Fn() -> bool> {
    extension: &'a Extension,
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
        let script = self.extension.released(version);
        let head = self.head;
        if self.is_kept {
            return Err(format!(
                "{script} is there, and what is released does not change. If nobody has {version} yet, remove the files \
                 of that version and their lines in {} first.",
                release::SUMS
            ));
        }
        if head == version {
            return Ok(());
        }
        let Some(upgrade) = self.upgrade else {
            return Err(format!("Cargo.toml is at {head}, not at {version}: run this in the tree of {version}"));
        };
        if (self.is_tagged)() {
            return Err(format!("v{version} is tagged, so its SQL is that of the tag: git checkout v{version}, and run this there"));
        }
        if has_statements(upgrade) {
            return Err(format!(
                "{} changes the SQL, so that of {version} is no longer here: run this in the tree of {version}",
                self.extension.upgrade(version, head)
            ));
        }
        Ok(())
    }
}

/// Whether there is anything besides comments and the line that stops psql from running it.
fn has_statements(script: &str) -> bool {
    let is_none = |line: &str| line.is_empty() || line.starts_with("--") || line.starts_with("\\echo ");
    !script.lines().all(is_none)
}

#[cfg(test)]
mod tests {
    use super::{Tree, has_statements};
    use pg_snowflake_harness::release::REGISTRY;

    const EMPTY: &str = "-- Nothing yet.\n\\echo Use \"ALTER EXTENSION\" \\quit\n\n";

    fn refusal(is_kept: bool, head: &str, is_tagged: bool, upgrade: Option<&str>) -> Option<String> {
        Tree { extension: &REGISTRY, is_kept, head, is_tagged: || is_tagged, upgrade }.is_of("0.3.0").err()
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
