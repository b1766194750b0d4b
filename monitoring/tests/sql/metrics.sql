-- What metrics.sql returns, and to whom.
\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\set metrics :folder '/data/metrics.sql'
SET client_min_messages = warning;
CREATE EXTENSION pg_snowflake_registry;
CREATE ROLE other; CREATE ROLE "A B";
CREATE SEQUENCE posts_id_seq;
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5));
INSERT INTO posts DEFAULT VALUES;
CREATE TABLE calls AS SELECT format('SELECT * FROM snowflake_metrics.%s()', name) AS call
FROM unnest('{columns,server,leases,partitions}'::text[]) AS name;
GRANT SELECT ON calls TO PUBLIC;
CREATE FUNCTION rows_of_each() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    count text;
    counts text := '';
    call text;
BEGIN
    FOR call IN SELECT c.call FROM public.calls AS c LOOP
        EXECUTE format('SELECT count(*) FROM (%s) AS rows', call) INTO count;
        counts := counts || ' ' || count;
    END LOOP;
    RETURN counts;
END $$;

\echo -- the functions, called by the exporter, by another role, and by that role with the privilege on the schema
\i :metrics
SET SESSION AUTHORIZATION snowflake_exporter;
SELECT error_of(call) FROM calls;
SET SESSION AUTHORIZATION other;
SELECT error_of(call) FROM calls;
RESET SESSION AUTHORIZATION;
GRANT USAGE ON SCHEMA snowflake_metrics TO other;
SET SESSION AUTHORIZATION other;
SELECT error_of(call) FROM calls;
\echo -- what the exporter cannot do, and the role that the functions run as
SET SESSION AUTHORIZATION snowflake_exporter;
SELECT error_of(statement)
FROM unnest(ARRAY['SELECT FROM posts', 'SELECT last_value FROM posts_id_seq', 'INSERT INTO posts DEFAULT VALUES',
    'SELECT snowflake_nextval(''posts_id_seq'', 5)', 'SELECT FROM snowflake_lease_status()', 'SELECT FROM snowflake_registry.shards',
    'SET ROLE snowflake_metrics', 'CREATE TABLE snowflake_metrics.t ()']) AS statement;
RESET SESSION AUTHORIZATION;
SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = 'snowflake_metrics'::regnamespace;
SET ROLE snowflake_metrics;
SELECT error_of(statement)
FROM unnest(ARRAY['INSERT INTO posts VALUES (1)', 'SELECT setval(''posts_id_seq'', 1)', 'CREATE TABLE snowflake_metrics.t ()']) AS statement;
RESET ROLE;

\echo -- default privileges let nobody else call the functions
DROP SCHEMA snowflake_metrics CASCADE;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO "A B";
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO "A B", PUBLIC;
\i :metrics
\i :metrics
SELECT DISTINCT kind, grantee::regrole, privilege_type
FROM (SELECT 'function' AS kind, proacl AS acl FROM pg_proc WHERE pronamespace = 'snowflake_metrics'::regnamespace
      UNION ALL SELECT 'schema', nspacl FROM pg_namespace WHERE nspname = 'snowflake_metrics') AS objects, aclexplode(acl)
ORDER BY 1, 2, 3;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM "A B";
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM "A B", PUBLIC;

\echo -- a lead that is too high names the column, and a MAXVALUE counts
\set columns 'SELECT table_name, count, with_error, max_lead_seconds BETWEEN 3000 AND 3600, min_ids_left < 2000000000, min_seconds_left > 1e9 FROM snowflake_metrics.columns();'
:columns
SELECT FROM (SELECT setval('posts_id_seq', last_value + 3600::bigint * 1024000) FROM posts_id_seq) AS an_hour;
:columns
SELECT format('ALTER SEQUENCE posts_id_seq MAXVALUE %s', last_value + 1000) FROM posts_id_seq \gexec
:columns
DROP TABLE posts;
DROP SEQUENCE posts_id_seq;

\echo -- twenty columns with an error have names; all others of a layout are one group
CREATE PROCEDURE create_tables(first int, last int, kind text, layout text) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN first..last LOOP
        EXECUTE format('CREATE SEQUENCE s%s AS %s', i, kind);
        EXECUTE format('CREATE TABLE t%s (id bigint DEFAULT snowflake_nextval(''s%1$s'', 5, %L))', i, layout);
    END LOOP;
