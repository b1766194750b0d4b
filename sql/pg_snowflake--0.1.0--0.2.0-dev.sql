-- From 0.1.0 to what comes next.
-- Whoever changes the SQL brings it here too; a test compares what comes out with a fresh installation.

-- complain where the script is sourced in psql instead of run by ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0-dev'" to load this file. \quit

-- The rate is that of a sequence, of which a shard may have many.
COMMENT ON FUNCTION snowflake_layout_info(snowflake_layout) IS
'a layout''s widths, first and last instant, number of shards, and ids per second of a sequence';

-- It also says that a default could not be read, or that its sequence is locked.
COMMENT ON COLUMN snowflake_columns.fault IS
'what a call would be refused with now, other than for a missing right, a read-only transaction or a standby; or why the row is incomplete';
