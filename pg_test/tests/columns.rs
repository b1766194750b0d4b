//! The view `snowflake_columns` beside other sessions and on a standby, and defaults that are hard to read. It reads the newest ID of
//! a table, to notice another layout: what it must not do for that.

use pg_snowflake_harness::copied::PLPGSQL;
use pg_snowflake_harness::prelude::*;

/// The sequence, the shard, whether it is from the setting, and the layout that are shown for a default.
fn shown(client: &mut Client, default: &str) -> String {
    run(client, &format!("DROP TABLE IF EXISTS posts; CREATE TABLE posts (id text DEFAULT {default})"));
    printed(client, "SELECT sequence, shard_id, uses_current_shard, layout FROM snowflake_columns")
}

/// Its arguments can be of any type, whose bits would be shown.
#[test]
fn an_overload_added_to_the_extension_by_its_owner_is_not_ours() {
    let (database, mut superuser) = database();
    let sql = format!(
        "DROP EXTENSION pg_snowflake; GRANT CREATE ON DATABASE {} TO owner; GRANT CREATE ON SCHEMA public TO owner",
        database.name()
    );
    run(&mut superuser, &sql);
    let sql = "CREATE EXTENSION pg_snowflake;
        CREATE FUNCTION snowflake_nextval(text) RETURNS bigint LANGUAGE sql RETURN 1;
        CREATE FUNCTION snowflake_nextval(text, int, text) RETURNS bigint LANGUAGE sql RETURN 1;
        ALTER EXTENSION pg_snowflake ADD FUNCTION snowflake_nextval(text);
        ALTER EXTENSION pg_snowflake ADD FUNCTION snowflake_nextval(text, int, text)";
    run(&mut database.connect_as("owner"), sql);
    superuser.batch_execute("CREATE SEQUENCE s").unwrap();
    let default = "snowflake_nextval('s'::regclass, 6) + snowflake_nextval('s'::text) + snowflake_nextval('s'::text, 5, 'x'::text)";
    assert_eq!(shown(&mut superuser, default), "s|6|f|postgres");
}

#[test]
fn temporary_tables_of_other_sessions_never_make_it_fail() {
    let sql = "CREATE TEMPORARY SEQUENCE t;
            CREATE TEMPORARY TABLE mine (id bigint DEFAULT snowflake_nextval('t', 5));
            CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('t', 5));
            INSERT INTO posts DEFAULT VALUES";
    let (database, mut client) = database_with(sql);
    let seen = "SELECT table_name, last_id_at IS NOT NULL FROM snowflake_columns ORDER BY 1";
    assert_eq!(printed(&mut client, seen), "mine|t\nposts|t");
    assert_eq!(printed(&mut database.connect(), seen), "posts|f");
}

#[test]
fn a_standby_and_a_read_only_transaction_show_it() {
    let sql = "CREATE SEQUENCE s; CREATE UNLOGGED SEQUENCE u;
            CREATE TABLE posts (a bigint DEFAULT snowflake_nextval('s', 5), b bigint DEFAULT snowflake_nextval('u', 5));
            INSERT INTO posts DEFAULT VALUES";
    let (primary, mut client) = server_with(sql);
    let seen = "SELECT column_name, last_id_at IS NOT NULL FROM snowflake_columns ORDER BY 1";
    let standby = primary.standby();
    assert_eq!(printed(&mut standby.connect(), seen), "a|t\nb|f");
    client.batch_execute("BEGIN READ ONLY").unwrap();
    assert_eq!(printed(&mut client, seen), "a|t\nb|t");
}

/// A default with this many casts around its shard.
fn nested(casts: usize) -> String {
    format!("snowflake_nextval('s', 5{})", "::bigint::int".repeat(casts / 2))
}

#[test]
fn a_too_deeply_nested_default_has_a_row_with_the_error() {
    let sql = format!(
        "CREATE SEQUENCE s; CREATE TABLE deep (id bigint DEFAULT {}); CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 6))",
        nested(2000)
    );
    let (_database, mut client) = database_with(&sql);
    let seen = "SELECT c.* FROM snowflake_columns AS c ORDER BY table_name::text";
    let whole = printed(&mut client, "SELECT table_name, shard_id, error FROM snowflake_columns ORDER BY table_name::text");
    assert_eq!(whole, "deep|5|\nposts|6|");

    client.batch_execute("SET max_stack_depth = '200kB'").unwrap();
    let seen = printed(&mut client, seen);
    let (deep, posts) = seen.split_once('\n').unwrap();
    assert_eq!(deep, "deep|id|||||||||||default is nested too deeply to read: Simplify it, or raise max_stack_depth.");
    assert!(posts.starts_with("posts|id|snowflake_nextval(regclass,integer,snowflake_layout)|s|6|"), "{posts}");
    // The session continues, in the same transaction.
    client.batch_execute("BEGIN; SELECT FROM snowflake_columns; SELECT FROM snowflake_columns; COMMIT").unwrap();
}

/// Opening a view reads its query.
#[test]
fn a_default_that_names_a_deep_view_as_its_sequence_has_a_row() {
    let sql = format!(
        "CREATE VIEW deep AS SELECT 5{} AS id; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('deep', 5))",
        "::bigint::int".repeat(1000)
    );
    let (database, _) = database_with(&sql);
    let mut client = database.connect();
    client.batch_execute("SET max_stack_depth = '200kB'").unwrap();
    let seen = "SELECT table_name, sequence, shard_id, error FROM snowflake_columns";
    assert_eq!(printed(&mut client, seen), "posts|deep|5|\"deep\" is not a sequence");
}