END $$;
BEGIN;
CALL create_tables(100, 124, 'integer', 'postgres');
CALL create_tables(200, 206, 'bigint', 'postgres');
CALL create_tables(300, 302, 'bigint', 'twitter');
SELECT layout, count(*), sum(count), sum(with_error), min(table_name), max(table_name), max(sequence), max(column_name)
FROM snowflake_metrics.columns() GROUP BY layout, table_name = '' ORDER BY 1, 2;
ROLLBACK;

\echo -- the twenty layouts with the most columns have a group: one whose name is not the first, and one with an error
BEGIN;
SELECT format('CALL create_tables(%s, %1$s, ''bigint'', ''time:41 shard:10 seq:12 epoch:2024-01-%s unit:1ms'')', 100 + i, lpad(i::text, 2, '0'))
FROM generate_series(1, 24) AS i \gexec
CALL create_tables(300, 301, 'bigint', 'twitter');
CALL create_tables(400, 400, 'integer', 'time:41 shard:10 seq:12 epoch:2024-02-01 unit:1ms');
SELECT CASE WHEN layout LIKE '%2024-01%' THEN 'january' WHEN layout LIKE '%2024-02%' THEN 'february' ELSE layout END,
    table_name, count(*), sum(count), bool_and(ids_per_second = 4096000)
FROM snowflake_metrics.columns() GROUP BY 1, 2 ORDER BY 1;
ROLLBACK;

\echo -- of the tables that are partitioned by their IDs alone, the hundred whose partitions run out first
BEGIN;
CREATE SEQUENCE s;
-- Their bounds are texts of anybody.
CREATE TABLE t (id bigint DEFAULT snowflake_nextval('s', 5), note text) PARTITION BY RANGE (id, note);
CREATE TABLE p PARTITION OF t FOR VALUES FROM (0, '') TO (9223372036854775807, ') TO (junk');
CREATE TABLE u (id bigint DEFAULT snowflake_nextval('s', 5)) PARTITION BY RANGE (id);
SELECT table_name FROM snowflake_metrics.partitions();
SELECT format('CREATE TABLE t%s (id bigint DEFAULT snowflake_nextval(''s'', 5)) PARTITION BY RANGE (id)', i)
FROM generate_series(1, 102) AS i \gexec
CREATE TABLE p1 PARTITION OF t1 FOR VALUES FROM (0) TO (MAXVALUE);
SELECT format('CREATE TABLE p%s PARTITION OF t%1$s FOR VALUES FROM (0) TO (%s)', i, snowflake_min_id(now() + ahead::interval))
FROM (VALUES (2, '2 days'), (3, '1 day'), (4, '1 hour')) AS partitions (i, ahead) \gexec
SELECT count(*), string_agg(table_name, ' ') FILTER (WHERE ahead_seconds > 0) FROM snowflake_metrics.partitions();
ROLLBACK;

