//! What a session keeps of the sequences that it has used.

use pg_snowflake_harness::ask::{run, server};
use pg_snowflake_harness::id::counter;
use pg_snowflake_harness::process::{backend_pid, private_memory_kb};
use pg_snowflake_harness::sequence::{Ahead, take_one};

/// As a pooled session that uses a temporary table in each transaction.
const CHURN: &str = "CREATE PROCEDURE churn(turns int) LANGUAGE plpgsql AS $$
     BEGIN
         FOR turn IN 1..turns LOOP
             CREATE TEMP SEQUENCE t;
             PERFORM snowflake_nextval('t', 5);
             DROP SEQUENCE t;
             COMMIT;
         END LOOP;
     END $$";

#[test]
fn dropped_sequences_take_no_memory() {
    let (_cluster, mut client) = server();
    run(&mut client, CHURN);
    let pid = backend_pid(&mut client);
    run(&mut client, "CALL churn(1100)");
    let before = private_memory_kb(pid);
    run(&mut client, "CALL churn(8000)");
    let after = private_memory_kb(pid);
    // Core's cache of the catalogs grows by this, too.
    assert!(after < before + 1000, "{before} kB before, {after} kB after");
}

/// The session has dropped the sequence, and does not know yet that it will exist again.
#[test]
fn a_session_remembers_a_sequence_whose_drop_is_rolled_back() {
    let Ahead { cluster: _cluster, mut client, .. } = Ahead::caching(1);
    run(&mut client, CHURN);
    let last = take_one(&mut client, "SELECT snowflake_nextval('s', 5)");
    run(
        &mut client,
        "BEGIN; DROP SEQUENCE s;
         DO $$ BEGIN FOR n IN 1..2000 LOOP
             CREATE TEMP SEQUENCE t; PERFORM snowflake_nextval('t', 5); DROP SEQUENCE t;
         END LOOP; END $$;
         ROLLBACK",
    );
    // Only the session's memory keeps it from returning the same ID.
    let counter = counter(last);
    run(&mut client, &format!("SELECT setval('s', {counter}, false)"));
    assert!(take_one(&mut client, "SELECT snowflake_nextval('s', 5)") > last);
}
