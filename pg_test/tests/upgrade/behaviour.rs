//! What a release did is kept as scripts and what they printed with its own library, in `pg_test/releases`. Neither
//! follows the head, so a change of behaviour cannot change its own expectation.

use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::regress::{Difference, REGRESS};
use pg_snowflake_servertest::release;
use postgres::Client;
use std::collections::BTreeSet;
use std::fs;

/// What is meant to be printed differently since a release.
///
/// A converted column's default passes the layout instead of leaving it to the function's default, which left the call to
/// whatever overload fits better. psql pads the column to its widest value, which had its layout all along: the longer
/// default takes as many spaces.
const DIFFERENCES: [Difference; 1] = [Difference {
    was: "'::regclass, 5)                               ",
    is: "'::regclass, 5, 'instagram'::snowflake_layout)",
}];

/// That its SQL can be run at all, and that each of its functions is in the library, every test of updates shows.
#[test]
fn the_library_of_the_head_serves_the_sql_of_a_release_as_that_release_did() {
    for version in release::versions() {
        let cluster = Cluster::builder().release(&version).start();

        REGRESS.run_all_but(&cluster, &release::behaviour(&version), &DIFFERENCES);
    }
}

#[test]
fn what_is_updated_does_what_the_release_did() {
    for version in release::versions() {
        let cluster = Cluster::builder().release(&version).updated().start();

        REGRESS.run_all_but(&cluster, &release::behaviour(&version), &DIFFERENCES);
    }
}

/// What they leave out could change and nobody would see it. By name: of functions that share one, and of operators and
/// casts, this does not see whether each is used.
#[test]
fn the_scripts_of_a_release_use_all_that_it_has() {
    for version in release::versions() {
        let cluster = Cluster::builder().release(&version).start();
        let names = names(&mut cluster.connect());
        let used = words_of_the_scripts(&version);

        let forgotten: Vec<_> = names.difference(&used).collect();

        assert!(!names.is_empty());
        assert!(forgotten.is_empty(), "no script of {version} has {forgotten:?}");
    }
}

/// Everything of the extension that has a name, but for its settings: those that are there are the head's. What takes
/// `internal` nobody can call: binary `COPY` does. The array types that come with the others are members from PostgreSQL
/// 17 on.
fn names(client: &mut Client) -> BTreeSet<String> {
    let names = "
        CREATE TEMP TABLE member AS
        SELECT classid, objid FROM pg_depend
        WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
          AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_snowflake');
        CREATE TEMP VIEW names AS
        SELECT proname::text AS name FROM pg_proc JOIN member ON classid = 'pg_proc'::regclass AND objid = oid
        WHERE NOT 'internal'::regtype = ANY (proargtypes)
        UNION SELECT relname FROM pg_class JOIN member ON classid = 'pg_class'::regclass AND objid = oid
        UNION SELECT typname FROM pg_type JOIN member ON classid = 'pg_type'::regclass AND objid = oid
        WHERE typcategory <> 'A'
        UNION SELECT opcname FROM pg_opclass JOIN member ON classid = 'pg_opclass'::regclass AND objid = oid";
    client.batch_execute(names).unwrap();
    let rows = client.query("SELECT name FROM names", &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The words of their statements; a comment uses nothing.
fn words_of_the_scripts(version: &str) -> BTreeSet<String> {
    let scripts = fs::read_dir(release::behaviour(version).join("sql")).unwrap();
    let texts = scripts.map(|script| fs::read_to_string(script.unwrap().path()).unwrap());
    let is_of_a_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words_of = |text: &str| -> Vec<String> {
        let statements = text.lines().map(|line| line.split("--").next().unwrap());
        statements
            .flat_map(|line| line.split(|letter| !is_of_a_name(letter)))
            .map(str::to_owned)
            .collect()
    };
    texts.flat_map(|text| words_of(&text)).collect()
}
