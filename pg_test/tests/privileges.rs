//! Taking IDs from a sequence requires the same privilege as `nextval()`, and a user's table is read with its owner's.

use pg_snowflake_harness::prelude::*;
use std::process::Command;
use std::thread::spawn;

const TAKE: &str = "SELECT snowflake_nextval('s', 5)";

const DENIED: Refusal =
    Refusal { sqlstate: "42501", message: "permission denied for sequence s", hint: "GRANT USAGE ON SEQUENCE s TO writer;" };

/// A session that has missed many invalidation messages resets its caches. If a cancel interrupts that, core's own caches are
/// reset and the extension has not been called.
#[test]
fn a_revoke_applies_after_a_reset_of_the_caches_that_was_interrupted() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
    let mut owner = cluster.connect();
    // An hour ahead, so that cached counters stay usable.
    let start = counter_in_an_hour();
    let sql = format!(
        "CREATE ROLE writer LOGIN;
         CREATE TABLE t (id bigint, text text);
         CREATE SEQUENCE s CACHE 10;
         SELECT setval('s', {start});
         CREATE SEQUENCE other;
         GRANT ALL ON t, s, other TO writer"
    );
    run(&mut owner, &sql);
    let mut writer = cluster.connect_to("writer", "postgres");
    take(&mut writer, TAKE);
    take(&mut writer, TAKE);
    let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let waits_for = |kind| format!("SELECT wait_event_type = 'Lock' AND wait_event = '{kind}' FROM pg_stat_activity WHERE pid = {pid}");
    let mut locker = cluster.connect();
    locker.batch_execute("SELECT pg_advisory_lock(7)").unwrap();
    let insert = "INSERT INTO t SELECT 1, pg_advisory_lock(7)::text || snowflake_nextval('other', 5)";
    let interrupted = spawn(move || {
        assert_refused(&mut writer, insert, refusal("57014", ""));
        writer
    });
    wait_for(&mut locker, &waits_for("advisory"), "the writer has opened the table");

    owner.batch_execute("REVOKE ALL ON SEQUENCE s FROM writer").unwrap();
    // More messages than the server keeps for a session: 4,096.
    run(&mut owner, "DO $$ BEGIN FOR turn IN 1..1000 LOOP CREATE TEMP TABLE x (a int, b text); DROP TABLE x; COMMIT; END LOOP; END $$");
    // To rebuild the open table, the writer reads this catalog.
    locker.batch_execute("BEGIN; LOCK TABLE pg_attribute IN ACCESS EXCLUSIVE MODE; SELECT pg_advisory_unlock(7)").unwrap();
    wait_for(&mut locker, &waits_for("relation"), "the writer resets its caches");
    locker.batch_execute(&format!("SELECT pg_cancel_backend({pid}); ROLLBACK")).unwrap();

    assert_refused(&mut interrupted.join().unwrap(), TAKE, DENIED);
}

/// The session processes the message when the transaction's first call locks the sequence.
#[test]
fn a_revoke_during_a_transaction_applies_to_its_first_call() {
    let cluster = Cluster::new();
    let mut owner = cluster.connect();
    run(&mut owner, "CREATE ROLE writer LOGIN; CREATE SEQUENCE s; GRANT USAGE ON SEQUENCE s TO writer");
    let mut writer = cluster.connect_to("writer", "postgres");
    for _ in 0..2 {
        take_one(&mut writer, TAKE);
    }
    run(&mut writer, "BEGIN; SELECT");
    run(&mut owner, "REVOKE ALL ON SEQUENCE s FROM writer");
    assert_refused(&mut writer, TAKE, DENIED);
}

/// A query that formats the name of a table or of a type into its text is over a user's.
#[test]
fn only_the_module_that_acts_as_the_owner_queries_a_users_table() {
    let queries = |paths: &[&str]| {
        let mut grep = Command::new("git");
        grep.args(["grep", "-nP", r#"\b(FROM|JOIN|INTO|ONLY) (\{[a-z}]|"|\\?$)|::\{[a-z_]*\}"#, "--"]);
        let found = grep.args(paths).current_dir(top()).output().expect("git runs");
        assert!(found.stderr.is_empty(), "{found:?}");
        String::from_utf8(found.stdout).unwrap()
    };

    assert_eq!(queries(&["src", ":!src/postgres/user_table.rs"]), "");

    assert_eq!(queries(&["src/postgres/user_table.rs"]).lines().count(), 3);
}
