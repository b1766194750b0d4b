//! A standby generates no IDs.

use pg_snowflake_harness::ask::{Refusal, assert_refused, server_with_sequence};
use pg_snowflake_harness::sequence::state;

#[test]
fn a_standby_refuses() {
    let (primary, mut client) = server_with_sequence();
    let standby = primary.standby();
    let before = state(&mut client, "s");
    let expected = Refusal { sqlstate: "25006", message: "cannot execute snowflake_nextval() during recovery", hint: "primary" };

    assert_refused(&mut standby.connect(), "SELECT snowflake_nextval('s', 5)", expected);

    assert_eq!(state(&mut client, "s"), before);
}
