-- A conversion and new partitions notice IDs of another layout.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\i :folder/data/wrong_layout.sql
SET client_min_messages = warning;
-- A conversion needs it.
SET default_transaction_isolation = 'read committed';

-- The error of a statement about a table. Its newest ID, the next one and the times vary.
CREATE FUNCTION refusal(statement text, table_name regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    newest text;
BEGIN
    EXECUTE format('SELECT max(id) FROM %s', table_name) INTO newest;
    RETURN regexp_replace(regexp_replace(replace(error_of(statement), newest, 'NEWEST'), '\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00)', 'TIME', 'g'),
                          'about \d+', 'about NEXT');
END $$;

\echo -- the IDs of every other preset convert only with their layout
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT copied_nextval('photos_id_seq', 5), n int);
INSERT INTO photos (n) SELECT generate_series(1, 1000);
SELECT refusal($$SELECT snowflake_convert_column('photos', 'id', 5)$$, 'photos');
SELECT max(id) AS last FROM photos \gset
SELECT snowflake_convert_column('photos', 'id', 5, layout => 'instagram');
INSERT INTO photos DEFAULT VALUES RETURNING id > :last AS is_above, snowflake_shard_id(id, 'instagram');
DROP TABLE photos;

SELECT refusal(format('SELECT snowflake_convert_column(''of_%s'', ''id'', %s)', preset, shard), ('of_' || preset)::regclass) FROM presets;
-- Without the warning that the shard number of the rows goes on.
CREATE FUNCTION converted(preset text, shard int, OUT is_above boolean, OUT shard_id int) LANGUAGE plpgsql SET client_min_messages = error AS $$
DECLARE
    last bigint;
    next bigint;
BEGIN
    EXECUTE format('SELECT max(id) FROM of_%s', preset) INTO last;
    PERFORM snowflake_convert_column(('of_' || preset)::regclass, 'id', shard, layout => preset::snowflake_layout);
    EXECUTE format('INSERT INTO of_%s DEFAULT VALUES RETURNING id', preset) INTO next;
    is_above := next > last;
    shard_id := snowflake_shard_id(next, preset::snowflake_layout);
END $$;
SELECT preset, converted.* FROM presets, converted(preset, shard) \g (tuples_only=off format=aligned)

\echo -- numbers that are not IDs convert without a layout
CREATE FUNCTION converts(id text) RETURNS regclass LANGUAGE plpgsql SET client_min_messages = error AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS numbers; CREATE TABLE numbers (id bigint PRIMARY KEY);
                    INSERT INTO numbers SELECT %s FROM generate_series(1, 1000) AS n', id);
    RETURN snowflake_convert_column('numbers', 'id', 5);
END $$;
\echo -- a serial, Unix times in seconds and in microseconds, negative numbers, and IDs
SELECT id, converts(id) FROM (VALUES (1, 'n'), (2, '1795392000 + n'), (3, '1795392000000000 + n'), (4, '-n'),
    (5, 'snowflake_min_id(now() - n * interval ''1 min'') + n')) AS numbers (n, id) ORDER BY n;

\echo -- an idle table converts with its layout or with its sequence
-- IDs of the layout postgres of 350 days ago read as those of now in twitter.
CREATE SEQUENCE idle_id_seq;
CREATE TABLE idle (id bigint PRIMARY KEY);
INSERT INTO idle SELECT snowflake_encode(now() - interval '350 days', 5, n) FROM generate_series(1, 10) AS n;
SELECT refusal($$SELECT snowflake_convert_column('idle', 'id', 5)$$, 'idle');
\echo -- its own sequence has come to the newest ID
BEGIN;
ALTER SEQUENCE idle_id_seq OWNED BY idle.id;
ALTER TABLE idle ALTER id SET DEFAULT snowflake_nextval('idle_id_seq', 5);
SELECT setval('idle_id_seq', (SELECT max(id) >> 12 FROM idle)) AS newest \gset
SELECT snowflake_convert_column('idle', 'id', 5);
ROLLBACK;
\echo -- with the layout, a warning, whose figures vary
\set VERBOSITY terse
SELECT snowflake_convert_column('idle', 'id', 5, 'postgres');
\set VERBOSITY default
\echo -- one row shows no layout; its figures vary
DROP TABLE idle;
CREATE TABLE idle (id bigint PRIMARY KEY);
INSERT INTO idle VALUES (snowflake_encode(now() - interval '350 days', 5, 1));
\set VERBOSITY terse
SELECT snowflake_convert_column('idle', 'id', 5);
\set VERBOSITY default
DROP TABLE idle;

