//! What `snowflake_sequence_status` shows of a sequence, to which roles, and that it changes nothing.

use pg_snowflake_harness::ask::{
    Bad, Refusal, assert_each_refused, assert_refused, printed, server, server_with_sequence,
};
use pg_snowflake_harness::id::{first_counter_at, now_ms};
use pg_snowflake_harness::sequence::{counter_in_an_hour, state, take_one};
use pg_snowflake_harness::{Cluster, SUPERUSER, Shutdown};

/// The last tick of the layout, as a Unix time in milliseconds.
const LAST_MS: i64 = pg_snowflake_harness::id::EPOCH_MS + (1 << 41) - 1;

#[test]
fn it_shows_the_time_of_the_last_id() {
    let (_cluster, mut client) = server_with_sequence();
    let last =
        |client: &mut _| printed(client, "SELECT last_id_at FROM snowflake_sequence_status('s')");
    assert_eq!(last(&mut client), "", "never called");

    let id = take_one(&mut client, "SELECT snowflake_nextval('s', 5)");

    let created_at = printed(&mut client, &format!("SELECT snowflake_created_at({id})"));
    assert_eq!(last(&mut client), created_at);
}

#[test]
fn it_reads_the_counter_in_the_layout_that_is_passed() {
    let (_cluster, mut client) = server_with_sequence();
    let id = take_one(&mut client, "SELECT snowflake_nextval('s', 5, 'sonyflake')");
    let sql = format!(
        "SELECT last_id_at = snowflake_created_at({id}, 'sonyflake'), status.ends_at = info.ends_at
         FROM snowflake_sequence_status('s', 'sonyflake') AS status, snowflake_layout_info('sonyflake') AS info"
    );
    assert_eq!(printed(&mut client, &sql), "t|t");
}

#[test]
fn a_sequence_that_the_clock_has_passed_has_no_lead() {
    let (_cluster, mut client) = server();
    client
        .batch_execute("CREATE SEQUENCE s; SELECT snowflake_nextval('s', 5), pg_sleep(0.1)")
        .unwrap();
    assert_eq!(
        printed(&mut client, "SELECT lead, error FROM snowflake_sequence_status('s')"),
        "00:00:00|"
    );
}

#[test]
fn a_sequence_ahead_of_the_clock_shows_its_lead_and_what_a_call_would_be_refused_with() {
    let (_cluster, mut client) = server();
    client.batch_execute(&format!("CREATE SEQUENCE s START {}", counter_in_an_hour())).unwrap();
    let lead = printed(
        &mut client,
        "SELECT lead BETWEEN '30 minutes' AND '60 minutes', error FROM snowflake_sequence_status('s')",
    );
    assert!(
        lead.starts_with("t|sequence \"s\" is too far ahead of the server clock: It is "),
        "{lead}"
    );

    // It does not report an error for what the session may do.
    client.batch_execute("SET pg_snowflake.max_lead = '2h'").unwrap();
    assert_eq!(printed(&mut client, "SELECT error FROM snowflake_sequence_status('s')"), "");
}

#[test]
fn whole_ids_of_another_extension_show_as_a_lead_of_years() {
    let (_cluster, mut client) = server();
    client.batch_execute("CREATE SEQUENCE s; SELECT setval('s', 500000000000000000)").unwrap();
    let shown = printed(
        &mut client,
        "SELECT lead > interval '1000000 hours', error FROM snowflake_sequence_status('s')",
    );
    assert!(shown.starts_with("t|") && shown.contains("another layout"), "{shown}");
}

#[test]
fn ids_left_counts_the_ids_from_the_clock_to_the_end_of_the_layout() {
    let (_cluster, mut client) = server_with_sequence();
    let before = now_ms();
    let left = take_one(&mut client, "SELECT ids_left FROM snowflake_sequence_status('s')");
    let after = now_ms();
    let room = |ms| (LAST_MS + 1 - ms) * 1024;
    assert!(room(after + 1) <= left && left <= room(before), "{left} at {before}");
}

