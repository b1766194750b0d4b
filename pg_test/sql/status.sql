-- snowflake_sequence_status(): what it shows of a sequence.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql

\echo -- the last ID
CREATE SEQUENCE s CACHE 64;
SELECT last_id_at IS NULL FROM snowflake_sequence_status('s');  -- never called
SELECT snowflake_nextval('s', 5) AS id \gset
SELECT last_id_at = snowflake_created_at(:id) AS is_of_the_id FROM snowflake_sequence_status('s');

\echo -- in the layout that is passed
CREATE SEQUENCE of_sonyflake;
SELECT snowflake_nextval('of_sonyflake', 5, 'sonyflake') AS id \gset
SELECT last_id_at = snowflake_created_at(:id, 'sonyflake') AS is_of_the_id, status.ends_at = info.ends_at AS same_end
FROM snowflake_sequence_status('of_sonyflake', 'sonyflake') AS status, snowflake_layout_info('sonyflake') AS info;

\echo -- it takes and writes nothing, keeps no lock, and can be read in a transaction that may not write
CREATE FUNCTION wal() RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) SELECT snowflake_sequence_status(''s'')' INTO plan;
    RETURN plan->0->'Plan'->'WAL Bytes';
END $$;
SELECT concat_ws(' ', last_value, log_cnt, is_called) AS before FROM s \gset
CHECKPOINT;
BEGIN READ ONLY;
SELECT wal(), pg_current_xact_id_if_assigned() AS xact, (SELECT count(*) FROM pg_locks WHERE relation = 's'::regclass) AS locks
    \g (tuples_only=off)
COMMIT;
SELECT concat_ws(' ', last_value, log_cnt, is_called) = :'before' AS is_unchanged FROM s;

\echo -- the state and the options of the sequence
CREATE UNLOGGED SEQUENCE u;
SELECT last_value, is_called, cache, logged FROM snowflake_sequence_status('u') \g (tuples_only=off)
SELECT t.last_value = s.last_value AS same_last_value, t.is_called, t.cache, t.logged
FROM snowflake_sequence_status('s') AS t, s \g (tuples_only=off)

\echo -- the lead
CREATE SEQUENCE passed;
SELECT count(snowflake_nextval('passed', 5)), pg_sleep(0.1) \g /dev/null
SELECT lead, error FROM snowflake_sequence_status('passed');

\echo -- ahead of the clock: the error is that of a call, except for what the session may do
CREATE SEQUENCE ahead;
SELECT setval('ahead', snowflake_min_id(now() + interval '50 minutes') >> 12, false) > 0 AS is_ahead;
SELECT lead BETWEEN '30 minutes' AND '60 minutes' AS lead_ok,
       regexp_replace(error, '[\d.]+ minutes', '<lead>', 'g') AS error
FROM snowflake_sequence_status('ahead');
SET pg_snowflake.max_lead = '2h';
SELECT error FROM snowflake_sequence_status('ahead');

\echo -- each ID ahead of the clock leaves one less
SELECT ids_left AS before FROM snowflake_sequence_status('ahead') \gset
SELECT count(*) FROM snowflake_nextvals('ahead', 5, 3);
SELECT :before - ids_left AS taken FROM snowflake_sequence_status('ahead');
RESET pg_snowflake.max_lead;

\echo -- what was set to a number that is not a counter is recognized by its time
CREATE SEQUENCE wrong;
CREATE FUNCTION after(statement text, status_layout snowflake_layout DEFAULT 'postgres') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'DROP SEQUENCE wrong; CREATE SEQUENCE wrong';
    EXECUTE statement;
    RETURN regexp_replace(error, '[\d.]+ days', '<lead>', 'g') FROM snowflake_sequence_status('wrong', status_layout);
END $$;
CREATE FUNCTION recognized(statement text, status_layout snowflake_layout DEFAULT 'postgres') RETURNS text LANGUAGE sql AS $$
    SELECT substring(regexp_replace(after(statement, status_layout), ' with time [-\dT:.]+Z', ''), 'last_value, \d+, (is [^.]+)')
