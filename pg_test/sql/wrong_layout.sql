-- IDs of another layout than that of the default are noticed by the view of columns.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\i :folder/data/wrong_layout.sql

CREATE VIEW errors AS
SELECT table_name, substring(error, 'newest ID is probably of layout "\w+"') AS error FROM snowflake_columns ORDER BY table_name::text;

\echo -- the IDs of every other preset are reported, unless the default is of their layout
CREATE FUNCTION reported(preset text, shard int, layout text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE of_%1$s ALTER id SET DEFAULT snowflake_nextval(''s_%1$s'', %2$s, %3$L)', preset, shard, layout);
    RETURN error FROM snowflake_columns WHERE table_name = ('of_' || preset)::regclass;
END $$;
SELECT preset, substring(reported(preset, shard, 'postgres'), 'newest ID is probably of layout "\w+"') AS in_postgres,
       reported(preset, shard, preset) AS in_its_layout
FROM presets \g (tuples_only=off format=aligned)
SELECT format('DROP TABLE of_%s', preset) FROM presets \gexec

\echo -- before the default has generated an ID, and after
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT copied_nextval('photos_id_seq', 5), n int);
INSERT INTO photos (n) SELECT generate_series(1, 1000);
ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('photos_id_seq', 5);
\echo -- the whole error, whose ID and times vary
SELECT regexp_replace(replace(error, (SELECT max(id) FROM photos)::text, 'NEWEST'),
                      '\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00)', 'TIME', 'g') AS error
FROM snowflake_columns;
ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('photos_id_seq', 5, 'instagram');
SELECT 'a default of its layout', error FROM errors;
INSERT INTO photos DEFAULT VALUES;
SELECT 'that has generated', error FROM errors;
ALTER SEQUENCE photos_id_seq RESTART;
ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('photos_id_seq', 5);
INSERT INTO photos DEFAULT VALUES;
SELECT 'IDs of the wrong layout, below the others', error FROM errors;

\echo -- it is read from an index of all rows that begins with the column
ALTER TABLE photos DROP CONSTRAINT photos_pkey;
ALTER TABLE photos ALTER id DROP NOT NULL;
CREATE FUNCTION is_read(indexes text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    is_read boolean;
BEGIN
    EXECUTE indexes;
    is_read := error IS NOT NULL FROM snowflake_columns;
    RAISE SQLSTATE 'RB000';
EXCEPTION WHEN SQLSTATE 'RB000' THEN
    RETURN is_read;
END $$;
SELECT index, is_read(index) FROM (VALUES
    (1, ''),
    (2, 'CREATE INDEX i ON photos (id) WHERE n > 0'),
    (3, 'CREATE INDEX i ON photos ((id + 0))'),
    (4, 'CREATE INDEX i ON photos (n, id)'),
    (5, 'CREATE INDEX i ON photos USING hash (id)'),
    (6, 'CREATE INDEX i ON photos USING brin (id)'),
    (7, 'CREATE INDEX i ON photos (id)'),
    (8, 'CREATE INDEX i ON photos (id DESC)'),
    (9, 'CREATE INDEX i ON photos (id DESC NULLS LAST, n)'),
    (10, 'CREATE UNIQUE INDEX i ON photos (id) INCLUDE (n)'),
    -- at the end, nulls and rows that are deleted
    (11, 'CREATE INDEX i ON photos (id); INSERT INTO photos SELECT NULL, n FROM generate_series(1, 50) AS n'),
    (12, 'CREATE INDEX i ON photos (id); INSERT INTO photos SELECT 9223372036854775807 - n FROM generate_series(1, 50) AS n; '
         'DELETE FROM photos WHERE id > 5000000000000000000'),
    (13, 'CREATE INDEX i ON photos (id); INSERT INTO photos SELECT NULL, n FROM generate_series(1, 1000) AS n')
) AS cases (n, index) ORDER BY n;
DROP TABLE photos;
DROP SEQUENCE photos_id_seq;

\echo -- an idle column is not reported if its sequence generated the IDs
-- IDs of the layout postgres of 350 days ago read as those of now in twitter.
CREATE SEQUENCE idle_id_seq;
CREATE TABLE idle (id bigint PRIMARY KEY);
INSERT INTO idle SELECT snowflake_encode(now() - interval '350 days', 5, n) FROM generate_series(1, 10) AS n;
ALTER TABLE idle ALTER id SET DEFAULT snowflake_nextval('idle_id_seq', 5);
SELECT 'another sequence', error FROM errors;
SELECT setval('idle_id_seq', (SELECT max(id) >> 12 FROM idle)) AS newest \gset
SELECT 'its sequence', error FROM errors;
DROP TABLE idle;

\echo -- odd rows above those that the default has generated cause no error of the column
CREATE SEQUENCE events_id_seq;
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval('events_id_seq', 5), n int);
INSERT INTO events SELECT snowflake_encode(now() + interval '2 years', 5, 0);
SELECT 'one row', error FROM errors;
INSERT INTO events (n) SELECT generate_series(1, 20);
SELECT 'one of 21', error FROM errors;
INSERT INTO events SELECT snowflake_encode(now() + interval '2 years', 5, n) FROM generate_series(1, 1000) AS n;
SELECT 'one thousand', error FROM errors;
-- Before it has generated any, most of the newest rows count.
ALTER SEQUENCE events_id_seq RESTART;
SELECT 'one thousand, and an unused sequence', error FROM errors;
DELETE FROM events WHERE id > snowflake_min_id(now() + interval '1 day') AND snowflake_seq(id) >= 9;
SELECT '9 of 29, behind many rows that are deleted', error FROM errors;
TRUNCATE events;
INSERT INTO events SELECT snowflake_encode(now() + interval '2 years', 5, n) FROM generate_series(1, 9) AS n;
INSERT INTO events SELECT snowflake_encode(now() - interval '1 hour', 5, n) FROM generate_series(1, 8) AS n;
SELECT '9 of 17, and an unused sequence', error FROM errors;
INSERT INTO events SELECT snowflake_encode(now() - interval '1 hour', 5, n) FROM generate_series(9, 20) AS n;
SELECT '9 of 29, and an unused sequence', error FROM errors;
DROP TABLE events;
DROP SEQUENCE events_id_seq;

