-- Values that a column had before its conversion: first_id of snowflake_columns, and a search by time over both parts.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
SET client_min_messages = error;
SET pg_snowflake.shard_id = 5;
\set tsid '''time:42 shard:10 seq:12 epoch:2020-01-01 unit:1ms'''

-- What first_id of the column posts.id is after these statements, which may convert it.
CREATE FUNCTION boundary(statements text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    column_of record;
    found text;
    fresh bigint;
BEGIN
    EXECUTE statements;
    SELECT DISTINCT c.first_id, c.layout, count(*) AS columns INTO STRICT column_of
    FROM snowflake_columns AS c GROUP BY c.first_id, c.layout;
    INSERT INTO posts DEFAULT VALUES RETURNING id INTO fresh;
    SELECT CASE
            WHEN column_of.first_id IS NULL THEN 'none'
            WHEN column_of.first_id > fresh THEN 'above a new ID'
            WHEN column_of.first_id <= max(id) THEN 'among older values'
            ELSE 'above older values'
        END INTO found
    FROM posts WHERE id < fresh;
    found := concat_ws(', ', found, CASE
            WHEN snowflake_created_at(column_of.first_id, column_of.layout) BETWEEN now() - interval '25 h' AND now() - interval '23 h'
                THEN 'a day ago'
            WHEN snowflake_created_at(column_of.first_id, column_of.layout) > now() - interval '1 h' THEN 'now'
            ELSE snowflake_created_at(column_of.first_id, column_of.layout)::text
        END, nullif(column_of.columns, 1) || ' columns');
    RAISE SQLSTATE 'RB000';
EXCEPTION WHEN SQLSTATE 'RB000' THEN
    RETURN found;
END $$;

\echo -- the kinds of older values
CREATE TABLE cases (n serial, statements text);
INSERT INTO cases (statements) VALUES
    ($$CREATE TABLE posts (id bigserial); INSERT INTO posts SELECT FROM generate_series(1, 5000)$$),
    ($$CREATE TABLE posts (id serial)$$),
    ($$CREATE TABLE posts (id int GENERATED ALWAYS AS IDENTITY); INSERT INTO posts DEFAULT VALUES$$),
    ($$CREATE SEQUENCE s MINVALUE -5; CREATE TABLE posts (id bigint DEFAULT nextval('s')); INSERT INTO posts DEFAULT VALUES$$),
    ($$CREATE SEQUENCE s START 7000000000; CREATE TABLE posts (id bigint DEFAULT nextval('s')); INSERT INTO posts DEFAULT VALUES$$),
    ($$CREATE SEQUENCE s MINVALUE 0 START 0; CREATE TABLE posts (id bigint DEFAULT nextval('s')); SELECT nextval('s')$$),
    ($$CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (914573847652122249)$$),
    ($$CREATE TABLE posts (id snowflake); INSERT INTO posts VALUES (914573847652122249)$$),
    ($$CREATE TABLE posts (id bigint) PARTITION BY RANGE (id); CREATE TABLE low PARTITION OF posts FOR VALUES FROM (0) TO (100);
       CREATE TABLE rest PARTITION OF posts DEFAULT; INSERT INTO posts VALUES (7)$$),
    ($$CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (snowflake_encode(now(), 9, 7))$$);
SELECT regexp_replace(statements, '\s+', ' ', 'g'), boundary(statements || $$; SELECT snowflake_convert_column('posts', 'id', 5)$$) FROM cases ORDER BY n;

\echo -- it stays
TRUNCATE cases;
INSERT INTO cases (statements) VALUES
    ($$SELECT snowflake_convert_column('posts', 'id', 6)$$),
    ($$SELECT setval('posts_id_seq', 8000000000000000000); SELECT snowflake_convert_column('posts', 'id', 5)$$),
    ($$ALTER TABLE posts ALTER id DROP DEFAULT; SELECT snowflake_convert_column('posts', 'id', 5)$$),
    ($$ALTER TABLE posts ALTER id SET DEFAULT nextval('posts_id_seq'); SELECT snowflake_convert_column('posts', 'id', 5)$$),
    ($$TRUNCATE posts RESTART IDENTITY$$),
    ($$ALTER SEQUENCE posts_id_seq RESTART$$),
    ($$ALTER TABLE posts RENAME COLUMN id TO old; ALTER TABLE posts RENAME COLUMN old TO id; ALTER SEQUENCE posts_id_seq RENAME TO other$$),
    ($$ALTER SEQUENCE posts_id_seq SET UNLOGGED; ALTER SEQUENCE posts_id_seq SET LOGGED$$),
    ($$DELETE FROM posts$$),
    ($$CREATE TABLE notes (id bigint DEFAULT snowflake_nextval('posts_id_seq', 5))$$),
    ($$INSERT INTO posts VALUES (914573847652122250), (914583847652122250), (7)$$);
SELECT regexp_replace(statements, '\s+', ' ', 'g'), boundary($$CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (914573847652122249);
    SELECT snowflake_convert_column('posts', 'id', 5); INSERT INTO posts DEFAULT VALUES;
    $$ || statements || $$; DELETE FROM posts WHERE id >= (SELECT max(first_id) FROM snowflake_columns)$$) FROM cases ORDER BY n;

\echo -- a later layout moves it; a conversion in the layout of the default does not
TRUNCATE cases;
INSERT INTO cases (statements) VALUES
    ($$CREATE TABLE posts (id bigint); INSERT INTO posts VALUES (3); SELECT snowflake_convert_column('posts', 'id', 5, 'twitter');
       INSERT INTO posts DEFAULT VALUES; SELECT snowflake_convert_column('posts', 'id', 5, 'postgres')$$),
    ($$CREATE SEQUENCE s; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5)); INSERT INTO posts VALUES (3), (4194304);
       SELECT snowflake_convert_column('posts', 'id', 5)$$);
