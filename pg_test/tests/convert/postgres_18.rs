//! Features of PostgreSQL 18 and later: constraints that are not enforced, and virtual generated columns.

use pg_snowflake_harness::installation::has_major;
use pg_snowflake_harness::prelude::*;

/// The foreign keys and CHECKs, and whether they are enforced.
const CONSTRAINTS: &str = "SELECT conrelid::regclass, conname, conenforced, convalidated FROM pg_constraint
                           WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace ORDER BY 1, 2";

#[test]
fn constraints_that_are_not_enforced_prevent_no_conversion_and_remain_so() {
    if !has_major(18, "constraints that are not enforced") {
        return;
    }
    let setup = "CREATE TABLE posts (id serial PRIMARY KEY, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED);
        CREATE TABLE comments (post_id int REFERENCES posts NOT ENFORCED, n int) PARTITION BY LIST (n);
        CREATE TABLE comments_any PARTITION OF comments DEFAULT;
        CREATE TABLE likes (post_id smallint REFERENCES posts ON DELETE CASCADE NOT ENFORCED);
        INSERT INTO likes VALUES (77);
        CREATE TABLE parted (id serial, n int, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED) PARTITION BY LIST (n);
        CREATE TABLE part PARTITION OF parted DEFAULT;
        CREATE TABLE parent (id serial, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED);
        CREATE TABLE child (CONSTRAINT small CHECK (id < 1000)) INHERITS (parent);
        CREATE TABLE strict_parent (id serial, n int, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED) PARTITION BY LIST (n);
        CREATE TABLE strict (id int NOT NULL, n int, CONSTRAINT small CHECK (id < 1000));
        ALTER TABLE strict_parent ATTACH PARTITION strict DEFAULT;
        CREATE TABLE fenced (id bigint CONSTRAINT theirs CHECK (snowflake_shard_id(id) = 5) NOT ENFORCED);
        INSERT INTO posts DEFAULT VALUES";
    let (_database, mut client) = database_with(setup);
    let constraints = printed(&mut client, CONSTRAINTS);
    for table in ["posts", "parted"] {
        run(&mut client, &format!("SELECT snowflake_convert_column('{table}', 'id', 5); INSERT INTO {table} DEFAULT VALUES"));
    }
    run(&mut client, "INSERT INTO comments SELECT id FROM posts; INSERT INTO likes SELECT id FROM posts");
    assert_eq!(printed(&mut client, CONSTRAINTS), constraints);

    run(&mut client, "SELECT snowflake_convert_column('fenced', 'id', 5, check_shard => true)");
    // A child's constraint that is enforced, and merged with one that is not. The check that is not enforced does not replace ours.
    for (table, child) in [("parent", "child"), ("strict_parent", "strict")] {
        let convert = format!("SELECT snowflake_convert_column('{table}', 'id', 5)");
        let message = &format!("new IDs would violate constraint small of table public.{child}");
        let hint = &format!("ALTER TABLE public.{child} DROP CONSTRAINT small");
        assert_refused(&mut client, &convert, Refusal { sqlstate: "55000", message, hint });
    }
    let of_another_shard = "INSERT INTO fenced VALUES (snowflake_nextval('fenced_id_seq', 6))";
    assert_refused(&mut client, of_another_shard, refusal("23514", "fenced_id_shard_check"));
}

/// One that calls a function of ours has to be stored, as docs/migrate.md says.
#[test]
fn a_virtual_generated_column_keeps_the_type_of_its_column() {
    if !has_major(18, "virtual generated columns") {
        return;
    }
    let setup = "CREATE TABLE narrow (id serial PRIMARY KEY, next bigint GENERATED ALWAYS AS (id + 1) VIRTUAL);
        CREATE TABLE wide (id bigserial PRIMARY KEY, next bigint GENERATED ALWAYS AS (id + 1));
        CREATE TABLE referred (id bigserial PRIMARY KEY);
        CREATE TABLE referring (referred_id int REFERENCES referred, next int GENERATED ALWAYS AS (referred_id + 1))";
    let (_database, mut client) = database_with(setup);
    for (table, column, of) in [("narrow", "id", "narrow"), ("referred", "referred_id", "referring")] {
        let convert = format!("SELECT snowflake_convert_column('{table}', 'id', 5)");
        let message = &format!("cannot change column {column} of table public.{of} to bigint");
        let error = assert_refused(&mut client, &convert, refusal("0A000", message));
        assert!(error.detail().is_some_and(|detail| detail.contains(&format!("column next of table public.{of}"))), "{error:?}");
    }
    assert_refused(&mut client, "SELECT snowflake_convert_column('wide', 'next', 5)", refusal("42809", "generated column"));
    run(&mut client, "SELECT snowflake_convert_column('wide', 'id', 5); INSERT INTO wide DEFAULT VALUES");
    assert_eq!(printed(&mut client, "SELECT next = id + 1, id > 1000 FROM wide"), "t|t");

    let column = "ALTER TABLE wide ADD COLUMN as_uuid uuid GENERATED ALWAYS AS (snowflake_to_uuid(id))";
    assert_eq!(refused(&mut client, column).message(), "generation expression uses user-defined function");
    run(&mut client, &format!("{column} STORED"));
}
