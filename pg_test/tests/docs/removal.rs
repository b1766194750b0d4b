//! Dropping the extension as docs/migrate.md says.

use super::page::page;
use pg_snowflake_harness::prelude::*;

/// The block of the page with this text.
fn block(text: &str) -> String {
    page("docs/migrate.md").block_with(text)
}

/// The examples of the page, and objects of every other kind.
fn with_dependents() -> (Database, Client) {
    let (database, mut client) = database_with(&block("CREATE TABLE visits"));
    let sql = "CREATE SEQUENCE s;
        CREATE TABLE plain (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5), shard int GENERATED ALWAYS AS (snowflake_shard_id(id)) STORED,
            CONSTRAINT of_shard CHECK (snowflake_shard_id(id) >= 0));
        CREATE INDEX plain_time ON plain (snowflake_created_at(id));
        CREATE STATISTICS plain_statistics ON id, (snowflake_shard_id(id)) FROM plain;
        CREATE POLICY own ON plain USING (snowflake_shard_id(id) = 5);
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER own BEFORE INSERT ON plain FOR EACH ROW WHEN (snowflake_shard_id(NEW.id) = 5) EXECUTE FUNCTION nothing();
        CREATE RULE own AS ON UPDATE TO plain DO ALSO SELECT snowflake_shard_id(OLD.id);
        CREATE VIEW inner_view AS SELECT snowflake_created_at(id) FROM plain;
        CREATE VIEW outer_view AS SELECT * FROM inner_view;
        CREATE MATERIALIZED VIEW stored_view AS SELECT snowflake_created_at(id) FROM plain;
        CREATE FUNCTION body() RETURNS bigint RETURN snowflake_min_id(now());
        CREATE TABLE typed (id snowflake PRIMARY KEY, body text);
        CREATE TABLE child () INHERITS (typed);
        CREATE TABLE referencing (typed_id snowflake REFERENCES typed, message_id bigint REFERENCES messages, ids snowflake[]);
        CREATE DOMAIN key AS snowflake;
        CREATE TABLE of_domain (id key);
        CREATE TYPE pair AS (id snowflake, n int);
        CREATE TABLE by_key (id snowflake) PARTITION BY RANGE (id);
        CREATE TABLE by_key_all PARTITION OF by_key DEFAULT;
        INSERT INTO plain DEFAULT VALUES;
        INSERT INTO typed SELECT n, 'typed' FROM generate_series(1, 5) AS n;
        INSERT INTO visits SELECT snowflake_encode('2026-05-05Z', 5, n), 'page' FROM generate_series(1, 6) AS n;
        INSERT INTO messages SELECT snowflake_nextval('s', 5), 'message' FROM generate_series(1, 7);
        INSERT INTO referencing SELECT 1, min(id), '{1,2}' FROM messages;
        INSERT INTO of_domain VALUES (8);
        INSERT INTO by_key VALUES (9);
        ANALYZE";
    run(&mut client, sql);
    (database, client)
}

#[test]
fn the_query_lists_every_object_that_cascade_drops() {
    let (database, mut client) = with_dependents();
    let objects = "SELECT o.type, o.identity FROM (
            SELECT classid, objid, objsubid FROM pg_depend
            UNION SELECT 'pg_class'::regclass, attrelid, attnum FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid
            WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p')
        ) AS d, pg_identify_object(classid, objid, objsubid) AS o
        WHERE NOT EXISTS (SELECT FROM pg_depend AS p WHERE p.classid = d.classid AND p.objid = d.objid
                          AND (deptype = 'e' OR deptype = 'i' AND p.objsubid = d.objsubid))
            AND (o.schema IS NULL OR o.schema = 'public')";
    run(&mut client, &format!("CREATE TABLE before AS {objects}"));
    let query = block("WITH RECURSIVE dropped");
    run(&mut client, &format!("CREATE TABLE listed AS {query}"));
    let estimates = "SELECT identity, estimated_rows FROM listed WHERE type = 'table' AND estimated_rows IS NOT NULL ORDER BY 1";
    assert_eq!(printed(&mut client, estimates), "public.by_key_all|1\npublic.messages_0|7\npublic.visits_2026|6");
    database.psql("SET client_min_messages = warning; DROP EXTENSION pg_snowflake CASCADE");
    let missing = format!(
        "SELECT type, identity FROM (TABLE before EXCEPT {objects}) AS lost
         WHERE type <> 'extension' AND type NOT LIKE '%of access method' AND NOT EXISTS (SELECT FROM listed AS l WHERE (l.type, l.identity) = (lost.type, lost.identity))
            -- the columns and the parts of what is listed
            AND NOT EXISTS (SELECT FROM listed AS l WHERE starts_with(lost.identity, l.identity || '.') OR lost.identity LIKE '% on ' || l.identity
                            OR lost.identity = 'for ' || l.identity)"
    );
    assert_eq!(printed(&mut client, &missing), "");
    let kept = format!("SELECT l.type, l.identity FROM listed AS l JOIN ({objects}) AS o USING (type, identity)");
    assert_eq!(printed(&mut client, &kept), "");
}

