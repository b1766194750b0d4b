-- A sequence that cannot be used is refused, unchanged, and the command of the hint fixes it.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql

-- The errors of a sequence, each followed by the command of its hint, and the seq of the first ID. The counter of now varies.
CREATE FUNCTION fixed(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    error text;
    state text;
BEGIN
    FOR n IN 1..5 LOOP
        error := error_of(format('SELECT snowflake_nextval(%L, 5)', name));
        EXIT WHEN error = 'none';
        RETURN NEXT regexp_replace(error, 'counter, \d+', 'counter, N');
        EXECUTE format('SELECT concat_ws('' '', last_value, log_cnt, is_called) FROM %s', name::regclass) INTO state;
        RETURN NEXT '  unchanged: ' || state;
        EXECUTE substring(error FROM '\| Run: (.*);$');
    END LOOP;
    RETURN NEXT '  fixed: the first ID has the seq ' || snowflake_seq(snowflake_currval(name));
END $$;

CREATE TABLE serials (id serial, small smallserial);
CREATE SEQUENCE five INCREMENT 5;
CREATE SEQUENCE down INCREMENT -1;
CREATE SEQUENCE round CYCLE;
CREATE SEQUENCE full_up MAXVALUE 1000000;
CREATE SCHEMA "Blog";
CREATE SEQUENCE "Blog"."Posts" AS int;
CREATE SEQUENCE all_wrong AS int INCREMENT 5 MAXVALUE 1000 CYCLE;
SELECT line FROM unnest(ARRAY['serials_id_seq', 'serials_small_seq', 'five', 'down', 'round', 'full_up', '"Blog"."Posts"', 'all_wrong'])
    WITH ORDINALITY AS names (name, n), fixed(name) WITH ORDINALITY AS lines (line, m)
ORDER BY n, m;
