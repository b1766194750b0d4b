-- What the functions for homed IDs refuse, with which error, and that a refusal consumes nothing.

CREATE SEQUENCE s;

--
-- Arguments that are out of range. \g repeats the call: what has been refused is not kept for the fast path.
--
SELECT snowflake_nextval_homed('s', 0, 0);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 0, -1);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 0, 4097);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 0, 2147483647);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 0, 129, layout => 'js53');
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 0, 16385, layout => 'sonyflake');
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 0, 2, generators => 0);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 0, 2, generators => 2049);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', -1, 2);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 2, 2);
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed('s', 4, 2, generators => 2);
\g
\echo :SQLSTATE

-- hash ranges
SELECT snowflake_nextval_homed_in_ranges('s', 0, '{}');
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed_in_ranges('s', 0, '{[0,4294967296)}');
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed_in_ranges('s', 0, '{[-2147483649,0)}');
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed_in_ranges('s', 0, '{[0,262143)}');
\g
\echo :SQLSTATE
SELECT snowflake_nextval_homed_in_ranges('s', 4096, '{[0,)}');
\g
\echo :SQLSTATE

-- batches
SELECT snowflake_nextvals_homed('s', 0, 0, 1);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed('s', 0, 2, -1);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed_in_ranges('s', 0, '{}', 1);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed_in_ranges('s', 0, '{[0,)}', -1);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed('s', 0, 2, 0);

-- a null returns null
SELECT snowflake_nextval_homed(NULL, 0, 2) IS NULL AS seq,
       snowflake_nextval_homed('s', NULL, 2) IS NULL AS shard_id,
       snowflake_nextval_homed('s', 0, NULL::int) IS NULL AS modulus,
       snowflake_nextval_homed('s', 0, 2, NULL) IS NULL AS generators,
       snowflake_nextval_homed('s', 0, 2, generators => NULL) IS NULL AS named,
       snowflake_nextval_homed_in_ranges('s', 0, NULL::int8multirange) IS NULL AS ranges;

-- so far nothing has been taken
SELECT last_value, log_cnt, is_called FROM s;

--
-- Every shard number of the class has to be owned: here 3, 515, ..., 3587
--
SET pg_snowflake.owned_shards = '';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '0-4095';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS two,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '5';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed('s', 3, 4, 1, generators => 128);
\echo :SQLSTATE
SET pg_snowflake.owned_shards = '';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '0-4095';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS two,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '3';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed('s', 3, 4, 1, generators => 128);
\echo :SQLSTATE
SET pg_snowflake.owned_shards = '';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '0-4095';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS two,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '0-3586';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed('s', 3, 4, 1, generators => 128);
\echo :SQLSTATE
SET pg_snowflake.owned_shards = '';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '0-4095';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS two,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
SET pg_snowflake.owned_shards = '0-1538,1540-4095';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128);
\echo :SQLSTATE
SELECT snowflake_nextvals_homed('s', 3, 4, 1, generators => 128);
\echo :SQLSTATE
-- the query of the hint
SELECT string_agg(n::text, ', ') AS list FROM generate_series(3, 3587, 512) AS n \gset
\echo :list
SET pg_snowflake.owned_shards = :'list';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
-- in ranges, only the shard
SELECT snowflake_nextval_homed_in_ranges('s', 3, '{[0,)}'::int8multirange) > 0 AS is_id;
SET pg_snowflake.owned_shards = '5';
SELECT snowflake_nextval_homed_in_ranges('s', 3, '{[0,)}'::int8multirange);
\echo :SQLSTATE
SET pg_snowflake.owned_shards = '';
SELECT snowflake_nextval_homed('s', 3, 4, generators => 128) > 0 AS one,
       snowflake_nextvals_homed('s', 3, 4, 1, generators => 128) > 0 AS batch;
RESET pg_snowflake.owned_shards;

--
-- USAGE or UPDATE on the sequence is required, and a transaction that may write
--
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE 'SELECT ' || statement;
    RETURN 'none';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
CREATE VIEW calls AS SELECT unnest(ARRAY['snowflake_nextval_homed(''s'', 0, 2)', 'snowflake_nextvals_homed(''s'', 0, 2, 1)',
    'snowflake_nextval_homed_in_ranges(''s'', 0, ''{[0,)}''::int8multirange)']) AS call;
GRANT SELECT ON calls TO PUBLIC;
CREATE ROLE regress_homed_errors_writer;
\pset format unaligned
\pset tuples_only on
SET ROLE regress_homed_errors_writer;
SELECT error_of(call) FROM calls;
RESET ROLE;
GRANT USAGE ON SEQUENCE s TO regress_homed_errors_writer;
SET ROLE regress_homed_errors_writer;
SELECT error_of(call), error_of(call) FROM calls;
BEGIN READ ONLY;
SELECT error_of(call) FROM calls;
COMMIT;
RESET ROLE;
REVOKE ALL ON SEQUENCE s FROM regress_homed_errors_writer;
GRANT UPDATE ON SEQUENCE s TO regress_homed_errors_writer;
SET ROLE regress_homed_errors_writer;
SELECT error_of(call), error_of(call) FROM calls;
RESET ROLE;
REVOKE ALL ON SEQUENCE s FROM regress_homed_errors_writer;
GRANT SELECT ON SEQUENCE s TO regress_homed_errors_writer;
SET ROLE regress_homed_errors_writer;
SELECT left(error_of(call), 5) FROM calls;
RESET ROLE;
DROP OWNED BY regress_homed_errors_writer;
DROP ROLE regress_homed_errors_writer;

-- a layout has fewer IDs of a home than a server generates, so a call waits for the clock
CREATE SEQUENCE t;
SET pg_snowflake.max_wait = 0;
SELECT left(error_of('count(snowflake_nextval_homed(''t'', 4095, 4096)) FROM generate_series(1, 2000)'), 60);
SET pg_snowflake.max_wait = '10s';
SELECT count(snowflake_nextval_homed('t', 4095, 4096)) FROM generate_series(1, 30);
