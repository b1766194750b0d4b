//! What a session keeps of the sequences that it has used.

use pg_snowflake_harness::ask::{run, server};
use pg_snowflake_harness::process::{backend_pid, private_memory_kb};

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
