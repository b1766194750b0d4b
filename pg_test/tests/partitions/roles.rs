//! Who may manage the partitions of a table, and as whom it happens.

use super::{created, dropped, server_at_noon};
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, refused, run};

#[test]
fn the_owner_and_a_superuser_may_and_the_owner_owns_the_partitions() {
    let (cluster, mut superuser) = server_at_noon();
    let sql = "CREATE ROLE owner LOGIN; CREATE ROLE other LOGIN; CREATE SCHEMA blog AUTHORIZATION owner; GRANT ALL ON SCHEMA blog TO other;
        SET ROLE owner; CREATE TABLE blog.posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id); GRANT ALL ON blog.posts TO other;
        RESET ROLE";
    run(&mut superuser, sql);
    let denied = Refusal { sqlstate: "42501", message: "must be owner of table blog.posts", hint: "as its owner" };
    let mut other = cluster.connect_to("other", "postgres");
    assert_refused(&mut other, "SELECT snowflake_create_partitions('blog.posts', '1 day')", denied);
    assert_refused(&mut other, "SELECT snowflake_drop_partitions('blog.posts', '1 day')", denied);

    let mut owner = cluster.connect_to("owner", "postgres");
    assert_eq!(created(&mut owner, "'blog.posts', '1 day', 0"), "created|blog.posts_p20261123|");
    assert_eq!(created(&mut superuser, "'blog.posts', '1 day', 1"), "exists|blog.posts_p20261123|\ncreated|blog.posts_p20261124|");
    let owners = "SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname LIKE 'posts%'";
    assert_eq!(printed(&mut superuser, owners), "owner");

    let sql = "ALTER SCHEMA blog OWNER TO CURRENT_USER; REVOKE CREATE ON SCHEMA blog FROM owner; GRANT USAGE ON SCHEMA blog TO owner";
    run(&mut superuser, sql);
    let lacking = Refusal { sqlstate: "42501", message: "role owner lacks CREATE on schema blog", hint: "GRANT CREATE" };
    assert_refused(&mut owner, "SELECT snowflake_create_partitions('blog.posts', '1 day')", lacking);
    let sql = "CREATE TABLE blog.posts_p20261101 PARTITION OF blog.posts
            FOR VALUES FROM (snowflake_min_id('2026-11-01 00:00+00')) TO (snowflake_min_id('2026-11-23 00:00+00'));
        ALTER TABLE blog.posts_p20261101 OWNER TO owner";
    run(&mut superuser, sql);
    assert_eq!(dropped(&mut owner, "'blog.posts', '1 hour'"), "dropped|blog.posts_p20261101|");
}

