//! The script that docs/leases.md begins with.

use super::page::page;
use pg_snowflake_harness::installation::{as_server_user, bindir, run, temp_dir};
use pg_snowflake_harness::top;
use std::process::Command;

#[test]
fn three_servers_number_themselves_as_the_page_shows() {
    let parent = temp_dir();
    let folder = parent.path().join("three-servers");
    let script = std::fs::read(top().join("docs/leases/three-servers.sh")).expect("the script exists");
    let three_servers = |what| -> Command {
        // The servers' OS user may not be able to read the source tree, so the script comes on standard input.
        let mut bash = as_server_user("bash", parent.path());
        bash.args(["-s", what]).arg(&folder).env("PG_CONFIG", bindir().join("pg_config"));
        bash
    };

    let printed = run(&mut three_servers("start"), &script);
    run(&mut three_servers("stop"), &script);

    let printed = String::from_utf8(printed).expect("text");
    let shown = printed.replace(&folder.display().to_string(), "/tmp/three-servers");
    assert!(page("docs/leases.md").text().contains(&format!("```text\n{shown}```")), "{shown}");
    assert!(!folder.exists(), "the servers' folder is left");
}
