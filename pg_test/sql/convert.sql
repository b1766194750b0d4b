-- snowflake_convert_column(): what it returns, and what a converted column does.
--
-- An ID depends on the time, so its shard and its order stand here.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- The shard and the layout

-- an omitted shard is that of the setting, then and at each insert
CREATE FUNCTION shards_of(layout snowflake_layout, OUT shards int[]) LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL pg_snowflake.shard_id = 9;
    CREATE TABLE posts (id serial);
    PERFORM snowflake_convert_column('posts', 'id', layout => layout);
    INSERT INTO posts DEFAULT VALUES;
    SET LOCAL pg_snowflake.shard_id = 10;
    INSERT INTO posts DEFAULT VALUES;
    SELECT array_agg(snowflake_shard_id(id, layout) ORDER BY id) INTO shards FROM posts;
    DROP TABLE posts;
END $$;
SELECT layout, shards_of(layout) FROM unnest('{postgres,twitter}'::snowflake_layout[]) AS layout;

-- an omitted layout is that of the default
CREATE FUNCTION after_two(layout snowflake_layout, OUT shard int, OUT layout_after snowflake_layout) LANGUAGE plpgsql AS $$
BEGIN
    CREATE TABLE posts (id bigint);
    PERFORM snowflake_convert_column('posts', 'id', 5, layout), snowflake_convert_column('posts', 'id', 6);
    SELECT c.shard_id, c.layout INTO shard, layout_after FROM snowflake_columns AS c;
    DROP TABLE posts;
END $$;
SELECT after_two(layout)
FROM unnest(ARRAY['twitter', 'instagram', 'time:41 seq:10 shard:12 epoch:2025-01-01 unit:1ms']::snowflake_layout[]) AS layout;
CREATE TABLE posts (id bigint);
SELECT snowflake_convert_column('posts', 'id', 5, 'twitter');
CREATE FUNCTION layout() RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN ''twitter''; END';
ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 6, layout()::snowflake_layout);
SELECT snowflake_convert_column('posts', 'id', 7); \echo :LAST_ERROR_SQLSTATE
DROP TABLE posts;

-- The sequence

-- it keeps its name and its CACHE; a new one gets an unused name
CREATE TABLE a (id serial);
ALTER SEQUENCE a_id_seq CACHE 30;
CREATE TABLE b (id int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME ids_of_b CACHE 40));
CREATE TABLE c (id bigint);
CREATE SEQUENCE c_id_seq;
SELECT snowflake_convert_column('a', 'id', 5);
SELECT snowflake_convert_column('b', 'id', 5);
SELECT snowflake_convert_column('c', 'id', 5);
SELECT seqrelid::regclass, seqcache FROM pg_sequence ORDER BY seqrelid::regclass::text COLLATE "C";
DROP TABLE a, b, c;
DROP SEQUENCE c_id_seq;

-- the one that replaces an identity's is like it
CREATE ROLE regress_convert_reader;
CREATE UNLOGGED TABLE posts (id int GENERATED ALWAYS AS IDENTITY (CACHE 30));
COMMENT ON SEQUENCE posts_id_seq IS 'it''s the posts'' \';
GRANT USAGE ON SEQUENCE posts_id_seq TO regress_convert_reader WITH GRANT OPTION;
SELECT relacl AS acl FROM pg_class WHERE oid = 'posts_id_seq'::regclass \gset
SELECT snowflake_convert_column('posts', 'id', 5);
SELECT relpersistence, relacl = :'acl' AS same_acl, obj_description(oid, 'pg_class'), seqcache
FROM pg_class JOIN pg_sequence ON oid = seqrelid \g (tuples_only=off)
DROP TABLE posts;
DROP ROLE regress_convert_reader;

-- a serial's is released if the default names another
CREATE TABLE posts (id bigserial);
CREATE SEQUENCE s;
ALTER TABLE posts ALTER COLUMN id SET DEFAULT nextval('s');
SELECT snowflake_convert_column('posts', 'id', 5);
SELECT pg_get_serial_sequence('posts', 'id');
DROP TABLE posts;
SELECT relname FROM pg_class WHERE relkind = 'S';
DROP SEQUENCE posts_id_seq;