/// A function of constants runs already when a constraint is compared with the bounds, or an index is planned.
#[test]
fn a_superuser_runs_no_code_of_the_owner_as_a_superuser() {
    let (cluster, mut superuser) = server_at_noon();
    run(&mut superuser, "CREATE ROLE owner LOGIN; CREATE SCHEMA blog AUTHORIZATION owner");
    run(
        &mut cluster.connect_to("owner", "postgres"),
        "CREATE TABLE blog.seen (who name);
         CREATE FUNCTION blog.note() RETURNS void LANGUAGE sql AS 'INSERT INTO blog.seen VALUES (current_user)';
         CREATE FUNCTION blog.spy(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
             'BEGIN PERFORM blog.note(); RETURN true; END';
         CREATE TABLE blog.posts (id bigint, CHECK (blog.spy(1))) PARTITION BY RANGE (id);
         CREATE INDEX ON blog.posts ((1)) WHERE blog.spy(1);
         CREATE TABLE blog.posts_default PARTITION OF blog.posts DEFAULT;
         ALTER TABLE blog.posts_default ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
         CREATE POLICY spied ON blog.posts_default USING (blog.spy(id));
         INSERT INTO blog.posts VALUES (1)",
    );
    created(&mut superuser, "'blog.posts', '1 day', 1");
    // The newest ID is read, too.
    run(
        &mut cluster.connect_to("owner", "postgres"),
        "CREATE TABLE blog.posts_p20261101 PARTITION OF blog.posts
             FOR VALUES FROM (public.snowflake_min_id('2026-11-01 00:00+00')) TO (public.snowflake_min_id('2026-11-23 00:00+00'));
         ALTER TABLE blog.posts_p20261123 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
         CREATE POLICY spied ON blog.posts_p20261123 USING (blog.spy(id));
         TRUNCATE blog.seen",
    );
    created(&mut superuser, "'blog.posts', '1 day', 1");
    assert_eq!(dropped(&mut superuser, "'blog.posts', '1 hour'"), "dropped|blog.posts_p20261101|");
    let seen = "SELECT count(*) FROM blog.seen WHERE who <> 'owner'";
    assert_eq!(printed(&mut superuser, seen), "0");
    assert_eq!(printed(&mut superuser, "SELECT current_user = session_user"), "t");
}

/// A policy could hide the newest rows.
#[test]
fn nothing_is_removed_if_row_security_hides_rows_from_the_owner() {
    let (cluster, mut superuser) = server_at_noon();
    let sql = "CREATE ROLE owner LOGIN; CREATE SCHEMA blog AUTHORIZATION owner; SET ROLE owner;
        CREATE TABLE blog.posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE blog.posts_p20261101 PARTITION OF blog.posts
            FOR VALUES FROM (snowflake_min_id('2026-11-01 00:00+00')) TO (snowflake_min_id('2026-11-23 00:00+00'));
        SELECT snowflake_create_partitions('blog.posts', '1 day', 0);
        ALTER TABLE blog.posts_p20261123 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY";
    run(&mut superuser, sql);
    let mut owner = cluster.connect_to("owner", "postgres");
    let found = dropped(&mut owner, "'blog.posts', '1 hour'");
    assert!(
        found.starts_with("failed|blog.posts_p20261101|the newest ID of the table could not be read: query would be affected"),
        "{found}"
    );
    run(&mut owner, "ALTER TABLE blog.posts_p20261123 NO FORCE ROW LEVEL SECURITY");
    assert_eq!(dropped(&mut owner, "'blog.posts', '1 hour'"), "dropped|blog.posts_p20261101|");
}

/// What a partition or a table with a foreign key runs when it is planned, or compared with the bounds of another partition.
#[test]
fn a_table_of_another_role_is_not_evaluated_as_the_owner() {
    let (cluster, mut superuser) = server_at_noon();
    let sql = "CREATE ROLE tenant LOGIN; CREATE SCHEMA blog AUTHORIZATION tenant;
        CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id); GRANT REFERENCES ON posts TO tenant;
        CREATE TABLE blog.posts_default PARTITION OF posts DEFAULT; ALTER TABLE blog.posts_default OWNER TO tenant";
    run(&mut superuser, sql);
    let mut tenant = cluster.connect_to("tenant", "postgres");
    let sql = "CREATE FUNCTION blog.spy(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
            IF current_user <> 'tenant' THEN RAISE EXCEPTION 'planted, run as %', current_user; END IF;
            RETURN true;
        END $$;
        ALTER TABLE blog.posts_default ADD CHECK (blog.spy(1));
        CREATE INDEX ON blog.posts_default ((1)) WHERE blog.spy(1)";
    run(&mut tenant, sql);
    let other = "table \"blog.posts_default\" has another owner than the tables that use it: Its expressions would be evaluated with \
                   the privileges of role postgres, but it belongs to role tenant";
    assert_eq!(
        created(&mut superuser, "'posts', '1 day', 0"),
        format!("failed||{other}\ndefault|blog.posts_default|could not be read: {other}")
    );
    let sql = "DROP TABLE blog.posts_default; SELECT snowflake_create_partitions('posts', '1 day', 0);
        CREATE TABLE posts_p20261101 PARTITION OF posts
            FOR VALUES FROM (snowflake_min_id('2026-11-01 00:00+00')) TO (snowflake_min_id('2026-11-23 00:00+00'))";
    run(&mut superuser, sql);
    let sql = "CREATE TABLE blog.likes (post_id bigint REFERENCES public.posts); CREATE INDEX ON blog.likes ((1)) WHERE blog.spy(1)";
    run(&mut tenant, sql);
    let other = other.replace("posts_default", "likes");
    assert_eq!(dropped(&mut superuser, "'posts', '1 hour'"), format!("failed|public.posts_p20261101|{other}"));
    run(&mut superuser, "DROP INDEX blog.likes_expr_idx");
    assert_eq!(dropped(&mut superuser, "'posts', '1 hour'"), "dropped|public.posts_p20261101|");
}

