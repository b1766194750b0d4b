//! Which roles may convert, and which may insert afterwards.

use super::run;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, refused, server};
use pg_snowflake_harness::sequence::take;
use postgres::Client;

#[test]
fn only_the_owner_of_the_table_may_convert() {
    let (cluster, mut superuser) = server();
    run(
        &mut superuser,
        "CREATE ROLE owner LOGIN; CREATE ROLE other LOGIN; CREATE SCHEMA blog AUTHORIZATION owner;
         GRANT USAGE ON SCHEMA blog TO other;
         SET ROLE owner; CREATE TABLE blog.posts (id bigint); GRANT ALL ON blog.posts TO other",
    );
    let convert = "SELECT snowflake_convert_column('blog.posts', 'id', 5)";

    let denied = Refusal {
        sqlstate: "42501",
        message: "must be owner of table blog.posts",
        hint: "as its owner",
    };
    assert_refused(&mut cluster.connect_to("other", "postgres"), convert, denied);

    run(&mut cluster.connect_to("owner", "postgres"), convert);
}

#[test]
fn the_owner_of_a_referencing_table_is_required_too() {
    let (cluster, mut superuser) = server();
    run(
        &mut superuser,
        "CREATE ROLE owner LOGIN; CREATE SCHEMA blog AUTHORIZATION owner;
         CREATE TABLE blog.posts (id serial PRIMARY KEY); ALTER TABLE blog.posts OWNER TO owner;
         CREATE TABLE comments (post_id int REFERENCES blog.posts)",
    );
    let mut owner = cluster.connect_to("owner", "postgres");

    let denied = Refusal {
        sqlstate: "42501",
        message: "must be owner of table public.comments",
        hint: "superuser",
    };
    assert_refused(&mut owner, "SELECT snowflake_convert_column('blog.posts', 'id', 5)", denied);
}

#[test]
fn a_table_converted_by_a_superuser_keeps_its_owner() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE ROLE owner; CREATE TABLE posts (id int GENERATED ALWAYS AS IDENTITY);
         ALTER TABLE posts OWNER TO owner; GRANT CREATE ON SCHEMA public TO owner;
         SELECT snowflake_convert_column('posts', 'id', 5)",
    );

    let owner = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'posts_id_seq'";
    assert_eq!(printed(&mut client, owner), "owner");
}

#[test]
fn the_owners_check_runs_without_the_rights_of_a_converting_superuser() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE ROLE joe; CREATE SCHEMA joes AUTHORIZATION joe; SET ROLE joe;
         CREATE FUNCTION joes.climb(bigint) RETURNS boolean LANGUAGE plpgsql AS $$
         DECLARE step text;
         BEGIN
             PERFORM set_config('work_mem', '77kB', false);
             FOREACH step IN ARRAY ARRAY['RESET ROLE', 'RESET SESSION AUTHORIZATION', 'ALTER ROLE joe SUPERUSER'] LOOP
                 BEGIN EXECUTE step; EXCEPTION WHEN OTHERS THEN END;
             END LOOP;
             RETURN current_user = 'joe' AND $1 > 0;
         END $$;
         CREATE TABLE joes.posts (id bigint CONSTRAINT climbs CHECK (joes.climb(id)), body text) PARTITION BY LIST (body);
         CREATE TABLE joes.posts_any PARTITION OF joes.posts (CHECK (joes.climb(id + 1))) DEFAULT; RESET ROLE;
         SELECT snowflake_convert_column('joes.posts', 'id', 5, check_shard => true)",
    );

    assert_eq!(printed(&mut client, "SELECT rolsuper FROM pg_roles WHERE rolname = 'joe'"), "f");
    assert_eq!(printed(&mut client, "SHOW work_mem"), "4MB");
    assert_eq!(printed(&mut client, "SELECT current_user"), "postgres");
}

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
    for (id, post_id) in expressions {
        let (_cluster, mut client) = server();
        with_joe(&mut client);
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
    for (id, post_id) in tables {
        let (_cluster, mut client) = server();
        with_joe(&mut client);
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
fn the_error_names_the_right_that_an_owner_lacks_on_a_schema() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE ROLE joe; CREATE TABLE posts (id int); ALTER TABLE posts OWNER TO joe; REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    );
    let convert = "SELECT snowflake_convert_column('posts', 'id', 5)";
    let lacking = Refusal {
        sqlstate: "42501",
        message: "role joe lacks CREATE on schema public",
        hint: "GRANT CREATE ON SCHEMA public TO joe;",
    };
    let refusal = assert_refused(&mut client, convert, lacking);
    run(&mut client, refusal.hint().unwrap().strip_prefix("Run: ").unwrap());
    run(&mut client, convert);
}