-- one that several columns use can be left to the others
CREATE TABLE shared (id bigserial);
CREATE TABLE sharing (id bigint DEFAULT nextval('shared_id_seq'));
ALTER TABLE sharing ALTER COLUMN id DROP DEFAULT;
SELECT snowflake_convert_column('sharing', 'id', 5);
ALTER TABLE sharing ALTER COLUMN id SET DEFAULT nextval('shared_id_seq');
ALTER TABLE shared ALTER COLUMN id DROP DEFAULT;
ALTER SEQUENCE shared_id_seq OWNED BY NONE;
SELECT snowflake_convert_column('shared', 'id', 5);
DROP TABLE shared, sharing;
DROP SEQUENCE shared_id_seq;

-- New IDs are above the old

-- an ID of the current tick is not too high, even if the tick is a second
CREATE TABLE posts (id bigint);
SELECT snowflake_convert_column('posts', 'id', 5, 'time:40 shard:13 seq:10 epoch:2020-01-01 unit:1s');
INSERT INTO posts DEFAULT VALUES;
SELECT snowflake_convert_column('posts', 'id', 5, 'time:40 shard:13 seq:10 epoch:2020-01-01 unit:1s');
INSERT INTO posts DEFAULT VALUES;
SELECT snowflake_convert_column('posts', 'id', 5, 'time:40 shard:13 seq:10 epoch:2020-01-01 unit:1s');
INSERT INTO posts DEFAULT VALUES;
SELECT count(DISTINCT id) FROM posts;
DROP TABLE posts;

-- converted again, in any shard and layout; a warning has the time of a value in both layouts
SET client_min_messages = error;
CREATE TABLE posts (id bigserial PRIMARY KEY, n int);
SELECT snowflake_convert_column('posts', 'id', 9, 'js53');
INSERT INTO posts (n) SELECT generate_series(1, 3);
SELECT snowflake_convert_column('posts', 'id', 9, 'pgedge');
INSERT INTO posts (n) SELECT generate_series(4, 6);
SELECT snowflake_convert_column('posts', 'id', 5, 'pgedge');
INSERT INTO posts (n) SELECT generate_series(7, 9);
SELECT snowflake_convert_column('posts', 'id', 7, 'twitter');
INSERT INTO posts (n) SELECT generate_series(10, 12);
SELECT snowflake_convert_column('posts', 'id', 9, 'postgres');
INSERT INTO posts (n) SELECT generate_series(13, 15);
SELECT snowflake_convert_column('posts', 'id', 5);
INSERT INTO posts (n) SELECT generate_series(16, 18);
SELECT count(*), count(*) FILTER (WHERE id <= before) AS out_of_order
FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before FROM posts) AS p;
DROP TABLE posts;
RESET client_min_messages;

