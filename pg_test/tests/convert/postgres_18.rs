//! Features of PostgreSQL 18 and later: constraints that are not enforced, and virtual generated columns.

use super::run;
use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{Bad, assert_each_refused, database, printed, refused};
use pg_snowflake_harness::installation::has_major;
use postgres::Client;

/// A database and a session, if the major version is 18 or later.
fn database_18(what: &str) -> Option<(Database, Client)> {
    has_major(18, what).then(database)
}

/// The foreign keys and CHECKs, and whether they are enforced.
const CONSTRAINTS: &str = "SELECT conrelid::regclass, conname, conenforced, convalidated FROM pg_constraint
                           WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace ORDER BY 1, 2";

#[test]
fn a_check_that_is_not_enforced_does_not_prevent_conversion() {
    let Some((_database, mut client)) = database_18("CHECKs that are not enforced") else { return };
    run(
        &mut client,
        "CREATE TABLE posts (id serial PRIMARY KEY, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED);
         CREATE TABLE parted (id serial, n int, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED) PARTITION BY LIST (n);
         CREATE TABLE part PARTITION OF parted DEFAULT;
         CREATE TABLE parent (id serial, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED);
         CREATE TABLE child (CONSTRAINT small CHECK (id < 1000)) INHERITS (parent);
         CREATE TABLE strict_parent (id serial, n int, CONSTRAINT small CHECK (id < 1000) NOT ENFORCED)
             PARTITION BY LIST (n);
         CREATE TABLE strict (id int NOT NULL, n int, CONSTRAINT small CHECK (id < 1000));
         ALTER TABLE strict_parent ATTACH PARTITION strict DEFAULT;
         INSERT INTO posts DEFAULT VALUES",
    );
    let constraints = printed(&mut client, CONSTRAINTS);
    for table in ["posts", "parted"] {
        run(&mut client, &format!("SELECT snowflake_convert_column('{table}', 'id', 5)"));
        run(&mut client, &format!("INSERT INTO {table} DEFAULT VALUES"));
    }
    assert_eq!(printed(&mut client, CONSTRAINTS), constraints);

    // A child's constraint that is enforced, and merged with one that is not.
    let enforced = [
        Bad {
            sql: "SELECT snowflake_convert_column('parent', 'id', 5)",
            sqlstate: "55000",
            message: "new IDs would violate constraint small of table public.child",
            allowed: "ALTER TABLE public.child DROP CONSTRAINT small",
        },
        Bad {
            sql: "SELECT snowflake_convert_column('strict_parent', 'id', 5)",
            sqlstate: "55000",
            message: "new IDs would violate constraint small of table public.strict",
            allowed: "ALTER TABLE public.strict DROP CONSTRAINT small",
        },
    ];
    assert_each_refused(&mut client, &enforced);
}

#[test]
fn a_shard_check_that_is_not_enforced_does_not_replace_ours() {
    let Some((_database, mut client)) = database_18("shard checks that are not enforced") else {
        return;
    };
    run(
        &mut client,
        "CREATE TABLE posts (id bigint CONSTRAINT theirs CHECK (snowflake_shard_id(id) = 5) NOT ENFORCED);
         SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true)",
    );
    let other_shard = Bad {
        sql: "INSERT INTO posts VALUES (snowflake_nextval('posts_id_seq', 6))",
        sqlstate: "23514",
        message: "posts_id_shard_check",
        allowed: "",
    };
    assert_each_refused(&mut client, &[other_shard]);
}

#[test]
fn a_column_whose_foreign_key_is_not_enforced_is_widened_too() {
    let Some((_database, mut client)) = database_18("foreign keys that are not enforced") else {
        return;
    };
    run(
        &mut client,
        "CREATE TABLE posts (id serial PRIMARY KEY);
         CREATE TABLE comments (post_id int REFERENCES posts NOT ENFORCED, n int) PARTITION BY LIST (n);
         CREATE TABLE comments_any PARTITION OF comments DEFAULT;
         CREATE TABLE likes (post_id smallint REFERENCES posts ON DELETE CASCADE NOT ENFORCED);
         INSERT INTO likes VALUES (77)",
    );
    let constraints = printed(&mut client, CONSTRAINTS);
    run(&mut client, "SELECT snowflake_convert_column('posts', 'id', 5)");
    assert_eq!(printed(&mut client, CONSTRAINTS), constraints);
    run(
        &mut client,
        "INSERT INTO posts DEFAULT VALUES;
         INSERT INTO comments SELECT id FROM posts; INSERT INTO likes SELECT id FROM posts",
    );
}

#[test]
fn a_virtual_generated_column_keeps_the_type_of_its_column() {
    let Some((_database, mut client)) = database_18("virtual generated columns") else { return };
    run(
        &mut client,
        "CREATE TABLE narrow (id serial PRIMARY KEY, next bigint GENERATED ALWAYS AS (id + 1) VIRTUAL);
         CREATE TABLE wide (id bigserial PRIMARY KEY, next bigint GENERATED ALWAYS AS (id + 1));
         CREATE TABLE referred (id bigserial PRIMARY KEY);
         CREATE TABLE referring (referred_id int REFERENCES referred, next int GENERATED ALWAYS AS (referred_id + 1))",
    );
    let blocked = |sql, message, allowed| Bad { sql, sqlstate: "0A000", message, allowed };
    assert_each_refused(
        &mut client,
        &[
            blocked(
                "SELECT snowflake_convert_column('narrow', 'id', 5)",
                "cannot change column id of table public.narrow to bigint",
                "column next of table public.narrow",
            ),
            blocked(
                "SELECT snowflake_convert_column('referred', 'id', 5)",
                "cannot change column referred_id of table public.referring to bigint",
                "column next of table public.referring",
            ),
            Bad { sql: "SELECT snowflake_convert_column('wide', 'next', 5)", sqlstate: "42809", message: "generated column", allowed: "" },
        ],
    );
    run(&mut client, "SELECT snowflake_convert_column('wide', 'id', 5); INSERT INTO wide DEFAULT VALUES");
    assert_eq!(printed(&mut client, "SELECT next = id + 1, id > 1000 FROM wide"), "t|t");
}

/// docs/migrate.md says so.
#[test]
fn a_generated_column_that_calls_a_function_of_ours_has_to_be_stored() {
    let what = "virtual generated columns that call our functions";
    let Some((_database, mut client)) = database_18(what) else { return };
    run(&mut client, "CREATE TABLE posts (id bigint)");
    let column = "ALTER TABLE posts ADD COLUMN as_uuid uuid GENERATED ALWAYS AS (snowflake_to_uuid(id))";
    let error = refused(&mut client, column);
    assert_eq!(error.message(), "generation expression uses user-defined function");
    run(&mut client, &format!("{column} STORED"));
}
