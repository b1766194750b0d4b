-- snowflake_nextvals(): a batch of IDs.
--
-- The sequence is an hour ahead of the clock, so that only calls move its counter, one at a time. Counters are shown from its start.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
SET pg_snowflake.max_lead = '2h';
SELECT snowflake_min_id(now() + '1 hour') >> 12 AS start \gset
CREATE SEQUENCE s START :start;

-- The counter of an ID: what the sequence holds.
CREATE FUNCTION counter_of(id bigint) RETURNS bigint
LANGUAGE sql RETURN (((id >> 22) << 10) | ((id >> 12) & 1023)) - :start;

\echo -- a batch has as many IDs as asked for, one after the other, and takes no more
SELECT count(id) AS ids, last_value - :start AS last_value, log_cnt, is_called
FROM s LEFT JOIN snowflake_nextvals('s', 5, 0) AS id ON true GROUP BY 2, 3, 4 \g (tuples_only=off)
CREATE FUNCTION batch(count int, OUT ids bigint, OUT first bigint, OUT last bigint, OUT gaps bigint, OUT last_value bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT count(*), min(counter), max(counter), count(*) FILTER (WHERE counter <> before + 1) INTO ids, first, last, gaps
    FROM (SELECT counter, lag(counter) OVER (ORDER BY n) AS before
          FROM (SELECT counter_of(id) AS counter, row_number() OVER () AS n
                FROM (SELECT snowflake_nextvals('s', 5, count) AS id) AS ids) AS counters) AS pairs;
    SELECT s.last_value INTO last_value FROM s;
END $$;
SELECT ids, first, last, gaps, last_value - :start AS last_value
FROM unnest('{1,2,1023,1024,1025,5000}'::int[]) AS size, batch(size) \g (tuples_only=off)

\echo -- it fetches a run of counters from the page at a time: the first ID, and what the sequence holds after ID 1, 1024, 1025 and 3000
DROP SEQUENCE s;
CREATE SEQUENCE s START :start;
BEGIN;
DECLARE ids CURSOR FOR SELECT counter_of(snowflake_nextvals('s', 5, 3000));
FETCH 1 FROM ids;
SELECT last_value - :start FROM s;
MOVE 1023 FROM ids;
SELECT last_value - :start FROM s;
MOVE 1 FROM ids;
SELECT last_value - :start FROM s;
MOVE ALL FROM ids;
SELECT last_value - :start FROM s;
COMMIT;

\echo -- without a shard it has that of the database: how many, their shards, and how many are out of order
CREATE FUNCTION facts(ids bigint[], OUT count bigint, OUT shards int[], OUT out_of_order bigint) LANGUAGE sql AS $$
    SELECT count(*), array_agg(DISTINCT snowflake_shard_id(id)), count(*) FILTER (WHERE id <= before)
    FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM unnest(ids) WITH ORDINALITY AS ids (id, n)) AS pairs
$$;
SELECT replace(error_of($$SELECT snowflake_nextvals('s', 10)$$), current_database(), 'blog');
SET pg_snowflake.shard_id = 7;
SELECT call, error_of('SELECT ' || call)
FROM unnest(ARRAY[$$snowflake_nextvals('s', -1)$$, $$snowflake_nextvals('s', 5, -1)$$, $$snowflake_nextvals('s', 4096, 0)$$]) AS call;
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', 5)));
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', count => 3000)));
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', 0)));
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', NULL)));
\echo -- with a shard
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', 5, 10)));
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', 5, NULL)));

\echo -- an open cursor follows the shard of the database: the shard and the counter; the run was fetched for the former shard
DROP SEQUENCE s;
CREATE SEQUENCE s START :start;
BEGIN;
DECLARE ids CURSOR FOR SELECT snowflake_shard_id(id), counter_of(id) FROM (SELECT snowflake_nextvals('s', count => 5) AS id) AS batch;
FETCH 2 FROM ids;
SET pg_snowflake.shard_id = 8;
FETCH 2 FROM ids;
SET pg_snowflake.shard_id = 7;
FETCH 1 FROM ids;
\echo -- the end needs no shard, and an ID needs one
RESET pg_snowflake.shard_id;
FETCH ALL FROM ids \g (tuples_only=off footer=on)
COMMIT;
\echo -- the shard has to be in the layout, and a parallel plan gets no ID, also where it runs without workers
CREATE FUNCTION next_of_ids(ids refcursor, OUT id bigint) LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN FETCH ids INTO id; END $$;
CREATE FUNCTION next_of_s() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN RETURN snowflake_nextval('s'); END $$;
CREATE TABLE rows AS SELECT FROM generate_series(1, 2);
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers = 0;
SET pg_snowflake.shard_id = 7;
\set VERBOSITY sqlstate
SELECT statement
FROM (VALUES ('RESET pg_snowflake.shard_id', 'FETCH 1 FROM ids'), ('SET pg_snowflake.shard_id = 4096', 'FETCH 1 FROM ids'),
        ('SELECT FROM rows LIMIT 0', 'SELECT next_of_ids(''ids'') FROM rows'),
        ('SELECT snowflake_shard_id(snowflake_nextval(''s''))', 'SELECT next_of_s() FROM rows')) AS cases (change, call),
    unnest(ARRAY['BEGIN', 'DECLARE ids CURSOR FOR SELECT snowflake_shard_id(snowflake_nextvals(''s'', count => 5))', 'FETCH 1 FROM ids',
        change, call, 'ROLLBACK']) AS statement \gexec