/// The functions of ours set a `search_path`, in which a function that names no schema finds nothing. A job shows only the message.
#[test]
fn an_error_of_a_function_of_the_user_names_it_and_the_cure() {
    let (cluster, mut client) = server_at_noon();
    run(
        &mut client,
        "CREATE TABLE ddl_log (tag text); CREATE TABLE t (id bigserial PRIMARY KEY); CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE posts_p20261101 PARTITION OF posts
             FOR VALUES FROM (snowflake_min_id('2026-11-01 00:00+00')) TO (snowflake_min_id('2026-11-23 00:00+00'));
         CREATE FUNCTION log_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ddl_log VALUES (tg_tag); END $$;
         CREATE EVENT TRIGGER log_ddl ON ddl_command_start EXECUTE FUNCTION log_ddl();
         CREATE FUNCTION one() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
         CREATE FUNCTION \"is positive\"(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$;
         CREATE TABLE narrow (id int PRIMARY KEY, CHECK (\"is positive\"(id))); CREATE TABLE of_index (id bigint); CREATE INDEX ON of_index (id) WHERE \"is positive\"(1);
         CREATE FUNCTION \"in SQL\"(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT $1 >= one()'; CREATE TABLE of_sql (id int PRIMARY KEY, CHECK (\"in SQL\"(id)));
         CREATE OR REPLACE FUNCTION \"is positive\"(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1 >= one(); END $$",
    );
    // A session of its own, which has not compiled the functions.
    client = cluster.connect();
    let cure = |function: &str| {
        format!(
            "Its search_path was pg_catalog, pg_temp. Set the schemas of the objects that it uses: ALTER FUNCTION {function} SET search_path = ...;"
        )
    };
    let raised = "relation \"ddl_log\" does not exist; raised by PL/pgSQL function public.log_ddl() line 1 at SQL statement. ";
    // Called by a function, whose name is not that of the function that failed.
    let job = "DO $$ BEGIN CREATE TEMP TABLE outcome AS SELECT message FROM snowflake_create_partitions('posts', '1 day', 0); END $$";
    run(&mut client, &format!("ALTER EVENT TRIGGER log_ddl DISABLE; {job}; DELETE FROM outcome; ALTER EVENT TRIGGER log_ddl ENABLE"));
    let expected = format!("failed|public.posts_p20261101|{raised}{}", cure("public.log_ddl()"));
    run(&mut client, "INSERT INTO posts VALUES (snowflake_min_id(now()))");
    assert_eq!(dropped(&mut client, "'posts', '1 hour'"), expected);
    let expected = format!("failed||{raised}{}", cure("public.log_ddl()"));
    run(&mut cluster.connect(), "DROP TABLE posts_p20261123");
    run(
        &mut client,
        "DO $$ BEGIN INSERT INTO outcome SELECT message FROM snowflake_create_partitions('posts', '1 day', 0) WHERE action = 'failed'; END $$",
    );
    assert_eq!(format!("failed||{}", printed(&mut client, "TABLE outcome")), expected);

    let convert = |table: &str| format!("DO $$ BEGIN PERFORM snowflake_convert_column('{table}', 'id', 5); END $$");
    let positive = (
        "function one() does not exist",
        "PL/pgSQL function public.\"is positive\"(bigint) line 1 at RETURN",
        "public.\"is positive\"(bigint)",
    );
    for (table, (message, frame, function)) in [
        ("t", ("relation \"ddl_log\" does not exist", "PL/pgSQL function public.log_ddl() line 1 at SQL statement", "public.log_ddl()")),
        ("narrow", positive),
        ("of_index", positive),
        ("of_sql", ("function one() does not exist", "SQL function \"in SQL\" during inlining", "\"in SQL\"")),
    ] {
        let error = refused(&mut client, &convert(table));
        assert_eq!(error.message(), message);
        assert!(error.detail().is_some_and(|detail| detail.ends_with(&format!("Raised by {frame}."))), "{error:?}");
        assert_eq!(error.hint(), Some(cure(function).as_str()));
    }
    run(
        &mut client,
        "ALTER FUNCTION log_ddl() SET search_path = public, pg_temp; ALTER FUNCTION \"is positive\"(bigint) SET search_path = public, pg_temp;
         ALTER FUNCTION \"in SQL\" SET search_path = public, pg_temp",
    );
    for table in ["t", "narrow", "of_index", "of_sql"] {
        run(&mut client, &convert(table));
    }
    assert_eq!(created(&mut client, "'posts', '1 day', 0"), "created|public.posts_p20261123|");
}
