//! What the decoders refuse, and that the error says what is allowed.

use pg_snowflake_harness::SUPERUSER;
use pg_snowflake_harness::ask::{
    Bad, Refusal, assert_each_refused, assert_refused, refused, server,
};

#[test]
fn a_value_outside_a_layout_is_refused_with_what_is_allowed() {
    let (_cluster, mut client) = server();
    let beyond_the_life = "from 2010-01-01T00:00:00Z until 2079-09-07T15:47:35.552Z";
    let out_of_range = |sql, message, allowed| Bad { sql, sqlstate: "22003", message, allowed };
    assert_each_refused(
        &mut client,
        &[
            out_of_range(
                "SELECT snowflake_decode(-1, 'twitter')",
                "-1 is not an ID of layout \"twitter\"",
                "0 to 9223372036854775807",
            ),
            out_of_range(
                "SELECT snowflake_created_at(9007199254740992, 'js53')",
                "9007199254740992 is not an ID of layout \"js53\"",
                "53 bits, from 0 to 9007199254740991",
            ),
            out_of_range(
                "SELECT snowflake_shard_id(-1, 'sonyflake')",
                "-1 is not an ID",
                "63 bits",
            ),
            out_of_range("SELECT snowflake_seq(-1, 'pgedge')", "-1 is not an ID", "63 bits"),
            out_of_range("SELECT snowflake_explain(-1, 'js53')", "-1 is not an ID", "53 bits"),
            out_of_range("SELECT snowflake_to_uuid(-1, 'twitter')", "-1 is not an ID", "63 bits"),
            out_of_range(
                "SELECT snowflake_decode(2, 'time:1 shard:0 seq:0 epoch:2024-01-01 unit:1s')",
                "2 is not an ID of layout \"time:1 shard:0 seq:0 epoch:2024-01-01 unit:1s\"",
                "1 bits, from 0 to 1",
            ),
            out_of_range(
                "SELECT snowflake_encode('2009-12-31 23:59:59.999999Z', 5, 1)",
                "timestamp is out of range for layout \"postgres\"",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('2079-09-07 15:47:35.552Z', 5, 1)",
                "timestamp is out of range for layout \"postgres\"",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('infinity', 0, 0, 'time:48 shard:0 seq:0 epoch:2024-01-01 unit:1s')",
                "out of range",
                "from 2024-01-01T00:00:00Z until after the year 9999",
            ),
            out_of_range(
                "SELECT snowflake_encode('infinity', 5, 1)",
                "out of range",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('-infinity', 5, 1)",
                "out of range",
                beyond_the_life,
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 4096, 1)",
                "shard ID 4096 is out of range for layout \"postgres\"",
                "0 to 4095",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', -1, 1)",
                "shard ID -1 is out of range",
                "0 to 4095",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 1, 0, 'mastodon')",
                "shard ID 1 is out of range for layout \"mastodon\"",
                "0 to 0",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 5, 1024)",
                "seq 1024 is out of range for layout \"postgres\"",
                "0 to 1023",
            ),
            out_of_range(
                "SELECT snowflake_encode('2024-01-01', 5, -1)",
                "seq -1 is out of range",
                "0 to 1023",
            ),
            out_of_range(
                "SELECT snowflake_to_uuid(281474976710655, 'time:48 shard:0 seq:0 epoch:1970-01-01 unit:10ms')",
                "out of range for a UUID",
                "10889",
            ),
        ],
    );
}

#[test]
fn a_text_that_is_not_base_32_is_refused_with_the_alphabet() {
    let (_cluster, mut client) = server();
    let cases = [
        ("", "text has 0 bytes,"),
        ("000000000000", "text has 12 bytes,"),
        ("00000000000000", "text has 14 bytes,"),
        ("000000000000U", "\"U\""),
        ("000000-000000", "\"-\""),
        (" 000000000000", "\" \""),
        ("G000000000000", "more than 64 bits"),
    ];
    for (text, detail) in cases {
        let sql = format!("SELECT snowflake_from_base32('{text}')");
        let message = format!("invalid base32 ID: \"{text}\"");
        for allowed in [detail, "0 to 9 and A to Z without U"] {
            let bad = Bad { sql: &sql, sqlstate: "22P02", message: &message, allowed };
            assert_each_refused(&mut client, &[bad]);
        }
    }
}

#[test]
fn a_text_beyond_ascii_is_refused_in_every_encoding() {
    let (cluster, mut client) = server();
    client.batch_execute("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1").unwrap();
    let mut latin = cluster.connect_to(SUPERUSER, "latin");
    latin.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    for client in [&mut client, &mut latin] {
        for (sql, sqlstate, message) in [
            (
                "SELECT snowflake_from_base32(chr(233) || '000000000000')",
                "22P02",
                "invalid base32 ID",
            ),
            ("SELECT chr(233)::snowflake_layout", "22P02", "unrecognized layout"),
        ] {
            assert_refused(client, sql, Refusal { sqlstate, message, hint: "" });
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
        let refusal = Refusal { sqlstate, message, hint: "" };
        assert_refused(&mut client, &format!("SELECT {call} FROM {from}"), refusal);
    }
}

#[test]
fn an_error_repeats_only_the_beginning_of_a_long_text() {
    let (_cluster, mut client) = server();
    for (part, times) in [("a", 900), ("a", 100_000), ("é", 100_000)] {
        for call in [
            format!("snowflake_from_base32(repeat('{part}', {times}))"),
            format!("repeat('{part}', {times})::snowflake_layout"),
            format!("(repeat('{part}', {times}) || ':5')::snowflake_layout"),
            format!("('time:' || repeat('{part}', {times}))::snowflake_layout"),
        ] {
            let error = refused(&mut client, &format!("SELECT {call}"));
            assert!(error.message().len() < 200, "{call}: {} bytes", error.message().len());
        }
    }
}

#[test]
fn a_uuid_without_an_id_is_refused() {
    let (_cluster, mut client) = server();
    let cases = [
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "instagram"), // RFC 9562's own example
        ("00000000-0000-0000-0000-000000000000", "instagram"),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "instagram"),
        ("0194d3b8-1c00-4000-8000-000000000000", "instagram"), // version 4
        ("0194d3b8-1c00-7000-c000-000000000000", "instagram"), // another variant
        ("0194d3b8-1c00-7000-8000-000000800000", "instagram"), // a bit above the shard
        ("00000000-0001-7000-8000-000000000000", "instagram"), // before the epoch
        ("0194d3b8-1c01-7000-8000-000000000000", "sonyflake"), // between two ticks
    ];
    for (uuid, layout) in cases {
        let sql = format!("SELECT snowflake_from_uuid('{uuid}', '{layout}')");
        let message = format!("UUID {uuid} does not contain an ID of layout \"{layout}\"");
        let allowed = "Only a UUID that snowflake_to_uuid() returned";
        let bad = Bad { sql: &sql, sqlstate: "22023", message: &message, allowed };
        assert_each_refused(&mut client, &[bad]);
    }
}
