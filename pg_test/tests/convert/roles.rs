//! As whom a conversion evaluates expressions, and which roles may insert afterwards.

use super::{database, run};
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, refused, server};

/// A server with that role.
fn with_role(role: &str) -> Cluster {
    let cluster = Cluster::new();
    run(&mut cluster.connect(), &format!("CREATE ROLE {role} LOGIN"));
    cluster
}

/// A schema of the role `joe` with a function that notices who evaluates it.
const JOES: &str = "
    CREATE SCHEMA joes AUTHORIZATION joe; GRANT USAGE ON SCHEMA joes TO PUBLIC;
    CREATE FUNCTION joes.is_joe(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
        IF current_user <> 'joe' THEN RAISE EXCEPTION 'evaluated as %', current_user; END IF;
        RETURN true;
    END $$";

/// Widening a column checks every row again, and planning a query evaluates the constants in predicates of indexes.
#[test]
fn a_conversion_evaluates_expressions_as_the_owner_of_their_table() {
    let expressions = [
        ("id int CHECK (joes.is_joe(id))", "post_id int"),
        ("id int", "post_id int CHECK (joes.is_joe(post_id))"),
        ("id bigint", "post_id int CHECK (joes.is_joe(post_id))"),
        ("id int, EXCLUDE (id WITH =) WHERE (joes.is_joe(1))", "post_id bigint"),
        ("id int", "post_id bigint, EXCLUDE (post_id WITH =) WHERE (joes.is_joe(1))"),
        ("id bigint, EXCLUDE (id WITH =) WHERE (joes.is_joe(1))", "post_id bigint"),
    ];
    let cluster = with_role("joe");
    for (number, (id, post_id)) in expressions.into_iter().enumerate() {
        let mut client = database(&cluster, &format!("joes_{number}"), JOES);
        run(
            &mut client,
            &format!(
                "SET ROLE joe; CREATE TABLE joes.posts ({id}, n int, PRIMARY KEY (id)); INSERT INTO joes.posts VALUES (7, 1);
                 CREATE TABLE joes.comments ({post_id}, FOREIGN KEY (post_id) REFERENCES joes.posts);
                 INSERT INTO joes.comments VALUES (7);
                 RESET ROLE;
                 SELECT snowflake_convert_column('joes.posts', 'id', 5, check_shard => true)"
            ),
        );

        let shard = "SELECT snowflake_shard_id(id) FROM joes.posts WHERE n = 2";
        run(&mut client, "SET ROLE joe; INSERT INTO joes.posts (n) VALUES (2)");
        assert_eq!(printed(&mut client, shard), "5", "{id} {post_id}");
    }
}

/// Widening a column checks its foreign keys again, by one query on the tables of both sides.
#[test]
fn a_foreign_key_between_tables_of_two_owners_is_not_checked_as_either() {
    let tables =
        [("id int", "post_id int"), ("id int", "post_id bigint"), ("id bigint", "post_id int")];
    let cluster = with_role("joe");
    for (number, (id, post_id)) in tables.into_iter().enumerate() {
        let mut client = database(&cluster, &format!("joes_{number}"), JOES);
        run(
            &mut client,
            &format!(
                "CREATE TABLE posts ({id} PRIMARY KEY, n int); INSERT INTO posts VALUES (7, 1);
                 GRANT REFERENCES ON posts TO joe; SET ROLE joe;
                 CREATE TABLE joes.comments ({post_id} REFERENCES posts); INSERT INTO joes.comments VALUES (7);
                 CREATE INDEX ON joes.comments (post_id) WHERE joes.is_joe(1);
                 RESET ROLE"
            ),
        );
        let mixed = Refusal {
            sqlstate: "42501",
            message: "its tables have different owners",
            hint: "ALTER TABLE joes.comments OWNER TO postgres",
        };
        assert_refused(&mut client, "SELECT snowflake_convert_column('posts', 'id', 5)", mixed);
    }
}

/// Each statement looks up the name of a table again, and a CHECK that is evaluated in between can rename another table to
/// it.
#[test]
fn a_check_that_renames_its_table_gains_nothing() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE ROLE mallory; CREATE SCHEMA m AUTHORIZATION mallory; SET ROLE mallory;
         CREATE TABLE m.t (id bigserial PRIMARY KEY);
         CREATE TYPE m.ev AS ENUM ('a');
         CREATE FUNCTION m.evil(m.ev) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
             IF current_user <> 'mallory' THEN RAISE EXCEPTION 'a stolen superuser'; END IF;
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
    let error = refused(
        &mut client,
        "SELECT snowflake_convert_column('m.t', 'id', 5, check_shard => true)",
    );
    assert!(!error.message().contains("stolen"), "{}", error.message());
}

#[test]
fn a_role_that_could_insert_by_another_default_still_can() {
    let defaults = [
        ("SET DEFAULT next_id()", ""),
        ("DROP DEFAULT", ""),
        ("SET DEFAULT 7", ""),
        // A partition with its own default.
        (
            "SET DEFAULT nextval('posts_id_seq')",
            "ALTER TABLE posts_any ALTER COLUMN id SET DEFAULT next_id();",
        ),
    ];
    let cluster = with_role("writer");
    for (number, (default, of_partition)) in defaults.into_iter().enumerate() {
        let name = format!("default_{number}");
        database(
            &cluster,
            &name,
            &format!(
                "CREATE TABLE posts (id bigserial, body text) PARTITION BY LIST (body);
                 CREATE TABLE posts_any PARTITION OF posts DEFAULT;
                 CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT nextval('posts_id_seq') $$;
                 ALTER TABLE posts ALTER COLUMN id {default}; {of_partition}
                 GRANT INSERT ON posts_any TO writer;
                 SELECT snowflake_convert_column('posts', 'id', 5)"
            ),
        );

        run(&mut cluster.connect_to("writer", &name), "INSERT INTO posts_any (body) VALUES ('x')");
    }
}
