-- check_shard of snowflake_convert_column(): a table that refuses rows of other shards.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
SET client_min_messages = 'warning';
SET pg_snowflake.shard_id = 5;

-- Converts posts twice, with a row between the two. What its CHECKs are, the errors of a generated and of another ID of the shard and of
-- the value 1, and how many of 20 IDs of shard 6 it refuses: they are of one tick, so they fall into all partitions.
CREATE FUNCTION converted(tables text, arguments text, OUT checks text, OUT own text, OUT one text, OUT refused bigint)
LANGUAGE plpgsql AS $$
DECLARE
    layout CONSTANT snowflake_layout := coalesce(substring(arguments FROM '''(.*)'''), 'postgres');
BEGIN
    EXECUTE 'DROP TABLE IF EXISTS posts; ' || tables;
    EXECUTE 'SELECT snowflake_convert_column(''posts'', ''id''' || arguments || ', check_shard => true)';
    own := error_of(format('INSERT INTO posts (id) VALUES (DEFAULT), (snowflake_encode(now(), 5, 0, %L))', layout));
    EXECUTE 'SELECT snowflake_convert_column(''posts'', ''id''' || arguments || ', check_shard => true)';
    SELECT string_agg(concat_ws(' ', conname, pg_get_constraintdef(oid)), ', ' ORDER BY conname COLLATE "C") INTO checks FROM pg_constraint
    WHERE contype = 'c' AND coninhcount = 0 AND conrelid = 'posts'::regclass;
    one := left(error_of('INSERT INTO posts VALUES (1)'), 5);
    SELECT count(*) INTO refused FROM generate_series(0, 19) AS seq
    WHERE error_of(format('INSERT INTO posts (id) SELECT snowflake_encode(now(), 6, %s, %L)', seq, layout)) LIKE '23514%';
END $$;

SELECT of, c.* FROM (VALUES
    ('an empty table', ', 5', 'CREATE TABLE posts (id bigint)'),
    ('negative values, in a layout that has no shard for them', ', 5, ''js53''',
     'CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (-1), (-4711)'),
    ('rows that are all of the shard', ', 5',
     'CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (snowflake_encode(''2020-01-01'', 5, 7))'),
    ('an omitted shard, which is that of the setting', '', 'CREATE TABLE posts (id bigint)'),
    ('a name that is used', ', 5', 'CREATE TABLE posts (id bigint, body text CONSTRAINT posts_id_shard_check CHECK (body <> ''''))'),
    ('a name that is used, and a row', ', 5',
     'CREATE TABLE posts (id bigint, body text CONSTRAINT posts_id_shard_check CHECK (body <> '''')); INSERT INTO posts VALUES (4711)'),
    ('a CHECK of one partition', ', 5', 'CREATE TABLE posts (id bigint) PARTITION BY HASH (id);
     CREATE TABLE a PARTITION OF posts (CHECK (snowflake_shard_id(id) = 5)) FOR VALUES WITH (MODULUS 2, REMAINDER 0);
     CREATE TABLE b PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 1)'),
    ('a CHECK of several shards', ', 5', 'CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) BETWEEN 5 AND 10))'),
    ('a CHECK of all but one shard', ', 5', 'CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) <> 4))'),
    ('a CHECK that is not inherited', ', 5', 'CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) = 5) NO INHERIT)'),
    ('a CHECK that is not valid', ', 5', 'CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (4711);
     ALTER TABLE posts ADD CHECK (snowflake_shard_id(id) = 5) NOT VALID'),
    ('partitions', ', 5', 'CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
     CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 1, REMAINDER 0)')
) AS cases (of, arguments, tables), converted(tables, arguments) AS c \g (tuples_only=off)
\echo -- the partitions have it, too
SELECT error_of('INSERT INTO posts_0 (id) SELECT snowflake_encode(''2024-01-01'', 6, 0)');