fn with_joe(client: &mut Client) {
    run(
        client,
        "CREATE ROLE joe; CREATE SCHEMA joes AUTHORIZATION joe; GRANT USAGE ON SCHEMA joes TO PUBLIC;
         CREATE FUNCTION joes.is_joe(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
             IF current_user <> 'joe' THEN RAISE EXCEPTION 'evaluated as %', current_user; END IF;
             RETURN true;
         END $$",
    );
}

#[test]
fn tables_of_several_owners_are_not_converted_with_the_rights_of_one() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE ROLE \"Joe\"; CREATE TABLE posts (id int, n int) PARTITION BY LIST (n);
         CREATE TABLE posts_any PARTITION OF posts DEFAULT; ALTER TABLE posts OWNER TO \"Joe\";
         GRANT CREATE ON SCHEMA public TO \"Joe\"",
    );
    let convert = "SELECT snowflake_convert_column('posts', 'id', 5)";
    let mixed = Refusal {
        sqlstate: "42501",
        message: "its tables have different owners",
        hint: "OWNER TO \"Joe\"",
    };

    let refusal = assert_refused(&mut client, convert, mixed);
    run(&mut client, refusal.hint().unwrap().strip_prefix("Run: ").unwrap());
    run(&mut client, convert);

    // Not even without a rewrite.
    run(&mut client, "ALTER TABLE posts_any OWNER TO postgres");
    assert_refused(&mut client, convert, mixed);
}

/// The owner of a table wrote the CHECKs that its children inherit, and perhaps its type. They must not be evaluated with
/// the rights of a child's owner.
#[test]
fn nobody_gains_the_rights_of_a_childs_owner() {
    let (cluster, mut superuser) = server();
    run(
        &mut superuser,
        "CREATE ROLE mallory LOGIN; CREATE SCHEMA mallorys AUTHORIZATION mallory;
         SET ROLE mallory;
         CREATE FUNCTION mallorys.ok(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             IF current_user = 'postgres' THEN RAISE EXCEPTION 'a stolen superuser'; END IF;
             RETURN true;
         END $$;
         CREATE DOMAIN mallorys.id AS bigint CHECK (mallorys.ok(VALUE));
         CREATE TABLE mallorys.inherited (id bigint CHECK (mallorys.ok(id)), n int);
         CREATE TABLE mallorys.parted (id mallorys.id, n int) PARTITION BY RANGE (n);
         RESET ROLE;
         CREATE TABLE child () INHERITS (mallorys.inherited);
         CREATE TABLE part PARTITION OF mallorys.parted (CHECK (id IS NOT NULL)) DEFAULT",
    );
    let mixed = Refusal {
        sqlstate: "42501",
        message: "its tables have different owners",
        hint: "OWNER TO mallory",
    };
    let mut mallory = cluster.connect_to("mallory", "postgres");
    for table in ["inherited", "parted"] {
        let convert = format!("SELECT snowflake_convert_column('mallorys.{table}', 'id', 5)");
        for client in [&mut mallory, &mut superuser] {
            assert_refused(client, &convert, mixed);
        }
    }
}

/// A child also inherits the CHECKs of other parents. A CHECK from a table outside of the tree was written by that table's
/// owner.
#[test]
fn a_check_from_another_parent_is_not_evaluated() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE FUNCTION fails(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'run'; END $$;
         CREATE TABLE posts (id bigint);
         CREATE TABLE other (id bigint CHECK (fails(id)));
         CREATE TABLE child () INHERITS (posts, other);
         SELECT snowflake_convert_column('posts', 'id', 5)",
    );
}

