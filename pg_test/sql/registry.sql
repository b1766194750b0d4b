-- Only the functions of a registry change its leases, and a person only what leases do not depend on.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
-- A registry's database needs no other extension.
DROP EXTENSION pg_snowflake;
CREATE EXTENSION pg_snowflake_registry;
\set helpers :folder '/data/registry.sql'
\i :helpers

\echo -- it has an ID once a server has a lease
SELECT snowflake_registry.id() IS NULL;
SELECT shard_id, granted FROM claim('{5}', 'db-1', 1, NULL, 2);
SELECT id = snowflake_registry.id() FROM snowflake_registry.identity;

\echo -- changes that are refused
SELECT change, split_part(error_of(change), ' | ', 1) FROM unnest(ARRAY[
    'INSERT INTO snowflake_registry.shards TABLE snowflake_registry.shards', 'DELETE FROM snowflake_registry.shards',
    'TRUNCATE snowflake_registry.shards', 'UPDATE snowflake_registry.shards SET ends = now()',
    'INSERT INTO snowflake_registry.identity TABLE snowflake_registry.identity', 'DELETE FROM snowflake_registry.identity',
    'TRUNCATE snowflake_registry.identity', 'UPDATE snowflake_registry.identity SET quiet_until = now()',
    'DELETE FROM snowflake_registry.nodes', 'TRUNCATE snowflake_registry.nodes',
    'UPDATE snowflake_registry.nodes SET lost_serial = 1']) AS change;
\echo -- the whole error, as a replica
SET session_replication_role = replica;
SELECT error_of('DELETE FROM snowflake_registry.shards');
RESET session_replication_role;

\echo -- changes that are allowed
UPDATE snowflake_registry.identity SET longest_lease = '10 s';
UPDATE snowflake_registry.nodes SET role = current_user;
INSERT INTO snowflake_registry.nodes VALUES ('db-9', current_user);
SELECT shard_id, node, serial > 0 AS has_serial, ends > clock_timestamp() AS is_held, quiet_until > clock_timestamp() AS is_quiet, longest_lease
FROM snowflake_registry.shards, snowflake_registry.identity \g (tuples_only=off)

