//! What a session keeps of the sequences that it has used, and when it opens them again.

use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::process::private_memory_kb;

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
    let (_cluster, mut client) = server_with(CHURN);
    let pid = backend_pid(&mut client);
    run(&mut client, "CALL churn(1, 1100)");
    let before = private_memory_kb(pid);
    run(&mut client, "CALL churn(1101, 9100)");
    let after = private_memory_kb(pid);
    // Core's cache of the catalogs grows by this, too.
    assert!(after < before + 1000, "{before} kB before, {after} kB after");
    assert_eq!(printed(&mut client, "SELECT count(*), count(*) FILTER (WHERE id = snowflake_currval(seq)) FROM kept"), "91|91");
}

/// As many as a session uses until it searches for dropped ones for the third time, which are 4,096. Then each takes 200 bytes.
#[test]
fn the_memory_of_many_sequences_is_returned_once_they_are_dropped() {
    let (_cluster, mut client) = server();
    let pid = backend_pid(&mut client);
    let sql = "CREATE SEQUENCE a; CREATE SEQUENCE b; CREATE SEQUENCE c;
        CREATE PROCEDURE take(statement text) LANGUAGE plpgsql AS $$ BEGIN
            FOR n IN 1..4095 LOOP
                EXECUTE format(statement, n);
                IF statement ~ 'CREATE' THEN PERFORM snowflake_nextval(('s' || n)::regclass, 5); END IF;
                IF n % 500 = 0 THEN COMMIT; END IF;
            END LOOP; END $$";
    run(&mut client, sql);
    for statement in ["CREATE TEMP SEQUENCE", "DROP SEQUENCE"] {
        run(&mut client, &format!("CALL take('{statement} s%s')"));
    }
    let before = private_memory_kb(pid);
    run(&mut client, "SELECT snowflake_nextval('a', 5); SELECT snowflake_nextval('b', 5); SELECT snowflake_nextval('c', 5)");
    let after = private_memory_kb(pid);
    assert!(after + 500 < before, "{before} kB before, {after} kB after");
}

#[test]
fn changes_of_other_relations_do_not_make_a_session_open_the_sequence_again() {
    let (cluster, mut client) = server_with("CREATE SEQUENCE s");
    let mut other = cluster.connect();
    let before = openings(&mut client);
    for round in 0..100 {
        let sql = format!("CREATE TEMP TABLE t{round} (id int PRIMARY KEY); CREATE SEQUENCE s{round}; ALTER SEQUENCE s{round} CACHE 5");
        run(&mut other, &sql);
        client.batch_execute("SELECT snowflake_nextval('s', 5)").unwrap();
    }
    // Other relations can share the slot in which the session counts changes of the sequence, one in 1,024.
    let opened = openings(&mut client) - before;
    assert!(opened <= 1 + 10, "{opened}");
}

/// How often sessions have opened the sequence and then accessed its page, which the server counts.
fn openings(client: &mut Client) -> i64 {
    client.batch_execute("SELECT pg_stat_force_next_flush()").unwrap();
    client.query_one("SELECT blks_hit + blks_read FROM pg_statio_user_sequences WHERE relname = 's'", &[]).unwrap().get(0)
}

/// As `setval()` of a person, and replication of sequences, do it. An hour ahead, the clock hides no repetition.
#[test]
fn a_sequence_that_is_set_back_goes_on_above_the_ids_of_every_session() {
    let (cluster, mut client) = server_with("CREATE SEQUENCE s");
    run(&mut client, "CREATE SEQUENCE cached CACHE 64; CREATE UNLOGGED SEQUENCE unlogged; SET pg_snowflake.max_lead = '2h'");
    let calls = ["snowflake_nextval('S', 5)", "snowflake_nextvals('S', 9, 5)", "snowflake_nextval_homed('S', 5, 8, 1)"];
    for (sequence, call) in ["s", "cached"].into_iter().flat_map(|sequence| calls.map(|call| (sequence, call.replace('S', sequence)))) {
        let mut sessions = [cluster.connect(), cluster.connect(), cluster.connect()];
        run(&mut client, &format!("ALTER SEQUENCE {sequence} RESTART {}", counter_in_an_hour()));
        let mut issued: Vec<i64> = Vec::new();
        for round in 0..3 {
            for session in &mut sessions {
                run(session, "SET pg_snowflake.max_lead = '2h'");
                issued.extend(take(session, &format!("SELECT {call} FROM generate_series(1, 50)")));
            }
            run(&mut client, &format!("SELECT setval('{sequence}', {}, {})", 1 + round, round % 2 == 0));
            // Core's own record, and its log_cnt, hide nothing.
            run(&mut client, &format!("SELECT nextval('{sequence}') FROM generate_series(1, {round})"));
            let error = format!("SELECT error FROM snowflake_sequence_status('{sequence}')");
            assert!(printed(&mut client, &error).contains("was set back from"), "{call}");
        }
        let lowest = issued[0];
        issued.sort_unstable();
        assert_eq!(issued[0], lowest, "{call}");
        assert!(is_increasing(&issued), "{call}: an ID was repeated");
    }
    assert_eq!(cluster.log().matches("was set back from").count(), 2 * 3 * 2);

    // A reset, and what is not logged, leave no trace.
    for (reset, sequence) in [("ALTER SEQUENCE s RESTART", "s"), ("SELECT setval('unlogged', 1)", "unlogged")] {
        run(&mut client, &format!("SELECT setval('{sequence}', {})", counter_in_an_hour()));
        take_one(&mut client, &format!("SELECT snowflake_nextval('{sequence}', 5)"));
        run(&mut client, reset);
        assert_eq!(printed(&mut client, &format!("SELECT error, lead FROM snowflake_sequence_status('{sequence}')")), "|00:00:00");
    }
}
