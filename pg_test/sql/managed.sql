-- The functions of sql/managed in one session. managed.rs compares them with those of the extension.
--
-- Where the sequence is an hour ahead of the clock, only calls move its counter, one at a time. Counters are shown from there.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\set file :folder '/data/managed.sql'
\set uninstall `cat "$PG_ABS_SRCDIR/data/managed_uninstall.sql"`
\i :file
SELECT snowflake_min_id(now() + '1 hour') >> 12 AS ahead \gset
CREATE SEQUENCE s;
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_managed.snowflake_nextval('s', 5), n int);
INSERT INTO posts (n) SELECT generate_series(1, 1000);

\echo -- a default that is forgotten keeps the functions
SELECT error_of(:'uninstall');
INSERT INTO posts (n) VALUES (1001) RETURNING n;

\echo -- a range of times is found in the primary key, and a time can be indexed
CREATE INDEX by_time ON posts (snowflake_managed.snowflake_created_at(id));
CREATE FUNCTION index_of(condition text) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    plan text;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM posts WHERE snowflake_managed.' || condition INTO plan;
    RETURN substring(plan FROM '"Index Name": "([^"]*)".*"Index Cond"');
END $$;
SELECT condition, index_of(condition)
FROM unnest(ARRAY['snowflake_between(id, now() - interval ''1 day'', now() + interval ''1 day'')',
    'snowflake_created_at(id) > now() - interval ''1 day''']) AS condition;

\echo -- a name that is read back from text has its schema
SELECT proname, proconfig FROM pg_proc WHERE pronamespace = 'snowflake_managed'::regnamespace AND prosrc ~ 'EXECUTE';

\echo -- a batch is one run of counters: how many, the gaps, and whether the sequence has the last one
CREATE FUNCTION batch(size int, OUT ids bigint, OUT gaps bigint, OUT has_last boolean) LANGUAGE sql AS $$
    SELECT count(id), count(*) FILTER (WHERE id >> 12 <> before + 1), max(id) >> 12 = pg_sequence_last_value('s')
    FROM (SELECT id, lag(id >> 12) OVER (ORDER BY n) AS before
          FROM snowflake_managed.snowflake_nextvals('s', 5, size) WITH ORDINALITY AS ids (id, n)) AS pairs
$$;
SELECT size, b.* FROM unnest('{0,1,2,1024,5000}'::int[]) AS size, batch(size) AS b \g (tuples_only=off)

\echo -- a sequence that was set to an ID is recognized, unlike one that was set to a high number or runs ahead
SELECT what, setval('s', value) = value AS is_set,
    regexp_replace(error_of($$SELECT snowflake_managed.snowflake_nextval('s', 5)$$), '\d+\.\d+|\d{10}', '<number>', 'g')
FROM (VALUES ('an ID', snowflake_managed.snowflake_min_id(now() - interval '1 year') + 1), ('a number', 8000000000000000000),
    ('a counter', :ahead)) AS cases (what, value);

\echo -- a batch is refused as that of the extension, and takes nothing
SELECT name, split_part(error_of(format('SELECT %s.snowflake_nextvals(''s'', 5, 10)', name)), ' | ', 1)
FROM unnest('{snowflake_managed,public}'::text[]) AS name;
SELECT last_value - :ahead AS last_value, log_cnt, is_called FROM s \g (tuples_only=off)

-- With the former limit, or a lower sequence, the calls below would go on for ever.
SET statement_timeout = '1min';

\echo -- the hint permits a longer lead, also where the session has planned the function, and the file keeps it
SELECT substring(error_of($$SELECT snowflake_managed.snowflake_nextval('s', 5)$$) FROM 'Run: (.*)$') \gexec
SELECT (snowflake_managed.snowflake_nextval('s', 5) >> 12) - :ahead;
\i :file
SELECT (snowflake_managed.snowflake_nextval('s', 5) >> 12) - :ahead;

\echo -- a batch ends at the MAXVALUE of the sequence
SELECT setval('s', :ahead - 5) - :ahead;
ALTER SEQUENCE s MAXVALUE :ahead;
SELECT array_agg((id >> 12) - :ahead) FROM snowflake_managed.snowflake_nextvals('s', 5, 3) AS id;
SELECT replace(replace(error, :'ahead', '<ahead>'), (:ahead + 1)::text, '<ahead + 1>'), pg_sequence_last_value('s') - :ahead
FROM error_of($$SELECT snowflake_managed.snowflake_nextvals('s', 5, 3)$$) AS error;

\echo -- a limit that is lowered during a batch, here from two hours to nothing, does not lower the sequence
ALTER SEQUENCE s NO MAXVALUE;
SELECT setval('s', :ahead) - :ahead;
CREATE SEQUENCE readings;
CREATE OR REPLACE FUNCTION snowflake_managed.max_lead_us() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    RETURN CASE WHEN nextval('public.readings') = 1 THEN 7200000000 ELSE 0 END;
END $$;
SELECT array_agg((id >> 12) - :ahead), pg_sequence_last_value('s') - :ahead
FROM snowflake_managed.snowflake_nextvals('s', 5, 3) AS id;