\echo -- nobody has a privilege at first, even if new objects of the superuser are granted to everybody, or to a role
CREATE ROLE regress_registry_other;
CREATE FUNCTION granted() RETURNS SETOF name LANGUAGE sql AS $$
    SELECT 'schema' WHERE has_schema_privilege('regress_registry_other', 'snowflake_registry', 'USAGE, CREATE')
    UNION ALL
    SELECT relname FROM pg_class WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind IN ('r', 'v')
        AND (has_table_privilege('regress_registry_other', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            OR has_any_column_privilege('regress_registry_other', oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
    UNION ALL
    SELECT proname FROM pg_proc
    WHERE pronamespace = 'snowflake_registry'::regnamespace AND has_function_privilege('regress_registry_other', oid, 'EXECUTE') $$;
SELECT granted();
SELECT unnest(ARRAY['BEGIN', 'DROP EXTENSION pg_snowflake_registry', 'ALTER DEFAULT PRIVILEGES GRANT ALL ON ' || grants,
    'CREATE EXTENSION pg_snowflake_registry', 'SELECT granted()', 'ROLLBACK'])
FROM unnest(ARRAY['TABLES TO PUBLIC', 'FUNCTIONS TO PUBLIC', 'SCHEMAS TO PUBLIC', 'TABLES TO regress_registry_other WITH GRANT OPTION',
    'FUNCTIONS TO regress_registry_other', 'SCHEMAS TO regress_registry_other']) AS grants \gexec

\echo -- a role may do what was granted to it, and nothing else
CREATE ROLE regress_registry_node;
CREATE ROLE regress_registry_reader;
GRANT USAGE ON SCHEMA snowflake_registry TO regress_registry_node, regress_registry_reader;
GRANT EXECUTE ON FUNCTION snowflake_registry.id, snowflake_registry.claim, snowflake_registry.release TO regress_registry_node;
GRANT SELECT ON snowflake_registry.leases TO regress_registry_reader;
CREATE TABLE statements AS SELECT unnest(ARRAY['SELECT snowflake_registry.id()',
    $$SELECT snowflake_registry.claim('{6}', 'db-6', gen_random_uuid(), NULL, gen_random_uuid(), clock_timestamp() + interval '5 min', '5 min')$$,
    $$SELECT snowflake_registry.release(gen_random_uuid(), '{6}', '{1}', now())$$, 'TABLE snowflake_registry.leases',
    $$SELECT snowflake_registry.take_over(5, 'db-2')$$, $$SELECT snowflake_registry.retire('db-2')$$, 'SELECT snowflake_registry.end_quiet_time()',
    'TABLE snowflake_registry.shards', 'TABLE snowflake_registry.nodes', 'TABLE snowflake_registry.identity',
    'INSERT INTO snowflake_registry.shards SELECT * FROM snowflake_registry.shards', 'UPDATE snowflake_registry.shards SET ends = now()',
    'UPDATE snowflake_registry.leases SET ends = now()', 'DELETE FROM snowflake_registry.shards', 'TRUNCATE snowflake_registry.identity',
    'UPDATE snowflake_registry.identity SET quiet_until = NULL', 'CREATE TABLE snowflake_registry.planted ()',
    'CREATE TRIGGER t BEFORE UPDATE ON snowflake_registry.shards EXECUTE FUNCTION suppress_redundant_updates_trigger()']) AS statement;
GRANT SELECT ON statements TO PUBLIC;
-- A function refuses (55000) only a role that may call it: claim() does if it comes too late, on a slow machine.
SELECT unnest(ARRAY['SET ROLE regress_registry_' || role, $$SELECT current_user, error, count(*),
    string_agg(statement, '; ') FILTER (WHERE error = 'none')
    FROM (SELECT statement, replace(split_part(error_of(statement), ' ', 1), '55000', 'none') AS error FROM statements) AS tried GROUP BY error ORDER BY error$$, 'RESET ROLE'])
FROM unnest('{node,reader,other}'::text[]) AS role \gexec
\echo -- the view lacks the serial, the nonce and the incarnation, which prove that a server holds the lease
SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'snowflake_registry.leases'::regclass AND attnum > 0;

-- Each function that runs as its owner looks for names in no schema of others.
SELECT proname FROM pg_proc WHERE pronamespace = 'snowflake_registry'::regnamespace AND prosecdef
    AND proconfig IS DISTINCT FROM '{"search_path=pg_catalog, pg_temp"}';

-- It is neither created in a schema that exists, whose owner could put other tables in place of ours, nor by an ordinary role.
-- 19 prints the line of the script.
\set SHOW_CONTEXT never
DROP EXTENSION pg_snowflake_registry;
CREATE SCHEMA snowflake_registry;
CREATE EXTENSION pg_snowflake_registry;
DROP SCHEMA snowflake_registry;
CREATE ROLE regress_registry_owner;
GRANT CREATE ON DATABASE :"DBNAME" TO regress_registry_owner;
SET ROLE regress_registry_owner;
CREATE EXTENSION pg_snowflake_registry;
RESET ROLE;
REVOKE CREATE ON DATABASE :"DBNAME" FROM regress_registry_owner;
DROP ROLE regress_registry_owner, regress_registry_node, regress_registry_reader, regress_registry_other;

\echo -- it has its own schema, and no object in another one
CREATE SCHEMA other;
SET search_path = other;
CREATE EXTENSION pg_snowflake_registry SCHEMA other;
SET client_min_messages = 'warning';
DROP SCHEMA public CASCADE;
CREATE EXTENSION pg_snowflake_registry;
ALTER EXTENSION pg_snowflake_registry SET SCHEMA other;
SELECT pg_describe_object(classid, objid, 0) FROM pg_depend AS d
JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE extname = 'pg_snowflake_registry' AND deptype = 'e' AND classid <> 'pg_type'::regclass
    AND (pg_identify_object(classid, objid, 0)).identity !~ '^snowflake_registry(\.|$)';
DROP SCHEMA other CASCADE;
CREATE SCHEMA other;
\i :helpers
SELECT shard_id, granted FROM claim('{5}', 'db-1', 1, NULL, 2);
