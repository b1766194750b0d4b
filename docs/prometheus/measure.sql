-- Measures the processor time that the metrics of monitoring/metrics.sql cost: the figures in docs/prometheus.md. It needs psql,
-- a server on Linux, and an empty database. metrics.sql creates two roles:
--
--     createdb cost
--     psql -X -c 'CREATE EXTENSION pg_snowflake' -f monitoring/metrics.sql -f docs/prometheus/measure.sql cost
--
-- Variables, with -v NAME=VALUE:
--
--     tables   tables whose default generates IDs; 10,000 need 400 MB of disk
--     rounds   how often each function is called in the same session, after the first call

\if :{?tables} \else \set tables 10000 \endif
\if :{?rounds} \else \set rounds 5 \endif

\set ON_ERROR_STOP on
\pset footer off
\set QUIET on

-- In a transaction for each table: one for all of them would need too many locks.
SET synchronous_commit = off;
SELECT format('CREATE SEQUENCE s%1$s;
    CREATE TABLE t%1$s (id bigint PRIMARY KEY DEFAULT snowflake_nextval(''s%1$s'', 5));
    INSERT INTO t%1$s DEFAULT VALUES', n)
FROM generate_series(1, :tables - 1) AS n \gexec
CREATE SEQUENCE events_id_seq;
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval('events_id_seq', 5)) PARTITION BY RANGE (id);
SELECT FROM snowflake_create_partitions('events', '1 day') \g /dev/null

CREATE TABLE readings (place serial, function text, state text, round int, returned bigint, ms float8);

-- Processor time of this session in ms, as Linux counts it. Other work on the machine hardly changes it.
CREATE FUNCTION processor_ms() RETURNS float8 LANGUAGE sql VOLATILE AS $$
    SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 / 1e6
$$;

CREATE FUNCTION read_metrics(state text, round int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    function text;
    began float8;
    returned bigint;
BEGIN
    FOREACH function IN ARRAY ARRAY['columns', 'partitions', 'server', 'leases'] LOOP
        began := processor_ms();
        EXECUTE format('SELECT count(*) FROM snowflake_metrics.%I()', function) INTO returned;
        INSERT INTO readings (function, state, round, returned, ms)
        VALUES (function, state, round, returned, processor_ms() - began);
    END LOOP;
END $$;

-- Each state in a new session, which has nothing of the tables in its memory.
\c
\o /dev/null
SELECT read_metrics('no error', round) FROM generate_series(0, :rounds) AS round;
\c
SET pg_snowflake.owned_shards = '6';
SELECT read_metrics('all have errors', round) FROM generate_series(0, :rounds) AS round;
\o

SELECT function, state AS columns,
    max(returned) * (
        -- All results of a function that are numbers.
        SELECT count(*) FROM pg_proc, unnest(proallargtypes) AS type
        WHERE pronamespace = 'snowflake_metrics'::regnamespace AND proname = function AND type NOT IN ('text'::regtype, 'name'::regtype)
    ) AS series,
    round(min(ms) FILTER (WHERE round = 0)) AS "ms in a new session",
    round(percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) FILTER (WHERE round > 0)) AS "ms later (median)"
FROM readings
GROUP BY function, state
ORDER BY min(place);
