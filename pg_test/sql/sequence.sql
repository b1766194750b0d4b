-- PostgreSQL's regression file for sequences, as far as it speaks of nextval(), restated for ours.
--
-- An ID depends on the time, but its seq does not: from the sequence's START plus 617 times the shard, it counts by one, modulo 1024.
-- Of shard 5, the first is START + 13.
-- So seq stands here where core's file prints the value.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
CREATE FUNCTION next_seq(seq regclass) RETURNS int LANGUAGE sql AS $$ SELECT snowflake_seq(snowflake_nextval($1, 5)) $$;
CREATE FUNCTION current_seq(seq regclass) RETURNS int LANGUAGE sql AS $$ SELECT snowflake_seq(snowflake_currval($1)) $$;

-- A session goes on above what it took within the same tick, even where its sequence was reset.
CREATE PROCEDURE wait_for_the_next_tick() LANGUAGE sql AS $$ SELECT pg_sleep(0.002) $$;

-- Columns
CREATE TABLE posts (body text, id bigserial);
ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5);

INSERT INTO posts VALUES ('foo');
INSERT INTO posts VALUES ('bar');
INSERT INTO posts VALUES ('force', 100);
INSERT INTO posts VALUES ('wrong', NULL);

SELECT body, snowflake_shard_id(id), (snowflake_decode(id)).seq FROM posts WHERE id <> 100 \g (tuples_only=off format=aligned)
SELECT pg_get_serial_sequence('posts', 'id');

-- the default follows a renamed sequence
ALTER TABLE posts_id_seq RENAME TO posts_id_foo;
INSERT INTO posts VALUES ('more');
SELECT body, (snowflake_decode(id)).seq FROM posts WHERE id <> 100;

-- the column depends on its sequence, and the sequence goes with it
DROP SEQUENCE posts_id_foo;
DROP TABLE posts;
SELECT snowflake_nextval('posts_id_foo', 5);

-- a default holds on to a sequence that is not its own
CREATE TEMP SEQUENCE myseq2;
CREATE TEMP TABLE t1 (f2 bigint DEFAULT snowflake_nextval('myseq2', 5));
DROP SEQUENCE myseq2;
DROP TABLE t1;
DROP SEQUENCE myseq2;

-- Basic operations
CREATE SEQUENCE sequence_test;

SELECT snowflake_currval('sequence_test');  -- not yet
SELECT next_seq('sequence_test');
SELECT next_seq('sequence_test');
SELECT current_seq('sequence_test');
SELECT setval('sequence_test', 32);
SELECT next_seq('sequence_test');
SELECT setval('sequence_test', 99, false);
SELECT next_seq('sequence_test');
SELECT setval('sequence_test', 32);
SELECT current_seq('sequence_test');        -- setval() does not touch it
CALL wait_for_the_next_tick();
SELECT nextval('sequence_test');
SELECT current_seq('sequence_test');        -- nor does core's nextval()
SELECT count(*) FROM snowflake_nextvals('sequence_test', 5, 10);
SELECT current_seq('sequence_test');        -- a batch moves it to its last ID
DISCARD SEQUENCES;
SELECT snowflake_currval('sequence_test');

DROP SEQUENCE sequence_test;

-- a renamed sequence goes on
CREATE SEQUENCE foo_seq;
ALTER TABLE foo_seq RENAME TO foo_seq_new;
SELECT last_value, log_cnt, is_called FROM foo_seq_new \g (tuples_only=off)
SELECT next_seq('foo_seq_new');
SELECT next_seq('foo_seq_new');
-- last_value is the ID without its shard, and log_cnt what core would let nextval take without a WAL record
SELECT last_value = (snowflake_currval('foo_seq_new') >> 22 << 10) + snowflake_seq(snowflake_currval('foo_seq_new')) AS is_the_counter,
       log_cnt BETWEEN 0 AND 32 AS log_cnt_ok,
       is_called
FROM foo_seq_new \g (tuples_only=off)
DROP SEQUENCE foo_seq_new;

-- ALTER SEQUENCE
CREATE SEQUENCE sequence_test2 START WITH 32;

