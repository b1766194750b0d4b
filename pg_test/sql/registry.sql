-- Only the functions of a registry change its leases, and a person only what leases do not depend on.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
-- A registry's database needs no other extension.
DROP EXTENSION pg_snowflake;
CREATE EXTENSION pg_snowflake_registry;

\echo -- once a server has a lease
SELECT shard_id, granted FROM snowflake_registry.claim('{5}', 'db-1', '00000000-0000-4000-8000-000000000001', NULL,
    '00000000-0000-4000-8000-000000000002', clock_timestamp() + interval '5 min', '5 min');

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
DROP ROLE regress_registry_owner;
