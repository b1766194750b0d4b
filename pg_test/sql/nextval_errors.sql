-- What snowflake_nextval() refuses, with which error, and that a refusal consumes nothing.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
CREATE SEQUENCE s;

\echo -- an object that is not a sequence
CREATE TABLE posts (id bigint CONSTRAINT posts_index PRIMARY KEY);
CREATE VIEW recent AS SELECT * FROM posts;
CREATE MATERIALIZED VIEW archived AS SELECT * FROM posts;
CREATE TABLE parted (id bigint) PARTITION BY HASH (id);
CREATE TYPE pair AS (a bigint, b bigint);
CREATE TABLE "Odd Name" ();
SELECT error_of(format('SELECT snowflake_nextval(%L, 5)', name))
FROM unnest(ARRAY['posts', 'posts_index', 'recent', 'archived', 'parted', 'pair', '"Odd Name"', 'pg_class']) AS name;

\echo -- a shard outside the layout, from the setting too
SELECT error_of(format('SELECT snowflake_nextval(''s'', %s)', shard)) FROM unnest(ARRAY[-1, 4096, -2147483648, 2147483647]) AS shard;
SET pg_snowflake.shard_id = 4096;
SELECT error_of($$SELECT snowflake_nextval('s')$$);
RESET pg_snowflake.shard_id;

\echo -- no shard is set: the hint names the database
SELECT replace(error_of($$SELECT snowflake_nextval('s')$$), current_database(), 'blog');

\echo -- a read-only transaction
BEGIN READ ONLY;
SELECT error_of($$SELECT snowflake_nextval('s', 5)$$);
COMMIT;

\echo -- an unknown OID
SELECT error_of(format('SELECT snowflake_nextval(%s::oid, 5)', unknown)) FROM unnest('{4000000000,0,4294967295}'::oid[]) AS unknown;

\echo -- a null returns null, and so far nothing has been consumed
SELECT snowflake_nextval(NULL, 5) IS NULL AS seq_of_two, snowflake_nextval('s', NULL) IS NULL AS shard,
       snowflake_nextval(NULL, NULL) IS NULL AS both, snowflake_nextval(NULL) IS NULL AS seq,
       last_value, log_cnt, is_called FROM s \g (tuples_only=off)

\echo -- the command of the hint, for new sessions of the database: the shard is
SELECT substring(error_of($$SELECT snowflake_nextval('s')$$) FROM 'ALTER DATABASE [^;]*') \gexec
\c -
SELECT snowflake_shard_id(snowflake_nextval('s'));
SELECT format('ALTER DATABASE %I RESET pg_snowflake.shard_id', current_database()) \gexec
\c -

\echo -- a session continues after a refusal
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

\echo -- the OID of a sequence that the transaction has used and dropped, and after the transaction
SELECT 's'::regclass::oid AS oid_of_s \gset
DROP SEQUENCE s;
SELECT replace(error_of('SELECT snowflake_nextval(' || :oid_of_s || '::oid, 5)'), :'oid_of_s', 'OID');
COMMIT;
SELECT replace(error_of('SELECT snowflake_nextval(' || :oid_of_s || '::oid, 5)'), :'oid_of_s', 'OID');

\echo -- without a privilege nothing is taken, and the hint has the names in quotes where they need them
CREATE SCHEMA "Blog";
CREATE SEQUENCE "Blog"."Posts";
CREATE ROLE "regress_nextval_errors_Writer";
GRANT USAGE ON SCHEMA "Blog" TO "regress_nextval_errors_Writer";
SET SESSION AUTHORIZATION "regress_nextval_errors_Writer";
SELECT error_of($$SELECT snowflake_nextval('"Blog"."Posts"', 5)$$);
RESET SESSION AUTHORIZATION;
SELECT last_value, log_cnt, is_called FROM "Blog"."Posts" \g (tuples_only=off)
DROP OWNED BY "regress_nextval_errors_Writer";
DROP ROLE "regress_nextval_errors_Writer";
