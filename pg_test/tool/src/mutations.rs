//! Removes each safeguard in turn: the patched tree, built in a copy into a copy of the installation, must fail the short campaign.

use crate::tools::{Result, about, cargo, command, execute, execute_logged, make, output, passed, target, top};
use pg_snowflake_harness::installation;
use pg_snowflake_harness::output::{say, step};
use std::fs;
use std::path::{Path, PathBuf};

/// Tries all patches.
pub fn run() -> Result {
    let folder = top().join("pg_test/campaign/mutations");
    let entries = fs::read_dir(&folder).map_err(about(&folder))?;
    let mut patches: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    patches.sort();
    let mut survivors = Vec::new();
    for patch in &patches {
        let name = patch.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(patch).map_err(about(patch))?;
        step(&format!("{name}: {}", text.lines().next().unwrap_or_default()));
        let pg_config = build(patch)?;
        let mut campaign = cargo(&["run", "--quiet", "--package", "pg_snowflake_campaign"]);
        campaign.args(["--", "--short", "--until-broken"]).env("PG_CONFIG", pg_config);
        let (outcome, said) = execute_logged(&mut campaign)?;
        match (outcome, broken_promises(&said)) {
            (Ok(()), _) => {
                say("not found");
                survivors.push(name.into_owned());
            }
            (Err(_), rows) if rows.is_empty() => return Err(format!("{said}\nthe campaign failed in another way")),
            (Err(_), rows) => rows.iter().for_each(|row| say(row)),
        }
    }
    if survivors.is_empty() { Ok(()) } else { Err(format!("the campaign did not find: {}", survivors.join(", "))) }
}

/// The rows of the campaign's tables with a broken promise.
fn broken_promises(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with('|') && line.contains("promise broken")).collect()
}

/// The `pg_config` of a copy of the installation that has the extension with that patch. The tree and the copy are always in the
/// same folders, so that cargo compiles pgrx once.
fn build(patch: &Path) -> Result<PathBuf> {
    let target = target().join("pg_snowflake-mutations");
    let (tree, copy) = (target.join("tree"), passed("INSTALLATION")?.with_file_name("mutations"));
    for folder in [&tree, &copy] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(about(folder))?;
        }
    }
    fs::create_dir_all(&tree).map_err(about(&tree))?;
    // With the current date, else cargo takes the patched file for compiled.
    let copy_tree = "git ls-files -z | tar -c --null --ignore-failed-read -T - | tar -xm -C \"$0\"";
    execute(command("bash").args(["-o", "pipefail", "-c", copy_tree]).arg(&tree))?;
    // In a folder of a repository, git would skip all that is not in that folder of it.
    let mut apply = command("git");
    apply.arg("-C").arg(&tree).arg("apply").arg(patch).env("GIT_CEILING_DIRECTORIES", &target);
    execute(&mut apply)?;
    let compare = "for folder in ids policies src; do diff -rq $folder \"$0/$folder\" || exit; done";
    let same = command("bash").args(["-c", compare]).arg(&tree).output();
    if same.is_ok_and(|same| same.status.success()) {
        return Err(format!("{} changes nothing in src, ids and policies", patch.display()));
    }
    let pg_config = installation::copy(&copy);
    let mut install = make("testing", &pg_config);
    install.args(["all", "install"]).current_dir(&tree).env("CARGO_TARGET_DIR", target);
    output(&mut install)?;
    Ok(pg_config)
}

#[test]
fn a_panic_is_no_broken_promise() {
    let broken = "| kill | 3 IDs returned twice: promise broken |";
    assert_eq!(broken_promises(&format!("some words\n| fault | IDs |\n{broken}\n| steps | 0 |\n")), [broken]);
    assert!(broken_promises("thread 'main' panicked: the server does not come up").is_empty());
}