\echo -- a partitioned table is reported once
CREATE SEQUENCE s;
CREATE TABLE by_id (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)) PARTITION BY RANGE (id);
CREATE TABLE old PARTITION OF by_id FOR VALUES FROM (0) TO (1000000000000000000);
CREATE TABLE recent PARTITION OF by_id FOR VALUES FROM (1000000000000000000) TO (5000000000000000000);
CREATE TABLE rest PARTITION OF by_id DEFAULT;
CREATE TABLE by_hash (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)) PARTITION BY HASH (id);
CREATE TABLE even PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE odd PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1) PARTITION BY HASH (id);
CREATE TABLE odder PARTITION OF odd FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO by_id SELECT copied_nextval('s', 5) FROM generate_series(1, 10);
INSERT INTO by_id VALUES (1), (2);
INSERT INTO by_hash SELECT id FROM by_id;
SELECT * FROM errors;
DROP TABLE by_id, by_hash;

\echo -- nobody sees the IDs of a column that they may not read
CREATE ROLE regress_wrong_layout_eve;
CREATE ROLE regress_wrong_layout_boss SUPERUSER;
CREATE FUNCTION who_sees(OUT eve boolean, OUT boss boolean) LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL SESSION AUTHORIZATION regress_wrong_layout_eve;
    eve := error IS NOT NULL FROM snowflake_columns;
    SET LOCAL SESSION AUTHORIZATION regress_wrong_layout_boss;
    boss := error IS NOT NULL FROM snowflake_columns;
    SET LOCAL SESSION AUTHORIZATION DEFAULT;
END $$;
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT copied_nextval('photos_id_seq', 5), n int);
INSERT INTO photos (n) SELECT generate_series(1, 1000);
ALTER TABLE photos ALTER id SET DEFAULT snowflake_nextval('photos_id_seq', 5);
SELECT 'nothing granted', * FROM who_sees();
-- It may have been dropped since the query began.
SET SESSION AUTHORIZATION regress_wrong_layout_eve;
SELECT 'a column that does not exist', _snowflake_layout_error('photos', 'dropped', 'postgres', NULL) IS NULL;
RESET SESSION AUTHORIZATION;
GRANT SELECT (n) ON photos TO regress_wrong_layout_eve;
SELECT 'another column', * FROM who_sees();
GRANT SELECT (id) ON photos TO regress_wrong_layout_eve;
SELECT 'the column, whose IDs the sequence may explain', * FROM who_sees();
GRANT SELECT ON SEQUENCE photos_id_seq TO regress_wrong_layout_eve;
SELECT 'the column and the sequence', * FROM who_sees();
CREATE SCHEMA hidden;
ALTER TABLE photos SET SCHEMA hidden;
SELECT 'but another schema', * FROM who_sees();
GRANT USAGE ON SCHEMA hidden TO regress_wrong_layout_eve;
SELECT 'the schema', * FROM who_sees();
ALTER TABLE hidden.photos ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON hidden.photos USING (true);
SELECT 'but row security', * FROM who_sees();
DROP TABLE hidden.photos;
DROP SCHEMA hidden;
DROP SEQUENCE photos_id_seq;
DROP ROLE regress_wrong_layout_eve, regress_wrong_layout_boss;

\echo -- no function of the owner of a table is called, as a trap for whoever reads the view
CREATE ROLE regress_wrong_layout_owner;
GRANT CREATE ON SCHEMA public TO regress_wrong_layout_owner;
SET SESSION AUTHORIZATION regress_wrong_layout_owner;
CREATE FUNCTION trap(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user <> 'regress_wrong_layout_owner' THEN RAISE 'called by %', current_user; END IF;
    RETURN n;
END $$;
CREATE SEQUENCE owned;
CREATE TABLE plain (id bigint DEFAULT snowflake_nextval('owned', 5));
INSERT INTO plain
SELECT (extract(epoch FROM now()) * 1000)::bigint - 1314220021721 << 23 | n * 2 FROM generate_series(1, 2) AS n;
CREATE INDEX ON plain (id) WHERE id > trap(5);
CREATE INDEX ON plain (trap(id), id);
CREATE TABLE secured (LIKE plain INCLUDING DEFAULTS);
INSERT INTO secured TABLE plain;
CREATE INDEX ON secured (id);
CREATE POLICY p ON secured USING (trap(id) > 0);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE TABLE parted (id bigint DEFAULT snowflake_nextval('owned', 5)) PARTITION BY LIST ((id % trap(2)));
CREATE TABLE part PARTITION OF parted FOR VALUES IN (0);
INSERT INTO parted TABLE plain;
CREATE INDEX ON parted (id);
SET SESSION AUTHORIZATION DEFAULT;
SELECT * FROM errors;
DROP TABLE plain, secured, parted;
DROP OWNED BY regress_wrong_layout_owner;
DROP ROLE regress_wrong_layout_owner;
