-- What the functions for homed IDs refuse, with which error, and that a refusal consumes nothing.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\pset fieldsep '|'
CREATE SEQUENCE s;

-- The error of a call, or "none"; and of a second one if that differs: what has been refused is not kept for the fast path.
CREATE FUNCTION errors_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    first text := error_of('SELECT ' || call);
BEGIN
    RETURN concat_ws(E'\nand then ', first, nullif(error_of('SELECT ' || call), first));
END $$;

\echo -- arguments that are out of range, hash ranges, and batches
SELECT call, errors_of(call) FROM unnest(ARRAY['snowflake_nextval_homed(''s'', 0, 0)', 'snowflake_nextval_homed(''s'', 0, -1)',
    'snowflake_nextval_homed(''s'', 0, 4097)', 'snowflake_nextval_homed(''s'', 0, 2147483647)',
    'snowflake_nextval_homed(''s'', 0, 129, layout => ''js53'')', 'snowflake_nextval_homed(''s'', 0, 16385, layout => ''sonyflake'')',
    'snowflake_nextval_homed(''s'', 0, 2, generators => 0)', 'snowflake_nextval_homed(''s'', 0, 2, generators => 2049)',
    'snowflake_nextval_homed(''s'', -1, 2)', 'snowflake_nextval_homed(''s'', 2, 2)',
    'snowflake_nextval_homed(''s'', 4, 2, generators => 2)',
    'snowflake_nextval_homed_in_ranges(''s'', 0, ''{}'')', 'snowflake_nextval_homed_in_ranges(''s'', 0, ''{[0,4294967296)}'')',
    'snowflake_nextval_homed_in_ranges(''s'', 0, ''{[-2147483649,0)}'')', 'snowflake_nextval_homed_in_ranges(''s'', 0, ''{[0,262143)}'')',
    'snowflake_nextval_homed_in_ranges(''s'', 4096, ''{[0,)}'')', 'snowflake_nextvals_homed(''s'', 0, 0, 1)',
    'snowflake_nextvals_homed(''s'', 0, 2, -1)', 'snowflake_nextvals_homed_in_ranges(''s'', 0, ''{}'', 1)',
    'snowflake_nextvals_homed_in_ranges(''s'', 0, ''{[0,)}'', -1)', 'snowflake_nextvals_homed(''s'', 0, 2, 0)']) AS call;

\echo -- a null returns null, and so far nothing has been taken
SELECT snowflake_nextval_homed(NULL, 0, 2) IS NULL AS seq,
       snowflake_nextval_homed('s', NULL, 2) IS NULL AS shard_id,
       snowflake_nextval_homed('s', 0, NULL::int) IS NULL AS modulus,
       snowflake_nextval_homed('s', 0, 2, NULL) IS NULL AS generators,
       snowflake_nextval_homed('s', 0, 2, generators => NULL) IS NULL AS named,
       snowflake_nextval_homed_in_ranges('s', 0, NULL::int8multirange) IS NULL AS ranges;

SELECT last_value, log_cnt, is_called FROM s;

\echo -- every shard number of the class has to be owned: here 3, 515, ..., 3587; in ranges, only the shard
CREATE FUNCTION errors_under(owned text, OUT one text, OUT is_that_of_a_batch boolean, OUT in_ranges text)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('pg_snowflake.owned_shards', owned, false);
    one := errors_of('snowflake_nextval_homed(''s'', 3, 4, generators => 128)');
    is_that_of_a_batch := one = errors_of('snowflake_nextvals_homed(''s'', 3, 4, 0, generators => 128)');
    in_ranges := errors_of('snowflake_nextval_homed_in_ranges(''s'', 3, ''{[0,)}''::int8multirange)');
END $$;
-- the query of the hint
SELECT string_agg(n::text, ', ') AS list FROM generate_series(3, 3587, 512) AS n \gset
-- each after two calls that had an ID
SELECT owned, e.* FROM unnest(ARRAY['', '0-4095', '5', '0-4095', '3', '0-4095', '0-3586', '0-4095', '0-1538,1540-4095', :'list', '']
) AS owned, errors_under(owned) AS e;

\echo -- USAGE or UPDATE on the sequence is required, and a transaction that may write
CREATE VIEW calls AS SELECT unnest(ARRAY['snowflake_nextval_homed(''s'', 0, 2)', 'snowflake_nextvals_homed(''s'', 0, 2, 1)',
    'snowflake_nextval_homed_in_ranges(''s'', 0, ''{[0,)}''::int8multirange)',
    'snowflake_nextvals_homed_in_ranges(''s'', 0, ''{[0,)}''::int8multirange, 1)']) AS call;
GRANT SELECT ON calls TO PUBLIC;
CREATE ROLE regress_homed_errors_writer;
SET ROLE regress_homed_errors_writer;
SELECT errors_of(call) FROM calls;
RESET ROLE;
GRANT USAGE ON SEQUENCE s TO regress_homed_errors_writer;
SET ROLE regress_homed_errors_writer;
SELECT errors_of(call) FROM calls;
BEGIN READ ONLY;
SELECT errors_of(call) FROM calls;
COMMIT;
RESET ROLE;
REVOKE ALL ON SEQUENCE s FROM regress_homed_errors_writer;
GRANT UPDATE ON SEQUENCE s TO regress_homed_errors_writer;
SET ROLE regress_homed_errors_writer;
SELECT errors_of(call) FROM calls;
RESET ROLE;
REVOKE ALL ON SEQUENCE s FROM regress_homed_errors_writer;
GRANT SELECT ON SEQUENCE s TO regress_homed_errors_writer;
SET ROLE regress_homed_errors_writer;
SELECT left(errors_of(call), 5) FROM calls;
RESET ROLE;
DROP OWNED BY regress_homed_errors_writer;
DROP ROLE regress_homed_errors_writer;

\echo -- a layout has fewer IDs of a home than a server generates, so a call waits for the clock
CREATE SEQUENCE t;
SET pg_snowflake.max_wait = 0;
SELECT left(errors_of('count(snowflake_nextval_homed(''t'', 4095, 4096)) FROM generate_series(1, 2000)'), 60);
SET pg_snowflake.max_wait = '10s';
SELECT count(snowflake_nextval_homed('t', 4095, 4096)) FROM generate_series(1, 30);
