-- The fences: pg_snowflake.owned_shards and pg_snowflake.allowed_hosts.

CREATE SEQUENCE s;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));

--
-- Values. The message is core's, the detail and the hint are ours.
--

-- shown as it was set
SET pg_snowflake.owned_shards = '';
SHOW pg_snowflake.owned_shards;
SET pg_snowflake.owned_shards = '5';
SHOW pg_snowflake.owned_shards;
SET pg_snowflake.owned_shards = ' 300, 0-127 ';
SHOW pg_snowflake.owned_shards;
SET pg_snowflake.owned_shards = '0-2147483647';
SHOW pg_snowflake.owned_shards;
RESET pg_snowflake.owned_shards;
SET pg_snowflake.allowed_hosts = '';
SHOW pg_snowflake.allowed_hosts;
SET pg_snowflake.allowed_hosts = 'db-1, DB_2,db-3.example.com';
SHOW pg_snowflake.allowed_hosts;
RESET pg_snowflake.allowed_hosts;

-- invalid ones are refused, also for the configuration file
SET pg_snowflake.owned_shards = 'five'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = '5;6'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = '-5'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = '5-'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = '6-5'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = '2147483648'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = ' '; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.allowed_hosts = ' '; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = '5,'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.owned_shards = '5,,6'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.allowed_hosts = 'db 7'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.allowed_hosts = 'db-1;db-2'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.allowed_hosts = '*'; \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.allowed_hosts = ',db-1'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = 'five'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = '5;6'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = '-5'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = '5-'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = '6-5'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = '2147483648'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = '5,'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.owned_shards = '5,,6'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.allowed_hosts = 'db 7'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.allowed_hosts = 'db-1;db-2'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.allowed_hosts = '*'; \echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET pg_snowflake.allowed_hosts = ',db-1'; \echo :LAST_ERROR_SQLSTATE

-- an error repeats only the beginning of a long value, except for core's message
CREATE FUNCTION length_of_detail(setting text, value text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    PERFORM set_config(setting, value, false);
    RETURN NULL;
EXCEPTION WHEN invalid_parameter_value THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN octet_length(detail);
END $$;
SELECT setting, part, length_of_detail('pg_snowflake.' || setting, repeat(part, 1000) || '!') BETWEEN 1 AND 299 AS is_short
FROM (VALUES ('owned_shards'), ('allowed_hosts')) AS s (setting), (VALUES ('a '), ('1'), ('-')) AS v (part)
ORDER BY setting, part COLLATE "C";

--
-- A shard that is not owned
--
SET pg_snowflake.owned_shards = '5';

-- a refusal takes nothing
SELECT concat_ws(' ', last_value, log_cnt, is_called) AS before FROM s \gset
SELECT snowflake_nextval('s', 6); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_nextvals('s', 6, 10); \echo :LAST_ERROR_SQLSTATE
SELECT concat_ws(' ', last_value, log_cnt, is_called) = :'before' AS is_unchanged FROM s;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));

-- a layout without a shard field generates IDs for shard 0
SELECT snowflake_nextval('s', 0, 'mastodon'); \echo :LAST_ERROR_SQLSTATE

-- Raises the error of a statement, with another word for the name of the database in its hint.
CREATE PROCEDURE without_database(statement text) LANGUAGE plpgsql AS $$
DECLARE
    code text;
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail,
        HINT = replace(hint, quote_ident(current_database()), '<database>');
END $$;
\set SHOW_CONTEXT never

-- a column is not converted
CREATE TABLE posts (id serial);
SELECT snowflake_convert_column('posts', 'id', 6); \echo :LAST_ERROR_SQLSTATE
SET pg_snowflake.shard_id = 6;
CALL without_database($$SELECT snowflake_convert_column('posts', 'id')$$); \echo :LAST_ERROR_SQLSTATE
RESET pg_snowflake.shard_id;
SELECT snowflake_convert_column('posts', 'id', 5);
INSERT INTO posts DEFAULT VALUES RETURNING snowflake_shard_id(id);
DROP TABLE posts;
RESET pg_snowflake.owned_shards;

-- IDs that are cached are not returned either
CREATE SEQUENCE cached CACHE 1000;
SELECT snowflake_shard_id(snowflake_nextval('cached', 6));
SET pg_snowflake.owned_shards = '5';
SELECT snowflake_nextval('cached', 6); \echo :LAST_ERROR_SQLSTATE
RESET pg_snowflake.owned_shards;

--
-- A CHECK refuses rows of other shards, but not older small IDs
--
CREATE TABLE posts (id bigint PRIMARY KEY);
INSERT INTO posts SELECT generate_series(1, 1000);
ALTER TABLE posts ADD CONSTRAINT posts_id_is_of_shard_5
    CHECK (id < snowflake_min_id('2012-01-01 00:00+00') OR snowflake_shard_id(id) = 5);
INSERT INTO posts SELECT snowflake_nextval('s', 5);
UPDATE posts SET id = id + 1000000 WHERE id = 7;
\set VERBOSITY sqlstate
INSERT INTO posts SELECT snowflake_nextval('s', 6);
SELECT :'LAST_ERROR_MESSAGE' LIKE '%posts_id_is_of_shard_5%' AS names_it;
\set VERBOSITY default

--
-- A value that was set before the library was loaded
--
\c -
SET pg_snowflake.owned_shards = '5-';
SELECT snowflake_nextval('s', 5); \echo :LAST_ERROR_SQLSTATE
\c -
SET pg_snowflake.allowed_hosts = 'db 7';
SELECT snowflake_nextval('s', 5); \echo :LAST_ERROR_SQLSTATE
