-- The fences: pg_snowflake.owned_shards and pg_snowflake.allowed_hosts.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
CREATE SEQUENCE s;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));

\echo -- a value is shown as it was set
SELECT set_config('pg_snowflake.owned_shards', value, true) FROM unnest('{"",5," 300, 0-127 ",0-2147483647}'::text[]) AS value;
SELECT set_config('pg_snowflake.allowed_hosts', value, true) FROM unnest('{"","db-1, DB_2,db-3.example.com"}'::text[]) AS value;

\echo -- an invalid one is refused, also for the configuration file: the message is that of core, the detail and the hint are ours
SELECT error_of(format('SET pg_snowflake.%s = %L', setting, value))
FROM (VALUES ('owned_shards', '{five,5;6,-5,5-,6-5,2147483648," ","5,","5,,6"}'::text[]),
    ('allowed_hosts', '{" ","db 7",db-1;db-2,*,",db-1"}')) AS settings (setting, values), unnest(values) AS value;
ALTER SYSTEM SET pg_snowflake.owned_shards = '5;6'; \echo :SQLSTATE
ALTER SYSTEM SET pg_snowflake.allowed_hosts = '*'; \echo :SQLSTATE

\echo -- the detail of an error repeats only the beginning of a long value
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
ORDER BY setting, part COLLATE "C" \g (tuples_only=off format=aligned)

\echo -- a shard that is not owned
SET pg_snowflake.owned_shards = '5';
-- a refusal takes nothing
SELECT concat_ws(' ', last_value, log_cnt, is_called) AS before FROM s \gset
SELECT error_of('SELECT ' || call) FROM unnest(ARRAY[$$snowflake_nextval('s', 6)$$, $$snowflake_nextvals('s', 6, 10)$$]) AS call;
SELECT concat_ws(' ', last_value, log_cnt, is_called) = :'before' AS is_unchanged FROM s;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));

\echo -- a layout without a shard field generates IDs for shard 0
SELECT error_of($$SELECT snowflake_nextval('s', 0, 'mastodon')$$);

\echo -- by a literal, by the setting and as a batch: the shards of the IDs, or the errors
CREATE FUNCTION shards_of(owned text, shard int, layout snowflake_layout DEFAULT 'postgres') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    call text;
    found text;
    all_found text;
BEGIN
    -- setting it, even to the same value, would repair a fence that is not the one that is shown
    IF owned IS NOT NULL THEN PERFORM set_config('pg_snowflake.owned_shards', owned, true); END IF;
    PERFORM set_config('pg_snowflake.shard_id', shard::text, true);
    FOREACH call IN ARRAY ARRAY['snowflake_nextval(''s'', %1$s, %2$L)', 'snowflake_nextval(''s'')',
        'snowflake_nextvals(''s'', %1$s, 1, %2$L)'] LOOP
        BEGIN
            CONTINUE WHEN layout <> 'postgres' AND call = 'snowflake_nextval(''s'')';
            EXECUTE format('SELECT snowflake_shard_id(' || call || ', %2$L)', shard, layout) INTO found;
        EXCEPTION WHEN OTHERS THEN
            found := SQLSTATE || ' ' || SQLERRM;
        END;
        all_found := concat_ws(', ', all_found, nullif(found, all_found));
    END LOOP;
    RETURN all_found;
END $$;
SELECT owned, string_agg(shards_of(owned, shard), ' | ')
FROM (VALUES (1, '', '{0,5,4095}'::int[]), (2, '5', '{5,0,4,6,4095}'), (3, '0', '{0,1}'), (4, '0-127,300', '{0,1,127,300,128,299,301}'),
    (5, '300, 0-127', '{0,127,300,128}'), (6, '4095-2147483647', '{4095,4094}')) AS cases (n, owned, shards), unnest(shards) AS shard
