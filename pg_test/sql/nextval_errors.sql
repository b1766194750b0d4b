-- What snowflake_nextval() refuses, with which error, and that a refusal consumes nothing.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
-- The error of a statement. Where a part of it varies, the script replaces it.
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'none';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', 'ERROR:  ' || SQLSTATE || ': ' || SQLERRM,
                     'DETAIL:  ' || nullif(detail, ''), 'HINT:  ' || nullif(hint, ''));
END $$;

CREATE SEQUENCE s;

--
-- An object that is not a sequence
--
CREATE TABLE posts (id bigint CONSTRAINT posts_index PRIMARY KEY);
CREATE VIEW recent AS SELECT * FROM posts;
CREATE MATERIALIZED VIEW archived AS SELECT * FROM posts;
CREATE TABLE parted (id bigint) PARTITION BY HASH (id);
CREATE TYPE pair AS (a bigint, b bigint);
CREATE TABLE "Odd Name" ();

SELECT snowflake_nextval('posts', 5);
\echo :SQLSTATE
SELECT snowflake_nextval('posts_index', 5);
\echo :SQLSTATE
SELECT snowflake_nextval('recent', 5);
\echo :SQLSTATE
SELECT snowflake_nextval('archived', 5);
\echo :SQLSTATE
SELECT snowflake_nextval('parted', 5);
\echo :SQLSTATE
SELECT snowflake_nextval('pair', 5);
\echo :SQLSTATE
SELECT snowflake_nextval('"Odd Name"', 5);
\echo :SQLSTATE
SELECT snowflake_nextval('pg_class', 5);
\echo :SQLSTATE

DROP TABLE posts, parted, "Odd Name" CASCADE;
DROP TYPE pair;

--
-- A shard outside the layout
--
SELECT snowflake_nextval('s', -1);
\echo :SQLSTATE
SELECT snowflake_nextval('s', 4096);
\echo :SQLSTATE
SELECT snowflake_nextval('s', -2147483648);
\echo :SQLSTATE
SELECT snowflake_nextval('s', 2147483647);
\echo :SQLSTATE
-- from the setting too
SET pg_snowflake.shard_id = 4096;
SELECT snowflake_nextval('s');
\echo :SQLSTATE
RESET pg_snowflake.shard_id;

--
-- No shard is set: the hint names the database
--
SELECT replace(error_of($$SELECT snowflake_nextval('s')$$), current_database(), 'blog') AS error;

--
-- A read-only transaction
--
BEGIN READ ONLY;
SELECT snowflake_nextval('s', 5);
\echo :SQLSTATE
ROLLBACK;

--
-- A null returns null
--
SELECT snowflake_nextval(NULL, 5) IS NULL AS seq_of_two,
       snowflake_nextval('s', NULL) IS NULL AS shard,
       snowflake_nextval(NULL, NULL) IS NULL AS both,
       snowflake_nextval(NULL) IS NULL AS seq \g (tuples_only=off)

-- so far nothing has been consumed
SELECT last_value, log_cnt, is_called FROM s \g (tuples_only=off)

-- the command of the hint, for new sessions of the database
DO $$
BEGIN
    EXECUTE substring(error_of($s$SELECT snowflake_nextval('s')$s$) FROM 'ALTER DATABASE [^;]*');
END $$;
\c -
SELECT snowflake_shard_id(snowflake_nextval('s')) AS shard_id;
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I RESET pg_snowflake.shard_id', current_database());
END $$;
\c -

--
-- A session continues after a refusal
--
CREATE SEQUENCE five INCREMENT 5;
BEGIN;
SAVEPOINT p;
SELECT snowflake_nextval('five', 5);
ROLLBACK TO p;
SELECT snowflake_nextval('s', 5) > 0 AS is_id;
SAVEPOINT p;
SELECT snowflake_nextval('pg_class', 5);
ROLLBACK TO p;
SELECT snowflake_nextval('s', 5) > 0 AS is_id;
COMMIT;
DROP SEQUENCE five;

--
-- An unknown OID
--
SELECT snowflake_nextval(4000000000::oid, 5);
\echo :SQLSTATE
SELECT snowflake_nextval(0::oid, 5);
\echo :SQLSTATE
SELECT snowflake_nextval(4294967295::oid, 5);
\echo :SQLSTATE
-- of a dropped sequence, and within the transaction that has used it
SELECT 's'::regclass::oid AS oid_of_s \gset
BEGIN;
SELECT snowflake_nextval('s', 5) > 0 AS is_id;
DROP SEQUENCE s;
SELECT replace(error_of('SELECT snowflake_nextval(' || :oid_of_s || '::oid, 5)'), :'oid_of_s', 'OID') AS error;
COMMIT;
SELECT replace(error_of('SELECT snowflake_nextval(' || :oid_of_s || '::oid, 5)'), :'oid_of_s', 'OID') AS error;

--
-- Without a privilege nothing is taken, and the hint has the names in quotes where they need them
--
CREATE SCHEMA "Blog";
CREATE SEQUENCE "Blog"."Posts";
CREATE ROLE "regress_nextval_errors_Writer";
GRANT USAGE ON SCHEMA "Blog" TO "regress_nextval_errors_Writer";
SET SESSION AUTHORIZATION "regress_nextval_errors_Writer";
SELECT snowflake_nextval('"Blog"."Posts"', 5); \echo :LAST_ERROR_SQLSTATE
RESET SESSION AUTHORIZATION;
SELECT last_value, log_cnt, is_called FROM "Blog"."Posts" \g (tuples_only=off)
DROP SCHEMA "Blog" CASCADE;
DROP ROLE "regress_nextval_errors_Writer";
