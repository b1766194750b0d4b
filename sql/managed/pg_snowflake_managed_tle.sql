-- Registers pg_snowflake_managed.sql as an extension with pg_tle, Trusted Language Extensions for PostgreSQL. In the folder of both files:
--
--     psql --set ON_ERROR_STOP=1 --single-transaction --file pg_snowflake_managed_tle.sql
--
-- Then: CREATE EXTENSION pg_snowflake_managed;

\set script `cat pg_snowflake_managed.sql`
SELECT pgtle.install_extension(
    'pg_snowflake_managed',
    '0.9.0-dev',
    'Snowflake IDs in plain SQL, compatible with the extension pg_snowflake',
    :'script');