#[test]
fn each_id_taken_ahead_of_the_clock_leaves_one_less() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(&format!(
            "SET pg_snowflake.max_lead = '2h'; CREATE SEQUENCE s START {}",
            counter_in_an_hour()
        ))
        .unwrap();
    let left = "SELECT ids_left FROM snowflake_sequence_status('s')";
    let before = take_one(&mut client, left);

    client.batch_execute("SELECT snowflake_nextvals('s', 5, 3)").unwrap();

    assert_eq!(take_one(&mut client, left), before - 3);
}

#[test]
fn a_sequence_that_cannot_hold_the_counter_has_no_ids_left_or_an_error() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE small AS int; CREATE SEQUENCE five INCREMENT 5;
             CREATE SEQUENCE round CYCLE; CREATE SEQUENCE low MAXVALUE 1000000",
        )
        .unwrap();
    for (name, error) in [
        ("small", "Its data type is integer, not bigint."),
        ("five", "Its increment is 5, not 1."),
        ("round", "It is defined with CYCLE, which would repeat IDs."),
        ("low", "Its MAXVALUE is 1000000, below the next counter, "),
    ] {
        let sql = format!("SELECT error FROM snowflake_sequence_status('{name}')");
        let said = printed(&mut client, &sql);
        let message = format!("sequence \"{name}\" cannot be used to generate IDs: {error}");
        assert!(said.contains(&message), "{said}");
    }
    let left = "SELECT ids_left FROM snowflake_sequence_status('low')";
    assert_eq!(printed(&mut client, left), "0");
}

#[test]
fn it_shows_the_state_and_the_options_of_the_sequence() {
    let (_cluster, mut client) = server();
    client.batch_execute("CREATE SEQUENCE s CACHE 64; CREATE UNLOGGED SEQUENCE u").unwrap();
    let sql = |name: &str| {
        format!(
            "SELECT last_value, is_called, cache, logged FROM snowflake_sequence_status('{name}')"
        )
    };
    assert_eq!(printed(&mut client, &sql("u")), "1|f|1|f");

    client.batch_execute("SELECT snowflake_nextval('s', 5)").unwrap();

    let last_value = state(&mut client, "s").last_value;
    assert_eq!(printed(&mut client, &sql("s")), format!("{last_value}|t|64|t"));
}

#[test]
fn it_takes_nothing_writes_nothing_and_keeps_no_lock() {
    let (_cluster, mut client) = server();
    client
        .batch_execute("CREATE SEQUENCE s; SELECT snowflake_nextval('s', 5); CHECKPOINT")
        .unwrap();
    let before = state(&mut client, "s");
    client.batch_execute("BEGIN READ ONLY").unwrap();

    // Only the WAL of this session: other processes, such as the background writer, write some at any time.
    let plan = "EXPLAIN (ANALYZE, WAL, VERBOSE) SELECT snowflake_sequence_status('s')";
    let plan = printed(&mut client, plan);

    assert!(plan.contains("snowflake_sequence_status(") && !plan.contains("WAL:"), "{plan}");
    let unassigned = "SELECT pg_current_xact_id_if_assigned() IS NULL";
    assert_eq!(printed(&mut client, unassigned), "t");
    let locks = "SELECT count(*) FROM pg_locks WHERE relation = 's'::regclass";
    assert_eq!(printed(&mut client, locks), "0");
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(state(&mut client, "s"), before);
}

#[test]
fn a_session_that_holds_the_sequence_is_not_waited_for() {
    let (cluster, mut client) = server_with_sequence();
    client.batch_execute("BEGIN; SELECT snowflake_nextval('s', 5)").unwrap();
    let mut other = cluster.connect();
    other.batch_execute("SET lock_timeout = '2s'; SELECT snowflake_sequence_status('s')").unwrap();
}

#[test]
fn a_standby_answers_without_the_state_of_an_unlogged_sequence() {
    let (primary, mut client) = server();
    client
        .batch_execute("CREATE SEQUENCE s; CREATE UNLOGGED SEQUENCE u; SELECT snowflake_nextval('s', 5), snowflake_nextval('u', 5)")
        .unwrap();
    let standby = primary.standby();
    let mut reader = standby.connect();
    let known = |name: &str| {
        format!(
            "SELECT last_id_at IS NOT NULL, lead IS NOT NULL, ids_left IS NOT NULL, last_value IS NOT NULL, logged
             FROM snowflake_sequence_status('{name}')"
        )
    };
    assert_eq!(printed(&mut reader, &known("s")), "t|t|t|t|t");
    assert_eq!(printed(&mut reader, &known("u")), "f|f|f|f|f");
}

