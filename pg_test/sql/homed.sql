-- Homed IDs: their hash leads to the shard that generates them.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
CREATE SEQUENCE s;
-- Each ID, and the one before it.
CREATE FUNCTION pairs(ids bigint[]) RETURNS TABLE (id bigint, before bigint) LANGUAGE sql AS $$
    SELECT id, lag(id) OVER (ORDER BY n) FROM unnest(ids) WITH ORDINALITY AS ids (id, n)
$$;

\echo -- every ID is in the partition of its shard, of the hash of PostgreSQL itself
CREATE TABLE t (id bigint) PARTITION BY HASH (id);
CREATE FUNCTION homed(ids bigint[], shard int, modulus int, OUT ids bigint, OUT strangers bigint, OUT other_shards bigint)
LANGUAGE sql AS $$
    SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, modulus, shard, id)),
        count(*) FILTER (WHERE snowflake_shard_id(id) % modulus <> shard)
    FROM unnest($1) AS id
$$;
SELECT modulus, shard, one_by_one.*, batch.*
FROM unnest(ARRAY[1, 2, 3, 4, 16, 64]) AS modulus, unnest(ARRAY[0, 1 % modulus, modulus - 1]) AS shard,
    homed(ARRAY(SELECT snowflake_nextval_homed('s', shard, modulus) FROM generate_series(1, 3000)), shard, modulus) AS one_by_one,
    homed(ARRAY(SELECT snowflake_nextvals_homed('s', shard, modulus, 3000)), shard, modulus) AS batch
ORDER BY modulus, shard \g (tuples_only=off format=aligned)

\echo -- the highest modulus: the IDs, strangers, and those of other shards, one by one and as a batch
SET pg_snowflake.max_lead = '1min';
SELECT one_by_one.*, batch.*
FROM homed(ARRAY(SELECT snowflake_nextval_homed('s', 4095, 4096) FROM generate_series(1, 30)), 4095, 4096) AS one_by_one,
    homed(ARRAY(SELECT snowflake_nextvals_homed('s', 4095, 4096, 30)), 4095, 4096) AS batch;
RESET pg_snowflake.max_lead;

\echo -- a row goes there
SELECT format('CREATE TABLE t_%s PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER %1$s)', n) FROM generate_series(0, 2) AS n \gexec
ALTER TABLE t ALTER id SET DEFAULT snowflake_nextval_homed('s', 2, 3);
INSERT INTO t SELECT FROM generate_series(1, 1000);
SELECT tableoid::regclass, count(*) FROM t GROUP BY 1;
DROP TABLE t_0, t_1, t_2;
ALTER TABLE t ALTER id DROP DEFAULT;

\echo -- generators of a shard have no shard number in common: the numbers of a class are equal modulo 4 * 2
SELECT shard, count(DISTINCT id), count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, 4, shard % 4, id)) AS strangers,
       array_agg(DISTINCT snowflake_shard_id(id) % 8) AS class
FROM generate_series(0, 7) AS shard, snowflake_nextvals_homed('s', shard, 4, 2000, 2, 'postgres') AS id
GROUP BY shard ORDER BY shard \g (tuples_only=off format=aligned)

\echo -- every ID is in the hash ranges and has the shard; the first ranges are of two of four workers, as in pg_dist_shard
CREATE FUNCTION in_ranges(ids bigint[], ranges int8multirange, OUT ids bigint, OUT outside bigint, OUT shards int[]) LANGUAGE sql AS $$
    SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT ranges @> hashint8(id)::bigint), array_agg(DISTINCT snowflake_shard_id(id))
    FROM unnest($1) AS id
$$;
SELECT ranges, one_by_one.*, batch.*
FROM (VALUES (1, int8multirange '{[-2147483648,-1073741824),[0,1073741824)}'), (2, '{(,-5),[100,1000000)}'), (3, '{(,)}'),
    (4, '{[0,2147483648)}')) AS cases (n, ranges),
    in_ranges(ARRAY(SELECT snowflake_nextval_homed_in_ranges('s', 7, ranges) FROM generate_series(1, 3000)), ranges) AS one_by_one,
    in_ranges(ARRAY(SELECT snowflake_nextvals_homed_in_ranges('s', 7, ranges, 3000)), ranges) AS batch
ORDER BY n \g (tuples_only=off format=aligned)

\echo -- they may differ from call to call, also if there are so many that they are stored out of line: the IDs, and those outside
CREATE TABLE ranges (of int8multirange);
ALTER TABLE ranges ALTER of SET STORAGE EXTERNAL;
INSERT INTO ranges VALUES ('{[0,)}'), ('{(,0)}');
INSERT INTO ranges SELECT range_agg(int8range(n * 1000000, n * 1000000 + 400000)) FROM generate_series(-2000, 2000) AS n;
SELECT count(*), count(*) FILTER (WHERE NOT of @> hashint8(snowflake_nextval_homed_in_ranges('s', 7, of))::bigint) AS outside
FROM ranges, generate_series(1, 300);
DROP TABLE ranges;

\echo -- snowflake_currval() returns the last one
SELECT snowflake_nextval_homed('s', 1, 4) AS id \gset
SELECT snowflake_currval('s') = :id;
SELECT snowflake_nextvals_homed('s', 1, 4, 1) AS id \gset
SELECT snowflake_currval('s') = :id;
SELECT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange) AS id \gset
SELECT snowflake_currval('s') = :id;