\echo -- a row above all IDs is named
CREATE TABLE events (id bigint PRIMARY KEY);
INSERT INTO events SELECT snowflake_encode(now() - interval '1 day', 5, n) FROM generate_series(1, 20) AS n;
INSERT INTO events VALUES (4000000000000000000);
SELECT refusal($$SELECT snowflake_convert_column('events', 'id', 5)$$, 'events');
INSERT INTO events VALUES (4000000000000000001);
SELECT refusal($$SELECT snowflake_convert_column('events', 'id', 5)$$, 'events');
DROP TABLE events;

\echo -- partitions of another layout than that of the IDs
CREATE SEQUENCE s;
CREATE SEQUENCE made;
CREATE TABLE photos (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE photos_rest PARTITION OF photos DEFAULT;
INSERT INTO photos SELECT copied_nextval('made', 5) FROM generate_series(1, 1000);
SELECT refusal($$SELECT * FROM snowflake_create_partitions('photos', '1 year', 0)$$, 'photos');
SELECT table_name, count(*) > 0 AS is_reported FROM snowflake_create_partitions('photos', '1 year', 0, 'instagram') GROUP BY 1;
ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('s', 5);
SELECT refusal($$SELECT * FROM snowflake_create_partitions('photos', '1 year', 0)$$, 'photos');
\echo -- with the layout, a row says so; its figures vary
SELECT regexp_replace(message, '\d{10,}.*?"\. ', '… ') AS warning
FROM snowflake_create_partitions('photos', '1 year', 0, 'postgres') WHERE action = 'warning';
\echo -- in a partition that is partitioned itself
CREATE TABLE below (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE below_rest PARTITION OF below DEFAULT;
INSERT INTO below SELECT id FROM photos;
DELETE FROM photos;
ALTER TABLE photos DETACH PARTITION photos_rest;
ALTER TABLE photos ATTACH PARTITION below DEFAULT;
ALTER TABLE photos ALTER id DROP DEFAULT;
SELECT refusal($$SELECT * FROM snowflake_create_partitions('photos', '1 year', 0)$$, 'photos');
DROP TABLE photos, photos_rest;
\echo -- a default of their layout
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5, 'instagram')) PARTITION BY RANGE (id);
CREATE TABLE photos_rest PARTITION OF photos DEFAULT;
INSERT INTO photos SELECT copied_nextval('made', 5) FROM generate_series(1, 1000);
SELECT table_name, count(*) > 0 AS is_reported FROM snowflake_create_partitions('photos', '1 year', 0) GROUP BY 1;
DROP TABLE photos;

\echo -- those of an idle table are created if its sequence generated the IDs
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)) PARTITION BY RANGE (id);
CREATE TABLE posts_old PARTITION OF posts FOR VALUES FROM (0) TO (snowflake_min_id(now() - interval '1 year'));
CREATE TABLE posts_last PARTITION OF posts
    FOR VALUES FROM (snowflake_min_id(now() - interval '1 year')) TO (snowflake_min_id(now() - interval '340 days'));
INSERT INTO posts SELECT snowflake_encode(now() - interval '350 days', 5, n) FROM generate_series(1, 2) AS n;
SELECT refusal($$SELECT * FROM snowflake_create_partitions('posts', '1 day', 0)$$, 'posts');
SELECT setval('s', (SELECT max(id) >> 12 FROM posts)) AS newest \gset
SELECT refusal($$SELECT * FROM snowflake_create_partitions('posts', '1 day', 0)$$, 'posts');
DROP TABLE posts;

\echo -- odd rows do not stop the partitions of a column whose default generates
CREATE SEQUENCE events_id_seq;
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval('events_id_seq', 5), n int) PARTITION BY RANGE (id);
CREATE FUNCTION created() RETURNS text LANGUAGE sql AS
$$SELECT string_agg(DISTINCT action, ' ') FROM snowflake_create_partitions('events', '1 year', 0)$$;
SELECT created();
INSERT INTO events (n) SELECT generate_series(1, 20);
\echo -- in a partition
CREATE TABLE events_later PARTITION OF events FOR VALUES FROM (3900000000000000000) TO (MAXVALUE);
INSERT INTO events VALUES (4000000000000000000);
SELECT created();
SELECT message FROM snowflake_create_partitions('events', '1 year', 0) WHERE action = 'warning';
\echo -- in the default partition
ALTER TABLE events DETACH PARTITION events_later;
CREATE TABLE events_rest PARTITION OF events DEFAULT;
INSERT INTO events VALUES (4000000000000000000);
SELECT created();
\echo -- as many as there are
INSERT INTO events SELECT 4000000000000000000 - n FROM generate_series(1, 100) AS n;
SELECT created();
\echo -- a default that generates none: most of the newest rows, also if the layout is passed, and one row
ALTER TABLE events ALTER id DROP DEFAULT;
SELECT refusal('SELECT created()', 'events');
SELECT string_agg(DISTINCT action, ' ') FROM snowflake_create_partitions('events', '1 year', 0, 'postgres');
DELETE FROM events_rest WHERE id < 4000000000000000000;
SELECT created();
DROP TABLE events, events_later;