#[test]
fn a_role_that_could_insert_into_an_identity_column_still_can() {
    let (cluster, mut owner) = server();
    run(
        &mut owner,
        "CREATE ROLE writer LOGIN; CREATE ROLE \"some Columns\" LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE child LOGIN;
         CREATE TABLE posts (id int GENERATED ALWAYS AS IDENTITY, body text) PARTITION BY LIST (body);
         CREATE TABLE posts_any PARTITION OF posts DEFAULT;
         GRANT INSERT ON posts TO writer; GRANT INSERT (body) ON posts TO \"some Columns\"; GRANT SELECT ON posts TO reader;
         GRANT INSERT ON posts_any TO child; GRANT SELECT ON SEQUENCE posts_id_seq TO reader;
         SELECT snowflake_convert_column('posts', 'id', 5)",
    );

    for (role, table) in [("writer", "posts"), ("some Columns", "posts"), ("child", "posts_any")] {
        run(
            &mut cluster.connect_to(role, "postgres"),
            &format!("INSERT INTO {table} (body) VALUES ('x')"),
        );
    }
    let mut reader = cluster.connect_to("reader", "postgres");
    assert_eq!(take(&mut reader, "SELECT last_value FROM posts_id_seq").len(), 1);
    assert_eq!(
        refused(&mut reader, "SELECT snowflake_nextval('posts_id_seq', 5)").code().code(),
        "42501"
    );
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
    for (default, of_partition) in defaults {
        let (cluster, mut owner) = server();
        run(
            &mut owner,
            &format!(
                "CREATE ROLE writer LOGIN;
                 CREATE TABLE posts (id bigserial, body text) PARTITION BY LIST (body);
                 CREATE TABLE posts_any PARTITION OF posts DEFAULT;
                 CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT nextval('posts_id_seq') $$;
                 ALTER TABLE posts ALTER COLUMN id {default}; {of_partition}
                 GRANT INSERT ON posts_any TO writer;
                 SELECT snowflake_convert_column('posts', 'id', 5)"
            ),
        );

        run(
            &mut cluster.connect_to("writer", "postgres"),
            "INSERT INTO posts_any (body) VALUES ('x')",
        );
    }
}

#[test]
fn a_role_that_could_not_use_a_serials_sequence_still_cannot() {
    let (cluster, mut owner) = server();
    run(
        &mut owner,
        "CREATE ROLE writer LOGIN; CREATE TABLE posts (id bigserial, body text); GRANT INSERT ON posts TO writer;
         SELECT snowflake_convert_column('posts', 'id', 5)",
    );

    let mut writer = cluster.connect_to("writer", "postgres");
    let insert = "INSERT INTO posts (body) VALUES ('x')";
    assert_eq!(refused(&mut writer, insert).code().code(), "42501");
}

#[test]
fn forced_row_security_hides_no_value_from_it() {
    let (cluster, mut superuser) = server();
    run(
        &mut superuser,
        "CREATE ROLE owner LOGIN; CREATE SCHEMA blog AUTHORIZATION owner; SET ROLE owner;
         CREATE TABLE blog.posts (id bigint); INSERT INTO blog.posts VALUES (5000000000000000000);
         CREATE POLICY mine ON blog.posts USING (false); ALTER TABLE blog.posts ENABLE ROW LEVEL SECURITY;
         ALTER TABLE blog.posts FORCE ROW LEVEL SECURITY",
    );
    let mut owner = cluster.connect_to("owner", "postgres");

    let error = refused(&mut owner, "SELECT snowflake_convert_column('blog.posts', 'id', 5)");
    assert!(error.message().contains("row-level security"), "{}", error.message());

    // A role that bypasses it sees the value, even as the owner.
    let error = refused(
        &mut superuser,
        "RESET ROLE; SELECT snowflake_convert_column('blog.posts', 'id', 5)",
    );
    assert!(error.message().contains("a value above the next ID"), "{}", error.message());
}
