//! PostgreSQL's own tests of `nextval()`, restated, and other tests that are best written as scripts of a few sessions.

use pg_snowflake_harness::clock::server_at_noon;
use pg_snowflake_harness::regress::{self, ISOLATION, REGRESS};
use pg_snowflake_harness::{Cluster, top};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn scripts_of_one_session_match_their_expected_files() {
    REGRESS.run_all(&Cluster::new(), here());
}

#[test]
fn the_script_of_the_metrics_matches_its_expected_file() {
    REGRESS.run_all(&Cluster::new(), &of_metrics());
}

#[test]
fn scripts_of_concurrent_sessions_match_their_expected_files() {
    ISOLATION.run_all(&Cluster::new(), here());
}

/// What depends on the day and the hour. `make installcheck` leaves these out.
#[test]
fn scripts_of_one_session_at_a_fixed_time_match_their_expected_files() {
    REGRESS.run_all(&server_at_noon(), &at_noon());
}

/// Scripts run at the same time on one server, where each sees the roles of all.
#[test]
fn the_roles_of_a_script_are_named_after_it() {
    // That of the metrics has a server of its own.
    let folders = [here().join("sql"), here().join("specs"), at_noon().join("sql")];
    for file in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()) {
        let path = file.unwrap().path();
        let script = fs::read_to_string(&path).unwrap().replace("CREATE USER MAPPING", "");
        let prefix = format!("regress_{}_", path.file_stem().unwrap().display());

        for statement in ["CREATE ROLE ", "CREATE USER "] {
            for role in script.split(statement).skip(1) {
                let role = role.trim_start_matches('"');
                assert!(role.starts_with(&prefix), "{}: {statement}{role:.60}", path.display());
            }
        }
    }
}

/// The drivers run only the tests that they are passed by name, so a forgotten one would not be noticed.
#[test]
fn every_script_has_its_expected_output() {
    folders().iter().for_each(|folder| regress::assert_complete(folder));
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn at_noon() -> PathBuf {
    here().join("noon")
}

fn of_metrics() -> PathBuf {
    top().join("monitoring/tests")
}

fn folders() -> [PathBuf; 3] {
    [here().to_owned(), at_noon(), of_metrics()]
}
