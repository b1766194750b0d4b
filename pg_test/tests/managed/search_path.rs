//! What others have put before `pg_catalog` in the `search_path` is not run, neither by the file nor by its functions.

use super::{FILE, UNINSTALL};
use crate::search_path::{SOW, choose_seed_named_in, without_comments};
use pg_snowflake_harness::prelude::*;
use std::collections::BTreeSet;

#[test]
fn planted_objects_are_not_run() {
    let (_database, mut client) = database_with("CREATE SEQUENCE s; CREATE SEQUENCE bad CYCLE");
    run(&mut client, "CREATE TABLE posts (id bigint)");
    run(&mut client, SOW);
    choose_seed_named_in(&mut client, &without_comments(FILE), &BTreeSet::new());
    run(&mut client, "SELECT plant.sow()");
    // A function with any number of arguments, and pseudo-types, are not among these.
    run(
        &mut client,
        "CREATE FUNCTION evil.format(text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted'; END $$;
         CREATE DOMAIN evil.record AS pg_catalog.bytea CHECK (VALUE IS NULL); CREATE DOMAIN evil.void AS pg_catalog.bytea CHECK (VALUE IS NULL)",
    );
    run(&mut client, "SET search_path = evil, pg_catalog, public");
    assert!(refused(&mut client, "SELECT 1 + 1").message().contains("planted"));
    // Twice, since the second run compares the constants.
    run(&mut client, FILE);
    run(&mut client, FILE);
    let uses = "SELECT snowflake_managed.snowflake_nextval('s', 5), snowflake_managed.snowflake_decode(2223552862046179329),
            snowflake_managed.snowflake_created_at(1), snowflake_managed.snowflake_shard_id(1), snowflake_managed.snowflake_seq(1),
            snowflake_managed.snowflake_encode('2026-01-01Z', 5, 6), snowflake_managed.snowflake_min_id('2026-01-01Z');
        SELECT id FROM posts WHERE snowflake_managed.snowflake_between(id, '2026-01-01Z', '2027-01-01Z');
        SELECT snowflake_managed.snowflake_nextvals('s', 5, 1000);
        SET pg_snowflake.shard_id = 5; SELECT snowflake_managed.snowflake_nextval('s'), snowflake_managed.snowflake_nextvals('s', 10)";
    run(&mut client, uses);
    for (refusal, word) in [
        ("snowflake_managed.snowflake_nextval('bad', 5)", "cannot be used"),
        ("snowflake_managed.snowflake_nextval('s', -1)", "out of range"),
        ("snowflake_managed.snowflake_nextvals('bad', 5, 10)", "cannot be used"),
        ("snowflake_managed.snowflake_nextvals('s', 5, -1)", "must not be negative"),
        ("snowflake_managed.snowflake_encode('2000-01-01Z', 5, 6)", "out of range"),
        ("snowflake_managed.snowflake_encode('2026-01-01Z', 5, -6)", "out of range"),
        ("snowflake_managed.duration(5)", ""),
    ] {
        let sql = format!("SELECT {refusal}");
        if word.is_empty() {
            run(&mut client, &sql);
        } else {
            let message = refused(&mut client, &sql).message().to_owned();
            assert!(message.contains(word), "{refusal}: {message}");
        }
    }
    run(&mut client, "SELECT pg_catalog.setval('s', 9223372036854775807)");
    let message = refused(&mut client, "SELECT snowflake_managed.snowflake_nextval('s', 5)");
    assert!(message.message().contains("too far ahead"), "{message:?}");
    run(&mut client, UNINSTALL);
    assert_eq!(printed(&mut client, "SELECT pg_catalog.to_regnamespace('snowflake_managed') IS NULL"), "t");
}
