//! Texts that an error cannot repeat as they are: beyond ASCII, and very long.

use pg_snowflake_harness::prelude::*;

#[test]
fn a_text_beyond_ascii_is_refused_in_every_encoding() {
    let (cluster, mut client) = server_with("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1");
    let mut latin = cluster.connect_to(SUPERUSER, "latin");
    latin.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    for client in [&mut client, &mut latin] {
        for (sql, sqlstate, message) in [
            ("SELECT snowflake_from_base32(chr(233) || '000000000000')", "22P02", "invalid base32 ID"),
            ("SELECT chr(233)::snowflake_layout", "22P02", "unrecognized layout"),
        ] {
            assert_refused(client, sql, refusal(sqlstate, message));
        }
        for text in [
            "snowflake_from_base32(repeat('é', 100000))",
            "repeat('é', 100000)::snowflake_layout",
            "(repeat('é', 100000) || ':5')::snowflake_layout",
            "('time:' || repeat('é', 100000))::snowflake_layout",
        ] {
            let error = refused(client, &format!("SELECT {text}"));
            assert!(error.message().len() < 200, "{text}: {} bytes", error.message().len());
        }
    }
}

/// Only a text this long shows whether a message can exceed what the server can allocate. The backend takes 2.1 GB for it:
/// the text, and the copy that the server makes for a type's input function.
#[test]
fn a_text_as_long_as_sql_can_make_is_refused_and_the_server_survives() {
    // 7 bytes below MaxAllocSize, and 4 below that of a text. Building it from large parts is fastest, and from a row
    // that is opaque to the planner it takes no memory for a constant.
    let text = "repeat(part, 262657)";
    let from = "(SELECT repeat('a', 4088) AS part OFFSET 0) p";
    let (_cluster, mut client) = server();
    for (call, sqlstate, message) in [
        (format!("snowflake_from_base32({text})"), "22P02", "invalid base32 ID"),
        (format!("{text}::snowflake_layout"), "22P02", "is too long"),
    ] {
        assert_refused(&mut client, &format!("SELECT {call} FROM {from}"), refusal(sqlstate, message));
    }
}
