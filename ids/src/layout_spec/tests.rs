//! Texts that are layouts, and texts that are not.

use super::*;
use crate::any::{NOW_MS, any_layout};
use crate::presets::{INSTAGRAM, SONYFLAKE};
use crate::properties::layout_text::{check, round_trips};
use proptest::prelude::*;

#[test]
fn a_presets_name_and_its_spec_are_the_same_layout() {
    for &(name, preset) in PRESETS {
        assert_eq!(parse(name, NOW_MS), Ok(preset));
        assert_eq!(parse(&spec(&preset), NOW_MS), Ok(preset));
        assert_eq!(preset.to_string(), name);
    }
    assert_eq!(spec(&INSTAGRAM), "time:41 shard:13 seq:10 epoch:2011-08-24T21:07:01.721Z unit:1ms");
    assert_eq!(spec(&SONYFLAKE), "time:39 seq:8 shard:16 epoch:2014-09-01 unit:10ms");
}

#[test]
fn an_error_says_what_is_wrong_and_what_is_allowed() {
    let cases = [
        ("instagramm", "unrecognized layout", "postgres, instagram, twitter"),
        ("", "unrecognized layout", "postgres, instagram, twitter"),
        ("time:41 shard:13 seq:10 unit:1ms", "\"epoch\" is missing", "1970 to now"),
        ("time:41 shard:13 seq:10 epoch:2024-01-01", "\"unit\" is missing", "10us, 100us"),
        ("time:41 seq:10 epoch:2024-01-01 unit:1ms", "\"shard\" is missing", "0 to 31 bits"),
        ("shard:13 seq:10 epoch:2024-01-01 unit:1ms", "\"time\" is missing", "1 to 48 bits"),
        ("time:41 time:41 shard:13 seq:10", "\"time\" is specified more than once", "once"),
        ("time:49 shard:0 seq:0 epoch:2024-01-01 unit:1ms", "invalid layout part \"time:49\"", "1 to 48 bits"),
        ("time:0 shard:0 seq:0 epoch:2024-01-01 unit:1ms", "\"time:0\"", "1 to 48 bits"),
        ("time:30 shard:32 seq:0 epoch:2024-01-01 unit:1ms", "\"shard:32\"", "0 to 31"),
        ("time:30 shard:0 seq:-1 epoch:2024-01-01 unit:1ms", "\"seq:-1\"", "0 to 31"),
        ("time:+41 shard:13 seq:10 epoch:2024-01-01 unit:1ms", "\"time:+41\"", "plain digits"),
        ("time:041 shard:13 seq:10 epoch:2024-01-01 unit:1ms", "\"time:041\"", "plain digits"),
        ("time:41 shard:00 seq:10 epoch:2024-01-01 unit:1ms", "\"shard:00\"", "plain digits"),
        ("time:41 shard:13 seq: epoch:2024-01-01 unit:1ms", "\"seq:\"", "plain digits"),
        ("time:41 shard:13 seq:1٣ epoch:2024-01-01 unit:1ms", "\"seq:1٣\"", "plain digits"),
        ("time:256 shard:0 seq:0 epoch:2024-01-01 unit:1ms", "\"time:256\"", "1 to 48 bits"),
        ("time:41 shard:13 seq:11 epoch:2024-01-01 unit:1ms", "65 bits", "64 bits"),
        ("time:41 shard:13 seq:10 epoch:2200-01-01 unit:1ms", "in the future", "to now"),
        ("time:41 shard:13 seq:10 epoch:1969-12-31 unit:1ms", "invalid layout part \"epoch:1969-12-31\"", "1970"),
        ("time:41 shard:13 seq:10 epoch:2024-02-30 unit:1ms", "2024-02-30", "as in"),
        ("time:41 shard:13 seq:10 epoch:2024-01-01T00:00:00.0001Z unit:1ms", "00.0001Z", "to the millisecond"),
        ("time:41 shard:13 seq:10 epoch:2024-01-01t12:34:56 unit:1ms", "t12:34:56", "as in"),
        ("time:41 shard:13 seq:10 epoch:2024-01-01[Europe/Berlin] unit:1ms", "Berlin", "as in"),
        ("time:41 shard:13 seq:10 epoch:2016-12-31T23:59:60Z unit:1ms", "59:60Z", "as in"),
        ("time:41 shard:13 seq:10 epoch:2024-01-01T00:00:00+01 unit:1ms", "+01", "UTC"),
        ("time:41 shard:13 seq:10 epoch:20240101 unit:1ms", "20240101", "as in"),
        ("time:41 shard:13 seq:10 epoch:2024-01-01 unit:3ms", "invalid layout part \"unit:3ms\"", "10us, 100us"),
        ("shard:13 time:41 seq:10 epoch:2024-01-01 unit:1ms", "order of layout fields: shard, time", "order must be"),
        ("time:41 worker:5", "unrecognized layout part \"worker\"", "time, shard or shard_xor_above, seq"),
        ("time:41 shard", "has no value", "colon"),
        (
            "time:41 shard_xor_above:13 seq:10 epoch:2024-01-01 unit:1ms",
            "order of layout fields: time, shard_xor_above, seq",
            "or time, seq, shard_xor_above",
        ),
        ("time:41 seq:10 shard:12 shard_xor_above:12 epoch:2024-01-01 unit:1ms", "\"shard_xor_above\" is specified more than once", "once"),
        ("time:30 seq:0 shard_xor_above:32 epoch:2024-01-01 unit:1ms", "\"shard_xor_above:32\"", "0 to 31"),
    ];
    for (text, message, allowed) in cases {
        let error = parse(text, NOW_MS).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert!(error.allowed.contains(allowed), "{text}: {error:?}");
    }
}

#[test]
fn a_long_text_is_refused_and_repeated_only_in_part() {
    let spec = "time:41 shard:13 seq:10 epoch:2024-01-01 unit:1ms";
    assert!(parse(&format!("{spec:<MAX_LENGTH$}"), NOW_MS).is_ok());
    let error = parse(&format!("{spec} {:<MAX_LENGTH$}", ""), NOW_MS).expect_err("too long");
    assert!(error.message.contains("too long"), "{error:?}");
    let long = "a".repeat(MAX_LENGTH - 60);
    for text in [
        long.repeat(2),
        long.clone(),
        format!("time:41 {long}"),
        format!("{long}:5"),
        format!("time:{long}"),
        spec.replace("41", &long),
        spec.replace("2024-01-01", &long),
        spec.replace("1ms", &long),
    ] {
        let error = parse(&text, NOW_MS).expect_err(&text);
        assert!(error.message.len() < 200, "{error:?}");
    }
}

#[test]
fn spaces_and_a_full_timestamp_are_read() {
    let text = "  time:41   shard:13 seq:10\tepoch:2011-08-24T21:07:01.721Z unit:1ms ";
    assert_eq!(parse(text, NOW_MS), Ok(INSTAGRAM));
    for epoch in ["2014-09-01", "2014-09-01T00:00:00Z", "2014-09-01T00:00:00.000Z"] {
        let text = format!("time:39 seq:8 shard:16 epoch:{epoch} unit:10ms");
        assert_eq!(parse(&text, NOW_MS), Ok(SONYFLAKE), "{epoch}");
    }
}

proptest! {
    #[test]
    fn a_layout_round_trips_as_text_and_packed(layout in any_layout()) {
        round_trips(layout);
    }

    #[test]
    fn any_text_is_its_layout_or_refused(text in ".{0,80}") {
        check(&text);
    }
}
