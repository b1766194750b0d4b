//! What a session keeps of the sequences that it has used.

use pg_snowflake_harness::ask::{printed, run, server};
use pg_snowflake_harness::process::{backend_pid, private_memory_kb};

/// As a pooled session that uses a temporary table in each transaction, and now and then a sequence that stays.
const CHURN: &str = "CREATE TABLE kept (seq regclass, id bigint);
     CREATE PROCEDURE churn(first int, last int) LANGUAGE plpgsql AS $$
     BEGIN
         FOR turn IN first..last LOOP
             CREATE TEMP SEQUENCE t;
             PERFORM snowflake_nextval('t', 5), snowflake_currval('t');
             DROP SEQUENCE t;
             IF turn % 100 = 0 THEN
                 EXECUTE format('CREATE SEQUENCE s%s', turn);
                 INSERT INTO kept SELECT s, snowflake_nextval(s, 5) FROM CAST(format('s%s', turn) AS regclass) s;
             END IF;
             COMMIT;
         END LOOP;
     END $$";

#[test]
fn dropped_sequences_take_no_memory_and_the_others_stay() {
    let (_cluster, mut client) = server();
    run(&mut client, CHURN);
    let pid = backend_pid(&mut client);
    run(&mut client, "CALL churn(1, 1100)");
    let before = private_memory_kb(pid);
    run(&mut client, "CALL churn(1101, 9100)");
    let after = private_memory_kb(pid);
    // Core's cache of the catalogs grows by this, too.
    assert!(after < before + 1000, "{before} kB before, {after} kB after");
    assert_eq!(printed(&mut client, "SELECT count(*), count(*) FILTER (WHERE id = snowflake_currval(seq)) FROM kept"), "91|91");
}
