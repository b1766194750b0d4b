-- The settings of a session. Errors of SET are core's.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
CREATE SEQUENCE s;

-- a shard that is passed overrides the setting
SET pg_snowflake.shard_id = 5;
SELECT snowflake_shard_id(snowflake_nextval('s'));
SELECT snowflake_shard_id(snowflake_nextval('s', 6));
RESET pg_snowflake.shard_id;

-- an ordinary user cannot change it
CREATE ROLE regress_settings_writer;
SET SESSION AUTHORIZATION regress_settings_writer;
\set VERBOSITY sqlstate
SET pg_snowflake.shard_id = 6;
SELECT :'LAST_ERROR_MESSAGE' LIKE '%pg_snowflake.shard_id%' AS names_it;
\set VERBOSITY default
RESET SESSION AUTHORIZATION;
DROP ROLE regress_settings_writer;

--
-- Misspelt settings
--

-- once the library is loaded, core refuses one
\set VERBOSITY sqlstate
SET pg_snowflake.shard = 6;
SELECT :'LAST_ERROR_MESSAGE' LIKE '%pg_snowflake.shard%' AS names_it;
\set VERBOSITY default

-- in a session that has not loaded it, core accepts any, and loading it is refused while one has a value
\c
SET pg_snowflake.owned_shard = '';
SELECT snowflake_nextval('s', 5); \echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
RESET pg_snowflake.owned_shard;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));
-- a short name may differ in more than half of it
\c
\set VERBOSITY default
SET pg_snowflake.shard = 5;
SELECT snowflake_nextval('s');
\set VERBOSITY sqlstate

-- one without a value does no harm; core warns of what it forgets
\c
SET pg_snowflake.owned_shard = '';
RESET pg_snowflake.owned_shard;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));
\c
BEGIN;
SET LOCAL pg_snowflake.owned_shard = 7;
COMMIT;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));
\c
BEGIN;
SET pg_snowflake.owned_shard = 7;
ROLLBACK;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));

-- that of the database
SELECT quote_ident(current_database()) AS database \gset
CREATE ROLE regress_settings_writer;
GRANT USAGE ON SEQUENCE s TO regress_settings_writer;
ALTER DATABASE :database SET pg_snowflake.shard_id = 0;
\c
SET SESSION AUTHORIZATION regress_settings_writer;
SELECT snowflake_shard_id(snowflake_nextval('s'));
RESET SESSION AUTHORIZATION;
ALTER DATABASE :database SET pg_snowflake.shard_id = 4095;
\c
SET SESSION AUTHORIZATION regress_settings_writer;
SELECT snowflake_shard_id(snowflake_nextval('s'));
RESET SESSION AUTHORIZATION;
ALTER DATABASE :database RESET pg_snowflake.shard_id;
DROP OWNED BY regress_settings_writer;
DROP ROLE regress_settings_writer;
