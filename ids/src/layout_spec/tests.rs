//! Texts that are layouts, and texts that are not.

use super::*;
use crate::any::{NOW_MS, any_layout};
use crate::properties::layout_text::{check, round_trips};
use proptest::prelude::*;

/// Beside those whose whole errors the script `layout_errors` has.
#[test]
fn a_text_that_almost_is_a_layout_is_refused() {
    let spec = "time:41 shard:13 seq:10 epoch:2024-01-01 unit:1ms";
    for (part, wrong) in [
        ("time:41", "time:256"),
        ("shard:13", "shard:00"),
        ("shard:13", "shard_xor_above:32"),
        ("seq:10", "seq:"),
        ("seq:10", "seq:1٣"),
        ("epoch:2024-01-01", "epoch:2024-01-01t12:34:56"),
        ("epoch:2024-01-01", "epoch:2024-01-01[Europe/Berlin]"),
        ("epoch:2024-01-01", "epoch:2016-12-31T23:59:60Z"),
        ("epoch:2024-01-01", "epoch:2024-01-01T00:00:00+01"),
        ("epoch:2024-01-01", "epoch:20240101"),
    ] {
        let error = parse(&spec.replace(part, wrong), NOW_MS).expect_err(wrong);
        assert_eq!(error.message, format!("invalid layout part \"{wrong}\""));
    }
    let xored = spec.replace("shard", "shard_xor_above");
    let error = parse(&xored, NOW_MS).expect_err("above seq");
    assert!(error.message.contains("order of layout fields: time, shard_xor_above, seq"), "{error:?}");
    let error = parse(&format!("{spec} shard_xor_above:12"), NOW_MS).expect_err("two places");
    assert!(error.message.contains("\"shard_xor_above\" is specified more than once"), "{error:?}");
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

proptest! {
    /// Of words of a spec, as a text of any characters is hardly ever a layout.
    #[test]
    fn any_text_is_its_layout_or_refused(text in "(time:4[1-3] )?((shard|seq|xored):[0-9]{1,2} ){0,2}(epoch:20[0-2][0-9]-0[1-9]-01 )?(unit:1{0,2}(ms|s))?") {
        check(&text);
    }

    #[test]
    fn a_layout_round_trips_as_text_and_packed(layout in any_layout()) {
        round_trips(layout);
    }
}
