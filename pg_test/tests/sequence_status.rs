//! What `snowflake_sequence_status` shows on a standby.

use pg_snowflake_harness::prelude::*;

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
