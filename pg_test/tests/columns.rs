//! The view `snowflake_columns` beside other sessions and on a standby, and defaults that are hard to read. It reads the newest ID of
//! a table, to notice another layout: what it must not do for that.

use pg_snowflake_harness::copied::PLPGSQL;
use pg_snowflake_harness::prelude::*;

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
