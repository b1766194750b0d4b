//! Cases of conversions. The scripts `convert` and `convert_check` have what becomes of a sequence, a default and a CHECK.

use super::*;
use pg_snowflake_ids::presets::{INSTAGRAM, JS53, TWITTER};

fn facts(sequence: Sequence) -> Facts {
    Facts {
        schema: "public".into(),
        table: "blog.posts".into(),
        column: "id".into(),
        identities: vec![],
        narrow_tables: vec![],
        sequence,
        other_sequences: vec![],
        next: None,
        start: None,
        default_layout: None,
        highest: None,
    }
}

fn kept() -> Sequence {
    Sequence { name: "blog.posts_id_seq".into(), grants: vec![], new: None }
}

fn of_shard_5(layout: Layout) -> Target {
    Target { shard: Some(5), layout, shard_check: None }
}

#[test]
fn new_ids_start_in_the_tick_after_the_highest_value() {
    let cases = [
        (None, Ok(0)),
        (Some(-1), Ok(0)),
        (Some(0), Ok(1)),
        (Some((1 << 23) - 1), Ok(1)),
        (Some(1 << 23), Ok(2)),
        (Some(9 << 23 | 5), Ok(10)),
        (Some(10 << 23), Err(10 << 23)),
        (Some(i64::MAX), Err(i64::MAX)),
    ];
    for (highest, expected) in cases {
        assert_eq!(first_tick(highest, INSTAGRAM, 10), expected, "{highest:?}");
    }
}

#[test]
fn a_value_above_the_layout_is_too_high() {
    let highest = 1 << 53;
    let last_tick = JS53.max_tick();
    assert_eq!(first_tick(Some(highest), JS53, last_tick), Err(highest));
}

#[test]
fn a_sequence_that_may_have_generated_ids_is_not_restarted() {
    for (next, restarts) in [(3072, true), (3073, false), (5 << 10 | 1023, false), (6 << 10, true), (i64::MAX, true)] {
        let facts = Facts { next: Some(next), ..facts(kept()) };
        let statements = statements(&facts, &of_shard_5(INSTAGRAM), 3..=5);
        assert_eq!(statements[0].contains("RESTART"), restarts, "{next}");
    }
    // Not kept at 0, where MINVALUE 1 would be refused.
    let facts = Facts { next: Some(1), ..facts(kept()) };
    assert!(statements(&facts, &of_shard_5(INSTAGRAM), 0..=5)[0].ends_with("START WITH 1 RESTART WITH 1"));
}

#[test]
fn a_sequence_starts_at_1_or_above_in_a_layout_without_seqs_too() {
    let layout = Layout { seq_bits: 0, ..INSTAGRAM };
    let facts = Facts { next: Some(-5), ..facts(kept()) };
    let statements = statements(&facts, &of_shard_5(layout), 0..=5);
    assert!(statements[0].ends_with("MINVALUE 1 NO MAXVALUE NO CYCLE START WITH 1 RESTART WITH 1"), "{statements:?}");
}

#[test]
fn the_start_value_is_the_boundary_between_older_values_and_new_ids() {
    let cases = [
        // An empty table has no older values.
        (None, None, 1),
        (None, Some((7, None)), 1),
        (None, Some((7, Some(TWITTER))), 1),
        // The default has generated the IDs before: their boundary stays, unless the sequence is set below it.
        (None, Some((7, Some(INSTAGRAM))), 7),
        (Some(2 << 23), Some((7, Some(INSTAGRAM))), 7),
        (Some(2 << 23), Some((3074, Some(INSTAGRAM))), 3073),
        (Some(2 << 23), Some((-5, Some(INSTAGRAM))), 1),
        (Some(2 << 23), Some((7, Some(TWITTER))), 3073),
        (Some(2 << 23), Some((7, None)), 3073),
        (Some(2 << 23), None, 3073),
    ];
    for (highest, before, expected) in cases {
        let new = Some(NewSequence { cache: 1, is_unlogged: false, comment: None });
        let replacing = Sequence { name: "s".into(), grants: vec![], new };
        for sequence in [kept(), replacing] {
            let (start, default_layout) = (before.map(|(start, _)| start), before.and_then(|(_, layout)| layout));
            let facts = Facts { highest, start, default_layout, ..facts(sequence) };
            let statements = statements(&facts, &of_shard_5(INSTAGRAM), 3..=9);
            assert!(statements[0].contains(&format!(" START WITH {expected}")), "{highest:?} {before:?}: {statements:?}");
        }
    }
}