#[test]
fn the_state_of_another_sessions_temporary_sequence_is_not_shown() {
    let (cluster, mut client) = server();
    client.batch_execute("CREATE TEMPORARY SEQUENCE t; SELECT snowflake_nextval('t', 5)").unwrap();
    let oid = printed(&mut client, "SELECT 't'::regclass::oid");
    let known = format!(
        "SELECT last_id_at IS NOT NULL, ids_left IS NOT NULL, cache FROM snowflake_sequence_status({oid}::oid)"
    );
    assert_eq!(printed(&mut client, &known), "t|t|1");
    assert_eq!(printed(&mut cluster.connect(), &known), "f|f|1");
}

#[test]
fn select_or_usage_on_the_sequence_is_needed() {
    let (cluster, mut owner) = server();
    owner.batch_execute("CREATE ROLE reader LOGIN; CREATE SEQUENCE s").unwrap();
    let mut reader = cluster.connect_to("reader", SUPERUSER);
    let ask = "SELECT snowflake_sequence_status('s')";
    let denied = Refusal {
        sqlstate: "42501",
        message: "permission denied for sequence s",
        hint: "GRANT SELECT ON SEQUENCE s TO reader;",
    };
    assert_refused(&mut reader, ask, denied);
    owner.batch_execute("GRANT UPDATE ON SEQUENCE s TO reader").unwrap();
    assert_refused(&mut reader, ask, denied);
    for privilege in ["SELECT", "USAGE"] {
        owner
            .batch_execute(&format!(
                "REVOKE ALL ON SEQUENCE s FROM reader; GRANT {privilege} ON SEQUENCE s TO reader"
            ))
            .unwrap();
        reader.batch_execute(ask).unwrap_or_else(|error| panic!("{privilege}: {error:?}"));
    }
}

#[test]
fn an_object_that_is_not_a_sequence_is_refused() {
    let (_cluster, mut client) = server();
    client.batch_execute("CREATE TABLE posts (id bigint)").unwrap();
    assert_each_refused(
        &mut client,
        &[
            Bad {
                sql: "SELECT snowflake_sequence_status('posts')",
                sqlstate: "42809",
                message: "\"posts\" is not a sequence",
                allowed: "Pass a sequence to snowflake_sequence_status()",
            },
            Bad {
                sql: "SELECT snowflake_sequence_status(99999::oid)",
                sqlstate: "42P01",
                message: "sequence with OID 99999 does not exist",
                allowed: "by name",
            },
        ],
    );
    let null = "SELECT snowflake_sequence_status(NULL) IS NULL";
    assert_eq!(printed(&mut client, null), "t");
}

#[test]
fn after_a_crash_it_shows_the_lead_that_the_log_covers() {
    let mut cluster = Cluster::new();
    cluster
        .connect()
        .batch_execute("CREATE SEQUENCE s; CREATE TABLE t AS SELECT snowflake_nextval('s', 5)")
        .unwrap();
    cluster.stop(Shutdown::Immediate);
    cluster.start();

    // At most 100 ms ahead of the last committed ID.
    let sql = "SELECT last_id_at - (SELECT snowflake_created_at(snowflake_nextval) FROM t) BETWEEN '0' AND '101 ms'
               FROM snowflake_sequence_status('s')";
    assert_eq!(printed(&mut cluster.connect(), sql), "t");
}

#[test]
fn its_first_counter_of_now_is_the_one_that_a_call_takes() {
    let (_cluster, mut client) = server_with_sequence();
    let left = take_one(&mut client, "SELECT ids_left FROM snowflake_sequence_status('s')");
    let first_counter = first_counter_at(LAST_MS + 1) - left;
    let id = take_one(&mut client, "SELECT snowflake_nextval('s', 5)");
    let taken = pg_snowflake_harness::id::counter(id);
    // The next statement of a session follows well within ten minutes.
    assert!((0..600_000 * 1024).contains(&(taken - first_counter)), "{taken} {first_counter}");
}
