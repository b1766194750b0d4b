-- A text that is not a layout is refused with what is allowed.

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
-- Neither a preset nor a specification
--
SELECT 'instagramm'::snowflake_layout;
\echo :SQLSTATE
SELECT 'Twitter'::snowflake_layout;
\echo :SQLSTATE
SELECT ''::snowflake_layout;
\echo :SQLSTATE

--
-- A part is missing
--
SELECT 'shard:13 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 seq:10 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 seq:10 epoch:2024-01-01'::snowflake_layout;
\echo :SQLSTATE

--
-- A part is specified more than once
--
SELECT 'time:41 time:41 shard:13 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 seq:10 unit:1s epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE

--
-- The width of a field
--
SELECT 'time:0 shard:13 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:49 shard:5 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:30 shard:32 seq:0 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:30 shard:0 seq:32 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:30 shard:-1 seq:2 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41.5 shard:1 seq:2 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:+41 shard:13 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:013 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 seq:11 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE

--
-- The order of the fields
--
SELECT 'shard:13 time:41 seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE

--
-- The unit
--
SELECT 'time:41 shard:13 seq:10 epoch:2024-01-01 unit:3ms'::snowflake_layout;
\echo :SQLSTATE

--
-- The epoch
--
SELECT 'time:41 shard:13 seq:10 epoch:2924-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 seq:10 epoch:1969-12-31 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 seq:10 epoch:2024-02-30 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard:13 seq:10 epoch:2024-01-01T00:00:00.0001Z unit:1ms'::snowflake_layout;
\echo :SQLSTATE
-- it is in the future until it is past
SET timezone = 'UTC';
SELECT to_char(clock_timestamp() + interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS in_an_hour,
       to_char(clock_timestamp() - interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS an_hour_ago \gset
SELECT ('time:40 shard:5 seq:5 epoch:' || :'an_hour_ago' || ' unit:1s')::snowflake_layout IS NOT NULL AS is_layout;
SELECT replace(error_of('SELECT ''time:40 shard:5 seq:5 epoch:' || :'in_an_hour' || ' unit:1s''::snowflake_layout'),
               :'in_an_hour', 'IN AN HOUR') AS error;

--
-- Other parts
--
SELECT 'time:41 shard:13 seq:10 worker:1 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
SELECT 'time:41 shard seq:10 epoch:2024-01-01 unit:1ms'::snowflake_layout;
\echo :SQLSTATE
