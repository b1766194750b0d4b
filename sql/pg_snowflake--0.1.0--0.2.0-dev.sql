-- From 0.1.0 to what comes next: nothing that is visible in SQL has changed yet.
-- Whoever changes the SQL brings it here too; a test compares what comes out with a fresh installation.

-- complain where the script is sourced in psql instead of run by ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0-dev'" to load this file. \quit
