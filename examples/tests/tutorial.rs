//! The tutorial, as its reader types it: the SQL into psql, the commands into a shell, the programs into files.

use pg_snowflake_examples::{client, command, run, with_pip};
use pg_snowflake_harness::installation::bindir;
use pg_snowflake_harness::{Cluster, SUPERUSER, top};
use std::ffi::OsString;
use std::fs;

/// The output of its SQL is compared by the tests of the documentation.
#[test]
fn the_tutorial_runs_as_it_stands_and_prints_what_it_shows() {
    let Some(dir) = with_pip("the tutorial", "drivers/python") else { return };
    let cluster = Cluster::new();
    cluster.psql(SUPERUSER, "CREATE ROLE reader LOGIN SUPERUSER");
    let mut path = OsString::from(bindir());
    path.push(":");
    path.push(std::env::var_os("PATH").expect("a PATH"));

    let page = fs::read_to_string(top().join("docs/tutorial.md")).expect("the page exists");
    let mut printed = String::new();
    let mut compared = 0;
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').expect("a language and a text");
        match language {
            "sql" => {
                cluster.psql_as("reader", SUPERUSER, text);
            }
            "python" => {
                let name = text.strip_prefix("# ").and_then(|text| text.lines().next());
                let name = name.expect("the first line of a program is a comment with its name");
                fs::write(dir.path().join(name), text).expect("the folder is ours");
            }
            // Installing is for the reader's machine.
            "sh" if text.starts_with("sudo ") => {}
            "sh" => {
                let mut shell = command("bash", dir.path());
                shell.args(["-euo", "pipefail", "-c", text]).env("PYTHONPATH", "packages");
                client(&mut shell, &cluster).env("PGUSER", "reader").env("PATH", &path);
                printed = run(&mut shell);
            }
            "text" => {
                assert_eq!(without_ids(printed.trim_end()), without_ids(text), "right: the page");
                compared += 1;
            }
            "output" => {}
            _ => panic!("a block of {language}"),
        }
    }
    assert!(compared >= 2, "the page shows {compared} outputs");
}

fn without_ids(text: &str) -> String {
    let ids = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| digits.len() == 19);
    ids.fold(text.to_owned(), |text, id| text.replace(id, "ID"))
}
