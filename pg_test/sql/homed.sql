-- Homed IDs: their hash leads to the shard that generates them.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
CREATE SEQUENCE s;

--
-- Every ID is in the partition of its shard, of PostgreSQL's own hash
--
CREATE TABLE t (id bigint) PARTITION BY HASH (id);
CREATE FUNCTION homed(shard int, modulus int, OUT ids bigint, OUT strangers bigint, OUT other_shards bigint) LANGUAGE sql AS $$
    SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, modulus, shard, id)),
        count(*) FILTER (WHERE snowflake_shard_id(id) % modulus <> shard)
    FROM (SELECT snowflake_nextval_homed('s', shard, modulus) FROM generate_series(1, 3000)) AS ids (id)
$$;
CREATE FUNCTION homed_batch(shard int, modulus int, OUT ids bigint, OUT strangers bigint, OUT other_shards bigint) LANGUAGE sql AS $$
    SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, modulus, shard, id)),
        count(*) FILTER (WHERE snowflake_shard_id(id) % modulus <> shard)
    FROM (SELECT snowflake_nextvals_homed('s', shard, modulus, 3000)) AS ids (id)
$$;
SELECT modulus, shard, one_by_one.*, batch.*
FROM unnest(ARRAY[1, 2, 3, 4, 16, 64]) AS modulus, unnest(ARRAY[0, 1 % modulus, modulus - 1]) AS shard,
    homed(shard, modulus) AS one_by_one, homed_batch(shard, modulus) AS batch
ORDER BY modulus, shard \g (tuples_only=off format=aligned)

-- the highest modulus
SET pg_snowflake.max_lead = '1min';
SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, 4096, 4095, id)) AS strangers
FROM (SELECT snowflake_nextval_homed('s', 4095, 4096) FROM generate_series(1, 30)) AS ids (id);
SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, 4096, 4095, id)) AS strangers
FROM (SELECT snowflake_nextvals_homed('s', 4095, 4096, 30)) AS ids (id);
RESET pg_snowflake.max_lead;

-- a row goes there
CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE t_1 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE t_2 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 2);
ALTER TABLE t ALTER id SET DEFAULT snowflake_nextval_homed('s', 2, 3);
INSERT INTO t SELECT FROM generate_series(1, 1000);
SELECT tableoid::regclass, count(*) FROM t GROUP BY 1;
DROP TABLE t_0, t_1, t_2;
ALTER TABLE t ALTER id DROP DEFAULT;

-- generators of a shard have no shard number in common: the numbers of a class are equal modulo 4 * 2
SELECT shard, count(DISTINCT id), count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, 4, shard % 4, id)) AS strangers,
       array_agg(DISTINCT snowflake_shard_id(id) % 8) AS class
FROM generate_series(0, 7) AS shard, snowflake_nextvals_homed('s', shard, 4, 2000, 2, 'postgres') AS id
GROUP BY shard ORDER BY shard \g (tuples_only=off format=aligned)

--
-- Every ID is in the hash ranges and has the shard. The first ranges are of two of four workers, as in pg_dist_shard.
--
CREATE FUNCTION in_ranges(ranges int8multirange, OUT ids bigint, OUT outside bigint, OUT shards int[]) LANGUAGE sql AS $$
    SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT ranges @> hashint8(id)::bigint), array_agg(DISTINCT snowflake_shard_id(id))
    FROM (SELECT snowflake_nextval_homed_in_ranges('s', 7, ranges) FROM generate_series(1, 3000)) AS ids (id)
$$;
CREATE FUNCTION batch_in_ranges(ranges int8multirange, OUT ids bigint, OUT outside bigint, OUT shards int[]) LANGUAGE sql AS $$
    SELECT count(DISTINCT id), count(*) FILTER (WHERE NOT ranges @> hashint8(id)::bigint), array_agg(DISTINCT snowflake_shard_id(id))
    FROM (SELECT snowflake_nextvals_homed_in_ranges('s', 7, ranges, 3000)) AS ids (id)
$$;
SELECT ranges, one_by_one.*, batch.*
FROM (VALUES (1, int8multirange '{[-2147483648,-1073741824),[0,1073741824)}'), (2, '{(,-5),[100,1000000)}'), (3, '{(,)}'),
    (4, '{[0,2147483648)}')) AS cases (n, ranges), in_ranges(ranges) AS one_by_one, batch_in_ranges(ranges) AS batch
ORDER BY n \g (tuples_only=off format=aligned)

-- they may differ from call to call
CREATE TABLE ranges (of int8multirange);
ALTER TABLE ranges ALTER of SET STORAGE EXTERNAL;
INSERT INTO ranges VALUES ('{[0,)}'), ('{(,0)}');
-- of so many that it is stored out of line
INSERT INTO ranges SELECT range_agg(int8range(n * 1000000, n * 1000000 + 400000)) FROM generate_series(-2000, 2000) AS n;
SELECT count(*), count(*) FILTER (WHERE NOT of @> hashint8(snowflake_nextval_homed_in_ranges('s', 7, of))::bigint) AS outside
FROM ranges, generate_series(1, 300);
DROP TABLE ranges;

--
-- snowflake_currval() returns the last one
--
SELECT snowflake_nextval_homed('s', 1, 4) AS id \gset
SELECT snowflake_currval('s') = :id AS is_last;
SELECT snowflake_nextvals_homed('s', 1, 4, 1) AS id \gset
SELECT snowflake_currval('s') = :id AS is_last;
SELECT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange) AS id \gset
SELECT snowflake_currval('s') = :id AS is_last;

