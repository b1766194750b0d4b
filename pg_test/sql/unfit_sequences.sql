-- A sequence that cannot be used is refused, unchanged, and the command of the hint fixes it.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
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

CREATE FUNCTION next_seq(seq regclass) RETURNS int
LANGUAGE sql AS $$ SELECT d.seq FROM snowflake_decode(snowflake_nextval($1, 5)) AS d $$;

CREATE TABLE serials (id serial, small smallserial);
SELECT snowflake_nextval('serials_id_seq', 5);
\echo :SQLSTATE
SELECT last_value, log_cnt, is_called FROM serials_id_seq \g (tuples_only=off)
ALTER SEQUENCE serials_id_seq AS bigint;
SELECT next_seq('serials_id_seq');

SELECT snowflake_nextval('serials_small_seq', 5);
\echo :SQLSTATE
SELECT last_value, log_cnt, is_called FROM serials_small_seq \g (tuples_only=off)
ALTER SEQUENCE serials_small_seq AS bigint;
SELECT next_seq('serials_small_seq');
DROP TABLE serials;

CREATE SEQUENCE five INCREMENT 5;
SELECT snowflake_nextval('five', 5);
\echo :SQLSTATE
SELECT last_value, log_cnt, is_called FROM five \g (tuples_only=off)
ALTER SEQUENCE five INCREMENT 1;
SELECT next_seq('five');
DROP SEQUENCE five;

CREATE SEQUENCE down INCREMENT -1;
SELECT snowflake_nextval('down', 5);
\echo :SQLSTATE
SELECT last_value, log_cnt, is_called FROM down \g (tuples_only=off)
ALTER SEQUENCE down INCREMENT 1;
SELECT regexp_replace(error_of($$SELECT snowflake_nextval('down', 5)$$), 'counter, \d+', 'counter, N') AS error;
ALTER SEQUENCE down NO MAXVALUE;
SELECT next_seq('down');
DROP SEQUENCE down;

CREATE SEQUENCE round CYCLE;
SELECT snowflake_nextval('round', 5);
\echo :SQLSTATE
SELECT last_value, log_cnt, is_called FROM round \g (tuples_only=off)
ALTER SEQUENCE round NO CYCLE;
SELECT next_seq('round');
DROP SEQUENCE round;

CREATE SEQUENCE full_up MAXVALUE 1000000;
-- the counter of now varies
SELECT regexp_replace(error_of($$SELECT snowflake_nextval('full_up', 5)$$), 'counter, \d+', 'counter, N') AS error;
SELECT last_value, log_cnt, is_called FROM full_up \g (tuples_only=off)
ALTER SEQUENCE full_up NO MAXVALUE;
SELECT next_seq('full_up');
DROP SEQUENCE full_up;

-- names are quoted
CREATE SCHEMA "Blog";
CREATE SEQUENCE "Blog"."Posts" AS int;
SELECT snowflake_nextval('"Blog"."Posts"', 5);
\echo :SQLSTATE
SELECT last_value, log_cnt, is_called FROM "Blog"."Posts" \g (tuples_only=off)
ALTER SEQUENCE "Blog"."Posts" AS bigint;
SELECT next_seq('"Blog"."Posts"');
DROP SCHEMA "Blog" CASCADE;

-- one error after the other
CREATE SEQUENCE all_wrong AS int INCREMENT 5 MAXVALUE 1000 CYCLE;
SELECT snowflake_nextval('all_wrong', 5);
\echo :SQLSTATE
SELECT last_value, log_cnt, is_called FROM all_wrong \g (tuples_only=off)
ALTER SEQUENCE all_wrong AS bigint;
SELECT snowflake_nextval('all_wrong', 5);
ALTER SEQUENCE all_wrong INCREMENT 1;
SELECT snowflake_nextval('all_wrong', 5);
ALTER SEQUENCE all_wrong NO CYCLE;
SELECT regexp_replace(error_of($$SELECT snowflake_nextval('all_wrong', 5)$$), 'counter, \d+', 'counter, N') AS error;
ALTER SEQUENCE all_wrong NO MAXVALUE;
SELECT next_seq('all_wrong');
