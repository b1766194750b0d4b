//! As whom a conversion evaluates expressions, and which roles may insert afterwards.

use super::{database_with, run};
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, refused};

/// A schema of the role `owner` with a function that notices who evaluates it.
const BLOG: &str = "
    CREATE SCHEMA blog AUTHORIZATION owner; GRANT USAGE ON SCHEMA blog TO PUBLIC;
    CREATE FUNCTION blog.is_owner(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
        IF current_user <> 'owner' THEN RAISE EXCEPTION 'evaluated as %', current_user; END IF;
        RETURN true;
    END $$";

/// Widening a column checks every row again, and planning a query evaluates the constants in predicates of indexes.
#[test]
fn a_conversion_evaluates_expressions_as_the_owner_of_their_table() {
    let expressions = [
        ("id int CHECK (blog.is_owner(id))", "post_id int"),
        ("id int", "post_id int CHECK (blog.is_owner(post_id))"),
        ("id bigint", "post_id int CHECK (blog.is_owner(post_id))"),
        ("id int, EXCLUDE (id WITH =) WHERE (blog.is_owner(1))", "post_id bigint"),
        ("id int", "post_id bigint, EXCLUDE (post_id WITH =) WHERE (blog.is_owner(1))"),
        ("id bigint, EXCLUDE (id WITH =) WHERE (blog.is_owner(1))", "post_id bigint"),
    ];
    for (id, post_id) in expressions {
        let (_database, mut client) = database_with(BLOG);
        let sql = format!(
            "SET ROLE owner; CREATE TABLE blog.posts ({id}, n int, PRIMARY KEY (id)); INSERT INTO blog.posts VALUES (7, 1);
             CREATE TABLE blog.comments ({post_id}, FOREIGN KEY (post_id) REFERENCES blog.posts);
             INSERT INTO blog.comments VALUES (7);
             RESET ROLE;
             SELECT snowflake_convert_column('blog.posts', 'id', 5, check_shard => true)"
        );
        run(&mut client, &sql);

        let shard = "SELECT snowflake_shard_id(id) FROM blog.posts WHERE n = 2";
        run(&mut client, "SET ROLE owner; INSERT INTO blog.posts (n) VALUES (2)");
        assert_eq!(printed(&mut client, shard), "5", "{id} {post_id}");
    }
}

/// Widening a column checks its foreign keys again, by one query on the tables of both sides.
#[test]
fn a_foreign_key_between_tables_of_two_owners_is_not_checked_as_either() {
    let tables = [("id int", "post_id int"), ("id int", "post_id bigint"), ("id bigint", "post_id int")];
    for (id, post_id) in tables {
        let (_database, mut client) = database_with(BLOG);
        let sql = format!(
            "CREATE TABLE posts ({id} PRIMARY KEY, n int); INSERT INTO posts VALUES (7, 1);
             GRANT REFERENCES ON posts TO owner; SET ROLE owner;
             CREATE TABLE blog.comments ({post_id} REFERENCES posts); INSERT INTO blog.comments VALUES (7);
             CREATE INDEX ON blog.comments (post_id) WHERE blog.is_owner(1);
             RESET ROLE"
        );
        run(&mut client, &sql);
        let mixed =
            Refusal { sqlstate: "42501", message: "its tables have different owners", hint: "ALTER TABLE blog.comments OWNER TO postgres" };
        assert_refused(&mut client, "SELECT snowflake_convert_column('posts', 'id', 5)", mixed);
    }
}

/// Each statement looks up the name of a table again, and a CHECK that is evaluated in between can rename another table to
/// it.
#[test]
fn a_check_that_renames_its_table_gains_nothing() {
    let (_database, mut client) = database_with(
        "CREATE SCHEMA m AUTHORIZATION owner; SET ROLE owner;
         CREATE TABLE m.t (id bigserial PRIMARY KEY);
         CREATE TYPE m.ev AS ENUM ('a');
         CREATE FUNCTION m.evil(m.ev) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
             IF current_user <> 'owner' THEN RAISE EXCEPTION 'a stolen superuser'; END IF;
             RETURN 1;
         END $$;
         CREATE CAST (m.ev AS bigint) WITH FUNCTION m.evil(m.ev);
         CREATE TABLE m.t2 (id m.ev); INSERT INTO m.t2 VALUES ('a');
         CREATE FUNCTION m.swap(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             IF $1 > 1000000 AND to_regclass('m.t2') IS NOT NULL THEN
                 EXECUTE 'ALTER TABLE m.t RENAME TO t1'; EXECUTE 'ALTER TABLE m.t2 RENAME TO t';
             END IF;
             RETURN true;
         END $$;
         ALTER TABLE m.t ADD CHECK (m.swap(id)); RESET ROLE",
    );
    let error = refused(&mut client, "SELECT snowflake_convert_column('m.t', 'id', 5, check_shard => true)");
    assert!(!error.message().contains("stolen"), "{}", error.message());
}

#[test]
fn a_role_that_could_insert_by_another_default_still_can() {
    let defaults = [
        ("SET DEFAULT next_id()", ""),
        ("DROP DEFAULT", ""),
        ("SET DEFAULT 7", ""),
        // A partition with its own default.
        ("SET DEFAULT nextval('posts_id_seq')", "ALTER TABLE posts_any ALTER COLUMN id SET DEFAULT next_id();"),
    ];
    for (default, of_partition) in defaults {
        let (database, _) = database_with(&format!(
            "CREATE TABLE posts (id bigserial, body text) PARTITION BY LIST (body);
             CREATE TABLE posts_any PARTITION OF posts DEFAULT;
             CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT nextval('posts_id_seq') $$;
             ALTER TABLE posts ALTER COLUMN id {default}; {of_partition}
             GRANT INSERT ON posts_any TO writer;
             SELECT snowflake_convert_column('posts', 'id', 5)"
        ));
        run(&mut database.connect_as("writer"), "INSERT INTO posts_any (body) VALUES ('x')");
    }
}