$$;
SELECT regexp_replace(regexp_replace(after($$SELECT setval('wrong', snowflake_min_id(now()) + 5)$$), 'last_value, \d+', 'last_value, <ID>'),
    'time [-\dT:.]+Z', 'time <time>') AS error;
CREATE TABLE statements (n serial, statement text, layout snowflake_layout);
INSERT INTO statements (layout, statement) VALUES
    ('postgres', $$SELECT setval('wrong', snowflake_min_id(now()) + 6, false)$$),
    ('postgres', format('ALTER SEQUENCE wrong RESTART WITH %s', snowflake_min_id(now()) + 6)),
    ('twitter', $$SELECT setval('wrong', snowflake_min_id(now(), 'twitter'))$$),
    ('postgres', $$SELECT setval('wrong', snowflake_min_id(now() - interval '5 years'))$$),
    ('postgres', $$SELECT setval('wrong', snowflake_min_id(now(), 'instagram'))$$),
    ('postgres', $$SELECT snowflake_nextval('wrong', 0, 'mastodon')$$),
    ('postgres', $$SELECT setval('wrong', (extract(epoch FROM now()) * 1e6)::bigint)$$),
    -- not recognized
    ('postgres', $$SELECT setval('wrong', 8000000000000000000)$$),
    ('postgres', $$SELECT setval('wrong', snowflake_min_id(now() + interval '1 year') >> 12)$$),
    -- no lead
    ('postgres', $$SELECT setval('wrong', extract(epoch FROM now())::bigint)$$),
    ('mastodon', $$SELECT setval('wrong', snowflake_min_id(now(), 'mastodon'))$$);
SELECT regexp_replace(statement, '\d{18,19}$', '<ID>') AS statement, layout, recognized(statement, layout),
    after(statement, layout) ~ 'ahead' AS is_ahead
FROM statements ORDER BY n \g (tuples_only=off)
SELECT after(statement) FROM statements WHERE n = 8;

\echo -- the IDs that are left
\echo -- from the clock to the end of the layout, whose last tick is 2^41 - 1
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS before \gset
SELECT ids_left FROM snowflake_sequence_status('s') \gset
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS after \gset
SELECT :ids_left BETWEEN (1262304000000 + (1::bigint << 41) - (:after + 1)) * 1024
                     AND (1262304000000 + (1::bigint << 41) - :before) * 1024 AS ids_left_ok;

\echo -- none in a sequence that cannot hold the counter; the figure in the last error is a time
CREATE SEQUENCE small AS int;
CREATE SEQUENCE five INCREMENT 5;
CREATE SEQUENCE round CYCLE;
CREATE SEQUENCE low MAXVALUE 1000000;
SELECT regexp_replace(error, 'counter, \d+', 'counter, <counter>')
FROM unnest('{small,five,round,low}'::regclass[]) AS name, snowflake_sequence_status(name);
SELECT ids_left FROM snowflake_sequence_status('low');

\echo -- errors
CREATE TABLE posts (id bigint);
SELECT error_of(format('SELECT snowflake_sequence_status(%L)', name)) FROM unnest('{posts,99999}'::text[]) AS name;
SELECT snowflake_sequence_status(NULL) IS NULL;

\echo -- SELECT or USAGE is required
CREATE ROLE regress_status_reader;
CREATE FUNCTION error_with(privilege text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    error text;
BEGIN
    EXECUTE format('REVOKE ALL ON SEQUENCE u FROM regress_status_reader; GRANT %s ON SEQUENCE u TO regress_status_reader', privilege);
    SET LOCAL SESSION AUTHORIZATION regress_status_reader;
    error := error_of('SELECT snowflake_sequence_status(''u'')');
    SET LOCAL SESSION AUTHORIZATION DEFAULT;
    RETURN error;
END $$;
SET SESSION AUTHORIZATION regress_status_reader;
SELECT 'none', error_of('SELECT snowflake_sequence_status(''u'')');
RESET SESSION AUTHORIZATION;
SELECT privilege, error_with(privilege) FROM unnest('{UPDATE,SELECT,USAGE}'::text[]) AS privilege;
DROP OWNED BY regress_status_reader;
DROP ROLE regress_status_reader;
