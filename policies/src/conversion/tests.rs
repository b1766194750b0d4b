//! Cases of conversions. The scripts `convert` and `convert_check` have what becomes of a sequence, a default and a CHECK.

use super::*;
use pg_snowflake_ids::presets::{INSTAGRAM, JS53};

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
        highest: None,
    }
}

fn kept() -> Sequence {
    Sequence::Kept { name: "blog.posts_id_seq".into(), grants: vec![] }
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
        (Some(10 << 23), Err(TooHigh { highest: 10 << 23 })),
        (Some(i64::MAX), Err(TooHigh { highest: i64::MAX })),
    ];
    for (highest, expected) in cases {
        assert_eq!(first_tick(highest, INSTAGRAM, 10), expected, "{highest:?}");
    }
}

#[test]
fn a_value_above_the_layout_is_too_high() {
    let highest = 1 << 53;
    let last_tick = JS53.max_tick();
    assert_eq!(first_tick(Some(highest), JS53, last_tick), Err(TooHigh { highest }));
}

#[test]
fn a_bigserial_keeps_its_sequence() {
    assert_eq!(
        statements(&facts(kept()), &of_shard_5(INSTAGRAM), 3..=9),
        [
            "ALTER SEQUENCE blog.posts_id_seq AS pg_catalog.int8 INCREMENT BY 1 NO MAXVALUE NO CYCLE \
             MINVALUE 1 START WITH 1 RESTART WITH 3073",
            "ALTER SEQUENCE blog.posts_id_seq OWNED BY blog.posts.id",
            "ALTER TABLE blog.posts ALTER COLUMN id SET DEFAULT \
             public.snowflake_nextval('blog.posts_id_seq'::pg_catalog.regclass, 5, 'instagram'::public.snowflake_layout)",
        ]
    );
}

#[test]
fn a_sequence_that_may_have_generated_ids_is_not_restarted() {
    for (next, restarts) in [(3072, true), (3073, false), (5 << 10 | 1023, false), (6 << 10, true), (i64::MAX, true)] {
        let facts = Facts { next: Some(next), ..facts(kept()) };
        let statements = statements(&facts, &of_shard_5(INSTAGRAM), 3..=5);
        assert_eq!(statements[0].contains("RESTART"), restarts, "{next}");
    }
}

#[test]
fn a_sequence_starts_at_1_or_above_in_a_layout_without_seqs_too() {
    let layout = Layout { seq_bits: 0, ..INSTAGRAM };
    let facts = Facts { next: Some(-5), ..facts(kept()) };
    let statements = statements(&facts, &of_shard_5(layout), 0..=5);
    assert!(statements[0].ends_with("MINVALUE 1 START WITH 1 RESTART WITH 1"), "{statements:?}");
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
            "ALTER TABLE blog.posts ALTER COLUMN id TYPE pg_catalog.int8, \
             ALTER COLUMN reply_to TYPE pg_catalog.int8",
            "ALTER TABLE blog.comments ALTER COLUMN post_id TYPE pg_catalog.int8",
        ]
    );
}

#[test]
fn a_quoted_literal_round_trips() {
    let cases = [("a", "'a'"), ("it's", "'it''s'"), (r"a\b'c", r"E'a\\b''c'")];
    for (text, quoted) in cases {
        assert_eq!(quote_literal(text), quoted);
    }
}
