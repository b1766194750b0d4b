//! The view of columns reads the newest ID of a table, to notice another layout: what it must not do for that.

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{database, printed, run};
use pg_snowflake_harness::copied::PLPGSQL;

/// The error of each column in the view.
const ERRORS: &str = "SELECT table_name, left(error, 43) FROM snowflake_columns ORDER BY table_name::text";

#[test]
fn a_deeply_nested_policy_or_rule_does_not_break_the_view() {
    let (database, mut client) = database();
    let deep = format!("5{} = 5", "::bigint::int".repeat(1000));
    run(
        &mut client,
        &format!(
            "CREATE SEQUENCE s; CREATE TABLE a (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)); CREATE TABLE b (LIKE a INCLUDING ALL);
             CREATE TABLE c (LIKE a INCLUDING ALL); INSERT INTO a VALUES (4036363106367045632), (4036363106367045633); INSERT INTO b TABLE a; INSERT INTO c TABLE a;
             CREATE POLICY p ON a USING ({deep}); ALTER TABLE a ENABLE ROW LEVEL SECURITY;
             CREATE RULE r AS ON INSERT TO b WHERE {deep} DO ALSO NOTHING"
        ),
    );
    let mut client = database.connect();
    run(&mut client, "SET max_stack_depth = '200kB'");
    assert_eq!(printed(&mut client, ERRORS), "a|\nb|\nc|newest ID is probably of layout \"instagram\"");
}

#[test]
fn a_lock_of_another_session_does_not_block_the_view() {
    let (database, mut owner) = database();
    run(
        &mut owner,
        &format!(
            "{PLPGSQL}; CREATE SEQUENCE photos_id_seq;
             CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_nextval('photos_id_seq', 5));
             INSERT INTO photos SELECT copied_nextval('photos_id_seq', 5) FROM generate_series(1, 1000)"
        ),
    );
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
    let left = "SELECT count(*) FROM pg_locks WHERE relation IN ('photos'::regclass, 'photos_pkey'::regclass)";
    assert_eq!(printed(&mut client, left), "0");
}

#[test]
fn relations_without_rows_of_their_own_are_not_read() {
    let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "5").start();
    let mut client = cluster.connect();
    run(
        &mut client,
        "CREATE SEQUENCE s; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w;
         CREATE FOREIGN TABLE elsewhere (id bigint DEFAULT snowflake_nextval('s')) SERVER far;
         CREATE TABLE empty (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'));
         CREATE TABLE narrow (id int PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO narrow VALUES (5);
         CREATE TABLE texts (id text PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO texts VALUES ('4036363106367045632');
         CREATE TABLE typed (id snowflake PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO typed VALUES (4036363106367045632), (4036363106367045633);
         CREATE UNLOGGED TABLE unlogged (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO unlogged TABLE typed;
         CREATE VIEW shown AS SELECT * FROM empty; ALTER VIEW shown ALTER id SET DEFAULT snowflake_nextval('s')",
    );
    let reported = "SELECT string_agg(table_name::text, ' ' ORDER BY table_name::text) FROM snowflake_columns
         WHERE error LIKE 'newest ID%'";
    assert_eq!(printed(&mut client, reported), "typed unlogged");
    assert_eq!(printed(&mut cluster.standby().connect(), reported), "typed");
}