SELECT next_seq('sequence_test2');

ALTER SEQUENCE sequence_test2 RESTART;
CALL wait_for_the_next_tick();
SELECT next_seq('sequence_test2');
ALTER SEQUENCE sequence_test2 RESTART WITH 24;
CALL wait_for_the_next_tick();
SELECT next_seq('sequence_test2');
SELECT next_seq('sequence_test2');

-- what core's file cycles through is refused
ALTER SEQUENCE sequence_test2 CYCLE;
SELECT snowflake_nextval('sequence_test2', 5);
ALTER SEQUENCE sequence_test2 NO CYCLE INCREMENT BY 4;
SELECT snowflake_nextval('sequence_test2', 5);
ALTER SEQUENCE sequence_test2 INCREMENT BY 1;
SELECT next_seq('sequence_test2');

-- the views show the counter
SELECT last_value = (snowflake_currval('sequence_test2') >> 22 << 10) + snowflake_seq(snowflake_currval('sequence_test2')) AS is_the_counter
FROM pg_sequences WHERE sequencename = 'sequence_test2';

-- lastval() is core's, and speaks of nextval() alone
CREATE SEQUENCE seq;
SELECT nextval('seq');
SELECT next_seq('sequence_test2');
SELECT lastval();
SELECT snowflake_currval('seq');
DROP SEQUENCE seq;

-- Unlogged
CREATE UNLOGGED SEQUENCE sequence_test_unlogged;
SELECT next_seq('sequence_test_unlogged');
ALTER SEQUENCE sequence_test_unlogged SET LOGGED;
SELECT next_seq('sequence_test_unlogged');
ALTER SEQUENCE sequence_test_unlogged SET UNLOGGED;
SELECT next_seq('sequence_test_unlogged');
DROP SEQUENCE sequence_test_unlogged;

-- Read-only transactions
CREATE TEMPORARY SEQUENCE sequence_test_temp1;
START TRANSACTION READ ONLY;
SELECT next_seq('sequence_test_temp1');            -- ok
SELECT snowflake_nextval('sequence_test2', 5);     -- error
ROLLBACK;
START TRANSACTION READ ONLY;
SELECT count(*) FROM snowflake_nextvals('sequence_test_temp1', 5, 3);
SELECT snowflake_nextvals('sequence_test2', 5, 1); -- error
ROLLBACK;

DROP SEQUENCE sequence_test2;

-- CACHE
CREATE SEQUENCE test_seq1 CACHE 10;
SELECT next_seq('test_seq1');
SELECT last_value & 1023 AS taken FROM test_seq1;
-- by now the clock may have left the other nine behind
SELECT next_seq('test_seq1') IN (15, 24) AS goes_on;

DROP SEQUENCE test_seq1;

-- Privileges, of an owner who has revoked them from itself
\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
CREATE USER regress_sequence_user;
GRANT CREATE ON SCHEMA public TO regress_sequence_user;
CREATE SEQUENCE seq3;
ALTER SEQUENCE seq3 OWNER TO regress_sequence_user;
CREATE FUNCTION error_with(privilege text, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    error text;
BEGIN
    PERFORM snowflake_nextval('seq3', 5);
    EXECUTE format('REVOKE ALL ON seq3 FROM regress_sequence_user; GRANT %s ON seq3 TO regress_sequence_user', privilege);
    SET LOCAL SESSION AUTHORIZATION regress_sequence_user;
    error := error_of('SELECT ' || call);
    SET LOCAL SESSION AUTHORIZATION DEFAULT;
    RETURN error;
END $$;
SELECT privilege, call, error_with(privilege, call)
FROM unnest(ARRAY['snowflake_nextval(''seq3'', 5)', 'snowflake_nextvals(''seq3'', 5, 2)', 'snowflake_currval(''seq3'')'])
        WITH ORDINALITY AS calls (call, n),
    unnest('{SELECT,UPDATE,USAGE}'::text[]) AS privilege
ORDER BY n, privilege COLLATE "C";
DROP OWNED BY regress_sequence_user;
DROP USER regress_sequence_user;
