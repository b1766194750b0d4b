//! What others have put before `pg_catalog` in the `search_path` is not run, neither by the file nor by its functions.

use super::{FILE, UNINSTALL};
use pg_snowflake_harness::ask::{database, printed, refused, run};

/// An operator for every pair of types, a function for every one of core's that the file calls, and types of core's names.
const PLANT: &str = r#"
    CREATE SCHEMA evil;
    CREATE FUNCTION evil.caught(anyelement) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted'; END $$;
    DO $$
    DECLARE
        statement text;
        types text := 'int4, int8, float8, numeric, text, bool, timestamptz, timestamp, interval, regclass, oid, name';
    BEGIN
        FOR statement IN
            SELECT format('CREATE FUNCTION evil.caught(%s, %s) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RAISE ''planted''; END $f$', l, r)
            FROM regexp_split_to_table(types, ', ') AS l, regexp_split_to_table(types, ', ') AS r
            UNION ALL
            SELECT format('CREATE OPERATOR evil.%s (FUNCTION = evil.caught, LEFTARG = %s, RIGHTARG = %s)', o, l, r)
            FROM regexp_split_to_table(types, ', ') AS l, regexp_split_to_table(types, ', ') AS r,
                regexp_split_to_table('+ - * / % << >> & | # = <> < > <= >=', ' ') AS o
            UNION ALL
            SELECT format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN RAISE ''planted''; END $f$',
                proname, pg_get_function_identity_arguments(oid), format_type(prorettype, NULL))
            FROM pg_proc
            WHERE pronamespace = 'pg_catalog'::regnamespace AND provariadic = 0 AND prokind = 'f' AND proname IN ('clock_timestamp', 'current_setting',
                'date_part', 'format', 'generate_series', 'pg_advisory_xact_lock', 'pg_sequence_last_value', 'pg_sequence_parameters', 'pg_sleep',
                'setval', 'set_config', 'strpos', 'timezone', 'to_char', 'to_regnamespace', 'to_regprocedure', 'round', 'current_database')
            UNION ALL
            SELECT 'CREATE FUNCTION evil.format(text, text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RAISE ''planted''; END $f$'
            UNION ALL
            SELECT format('CREATE DOMAIN evil.%I AS pg_catalog.bytea CHECK (VALUE IS NULL)', t)
            FROM regexp_split_to_table(types || ', record, regtype, void, regprocedure, regnamespace', ', ') AS t
            UNION ALL
            SELECT format('CREATE TABLE evil.%I ()', t) FROM unnest('{pg_proc, pg_namespace}'::text[]) AS t
        LOOP
            EXECUTE statement;
        END LOOP;
    END $$;
"#;

#[test]
fn planted_objects_are_not_run() {
    let (_database, mut client) = database();
    run(&mut client, "CREATE SEQUENCE s; CREATE SEQUENCE bad CYCLE");
    run(&mut client, "CREATE TABLE posts (id bigint)");
    run(&mut client, PLANT);
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
