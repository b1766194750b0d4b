-- What else PostgreSQL's hash of a bigint costs: the tables under "What else the order of fields affects" in docs/hashing.md. It
-- needs psql, no extension, and the tables of measure.sql, which measures nothing if rounds is 0:
--
--     createdb hashing && psql -X -v rounds=0 -f docs/hashing/measure.sql hashing
--     psql -X -f docs/hashing/elsewhere.sql hashing
--
-- The variable memory, with -v memory=VALUE, is work_mem. Each query runs once.

\if :{?memory} \else \set memory 256MB \endif

\set QUIET on
\set ON_ERROR_STOP on
SET work_mem = :'memory';
SET max_parallel_workers_per_gather = 0;
SET jit = off;

-- IDs of one shard at 100 per millisecond, or at the highest rate that a layout has, and every 33rd of them.
CREATE TABLE results (name text, what text, figure text);
CREATE TABLE tables AS
SELECT name, layout IN ('bigserial', 'instagram', 'postgres') AS is_in_all
FROM ids
WHERE rate IS NULL OR shards = 1 AND (rate = 100 OR layout = 'sonyflake' AND rate = 10);
SELECT format('CREATE TABLE %1$s_sample AS SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM %1$I) AS n '
    'WHERE n %% 33 = 0', name), format('ANALYZE %s_sample', name)
FROM tables \gexec

-- Runs a query, and records the time, and what its plan says about the keys.
CREATE FUNCTION run(name text, what text, query text, VARIADIC keys text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
    INSERT INTO results
    SELECT name, what, round((plan->0->>'Execution Time')::numeric / 1000, 2) || ' s'
    UNION ALL
    SELECT name, what || ', ' || key, jsonb_path_query_first(plan, format('strict $.**.%s', to_json(key))::jsonpath)::text
    FROM unnest(keys) AS key;
END $$;
\o /dev/null

-- Hash index.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET enable_memoize = off;
SELECT format('CREATE INDEX %1$s_hash ON %1$I USING hash (id)', name),
    format('INSERT INTO results VALUES (%1$L, ''hash index'', pg_size_pretty(pg_relation_size(''%1$s_hash'')))', name),
    format('SELECT run(%1$L, ''hash index, searches'', ''SELECT count(*) FROM %1$s_sample JOIN %1$I USING (id)'', '
        '''Rows Removed by Index Recheck'')', name),
    format('DROP INDEX %s_hash', name)
FROM tables \gexec

-- Memoize: each ID twice.
SET enable_memoize = on;
SELECT format('CREATE INDEX %1$s_btree ON %1$I (id)', name), format('VACUUM %I', name),
    format('CREATE TABLE %1$s_twice AS SELECT id FROM %1$I UNION ALL SELECT id FROM %1$I', name),
    format('ANALYZE %s_twice', name),
    format('SELECT run(%1$L, ''Memoize'', ''SELECT count(*) FROM %1$s_twice JOIN %1$I USING (id)'', ''Cache Hits'')', name),
    format('DROP INDEX %s_btree', name)
FROM tables WHERE is_in_all \gexec
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_seqscan;

-- NOT IN, as a hashed subplan.
SELECT format('SELECT run(%1$L, ''NOT IN'', ''SELECT count(*) FROM %1$s_sample WHERE id NOT IN (SELECT id FROM %1$I)'')', name)
FROM tables WHERE is_in_all \gexec

-- BRIN bloom, whose filters have room for all IDs of a range: searches for 20 IDs.
SET enable_seqscan = off;
SELECT format('CREATE INDEX ON %I USING brin (id int8_bloom_ops (n_distinct_per_range = 4000)) WITH (pages_per_range = 16)', name),
    format('SELECT run(%1$L, ''BRIN bloom'', ''SELECT count(*) FROM (SELECT id FROM %1$s_sample ORDER BY hashint8(id) LIMIT 20) '
        'AS wanted, LATERAL (SELECT FROM %1$I AS t WHERE t.id = wanted.id OFFSET 0) AS found'', ''Lossy Heap Blocks'')', name)
FROM tables WHERE is_in_all \gexec
RESET enable_seqscan;

-- Hash partitions.
SELECT format('CREATE TABLE %1$s_parted (LIKE %1$I) PARTITION BY HASH (id)', name) FROM tables \gexec
SELECT format('CREATE TABLE %1$s_parted_%2$s PARTITION OF %1$s_parted FOR VALUES WITH (MODULUS 16, REMAINDER %2$s)', name, n)
FROM tables, generate_series(0, 15) AS n \gexec
SELECT format('INSERT INTO %1$s_parted SELECT id FROM %1$I', name),
    format('INSERT INTO results SELECT %1$L, ''rows of 16 hash partitions'', min(rows) || '' to '' || max(rows) '
        'FROM (SELECT count(*) AS rows FROM %1$s_parted GROUP BY tableoid) AS parts', name)
FROM tables \gexec

INSERT INTO results SELECT tablename, 'correlation', correlation::text
FROM pg_stats WHERE attname = 'id' AND tablename IN (SELECT name FROM tables);

\o
SELECT what, name, figure FROM results ORDER BY what, name \crosstabview
