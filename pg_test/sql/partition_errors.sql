-- What snowflake_create_partitions() and snowflake_drop_partitions() refuse, at any time of the clock.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql

CREATE SEQUENCE ids;
CREATE TABLE posts (id bigint) PARTITION BY RANGE (id);
CREATE TABLE plain (id bigint);
CREATE VIEW v AS SELECT 1 AS id;
CREATE TABLE by_date (id bigint, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE by_two (id bigint, n bigint) PARTITION BY RANGE (id, n);
CREATE TABLE by_expression (id bigint) PARTITION BY RANGE ((id / 2));
CREATE TABLE by_int (id int) PARTITION BY RANGE (id);
CREATE TABLE by_list (id bigint) PARTITION BY LIST (id);
CREATE TABLE by_hash (id bigint) PARTITION BY HASH (id);
CREATE TABLE by_hash_0 PARTITION OF by_hash FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE FUNCTION backwards(bigint, bigint) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint8cmp($2, $1)';
CREATE OPERATOR CLASS backwards FOR TYPE bigint USING btree AS
    OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 backwards(bigint, bigint);
CREATE TABLE in_reverse (id bigint) PARTITION BY RANGE (id backwards);

-- The tables of the last section, whose default has one layout, and two.
CREATE TABLE of_postgres (id bigint DEFAULT snowflake_nextval('ids', 5, 'postgres')) PARTITION BY RANGE (id);
CREATE TABLE of_postgres_p20200601 PARTITION OF of_postgres
    FOR VALUES FROM (snowflake_min_id('2020-06-01 00:00+00')) TO (snowflake_min_id('2020-07-01 00:00+00'));
CREATE TABLE either (id bigint DEFAULT coalesce(snowflake_nextval('ids', 5, 'js53'), snowflake_nextval('ids', 5, 'twitter')))
    PARTITION BY RANGE (id);
CREATE TABLE either_p20200601 PARTITION OF either
    FOR VALUES FROM (snowflake_min_id('2020-06-01 00:00+00', 'js53')) TO (snowflake_min_id('2020-07-01 00:00+00', 'js53'));

CREATE TABLE relations_before (relname name);
INSERT INTO relations_before SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace;

\echo -- tables that are not partitioned by a range of their IDs
SELECT "table", error_of(format('SELECT snowflake_create_partitions(%s, ''1 day'')', "table"))
FROM unnest(ARRAY['NULL', '999999', '''plain''', '''v''',
    '''by_date''', '''by_two''', '''by_expression''', '''by_int''', '''by_list''', '''by_hash''', '''in_reverse''']) AS "table";
\echo -- steps
SELECT arguments, error_of(format('SELECT snowflake_create_partitions(''posts'', %s)', arguments))
FROM unnest(ARRAY['NULL', '''1 day'', NULL', '''59 minutes''',
    '''5 hours''', '''0''', '''-1 day''', '''1 day 1 hour''', '''101 years''', '''1 day'', -1', '''1 day'', 1001']) AS arguments;
\echo -- removal
SELECT arguments, error_of(format('SELECT snowflake_drop_partitions(%s)', arguments))
FROM unnest(ARRAY['NULL, ''1 day''', '''of_postgres'', NULL',
    '''of_postgres'', ''1 day'', NULL', '''plain'', ''1 day''', '''of_postgres'', ''0''', '''of_postgres'', ''-1 day''',
    '''of_postgres'', ''2 months -1 day''', '''of_postgres'', ''100000 years''']) AS arguments;
\echo -- a layout that is not that of the default
SELECT call, error_of('SELECT snowflake_' || call) FROM unnest(ARRAY['drop_partitions(''of_postgres'', ''1 month'', false, ''instagram'')',
    'create_partitions(''of_postgres'', ''1 month'', 1, ''js53'')', 'drop_partitions(''either'', ''1 month'')',
    'drop_partitions(''either'', ''1 month'', false, ''js53'')', 'create_partitions(''either'', ''1 month'', 1, ''instagram'')']) AS call;
\echo -- transactions
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT error_of('SELECT snowflake_create_partitions(''posts'', ''1 day'')');
ROLLBACK;
BEGIN READ ONLY;
SELECT error_of('SELECT snowflake_create_partitions(''posts'', ''1 day'')');
ROLLBACK;

\echo -- created or removed
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace EXCEPT SELECT relname FROM relations_before;
SELECT relname FROM relations_before EXCEPT SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace;

\echo -- one of the layouts of the default
SELECT DISTINCT action FROM snowflake_create_partitions('either', '1 month', 1, 'js53') ORDER BY action;