#[test]
fn a_locked_sequence_does_not_block_the_view() {
    let sql = "CREATE TABLE posts (id bigserial); SELECT snowflake_convert_column('posts', 'id', 5);
            CREATE SEQUENCE s; CREATE TABLE notes (id bigint DEFAULT snowflake_nextval('s', 6));
            INSERT INTO notes DEFAULT VALUES";
    let (database, mut owner) = database_with(sql);
    owner.batch_execute("BEGIN; TRUNCATE posts RESTART IDENTITY").unwrap();
    let mut client = database.connect();
    client.batch_execute("SET lock_timeout = '10s'").unwrap();
    let seen = "SELECT table_name, sequence, shard_id, last_id_at IS NOT NULL, error FROM snowflake_columns ORDER BY table_name::text";
    assert_eq!(printed(&mut client, seen), "notes|s|6|t|\nposts|posts_id_seq|5|f|sequence is locked by another transaction: See pg_locks.");
    owner.batch_execute("COMMIT").unwrap();
    assert_eq!(printed(&mut client, seen), "notes|s|6|t|\nposts|posts_id_seq|5|f|");
    let left = "SELECT count(*) FROM pg_locks WHERE relation IN ('s'::regclass, 'posts_id_seq'::regclass)";
    client.batch_execute("BEGIN").unwrap();
    printed(&mut client, seen);
    assert_eq!(printed(&mut client, left), "0");
}

/// The error of each column in the view.
const ERRORS: &str = "SELECT table_name, left(error, 43) FROM snowflake_columns ORDER BY table_name::text";

#[test]
fn a_deeply_nested_policy_or_rule_does_not_break_the_view() {
    let (database, mut client) = database();
    let deep = format!("5{} = 5", "::bigint::int".repeat(1000));
    let sql = format!(
        "CREATE SEQUENCE s; CREATE TABLE a (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)); CREATE TABLE b (LIKE a INCLUDING ALL);
         CREATE TABLE c (LIKE a INCLUDING ALL); INSERT INTO a VALUES (4036363106367045632), (4036363106367045633); INSERT INTO b TABLE a; INSERT INTO c TABLE a;
         CREATE POLICY p ON a USING ({deep}); ALTER TABLE a ENABLE ROW LEVEL SECURITY;
         CREATE RULE r AS ON INSERT TO b WHERE {deep} DO ALSO NOTHING"
    );
    run(&mut client, &sql);
    let mut client = database.connect();
    run(&mut client, "SET max_stack_depth = '200kB'");
    assert_eq!(printed(&mut client, ERRORS), "a|\nb|\nc|newest ID is probably of layout \"instagram\"");
}

#[test]
fn a_lock_of_another_session_does_not_block_the_view() {
    let sql = format!(
        "{PLPGSQL}; CREATE SEQUENCE photos_id_seq;
         CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_nextval('photos_id_seq', 5));
         INSERT INTO photos SELECT copied_nextval('photos_id_seq', 5) FROM generate_series(1, 1000)"
    );
    let (database, mut owner) = database_with(&sql);
    let mut client = database.connect();
    run(&mut client, "SET statement_timeout = '20s'");
    for (statement, reported) in [
        ("LOCK TABLE photos IN ACCESS EXCLUSIVE MODE", "photos|"),
        ("REINDEX INDEX photos_pkey", "photos|"),
        ("LOCK TABLE photos IN EXCLUSIVE MODE", "photos|newest ID is probably of layout \"instagram\""),
    ] {
        run(&mut owner, &format!("BEGIN; {statement}"));
        assert_eq!(printed(&mut client, ERRORS), reported, "{statement}");
        run(&mut owner, "ROLLBACK");
    }
    run(&mut client, "BEGIN");
    printed(&mut client, ERRORS);
    assert_eq!(printed(&mut client, "SELECT count(*) FROM pg_locks WHERE relation IN ('photos'::regclass, 'photos_pkey'::regclass)"), "0");
}

#[test]
fn relations_without_rows_of_their_own_are_not_read() {
    let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "5").start();
    let mut client = cluster.connect();
    let sql = "CREATE SEQUENCE s; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w;
        CREATE FOREIGN TABLE elsewhere (id bigint DEFAULT snowflake_nextval('s')) SERVER far;
        CREATE TABLE empty (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'));
        CREATE TABLE narrow (id int PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO narrow VALUES (5);
        CREATE TABLE texts (id text PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO texts VALUES ('4036363106367045632');
        CREATE TABLE typed (id snowflake PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO typed VALUES (4036363106367045632), (4036363106367045633);
        CREATE UNLOGGED TABLE unlogged (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO unlogged TABLE typed;
        CREATE VIEW shown AS SELECT * FROM empty; ALTER VIEW shown ALTER id SET DEFAULT snowflake_nextval('s')";
    run(&mut client, sql);
    let reported = "SELECT string_agg(table_name::text, ' ' ORDER BY table_name::text) FROM snowflake_columns
         WHERE error LIKE 'newest ID%'";
    assert_eq!(printed(&mut client, reported), "typed unlogged");
    assert_eq!(printed(&mut cluster.standby().connect(), reported), "typed");
}
