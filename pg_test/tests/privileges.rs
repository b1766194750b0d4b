//! Taking ids from a sequence requires the same privilege as `nextval()`.

use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::ask::{Refusal, assert_refused};
use pg_snowflake_servertest::sequence::{state, take};

const TAKE: &str = "SELECT snowflake_nextval('s', 5)";

const DENIED: Refusal = Refusal {
    sqlstate: "42501",
    message: "permission denied for sequence s",
    hint: "GRANT USAGE ON SEQUENCE s TO writer;",
};

#[test]
fn usage_or_update_on_the_sequence_suffices() {
    let cluster = Cluster::new();
    let mut owner = cluster.connect();
    owner.batch_execute("CREATE ROLE writer LOGIN").unwrap();
    for privilege in ["USAGE", "UPDATE"] {
        owner
            .batch_execute(&format!(
                "DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s; GRANT {privilege} ON SEQUENCE s TO writer"
            ))
            .unwrap();
        let mut writer = cluster.connect_to("writer", "postgres");
        assert_eq!(take(&mut writer, TAKE).len(), 1, "{privilege}");
    }
}

#[test]
fn without_usage_or_update_on_the_sequence_nothing_is_taken() {
    let cluster = Cluster::new();
    let mut owner = cluster.connect();
    owner
        .batch_execute(
            "CREATE ROLE writer LOGIN; CREATE SEQUENCE s; GRANT SELECT ON SEQUENCE s TO writer",
        )
        .unwrap();
    let before = state(&mut owner, "s");

    assert_refused(&mut cluster.connect_to("writer", "postgres"), TAKE, DENIED);

    assert_eq!(state(&mut owner, "s"), before);
}

#[test]
fn the_hint_of_a_denial_fixes_it() {
    let cluster = Cluster::new();
    let mut owner = cluster.connect();
    owner
        .batch_execute(
            "CREATE SCHEMA \"Blog\"; CREATE SEQUENCE \"Blog\".\"Posts\"; CREATE ROLE \"Writer\" LOGIN; \
             GRANT USAGE ON SCHEMA \"Blog\" TO \"Writer\"",
        )
        .unwrap();
    let mut writer = cluster.connect_to("Writer", "postgres");
    let take_quoted = "SELECT snowflake_nextval('\"Blog\".\"Posts\"', 5)";

    let denied = Refusal { sqlstate: "42501", message: "", hint: "GRANT" };
    let denial = assert_refused(&mut writer, take_quoted, denied);
    owner.batch_execute(denial.hint().unwrap().strip_prefix("Run: ").unwrap()).unwrap();

    assert_eq!(take(&mut writer, take_quoted).len(), 1);
}

#[test]
fn a_revoke_applies_to_a_running_session_at_once() {
    let cluster = Cluster::new();
    let mut owner = cluster.connect();
    owner
        .batch_execute(
            "CREATE ROLE writer LOGIN; CREATE SEQUENCE s; GRANT USAGE ON SEQUENCE s TO writer",
        )
        .unwrap();
    let mut writer = cluster.connect_to("writer", "postgres");
    assert_eq!(take(&mut writer, TAKE).len(), 1);

    owner.batch_execute("REVOKE ALL ON SEQUENCE s FROM writer").unwrap();

    assert_refused(&mut writer, TAKE, DENIED);
}
