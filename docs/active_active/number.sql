LOAD 'pg_snowflake';
ALTER SYSTEM SET pg_snowflake.shard_id = 1;
SELECT pg_reload_conf();
