-- The functions, types and operators need no search path, and objects of others in it do not replace theirs.

SET timezone = 'UTC';
DROP EXTENSION pg_snowflake;
CREATE SCHEMA ext;
CREATE EXTENSION pg_snowflake SCHEMA ext;

CREATE SCHEMA trap;
CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT NULL::boolean';
CREATE OPERATOR trap.>= (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR trap.< (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE FUNCTION trap.snowflake_min_id(timestamptz, ext.snowflake_layout) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';

CREATE SEQUENCE s;
CREATE TABLE cases (n serial, expression text);
INSERT INTO cases (expression) VALUES
    ('(ext.snowflake_decode(ID, ''twitter'')).shard_id'),
    ('ext.snowflake_between(ID, ''2024-01-01'', ''2024-01-02'', ''twitter'')'),
    ('ext.snowflake_between(ID, ''2023-12-31'', ''2024-01-01'', ''twitter'')'),
    ('ext.snowflake_between(ID, ''2024-01-01'', ''2024-01-02'')'),
    ('(SELECT count(*) FROM ext.snowflake_layouts WHERE name = ''twitter'')'),
    ('(ext.snowflake_layout_info(''twitter'')).shards'),
    ('''twitter''::ext.snowflake_layout OPERATOR(ext.=) ''twitter'''),
    ('(ID)::ext.snowflake::bigint = ID'),
    ('ext.snowflake_shard_id(ext.snowflake_nextval(''public.s'', 3, ''twitter''), ''twitter'')');
CREATE FUNCTION value_of(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    value text;
BEGIN
    EXECUTE 'SELECT ' || replace(expression, 'ID', 'ext.snowflake_encode(''2024-01-01'', 5, 7, ''twitter'')') INTO value;
    RETURN value;
END $$;

SET search_path = '';
SELECT expression, public.value_of(expression) FROM public.cases ORDER BY n;
SET search_path = public;
SELECT expression, public.value_of(expression) FROM public.cases ORDER BY n;
SET search_path = trap, pg_catalog;
SELECT expression, public.value_of(expression) FROM public.cases ORDER BY n;
