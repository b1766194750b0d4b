//! PostgreSQL's own tests of `nextval()`, restated, and what a script in one or two sessions says best.

use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::regress::{self, ISOLATION, REGRESS};
use pg_snowflake_servertest::release;
use std::path::Path;

#[test]
fn one_session_sees_what_the_expected_files_say() {
    REGRESS.run_all(&Cluster::new(), here());
}

#[test]
fn concurrent_sessions_see_what_the_expected_files_say() {
    ISOLATION.run_all(&Cluster::new(), here());
}

#[test]
fn what_is_updated_does_what_the_expected_files_say() {
    for version in release::versions() {
        let cluster = Cluster::builder().release(&version).updated().start();

        REGRESS.run_all(&cluster, here());
        ISOLATION.run_all(&cluster, here());
    }
}

/// The drivers look for the tests that they get by name, and nobody else would miss the others.
#[test]
fn every_script_has_its_expected_output() {
    regress::assert_complete(here());
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