\echo -- partitions count up to the first gap
BEGIN;
CREATE SEQUENCE s;
CREATE TABLE t (id bigint DEFAULT snowflake_nextval('s', 5)) PARTITION BY RANGE (id);
CREATE FUNCTION hours_with(name text, first text, last text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    SELECT string_agg(CASE WHEN hours IN ('-Infinity', 'Infinity') THEN format('(%sVALUE)', CASE WHEN hours = '-Infinity' THEN 'MIN' ELSE 'MAX' END)
                      ELSE format('(%s)', snowflake_min_id(now() + hours::float8 * interval '1 hour')) END, ' TO ' ORDER BY n)
    INTO first FROM unnest(ARRAY[first, last]) WITH ORDINALITY AS bounds (hours, n);
    EXECUTE format('CREATE TABLE %s PARTITION OF t FOR VALUES FROM %s', name, first);
    RETURN (SELECT concat_ws(' | ', round(ahead_seconds / 3600), round(step_seconds / 3600)) FROM snowflake_metrics.partitions());
END $$;
SELECT ahead_seconds, step_seconds FROM snowflake_metrics.partitions();
SELECT name, hours_with(name, first, last)
FROM (VALUES ('of_the_past', '-Infinity', '-20'), ('of_the_present', '-20', '10'), ('after_a_gap', '20', '40'), ('in_the_gap', '10', '20'),
             ('of_the_future', '40', 'Infinity')) AS partitions (name, first, last);
ROLLBACK;

\echo -- objects in a schema that comes first in the search path are found, and not by the functions
CREATE SEQUENCE s;
CREATE TABLE parts (id snowflake DEFAULT snowflake_nextval('s', 5)) PARTITION BY RANGE (id);
SELECT FROM snowflake_create_partitions('parts', '1 day') LIMIT 1;
CREATE SCHEMA planted;
CREATE FUNCTION planted.caught() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE 'caught'; END $$;
CREATE FUNCTION planted.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT planted.caught()::text';
CREATE FUNCTION planted.regexp_match(text, text) RETURNS text[] LANGUAGE sql AS 'SELECT ARRAY[planted.caught()::text]';
CREATE FUNCTION planted.extract(text, interval) RETURNS numeric LANGUAGE sql AS 'SELECT planted.caught()::text::numeric';
CREATE FUNCTION planted.greater(interval, interval) RETURNS boolean LANGUAGE sql AS 'SELECT planted.caught() IS NULL';
CREATE OPERATOR planted.> (LEFTARG = interval, RIGHTARG = interval, FUNCTION = planted.greater);
CREATE FUNCTION planted.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT planted.caught() IS NULL';
CREATE OPERATOR planted.= (LEFTARG = text, RIGHTARG = text, FUNCTION = planted.equal);
CREATE FUNCTION planted.minus(timestamptz, timestamptz) RETURNS interval LANGUAGE sql AS 'SELECT planted.caught()::text::interval';
CREATE OPERATOR planted.- (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = planted.minus);
CREATE VIEW planted.pg_stat_activity AS SELECT *, planted.caught() FROM pg_catalog.pg_stat_activity;
CREATE VIEW planted.pg_inherits AS SELECT *, planted.caught() FROM pg_catalog.pg_inherits;
SET search_path = planted, public, pg_catalog;
DO $$ BEGIN PERFORM current_setting('work_mem'); EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END $$;
\i :metrics
SET SESSION AUTHORIZATION snowflake_exporter;
CREATE TEMPORARY TABLE pg_class AS SELECT 1;
CREATE TEMPORARY TABLE pg_inherits AS SELECT 1;
SELECT rows_of_each();
RESET SESSION AUTHORIZATION;
\c -
SET client_min_messages = warning;
DROP SCHEMA planted CASCADE;

\echo -- the extension has moved to another schema
CREATE SCHEMA moved;
ALTER EXTENSION pg_snowflake SET SCHEMA moved;
SELECT rows_of_each();

\echo -- without a registry, in a schema whose name needs quotes, after two runs
SET client_min_messages = warning;
DROP EXTENSION pg_snowflake CASCADE;
CREATE SCHEMA "A B";
CREATE EXTENSION pg_snowflake SCHEMA "A B";
\i :metrics
\i :metrics
SELECT rows_of_each();
SELECT max_lead_seconds, max_wait_seconds, leases_on, restart_needed FROM snowflake_metrics.server();

\echo -- the settings and fences of the database
\set settings 'SELECT max_lead_seconds, max_wait_seconds, owned_shards_set, allowed_hosts_set FROM snowflake_metrics.server();'
ALTER DATABASE :"DBNAME" SET pg_snowflake.max_lead = '2h';
ALTER DATABASE :"DBNAME" SET pg_snowflake.max_wait = 0;
ALTER DATABASE :"DBNAME" SET pg_snowflake.owned_shards = '5';
\c -
:settings
ALTER DATABASE :"DBNAME" RESET pg_snowflake.owned_shards;
\c -
:settings
ALTER DATABASE :"DBNAME" SET pg_snowflake.allowed_hosts = 'db-1';
\c -
:settings

\echo -- what docs/prometheus.md says removes everything
SET client_min_messages = warning;
DROP SCHEMA snowflake_metrics CASCADE;
DROP OWNED BY snowflake_exporter, snowflake_metrics;
DROP ROLE snowflake_exporter, snowflake_metrics;
DROP EXTENSION pg_snowflake;
