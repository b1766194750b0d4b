-- snowflake_nextvals(): a batch of IDs.
--
-- The sequence is an hour ahead of the clock, so that only calls move its counter, one at a time. Counters are shown from its start.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
SET pg_snowflake.max_lead = '2h';
SELECT snowflake_min_id(now() + '1 hour') >> 12 AS start \gset
CREATE SEQUENCE s START :start;

-- The counter of an ID: what the sequence holds.
CREATE FUNCTION counter_of(id bigint) RETURNS bigint
LANGUAGE sql RETURN (((id >> 22) << 10) | ((id >> 12) & 1023)) - :start;

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

--
-- A batch has as many IDs as asked for, one after the other, and takes no more
--
CREATE FUNCTION batch(count int, OUT ids bigint, OUT first bigint, OUT last bigint, OUT gaps bigint) LANGUAGE sql AS $$
    SELECT count(*), min(counter), max(counter), count(*) FILTER (WHERE counter <> before + 1)
    FROM (SELECT counter, lag(counter) OVER (ORDER BY n) AS before
          FROM (SELECT counter_of(id) AS counter, row_number() OVER () AS n
                FROM (SELECT snowflake_nextvals('s', 5, count) AS id) AS ids) AS counters) AS pairs
$$;
SELECT snowflake_nextvals('s', 5, 0) \g (tuples_only=off footer=on)
SELECT last_value - :start AS last_value, log_cnt, is_called FROM s \g (tuples_only=off)
SELECT * FROM batch(1) \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM s;
SELECT * FROM batch(2) \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM s;
SELECT * FROM batch(1023) \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM s;
SELECT * FROM batch(1024) \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM s;
SELECT * FROM batch(1025) \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM s;
SELECT * FROM batch(5000) \g (tuples_only=off)
SELECT last_value - :start AS last_value FROM s;

--
-- It fetches a run of counters from the page at a time
--
DROP SEQUENCE s;
CREATE SEQUENCE s START :start;
BEGIN;
DECLARE ids CURSOR FOR SELECT counter_of(snowflake_nextvals('s', 5, 3000));
FETCH 1 FROM ids;
SELECT last_value - :start AS last_value FROM s;
MOVE 1023 FROM ids;
SELECT last_value - :start AS last_value FROM s;
MOVE 1 FROM ids;
SELECT last_value - :start AS last_value FROM s;
MOVE ALL FROM ids;
SELECT last_value - :start AS last_value FROM s;
COMMIT;

--
-- Without a shard it has that of the database
--
CREATE FUNCTION facts(ids bigint[], OUT count bigint, OUT shards int[], OUT out_of_order bigint) LANGUAGE sql AS $$
    SELECT count(*), array_agg(DISTINCT snowflake_shard_id(id)), count(*) FILTER (WHERE id <= before)
    FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM unnest(ids) WITH ORDINALITY AS ids (id, n)) AS pairs
$$;
SELECT replace(error_of($$SELECT snowflake_nextvals('s', 10)$$), current_database(), 'blog') AS error;
SET pg_snowflake.shard_id = 7;
SELECT snowflake_nextvals('s', -1);
\echo :SQLSTATE
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', 5))) \g (tuples_only=off)
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', count => 3000))) \g (tuples_only=off)
SELECT snowflake_nextvals('s', 0) \g (tuples_only=off footer=on)
SELECT snowflake_nextvals('s', NULL) \g (tuples_only=off footer=on)
-- with one
SELECT * FROM facts(ARRAY(SELECT snowflake_nextvals('s', 5, 10))) \g (tuples_only=off)

--
-- An open cursor follows the shard of the database
--
DROP SEQUENCE s;
CREATE SEQUENCE s START :start;
BEGIN;
DECLARE ids CURSOR FOR SELECT snowflake_shard_id(id), counter_of(id) FROM (SELECT snowflake_nextvals('s', count => 5) AS id) AS batch;
FETCH 1 FROM ids;
FETCH 1 FROM ids;
-- the run was fetched for the former shard
SET pg_snowflake.shard_id = 8;
FETCH 1 FROM ids;
FETCH 1 FROM ids;
SET pg_snowflake.shard_id = 7;
FETCH 1 FROM ids;
-- the end needs no shard
RESET pg_snowflake.shard_id;
FETCH ALL FROM ids \g (tuples_only=off footer=on)
COMMIT;

SET pg_snowflake.shard_id = 7;
BEGIN;
DECLARE ids CURSOR FOR SELECT snowflake_shard_id(snowflake_nextvals('s', count => 5));
FETCH 1 FROM ids;
RESET pg_snowflake.shard_id;
\set VERBOSITY terse
FETCH 1 FROM ids;
\echo :SQLSTATE
\set VERBOSITY default
ROLLBACK;