GROUP BY n, owned ORDER BY n;
SELECT string_agg(name, ' ') AS layouts, shards_of('5', 6, name::snowflake_layout) AS error
FROM snowflake_layouts WHERE shards > 6 GROUP BY error;

\echo -- the one in force is the one that is shown, in a transaction too
CREATE FUNCTION in_force() RETURNS text LANGUAGE sql AS $$
    SELECT current_setting('pg_snowflake.owned_shards') || ': ' || string_agg(shards_of(NULL, shard), ' | ')
    FROM unnest('{5,6}'::int[]) AS shard
$$;
BEGIN;
SET LOCAL pg_snowflake.owned_shards = '6';
SELECT in_force();
SAVEPOINT a;
SET LOCAL pg_snowflake.owned_shards = '5';
SELECT in_force();
ROLLBACK TO a;
SELECT in_force();
ROLLBACK;
SELECT in_force();
BEGIN;
SET pg_snowflake.owned_shards = '6';
COMMIT;
SELECT in_force();
RESET pg_snowflake.owned_shards;
SELECT in_force();
SET pg_snowflake.owned_shards = '5';

\echo -- a column is not converted
CREATE TABLE posts (id serial);
SELECT error_of($$SELECT snowflake_convert_column('posts', 'id', 6)$$);
SET pg_snowflake.shard_id = 6;
SELECT replace(error_of($$SELECT snowflake_convert_column('posts', 'id')$$), quote_ident(current_database()), '<database>');
RESET pg_snowflake.shard_id;
SELECT snowflake_convert_column('posts', 'id', 5);
INSERT INTO posts DEFAULT VALUES RETURNING snowflake_shard_id(id);
DROP TABLE posts;
RESET pg_snowflake.owned_shards;

\echo -- IDs that are cached are not returned either
CREATE SEQUENCE cached CACHE 1000;
SELECT snowflake_shard_id(snowflake_nextval('cached', 6));
SET pg_snowflake.owned_shards = '5';
SELECT error_of($$SELECT snowflake_nextval('cached', 6)$$);
\echo -- the last one still is
SELECT snowflake_shard_id(snowflake_currval('cached'));
RESET pg_snowflake.owned_shards;

\echo -- the error repeats only the beginning of a long list, and a command without it does not look complete
CREATE FUNCTION error_under(setting text, list text, OUT detail_is_short boolean, OUT hint_is_short boolean, OUT hint_has_list boolean)
LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    PERFORM set_config(setting, list, true), snowflake_nextval('s', 6);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    detail_is_short := octet_length(detail) < 1000;
    hint_is_short := octet_length(hint) < 1000;
    hint_has_list := strpos(hint, '= ''<the current list>, ') = 0;
END $$;
SELECT list, error_under.* FROM (VALUES ('owned_shards', '5'), ('allowed_hosts', 'db-1')) AS lists (setting, list),
    error_under('pg_snowflake.' || setting, list || repeat(', ' || list, 10000)) \g (tuples_only=off format=aligned)

\echo -- a CHECK refuses rows of other shards, but not older small IDs
CREATE TABLE posts (id bigint PRIMARY KEY);
INSERT INTO posts SELECT generate_series(1, 1000);
ALTER TABLE posts ADD CONSTRAINT posts_id_is_of_shard_5
    CHECK (id < snowflake_min_id('2012-01-01 00:00+00') OR snowflake_shard_id(id) = 5);
INSERT INTO posts SELECT snowflake_nextval('s', 5);
UPDATE posts SET id = id + 1000000 WHERE id = 7;
SELECT split_part(error_of($$INSERT INTO posts SELECT snowflake_nextval('s', 6)$$), ' | ', 1);

\echo -- a value that was set before the library was loaded
\c -
SET pg_snowflake.owned_shards = '5-';
SELECT error_of($$SELECT snowflake_nextval('s', 5)$$);
\c -
SET pg_snowflake.allowed_hosts = 'db 7';
SELECT error_of($$SELECT snowflake_nextval('s', 5)$$);
