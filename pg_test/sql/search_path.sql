-- The functions, types and operators need no search path, and objects of others in it do not replace theirs.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
DROP EXTENSION pg_snowflake;
CREATE SCHEMA "My Extensions";
CREATE EXTENSION pg_snowflake SCHEMA "My Extensions";

CREATE SCHEMA trap;
CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT NULL::boolean';
CREATE OPERATOR trap.>= (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR trap.< (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE FUNCTION trap.snowflake_min_id(timestamptz, "My Extensions".snowflake_layout) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';

CREATE SEQUENCE s;
CREATE TABLE cases (n serial, expression text);
INSERT INTO cases (expression) VALUES
    ('("My Extensions".snowflake_decode(ID, ''twitter'')).shard_id'),
    ('"My Extensions".snowflake_between(ID, ''2024-01-01'', ''2024-01-02'', ''twitter'')'),
    ('"My Extensions".snowflake_between(ID, ''2023-12-31'', ''2024-01-01'', ''twitter'')'),
    ('"My Extensions".snowflake_between(ID, ''2024-01-01'', ''2024-01-02'')'),
    ('(SELECT count(*) FROM "My Extensions".snowflake_layouts WHERE name = ''twitter'')'),
    ('("My Extensions".snowflake_layout_info(''twitter'')).shards'),
    ('''twitter''::"My Extensions".snowflake_layout OPERATOR("My Extensions".=) ''twitter'''),
    ('(ID)::"My Extensions".snowflake::bigint = ID'),
    ('"My Extensions".snowflake_shard_id("My Extensions".snowflake_nextval(''public.s'', 3, ''twitter''), ''twitter'')');
CREATE FUNCTION value_of(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    value text;
BEGIN
    EXECUTE 'SELECT ' || replace(expression, 'ID', '"My Extensions".snowflake_encode(''2024-01-01'', 5, 7, ''twitter'')') INTO value;
    RETURN value;
END $$;

SET search_path = '';
SELECT expression, public.value_of(expression) FROM public.cases ORDER BY n;
\echo -- values that are others with another search path
ALTER TABLE public.cases ADD value text;
UPDATE public.cases SET value = public.value_of(expression);
SET search_path = public;
SELECT expression, value_of(expression) FROM cases WHERE value_of(expression) IS DISTINCT FROM value;
SET search_path = trap, pg_catalog;
SELECT expression, public.value_of(expression) FROM public.cases WHERE public.value_of(expression) IS DISTINCT FROM value;
