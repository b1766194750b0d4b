//! What `snowflake_sequence_status` shows beside other sessions and on a standby.

use pg_snowflake_harness::prelude::*;

#[test]
fn a_session_that_holds_the_sequence_is_not_waited_for() {
    let (database, mut client) = database_with("CREATE SEQUENCE s");
    client.batch_execute("BEGIN; SELECT snowflake_nextval('s', 5)").unwrap();
    let mut other = database.connect();
    other.batch_execute("SET lock_timeout = '2s'; SELECT snowflake_sequence_status('s')").unwrap();
}

#[test]
fn a_standby_answers_without_the_state_of_an_unlogged_sequence() {
    let sql = "CREATE SEQUENCE s; CREATE UNLOGGED SEQUENCE u; SELECT snowflake_nextval('s', 5), snowflake_nextval('u', 5)";
    let (primary, _) = server_with(sql);
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
    let (database, mut client) = database_with("CREATE TEMPORARY SEQUENCE t; SELECT snowflake_nextval('t', 5)");
    let oid = printed(&mut client, "SELECT 't'::regclass::oid");
    let known = format!("SELECT last_id_at IS NOT NULL, ids_left IS NOT NULL, cache FROM snowflake_sequence_status({oid}::oid)");
    assert_eq!(printed(&mut client, &known), "t|t|1");
    assert_eq!(printed(&mut database.connect(), &known), "f|f|1");
}
