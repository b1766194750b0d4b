-- snowflake_create_partitions(): which partitions are created, with which bounds and names.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\i :folder/data/partitions.sql

\echo -- the bounds are the first IDs of the months, by the formula; a call that has nothing to do creates nothing and needs no lock
CALL create_posts();
SELECT action, partition, starts, ends FROM snowflake_create_partitions('posts', '1 month', 1);
BEGIN;
SET LOCAL lock_timeout = '1ms';
SELECT action, partition, starts, ends FROM snowflake_create_partitions('posts', '1 month', 1);
COMMIT;
SELECT c.relname, pg_get_expr(relpartbound, c.oid) FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
WHERE inhparent = 'posts'::regclass ORDER BY c.relname;
SELECT (extract(epoch FROM day::timestamptz) * 1000 - 1262304000000)::bigint << 22
FROM unnest('{2026-11-01,2026-12-01,2027-01-01}'::text[]) AS day;

\echo -- ranges are aligned to UTC whatever the session is set to, and a call finds what it has created
CREATE FUNCTION found(step interval, layout snowflake_layout, zone text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    ranges text;
BEGIN
    CREATE TABLE t (id bigint) PARTITION BY RANGE (id);
    PERFORM set_config('timezone', zone, true), set_config('datestyle', 'SQL, DMY', true), set_config('intervalstyle', 'sql_standard', true);
    PERFORM snowflake_create_partitions('t', step, 1, layout);
    PERFORM set_config('timezone', 'UTC', true);
    SELECT string_agg(partition || to_char(starts, ' MM-DD HH24'), ', ') INTO ranges
    FROM snowflake_create_partitions('t', step, 1, layout) WHERE action = 'exists';
    DROP TABLE t;
    RETURN ranges;
END $$;
SELECT DISTINCT step, found(step::interval, layout, zone)
FROM (VALUES ('1 hour', 'postgres'::snowflake_layout), ('6 hours', 'twitter'), ('24 hours', 'js53'), ('7 days', 'instagram'), ('3 months', 'discord'))
    AS steps (step, layout), unnest('{America/New_York,Pacific/Kiritimati}'::text[]) AS zone;

\echo -- gaps and the default partition are reported; its rows prevent their range alone
CALL create_posts();
CALL add_months('2026-06', '2026-08');
CREATE TABLE posts_default PARTITION OF posts DEFAULT;
SELECT action, partition, starts, ends, message FROM snowflake_create_partitions('posts', '1 month', 0);
INSERT INTO posts VALUES (snowflake_min_id('2026-12-24 18:00+00'), 'early');
:created('posts', '1 month', 2) WHERE action <> 'gap';

\echo -- a long name is truncated between characters; the next case has one that is then in use
SELECT repeat('ä', 31) || 'x' AS first, repeat('ä', 31) || 'y' AS second \gset
CREATE TABLE :first (id bigint) PARTITION BY RANGE (id);
:created(:'first', '1 month', 0);
CREATE TABLE :second (id bigint) PARTITION BY RANGE (id);

\echo -- a range that meets another object is refused before anything is done
CREATE TABLE overlapped (id bigint) PARTITION BY RANGE (id);
CALL add_partition('half', '2026-12-10', '2026-12-20', parent => 'overlapped');
CREATE TABLE named (id bigint) PARTITION BY RANGE (id);
CREATE TABLE named_p20261201 (id bigint);
CREATE TABLE typed (id bigint) PARTITION BY RANGE (id);
CREATE TYPE typed_p20261201 AS ENUM ('x');
SELECT error_of(format('SELECT snowflake_create_partitions(%L, ''1 month'', 2)', name)), partitions_of(name)
FROM unnest(ARRAY['overlapped', 'named', 'typed', :'second']) AS name;

\echo -- partitions end with the layout
CALL create_posts('js53');
SELECT action, count(*), max(ends), max(message) FROM snowflake_create_partitions('posts', '10 years', 20) GROUP BY 1 ORDER BY 1;
SELECT pg_get_expr(relpartbound, oid), 1::bigint << 53 FROM pg_class WHERE relname = 'posts_p20800101';

\echo -- a table partitioned by shard gets its ranges in each partition
CREATE SCHEMA shard_1;
CREATE FOREIGN DATA WRAPPER w;
CREATE SERVER s FOREIGN DATA WRAPPER w;
CREATE TABLE by_shard (id bigint NOT NULL) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE by_shard_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 4, REMAINDER 0) PARTITION BY RANGE (id);
CREATE TABLE shard_1.by_shard PARTITION OF by_shard FOR VALUES WITH (MODULUS 4, REMAINDER 1) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE by_shard_2 PARTITION OF by_shard FOR VALUES WITH (MODULUS 4, REMAINDER 2) SERVER s;
CREATE TABLE by_shard_3 PARTITION OF by_shard FOR VALUES WITH (MODULUS 4, REMAINDER 3);
:created('by_shard', '1 month', 1);
DROP FOREIGN TABLE by_shard_2;
CREATE SEQUENCE of_shards;
INSERT INTO by_shard SELECT snowflake_nextval('of_shards', shard) FROM generate_series(0, 1) AS shard;
SELECT tableoid::regclass, snowflake_shard_id(id) FROM by_shard ORDER BY 1;
\echo -- a partition is a parent, too
:created('by_shard_0', '1 month', 0);
SELECT DISTINCT action FROM snowflake_drop_partitions('by_shard', '1 month');

\echo -- an omitted layout is that of the default of a table above or below, or of the type
CREATE SEQUENCE of_js53;
CREATE DOMAIN js AS bigint DEFAULT snowflake_nextval('of_js53', 5, 'js53');
CREATE TABLE above (id bigint DEFAULT snowflake_nextval('of_js53', 5, 'js53')) PARTITION BY HASH (id);
CREATE TABLE above_0 PARTITION OF above FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY RANGE (id);
ALTER TABLE above_0 ALTER id DROP DEFAULT;
CREATE TABLE below (id bigint) PARTITION BY RANGE (id);
CREATE TABLE below_0 PARTITION OF below FOR VALUES FROM (MINVALUE) TO (0);
ALTER TABLE below_0 ALTER id SET DEFAULT snowflake_nextval('of_js53', 5, 'js53');
CREATE TABLE domain (id js) PARTITION BY RANGE (id);
SELECT name, action, partition, starts FROM unnest('{above,below,domain}'::text[]) AS name, snowflake_create_partitions(name::regclass, '1 month', 0)
WHERE action <> 'gap';
INSERT INTO above VALUES (snowflake_nextval('of_js53', 5, 'js53'));
INSERT INTO below VALUES (snowflake_nextval('of_js53', 5, 'js53'));
INSERT INTO domain DEFAULT VALUES;