SELECT regexp_replace(statements, '\s+', ' ', 'g'), boundary(statements) FROM cases ORDER BY n;

\echo -- a START value that is set by hand
TRUNCATE cases;
INSERT INTO cases (statements) VALUES
    ($$SELECT$$),
    ($$SELECT snowflake_nextval('s', 5); DO 'BEGIN EXECUTE (SELECT format($x$ALTER SEQUENCE s START %s$x$, last_value) FROM s); END'$$),
    ($$ALTER SEQUENCE s START 1000000000000000$$),
    ($$ALTER SEQUENCE s START 9000000000000000000; SELECT snowflake_convert_column('posts', 'id', 5)$$),
    ($$ALTER SEQUENCE s MINVALUE -7 START -7$$),
    ($$ALTER SEQUENCE s START 1023$$),
    ($$ALTER SEQUENCE s START 1024; SELECT snowflake_nextval('s', 5)$$);
SELECT regexp_replace(statements, '\s+', ' ', 'g'), boundary($$CREATE SEQUENCE s; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5)); INSERT INTO posts VALUES (3);
    $$ || statements) FROM cases ORDER BY n;

\echo -- a conversion reports it, unless it stays or the table is empty; its figures vary
SET client_min_messages = notice;
\set VERBOSITY sqlstate
CREATE TABLE empty (id bigint);
SELECT snowflake_convert_column('empty', 'id', 5);
DROP TABLE empty;
CREATE TABLE posts (id bigint PRIMARY KEY, at timestamptz);
INSERT INTO posts VALUES (3);
SELECT snowflake_convert_column('posts', 'id', 5);
SELECT snowflake_convert_column('posts', 'id', 6);
\set VERBOSITY default
SET client_min_messages = error;

\echo -- who may not read the sequence sees it, too; a layout that is not a constant has none
INSERT INTO posts DEFAULT VALUES;
SELECT first_id AS first_id_of_owner FROM snowflake_columns \gset
CREATE ROLE regress_older_values_reader;
SET ROLE regress_older_values_reader;
SELECT first_id = :first_id_of_owner AS is_same, last_id_at FROM snowflake_columns \g (tuples_only=off)
RESET ROLE;
DROP ROLE regress_older_values_reader;
ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5, 'twitter'::text::snowflake_layout);
SELECT first_id IS NULL AS is_unknown FROM snowflake_columns \g (tuples_only=off)
DROP TABLE posts;

\echo -- a search by time over both parts, with an index: half of the TSIDs would be of other years in the default layout
CREATE TABLE posts (id bigint PRIMARY KEY, at timestamptz);
INSERT INTO posts
SELECT snowflake_encode(at, n % 1024, 0, :tsid), at
FROM (SELECT n, '2020-01-01Z'::timestamptz + n * interval '6 h' AS at FROM generate_series(0, 10000) AS n) AS hours WHERE at < now();
SELECT snowflake_convert_column('posts', 'id', 5, 'postgres');
INSERT INTO posts (at) SELECT clock_timestamp() FROM generate_series(1, 100);
-- a row that the other generator inserts after the conversion
INSERT INTO posts VALUES (snowflake_encode(now(), 9, 1, :tsid), now());
SELECT first_id FROM snowflake_columns \gset
CREATE FUNCTION posts_between(id bigint, since timestamptz, until timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id < :first_id AND snowflake_between(id, since, until, :tsid)
        OR id >= :first_id AND snowflake_between(id, since, until);
SELECT since, until, count(*) FILTER (WHERE at >= since - interval '1 ms' AND at < until) AS of_rows,
    count(*) FILTER (WHERE posts_between(id, since, until)) AS found, count(*) FILTER (WHERE snowflake_between(id, since, until)) AS in_one_layout
FROM posts, (VALUES ('2020-01-01Z'::timestamptz, '2020-01-02Z'::timestamptz), ('2012-01-01Z', '2014-01-01Z'), ('2023-05-05Z', '2023-05-06Z'),
    ('-infinity', 'infinity')) AS range (since, until)
GROUP BY since, until ORDER BY since \g (tuples_only=off format=aligned)
SELECT count(*) FROM posts WHERE posts_between(id, now() - interval '1 h', 'infinity') AND at > now() - interval '1 h' \g (tuples_only=off)
-- The plan, in which first_id varies.
CREATE FUNCTION plan() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXPLAIN (COSTS OFF) SELECT FROM posts WHERE posts_between(id, '2023-05-05Z', '2023-05-06Z') LOOP
        RETURN NEXT replace(line, (SELECT first_id::text FROM snowflake_columns), 'FIRST_ID');
    END LOOP;
END $$;
SELECT plan();
ALTER TABLE posts ALTER id TYPE snowflake;
SELECT plan();
DROP TABLE posts;

\echo -- a shard number that recent rows of another generator have
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE TABLE shown (id bigint PRIMARY KEY);
INSERT INTO shown VALUES (snowflake_encode(now() - interval '1 h', 5, 7)), (snowflake_encode(now(), 9, 7)), (snowflake_encode('2020-01-01', 8, 7));
SELECT unnest(ARRAY['BEGIN', prepared, format($$SELECT %s, snowflake_convert_column('shown', 'id', %s)$$, shard, shard), 'ROLLBACK'])
FROM (VALUES (5, NULL), (6, NULL), (8, NULL), (5, 'ALTER TABLE shown ALTER id SET DEFAULT 1')) AS cases (shard, prepared) \gexec
