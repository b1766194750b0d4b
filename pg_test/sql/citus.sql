-- How the metadata of Citus are read, in tables of that form and without Citus.

\set ECHO none
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on
\getenv folder PG_ABS_SRCDIR
\i :folder/data/citus.sql
SET allow_system_table_mods = on;
CREATE SEQUENCE s;

-- What Citus's triggers send after a change of its metadata: a message about that relation.
CREATE PROCEDURE notify(relation text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s SET (fillfactor = 100)', relation);
END $$;
-- The error of an ID, with another word for the name of the database in its hint.
CREATE FUNCTION error() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    PERFORM snowflake_nextval('s');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' ', SQLSTATE, SQLERRM, '|', replace(hint, quote_ident(current_database()), '<database>'));
END $$;

\echo -- the group of the node is the shard, also one that is rolled back later
SELECT snowflake_current_shard(), snowflake_shard_id(snowflake_nextval('s')) AS shard;
BEGIN;
UPDATE pg_dist_local_group SET groupid = 9;
CALL notify('pg_dist_local_group');
SELECT snowflake_shard_id(snowflake_nextval('s')) AS shard;
ROLLBACK;
SELECT snowflake_shard_id(snowflake_nextval('s')) AS shard;
\echo -- a batch in a cursor follows it
BEGIN;
DECLARE ids CURSOR FOR SELECT snowflake_shard_id(id) AS shard FROM (SELECT snowflake_nextvals('s', count => 5)) AS batch (id);
FETCH 2 FROM ids;
UPDATE pg_dist_local_group SET groupid = 9;
CALL notify('pg_dist_local_group');
FETCH 2 FROM ids;
DELETE FROM pg_dist_local_group;
CALL notify('pg_dist_local_group');
\set VERBOSITY terse
FETCH 2 FROM ids; \echo :LAST_ERROR_SQLSTATE
\set VERBOSITY default
ROLLBACK;

\echo -- a shard that the server does not own, and one that the layout does not have
SET pg_snowflake.owned_shards = '0-2';
SELECT error();
RESET pg_snowflake.owned_shards;
UPDATE pg_dist_local_group SET groupid = 4096;
CALL notify('pg_dist_local_group');
SELECT error();
\echo -- a negative group, and none, as while a major upgrade of PostgreSQL empties the table, are not a shard; nothing is taken
SELECT concat_ws(' ', last_value, log_cnt, is_called) AS before FROM s \gset
UPDATE pg_dist_local_group SET groupid = -2;
CALL notify('pg_dist_local_group');
SELECT error();
DELETE FROM pg_dist_local_group;
CALL notify('pg_dist_local_group');
SELECT left(error(), 44);
SELECT concat_ws(' ', last_value, log_cnt, is_called) = :'before' FROM s;
INSERT INTO pg_dist_local_group VALUES (3);
CALL notify('pg_dist_local_group');

\echo -- the ranges are those of this group, and follow the shards
CREATE TABLE posts (id bigint);
CREATE TABLE users (id bigint);
CREATE TABLE words (id text);
CREATE TABLE countries (id bigint);
CREATE TABLE plain (id bigint);
INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id', 's'), ('users', 'h', 'id', 's'), ('words', 'h', 'id', 's'),
    ('countries', 'n', NULL, 't');
INSERT INTO pg_dist_shard VALUES ('posts', 1, '-2147483648', '-1'), ('posts', 2, '0', '1073741823'),
    ('posts', 3, '1073741824', '2147483647'), ('users', 4, '5', '6'), ('countries', 5, NULL, NULL);
INSERT INTO pg_dist_placement VALUES (1, 3), (2, 4), (3, 3), (4, 3), (5, 3), (5, 4);
INSERT INTO pg_dist_node VALUES (1, 3, 'db-3', 5433, 'primary'), (2, 4, 'db-4', 5434, 'primary'), (3, 4, 'standby-4', 5435, 'secondary');
CREATE FUNCTION ranges(change text, relation text) RETURNS TABLE (posts int8multirange, users int8multirange) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE change;
    CALL notify(relation);
    RETURN QUERY SELECT snowflake_citus_ranges('posts'), snowflake_citus_ranges('users');
END $$;
SELECT snowflake_citus_ranges('posts');
SELECT bool_and(hashint8(id) < 0 OR hashint8(id) >= 1073741824) AND bool_and(snowflake_shard_id(id) = 3) AS is_home
FROM (SELECT snowflake_nextval_homed_in_ranges('s', snowflake_current_shard(), snowflake_citus_ranges('posts')) AS id
      FROM generate_series(1, 1000)) AS ids;
BEGIN;
-- a session keeps its ranges until the message about a change
SAVEPOINT kept;
SELECT snowflake_citus_ranges('users');
UPDATE pg_dist_shard SET shardmaxvalue = '7' WHERE shardid = 4;
SELECT snowflake_citus_ranges('users');
ROLLBACK TO kept;
SELECT change, ranges.* FROM (VALUES ('UPDATE pg_dist_placement SET groupid = 4 WHERE shardid = 1', 'posts'),
    -- the last one moves away, and this node is as far from each ID as from the next
    ('UPDATE pg_dist_placement SET groupid = 4 WHERE shardid = 3', 'posts'),
    ('UPDATE pg_dist_shard SET shardmaxvalue = ''7'' WHERE shardid = 4', 'users'),
    -- a shard that Citus is about to remove
    ('UPDATE pg_dist_placement SET shardstate = 4 WHERE shardid = 4', 'users'),
    ('UPDATE pg_dist_local_group SET groupid = 4', 'pg_dist_local_group')) AS changes (change, relation), ranges(change, relation);