-- The sequence is an hour ahead of the clock, so that only calls move its counter.
SET pg_snowflake.max_lead = '2h';
SELECT snowflake_min_id(now() + '1 hour') >> 12 AS start \gset
CREATE SEQUENCE ahead START :start;
CREATE FUNCTION counter_of(id bigint) RETURNS bigint
LANGUAGE sql RETURN ((id >> 22) << 10) | ((id >> 12) & 1023);

\echo -- counters increase by one, and the sequence holds the last
SELECT count(*), min(counter_of(id)) - :start AS first, max(counter_of(id)) - :start AS last,
       count(*) FILTER (WHERE counter_of(id) <> counter_of(before) + 1) AS gaps
FROM pairs(ARRAY(SELECT snowflake_nextval_homed('ahead', 1, 4) FROM generate_series(1, 2000))) \g (tuples_only=off)
SELECT last_value - :start FROM ahead;
SELECT count(*), min(counter_of(id)) - :start AS first, max(counter_of(id)) - :start AS last,
       count(*) FILTER (WHERE counter_of(id) <> counter_of(before) + 1) AS gaps
FROM pairs(ARRAY(SELECT snowflake_nextvals_homed('ahead', 1, 4, 2000))) \g (tuples_only=off)
SELECT last_value - :start FROM ahead;
DROP SEQUENCE ahead;

\echo -- those that make no homed ID are passed over: three in eight
CREATE SEQUENCE ahead START :start;
SELECT count(*), count(*) FILTER (WHERE counter_of(id) <= counter_of(before)) AS out_of_order,
       max(counter_of(id)) - :start BETWEEN 1400 AND 1749 AS last_in_range,
       max(counter_of(id)) = (SELECT last_value FROM ahead) AS holds_the_last
FROM pairs(ARRAY(SELECT snowflake_nextval_homed('ahead', 5, 64) FROM generate_series(1, 1000))) \g (tuples_only=off)
RESET pg_snowflake.max_lead;

\echo -- a lower limit on the lead applies to the next one
\set VERBOSITY sqlstate
SELECT snowflake_nextval_homed('ahead', 5, 64);
\set VERBOSITY default

\echo -- where the shard is lowest, as in the default layout, IDs increase too; in other layouts the ticks do not decrease:
\echo -- the IDs, and those out of order
CREATE SEQUENCE lowest;
SELECT count(*), count(*) FILTER (WHERE id <= before) AS out_of_order
FROM pairs(ARRAY(SELECT snowflake_nextval_homed('lowest', 1, 4, layout => 'postgres') FROM generate_series(1, 5000)));
SELECT count(*), count(*) FILTER (WHERE id <= before) AS out_of_order
FROM pairs(ARRAY(SELECT snowflake_nextvals_homed('lowest', 1, 4, 5000, layout => 'postgres')));
CREATE SEQUENCE instagrams;
SELECT count(*), count(*) FILTER (WHERE id >> 23 < before >> 23) AS out_of_order
FROM pairs(ARRAY(SELECT snowflake_nextval_homed('instagrams', 1, 4, layout => 'instagram') FROM generate_series(1, 5000)));
SELECT count(*), count(*) FILTER (WHERE id >> 23 < before >> 23) AS out_of_order
FROM pairs(ARRAY(SELECT snowflake_nextvals_homed('instagrams', 1, 4, 5000, layout => 'instagram')));

\echo -- homed and other IDs of a sequence differ, and a homed call drops the cached counters: the IDs, and those out of order
CREATE SEQUENCE cached CACHE 50;
SELECT count(*), count(*) FILTER (WHERE counter_of(id) <= counter_of(before)) AS out_of_order
FROM pairs(ARRAY(SELECT CASE n % 3 WHEN 0 THEN snowflake_nextval_homed('cached', 5, 16)
                                   WHEN 1 THEN snowflake_nextval('cached', 5)
                                   ELSE snowflake_nextval_homed_in_ranges('cached', 5, '{[0,)}'::int8multirange) END
                 FROM generate_series(1, 20000) AS n));

\echo -- a driver that sends no types gets those of the function
PREPARE p1 AS SELECT snowflake_nextval_homed($1, $2, $3);
PREPARE p2 AS SELECT snowflake_nextval_homed_in_ranges($1, $2, $3);
PREPARE p3 AS SELECT snowflake_nextvals_homed($1, $2, $3, $4);
PREPARE p4 AS SELECT snowflake_nextvals_homed_in_ranges($1, $2, $3, $4);
PREPARE p5 AS SELECT snowflake_nextvals($1, $2);
PREPARE p6 AS SELECT snowflake_nextvals($1, $2, $3);
SELECT statement, parameter_types FROM pg_prepared_statements ORDER BY name;
DEALLOCATE ALL;

\echo -- the view of columns
CREATE TABLE posts (
    a bigint DEFAULT snowflake_nextval_homed('s', 3, 4, generators => 128),
    b bigint DEFAULT snowflake_nextval_homed_in_ranges('s', 3, '{[0,)}'::int8multirange, 'postgres'),
    c bigint DEFAULT snowflake_nextval_homed('s', 4, 4),
    d bigint DEFAULT snowflake_nextval_homed('s', 3, 4 + random()::int));
SELECT column_name, sequence, shard_id, layout, error FROM snowflake_columns ORDER BY column_name;
SET pg_snowflake.owned_shards = '3';
SELECT column_name, error FROM snowflake_columns ORDER BY column_name;