#[test]
fn the_boundary_stays_if_the_sequence_has_generated_the_highest_value_whatever_the_default_is() {
    let start = 2 << 10 | 1;
    // The sequence is at the fifth ID of tick 4.
    let cases = [
        (4 << 23, None, start),
        (3 << 23, Some(INSTAGRAM), start),
        // Another generator's.
        (1 << 23, None, 3073),
        (5 << 23, None, 3073),
        (4 << 23, Some(TWITTER), 3073),
        // No ID has been generated since the conversion.
        (1 << 23, Some(INSTAGRAM), 3073),
    ];
    for (highest, default_layout, expected) in cases {
        let facts = Facts { highest: Some(highest), start: Some(start), next: Some(4 << 10 | 5), default_layout, ..facts(kept()) };
        let statements = statements(&facts, &of_shard_5(INSTAGRAM), 3..=9);
        assert!(statements[0].contains(&format!(" START WITH {expected}")), "{highest} {default_layout:?}: {statements:?}");
    }
}

#[test]
fn older_values_are_reported_by_what_the_highest_is() {
    let now_us = 1_795_860_000_000_000; // 2026-11-28
    let report_of = |highest, layout| older_values("id".into(), highest, &facts(kept()), layout, 77, now_us);
    let tsid = 914_573_847_652_122_249;
    let of_twitter = TWITTER.min_id(now_us - 1_000_000);
    let cases = [
        (3, DEFAULT, "3. It is not an ID of layout \"postgres\".", "add the condition id >= 77"),
        (-3, DEFAULT, "-3. It is not an ID of layout \"postgres\".", "add the condition id >= 77"),
        (tsid, DEFAULT, "\"postgres\" is 2016-", "layout \"time:42 shard:10 seq:12 epoch:2020-01-01 unit:1ms\""),
        (of_twitter, DEFAULT, "\"postgres\" is 2026-01-", "layout \"twitter\""),
        // Of the beginning of the year, and in other layouts of last month.
        (TWITTER.min_id(now_us - 300 * 86_400_000_000), DEFAULT, "\"postgres\" is 2025-", "add the condition id >= 77"),
        (DEFAULT.min_id(now_us - 400 * 86_400_000_000), DEFAULT, "\"postgres\" is 2025-", "add the condition id >= 77"),
        (of_twitter, TWITTER, "\"twitter\" is 2026-11-28T", ""),
        (3, TWITTER, "3. It is not", "docs/generators.md"),
    ];
    for (highest, layout, detail, hint) in cases {
        let report = report_of(highest, layout);
        assert!(report.detail.as_ref().unwrap().contains(detail), "{report:?}");
        assert!(report.hint.as_deref().unwrap_or_default().contains(hint), "{report:?}");
        assert_eq!(report.hint.is_none(), hint.is_empty(), "{report:?}");
    }
    let facts = Facts { start: Some(9 << 10 | 1), default_layout: Some(INSTAGRAM), ..facts(kept()) };
    let detail = older_values("id".into(), 3, &facts, DEFAULT, 77, now_us).detail.unwrap();
    assert!(detail.ends_with("Before, new IDs had layout \"instagram\" and began at 75497472."), "{detail}");
}

#[test]
fn one_statement_widens_all_columns_of_a_table_after_the_default_is_dropped() {
    let mut facts = facts(kept());
    facts.narrow_tables = vec![
        NarrowTable { table: "blog.posts".into(), columns: vec!["id".into(), "reply_to".into()] },
        NarrowTable { table: "blog.comments".into(), columns: vec!["post_id".into()] },
    ];
    assert_eq!(
        statements(&facts, &of_shard_5(INSTAGRAM), 0..=9)[..3],
        [
            "ALTER TABLE blog.posts ALTER COLUMN id DROP DEFAULT",
            "ALTER TABLE blog.posts ALTER COLUMN id TYPE pg_catalog.int8, ALTER COLUMN reply_to TYPE pg_catalog.int8",
            "ALTER TABLE blog.comments ALTER COLUMN post_id TYPE pg_catalog.int8",
        ]
    );
}