#[test]
fn the_steps_keep_every_row_and_leave_nothing_that_depends_on_the_extension() {
    let (database, mut client) = with_dependents();
    let rows = "SELECT 'visits', count(*), sum(id::bigint), min(page) FROM visits
        UNION ALL SELECT 'messages', count(*), sum(id::bigint), min(body) FROM messages
        UNION ALL SELECT 'typed', count(*), sum(id::bigint), min(body) FROM typed
        UNION ALL SELECT 'plain', count(*), sum(id::bigint), sum(shard)::text FROM plain
        UNION ALL SELECT 'referencing', count(*), sum(typed_id::bigint) + sum(message_id), min(ids::text) FROM referencing
        UNION ALL SELECT 'of_domain', count(*), sum(id::bigint), '' FROM of_domain
        UNION ALL SELECT 'by_key', count(*), sum(id::bigint), '' FROM by_key";
    let before = printed(&mut client, rows);
    let files = "SELECT pg_relation_filenode('typed'), pg_relation_filenode('typed_pkey'), pg_relation_filenode('visits_2026'),
        pg_relation_filenode('by_key_all')";
    let stored = printed(&mut client, files);
    let sql = "ALTER TABLE referencing DROP CONSTRAINT referencing_message_id_fkey;
        ALTER TABLE plain ALTER COLUMN id SET DEFAULT nextval('s');
        ALTER TABLE plain ALTER COLUMN shard DROP EXPRESSION, DROP CONSTRAINT of_shard;
        DROP VIEW outer_view, inner_view;
        DROP MATERIALIZED VIEW stored_view;
        DROP INDEX plain_time;
        DROP STATISTICS plain_statistics;
        DROP POLICY own ON plain;
        DROP TRIGGER own ON plain;
        DROP RULE own ON plain;
        DROP FUNCTION body;
        ALTER TABLE typed ALTER COLUMN id TYPE bigint;
        ALTER TABLE referencing ALTER COLUMN typed_id TYPE bigint, ALTER COLUMN ids TYPE bigint[];
        ALTER TABLE of_domain ALTER COLUMN id TYPE bigint;
        DROP DOMAIN key;
        ALTER TYPE pair ALTER ATTRIBUTE id TYPE bigint";
    run(&mut client, sql);
    database.psql(&block("CREATE TABLE new_visits"));
    let sql = "CREATE TABLE new_by_key (id bigint) PARTITION BY RANGE (id);
        ALTER TABLE by_key DETACH PARTITION by_key_all;
        ALTER TABLE by_key_all ALTER COLUMN id TYPE bigint;
        ALTER TABLE new_by_key ATTACH PARTITION by_key_all DEFAULT;
        DROP TABLE by_key;
        ALTER TABLE new_by_key RENAME TO by_key";
    run(&mut client, sql);
    let query = block("WITH RECURSIVE dropped");
    assert_eq!(printed(&mut client, query.trim_end().trim_end_matches(';')), "");
    run(&mut client, "DROP EXTENSION pg_snowflake");
    assert_eq!(printed(&mut client, rows), before);
    assert_eq!(printed(&mut client, files), stored);
    run(&mut client, "ALTER TABLE referencing ADD FOREIGN KEY (message_id) REFERENCES messages");
}

#[test]
fn the_copy_fails_if_policies_hide_rows_and_keeps_an_owned_sequence() {
    let (_database, mut client) = with_dependents();
    let sql = "ALTER TABLE referencing DROP CONSTRAINT referencing_message_id_fkey;
        GRANT CREATE ON SCHEMA public TO pg_monitor;
        CREATE SEQUENCE of_id OWNED BY messages.id;
        ALTER TABLE messages ALTER COLUMN id SET DEFAULT nextval('of_id'), FORCE ROW LEVEL SECURITY, ENABLE ROW LEVEL SECURITY;
        ALTER TABLE messages OWNER TO pg_monitor;
        SET ROLE pg_monitor";
    run(&mut client, sql);
    let steps = block("CREATE TABLE new_visits");
    let steps = &steps[steps.find("BEGIN;\nSET LOCAL row_security").expect("steps")..];
    let steps = steps.replace("DROP TABLE messages;", "ALTER SEQUENCE of_id OWNED BY new_messages.id; DROP TABLE messages;");
    let error = client.batch_execute(&steps).expect_err("hidden rows");
    assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{error}");
    run(&mut client, "ROLLBACK; ALTER TABLE messages NO FORCE ROW LEVEL SECURITY");
    run(&mut client, &steps);
    assert_eq!(printed(&mut client, "SELECT count(*), nextval('of_id') FROM messages"), "7|1");
}