-- converted again in its layout, it keeps its counter: IDs that are no longer in a row may still exist elsewhere
SET pg_snowflake.max_lead = '2h';
SELECT ((extract(epoch FROM now() + interval '1 hour') * 1000)::bigint - 1288834974657) << 12 AS in_an_hour \gset
CREATE FUNCTION is_kept(type text, in_an_hour bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
BEGIN
    EXECUTE format('CREATE TABLE posts (id %s)', type);
    PERFORM snowflake_convert_column('posts', 'id', 9, 'twitter');
    PERFORM setval('posts_id_seq', in_an_hour);
    PERFORM snowflake_convert_column('posts', 'id', 5, 'twitter');
    SELECT last_value INTO kept FROM posts_id_seq;
    DROP TABLE posts;
    RETURN kept = in_an_hour;
END $$;
CREATE DOMAIN key AS bigint;
SELECT type, is_kept(type, :in_an_hour) FROM unnest('{bigint,snowflake,key}'::text[]) AS type;
DROP DOMAIN key;
-- a sequence that other callers use keeps its counter, too; this session calls it only after the conversion: a session never goes back
-- below its own IDs
CREATE FUNCTION goes_on(change text) RETURNS boolean LANGUAGE plpgsql SET pg_snowflake.max_lead = '100ms' AS $$
DECLARE
    start CONSTANT bigint := snowflake_min_id(now() + interval '1 hour') >> 12;
    generated bigint;
BEGIN
    EXECUTE 'CREATE SEQUENCE s; CREATE TABLE posts (id bigint); ALTER SEQUENCE s OWNED BY posts.id; ALTER TABLE posts ALTER id ' || change;
    PERFORM setval('s', start);
    PERFORM snowflake_convert_column('posts', 'id', 5);
    SET LOCAL pg_snowflake.max_lead = '2h';
    INSERT INTO posts DEFAULT VALUES RETURNING id INTO generated;
    DROP TABLE posts;
    RETURN generated >> 12 > start;
END $$;
CREATE FUNCTION generate() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN snowflake_nextval('s', 5); END $$;
SELECT change, goes_on(change) FROM unnest(ARRAY[
    'SET DEFAULT generate()',
    'SET DEFAULT snowflake_nextval(shard_id => 5, seq => ''s'')',
    'SET DEFAULT coalesce(NULL, snowflake_nextval(''s'', 5))',
    'DROP DEFAULT',
    'SET NOT NULL; DROP SEQUENCE s; ALTER TABLE posts ALTER id ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s)']) AS change;
DROP FUNCTION generate;

-- above by the counter, not by the clock: here the highest ID of a tick in an hour
SELECT ((extract(epoch FROM now() + interval '1 hour') * 1000)::bigint - 1262304000000) << 22 AS in_an_hour \gset
CREATE TABLE posts (id bigint);
INSERT INTO posts VALUES (:in_an_hour | 4095);
SET client_min_messages = warning;
SELECT snowflake_convert_column('posts', 'id', 0);
RESET client_min_messages;
INSERT INTO posts DEFAULT VALUES RETURNING id > :in_an_hour | 4095 AS is_above;
DROP TABLE posts;
RESET pg_snowflake.max_lead;

-- after a sequence was set to an ID, the column is converted again; an ID of another preset's epoch is not mistaken if the layout is passed
CREATE TABLE posts (id bigserial PRIMARY KEY);
SELECT snowflake_convert_column('posts', 'id', 5);
INSERT INTO posts SELECT snowflake_min_id(now() - interval '307 days');
SELECT setval('posts_id_seq', max(id) + 1, false) > 0 AS is_set FROM posts;
SELECT left(error, 55) AS error FROM snowflake_columns;
SET client_min_messages = error;
SELECT snowflake_convert_column('posts', 'id', 5, 'postgres');
RESET client_min_messages;
INSERT INTO posts DEFAULT VALUES RETURNING snowflake_created_at(id) BETWEEN now() - interval '1 hour' AND clock_timestamp() AS is_of_now;
SELECT error FROM snowflake_columns;
DROP TABLE posts;

-- TRUNCATE ... RESTART IDENTITY restarts at the clock, wherever the sequence was
CREATE SEQUENCE s START 4000000000000000000;
CREATE TABLE posts (id bigint DEFAULT nextval('s'));
SELECT snowflake_convert_column('posts', 'id', 5);
TRUNCATE posts RESTART IDENTITY;
SELECT date_trunc('milliseconds', clock_timestamp()) AS before \gset
INSERT INTO posts DEFAULT VALUES RETURNING snowflake_created_at(id) BETWEEN :'before' AND clock_timestamp() AS is_of_now;
DROP TABLE posts;

-- The search_path of the caller does not matter
CREATE SCHEMA trap;
CREATE FUNCTION trap.max(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1 / 0::bigint';
CREATE FUNCTION trap.snowflake_nextval(regclass, int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION trap.differ(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR trap.= (FUNCTION = trap.differ, LEFTARG = int, RIGHTARG = int);
CREATE TABLE trap.pg_class ();
CREATE TABLE trap.posts (id int);
CREATE TABLE posts (id serial);
SET search_path = trap, public, pg_catalog;
SELECT public.snowflake_convert_column('public.posts', 'id', 5, 'postgres', true);
RESET search_path;
INSERT INTO posts DEFAULT VALUES RETURNING snowflake_shard_id(id);
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'posts'::regclass AND contype = 'c';
