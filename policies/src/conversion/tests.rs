//! Cases of conversions.

use super::*;
use pg_snowflake_ids::presets::{DEFAULT, INSTAGRAM, JS53, TWITTER};

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

fn target(shard: Option<u32>, layout: Layout) -> Target {
    Target { shard, layout, shard_check: None }
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
        statements(&facts(kept()), &target(Some(5), INSTAGRAM), 3..=9),
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
        let statements = statements(&facts, &target(Some(5), INSTAGRAM), 3..=5);
        assert_eq!(statements[0].contains("RESTART"), restarts, "{next}");
    }
}

#[test]
fn a_sequence_starts_at_1_or_above_in_a_layout_without_seqs_too() {
    let layout = Layout { seq_bits: 0, ..INSTAGRAM };
    let facts = Facts { next: Some(-5), ..facts(kept()) };
    let statements = statements(&facts, &target(Some(5), layout), 0..=5);
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
        statements(&facts, &target(Some(5), INSTAGRAM), 0..=9)[..3],
        [
            "ALTER TABLE blog.posts ALTER COLUMN id DROP DEFAULT",
            "ALTER TABLE blog.posts ALTER COLUMN id TYPE pg_catalog.int8, \
             ALTER COLUMN reply_to TYPE pg_catalog.int8",
            "ALTER TABLE blog.comments ALTER COLUMN post_id TYPE pg_catalog.int8",
        ]
    );
}

#[test]
fn a_new_sequence_gets_the_privileges_and_the_comment_of_the_old_one() {
    let grant = |role: &str, is_grantable| Grant { privilege: "USAGE".into(), role: role.into(), is_grantable };
    let sequence = Sequence::New {
        name: "blog.posts_id_seq".into(),
        cache: 20,
        is_unlogged: true,
        comment: Some("bob's".into()),
        grants: vec![grant("PUBLIC", false), grant("eve", true)],
    };
    let mut facts = facts(sequence);
    facts.identities = vec!["blog.posts".into()];
    facts.other_sequences = vec!["blog.s".into()];
    assert_eq!(
        statements(&facts, &target(Some(5), INSTAGRAM), 1..=9)[..7],
        [
            "ALTER TABLE blog.posts ALTER COLUMN id DROP IDENTITY",
            "CREATE UNLOGGED SEQUENCE blog.posts_id_seq CACHE 20",
            "COMMENT ON SEQUENCE blog.posts_id_seq IS 'bob''s'",
            "ALTER SEQUENCE blog.posts_id_seq RESTART WITH 1025",
            "GRANT USAGE ON SEQUENCE blog.posts_id_seq TO PUBLIC",
            "GRANT USAGE ON SEQUENCE blog.posts_id_seq TO eve WITH GRANT OPTION",
            "ALTER SEQUENCE blog.s OWNED BY NONE",
        ]
    );
}

#[test]
fn the_default_passes_the_shard_or_reads_the_setting() {
    let cases = [
        (Some(5), DEFAULT, ", 5, 'postgres'::public.snowflake_layout"),
        (None, DEFAULT, ""),
        (Some(5), TWITTER, ", 5, 'twitter'::public.snowflake_layout"),
        (None, TWITTER, ", public.snowflake_current_shard(), 'twitter'::public.snowflake_layout"),
    ];
    for (shard, layout, arguments) in cases {
        let statements = statements(&facts(kept()), &target(shard, layout), 0..=9);
        let call = format!("('blog.posts_id_seq'::pg_catalog.regclass{arguments})");
        assert!(statements.last().unwrap().ends_with(&call), "{statements:?}");
    }
}

#[test]
fn the_shard_check_accepts_existing_values() {
    let is_of_shard = "public.snowflake_shard_id(id::pg_catalog.int8, 'instagram'::public.snowflake_layout) OPERATOR(pg_catalog.=) 5";
    let cases = [
        (None, is_of_shard.to_owned()),
        (Some(2 << 23 | 7), format!("id::pg_catalog.int8 OPERATOR(pg_catalog.<) 25165824::pg_catalog.int8 OR {is_of_shard}")),
        (Some(-1), format!("id::pg_catalog.int8 OPERATOR(pg_catalog.<) 0::pg_catalog.int8 OR {is_of_shard}")),
    ];
    for (highest_of_other_shards, condition) in cases {
        let shard_check = Some(ShardCheck { name: "posts_id_shard_check".into(), shard: 5, highest_of_other_shards });
        let target = Target { shard: None, layout: INSTAGRAM, shard_check };
        assert_eq!(
            *statements(&facts(kept()), &target, 3..=9).last().unwrap(),
            format!("ALTER TABLE blog.posts ADD CONSTRAINT posts_id_shard_check CHECK ({condition})")
        );
    }
}

#[test]
fn a_quoted_literal_round_trips() {
    let cases = [("a", "'a'"), ("it's", "'it''s'"), (r"a\b'c", r"E'a\\b''c'")];
    for (text, quoted) in cases {
        assert_eq!(quote_literal(text), quoted);
    }
}