ROLLBACK;
SELECT snowflake_citus_ranges('words'); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_citus_ranges('plain'); \echo :LAST_ERROR_SQLSTATE
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT snowflake_citus_ranges('users'), pg_current_xact_id_if_assigned();
COMMIT;

\echo -- an ID is located on the node of its hash; with two copies of a shard, on the first that Citus does not remove
CREATE VIEW located AS SELECT CASE WHEN hashint8(id) < 0 THEN 1 WHEN hashint8(id) < 1073741824 THEN 2 ELSE 3 END AS shard,
    partition, host, port, dbname = current_database()
FROM generate_series(1, 100) AS id, snowflake_locate('posts', id) GROUP BY 1, 2, 3, 4, 5 ORDER BY 1;
SELECT * FROM located;
INSERT INTO pg_dist_placement VALUES (1, 4), (2, 3), (3, 4);
SELECT * FROM located;
UPDATE pg_dist_placement SET shardstate = 4 WHERE (shardid, groupid) = (1, 3);
SELECT * FROM located;
SELECT partition, host FROM snowflake_locate('countries', 1);
UPDATE pg_dist_partition SET repmodel = 's' WHERE logicalrelid = 'countries'::regclass; -- of one shard
SELECT partition, host FROM snowflake_locate('countries', 1);
SELECT snowflake_locate('words', 1); \echo :LAST_ERROR_SQLSTATE
UPDATE pg_dist_partition SET partmethod = 'a' WHERE logicalrelid = 'users'::regclass;
SELECT snowflake_locate('users', 1); \echo :LAST_ERROR_SQLSTATE
\echo -- also in a parallel query, whose workers start no command
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
INSERT INTO posts SELECT generate_series(1, 1000);
SELECT count(*), sum(snowflake_current_shard()) FROM posts WHERE (snowflake_locate('posts', id)).port > 0;
EXPLAIN (COSTS OFF) SELECT FROM posts WHERE (snowflake_locate('posts', id)).port > 0;

\echo -- a sequence in the range of a node group is refused with the recipe, and takes nothing
CREATE SEQUENCE limited;
CREATE FUNCTION limited(first bigint, last bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER SEQUENCE limited MINVALUE %s MAXVALUE %s START %1$s RESTART', first, last);
    RETURN (SELECT error FROM snowflake_sequence_status('limited'));
END $$;
SELECT substring(limited((1::bigint << 48) + 1, (2::bigint << 48) + 1) FROM 'node group \d+');
SELECT snowflake_nextval('limited', 5); \echo :LAST_ERROR_SQLSTATE
SELECT last_value = (1::bigint << 48) + 1 AND NOT is_called AS is_unchanged FROM limited;
SELECT first, substring(limited(first, last) FROM 'node group \d+') FROM (VALUES ((2::bigint << 48) + 1, (3::bigint << 48) + 1),
    ((3::bigint << 48) + 1, (4::bigint << 48) + 1), ((32766::bigint << 48) + 1, (32767::bigint << 48) + 1),
    -- others that are close to it
    (1, (1::bigint << 48) + 1), ((1::bigint << 48) + 2, (2::bigint << 48) + 2), ((1::bigint << 48) + 1, 9223372036854775807)
) AS ranges (first, last);

\echo -- the errors of defaults
ALTER TABLE posts ADD constant bigint DEFAULT snowflake_nextval('s', 5), ADD of_node bigint DEFAULT snowflake_nextval('s'::text::regclass);
ALTER TABLE plain ADD constant bigint DEFAULT snowflake_nextval('s', 5);
SELECT table_name, column_name, shard_id, error FROM snowflake_columns ORDER BY table_name::text, column_name;
INSERT INTO pg_dist_object VALUES ('pg_class'::regclass, 's'::regclass);
SELECT column_name, error FROM snowflake_columns WHERE column_name = 'of_node';

\echo -- a table of Citus is not converted, nor are its partitions managed, and nothing has changed
CREATE TABLE "Posts" (id bigserial PRIMARY KEY);
CREATE TABLE posts_102008 (id serial PRIMARY KEY);
CREATE TABLE ranged (id bigint NOT NULL) PARTITION BY RANGE (id);
INSERT INTO pg_dist_partition VALUES ('"Posts"', 'h', 'id'), ('ranged', 'h', 'id');
CREATE FUNCTION versions() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(c.xmin::text || a.xmin, ',' ORDER BY c.oid, attnum)
    FROM pg_class AS c JOIN pg_attribute AS a ON attrelid = c.oid WHERE relname ~ '^(Posts|posts_102008|ranged)'
$$;
SELECT versions() AS before \gset
SELECT snowflake_convert_column('"Posts"', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts_102008', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('ranged', '1 day', 1); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_drop_partitions('ranged', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT versions() = :'before' AS is_unchanged;

\echo -- other relations of these names are not metadata
DROP TABLE pg_dist_local_group, pg_dist_node, pg_dist_partition;
CREATE VIEW pg_catalog.pg_dist_local_group AS SELECT 1 AS groupid;
CREATE TABLE pg_catalog.pg_dist_node (nodeid int);
CREATE VIEW pg_catalog.pg_dist_partition AS SELECT 1 AS one;
\set VERBOSITY terse
SELECT snowflake_nextval('s'); \echo :LAST_ERROR_SQLSTATE
DROP VIEW pg_dist_local_group;
CREATE TABLE pg_catalog.pg_dist_local_group AS SELECT '1'::text AS groupid;
SELECT snowflake_nextval('s'); \echo :LAST_ERROR_SQLSTATE
SELECT count(error), count(*) FROM snowflake_columns;