--
-- Counters increase. The sequence is an hour ahead of the clock, so that only calls move its counter.
--
SET pg_snowflake.max_lead = '2h';
SELECT snowflake_min_id(now() + '1 hour') >> 12 AS start \gset
CREATE SEQUENCE ahead START :start;
CREATE FUNCTION counter_of(id bigint) RETURNS bigint
LANGUAGE sql RETURN ((id >> 22) << 10) | ((id >> 12) & 1023);

-- by one, and the sequence holds the last
SELECT count(*), min(counter) - :start AS first, max(counter) - :start AS last, count(*) FILTER (WHERE counter <> before + 1) AS gaps
FROM (SELECT counter_of(id) AS counter, lag(counter_of(id)) OVER (ORDER BY n) AS before
      FROM (SELECT n, snowflake_nextval_homed('ahead', 1, 4) AS id FROM generate_series(1, 2000) AS n) AS ids) AS counters \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM ahead;
SELECT count(*), min(counter) - :start AS first, max(counter) - :start AS last, count(*) FILTER (WHERE counter <> before + 1) AS gaps
FROM (SELECT counter_of(id) AS counter, lag(counter_of(id)) OVER (ORDER BY n) AS before
      FROM (SELECT id, row_number() OVER () AS n FROM (SELECT snowflake_nextvals_homed('ahead', 1, 4, 2000) AS id) AS ids) AS numbered
     ) AS counters \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM ahead;
DROP SEQUENCE ahead;

-- those that make no homed ID are passed over: three in eight
CREATE SEQUENCE ahead START :start;
SELECT count(*), count(*) FILTER (WHERE counter <= before) AS out_of_order,
       max(counter) - :start BETWEEN 1400 AND 1749 AS last_in_range, max(counter) AS last
FROM (SELECT counter_of(id) AS counter, lag(counter_of(id)) OVER (ORDER BY n) AS before
      FROM (SELECT n, snowflake_nextval_homed('ahead', 5, 64) AS id FROM generate_series(1, 1000) AS n) AS ids) AS counters \gset
\echo :count :out_of_order :last_in_range
SELECT last_value = :last AS holds_the_last FROM ahead;
RESET pg_snowflake.max_lead;

-- where the shard is lowest, as in the default layout, IDs increase too
CREATE SEQUENCE lowest;
SELECT count(*), count(*) FILTER (WHERE id <= before) AS out_of_order
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
      FROM (SELECT n, snowflake_nextval_homed('lowest', 1, 4, layout => 'postgres') AS id
            FROM generate_series(1, 5000) AS n) AS ids) AS pairs;
SELECT count(*), count(*) FILTER (WHERE id <= before) AS out_of_order
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
      FROM (SELECT id, row_number() OVER () AS n
            FROM (SELECT snowflake_nextvals_homed('lowest', 1, 4, 5000, layout => 'postgres') AS id) AS ids) AS numbered) AS pairs;
-- in other layouts the ticks do not decrease
CREATE SEQUENCE instagrams;
SELECT count(*), count(*) FILTER (WHERE id >> 23 < before >> 23) AS out_of_order
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
      FROM (SELECT n, snowflake_nextval_homed('instagrams', 1, 4, layout => 'instagram') AS id
            FROM generate_series(1, 5000) AS n) AS ids) AS pairs;
SELECT count(*), count(*) FILTER (WHERE id >> 23 < before >> 23) AS out_of_order
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
      FROM (SELECT id, row_number() OVER () AS n
            FROM (SELECT snowflake_nextvals_homed('instagrams', 1, 4, 5000, layout => 'instagram') AS id) AS ids) AS numbered) AS pairs;

-- homed and other IDs of a sequence differ, and a homed call drops the cached counters
CREATE SEQUENCE cached CACHE 50;
SELECT count(*), count(*) FILTER (WHERE counter <= before) AS out_of_order
FROM (SELECT counter_of(id) AS counter, lag(counter_of(id)) OVER (ORDER BY n) AS before
      FROM (SELECT n, CASE n % 3 WHEN 0 THEN snowflake_nextval_homed('cached', 5, 16)
                                 WHEN 1 THEN snowflake_nextval('cached', 5)
                                 ELSE snowflake_nextval_homed_in_ranges('cached', 5, '{[0,)}'::int8multirange) END AS id
            FROM generate_series(1, 20000) AS n) AS ids) AS counters;

--
-- A driver that sends no types gets those of the function
--
PREPARE p1 AS SELECT snowflake_nextval_homed($1, $2, $3);
PREPARE p2 AS SELECT snowflake_nextval_homed_in_ranges($1, $2, $3);
PREPARE p3 AS SELECT snowflake_nextvals_homed($1, $2, $3, $4);
PREPARE p4 AS SELECT snowflake_nextvals_homed_in_ranges($1, $2, $3, $4);
PREPARE p5 AS SELECT snowflake_nextvals($1, $2);
PREPARE p6 AS SELECT snowflake_nextvals($1, $2, $3);
SELECT statement, parameter_types FROM pg_prepared_statements ORDER BY name;
DEALLOCATE ALL;

--
-- The view of columns
--
CREATE TABLE posts (
    a bigint DEFAULT snowflake_nextval_homed('s', 3, 4, generators => 128),
    b bigint DEFAULT snowflake_nextval_homed_in_ranges('s', 3, '{[0,)}'::int8multirange, 'postgres'),
    c bigint DEFAULT snowflake_nextval_homed('s', 4, 4),
    d bigint DEFAULT snowflake_nextval_homed('s', 3, 4 + random()::int));
SELECT column_name, sequence, shard_id, layout, error FROM snowflake_columns ORDER BY column_name \g (tuples_only=off format=aligned)
SET pg_snowflake.owned_shards = '3';
SELECT column_name, error FROM snowflake_columns ORDER BY column_name;
