-- Which statements skip IDs, and in which order rows get them: the table in docs/reference.md.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
-- How many IDs were taken since the last call of this function, which is not counted.
CREATE SEQUENCE s;
CREATE TABLE calls (last bigint);
INSERT INTO calls SELECT snowflake_nextval('s', 5) >> 12;
CREATE FUNCTION taken() RETURNS bigint LANGUAGE sql AS $$
    UPDATE calls AS c SET last = now.counter FROM (SELECT snowflake_nextval('s', 5) >> 12 AS counter) AS now
    RETURNING ((now.counter & 1023) - (SELECT last & 1023 FROM calls) - 1 + 1024) % 1024
$$;

CREATE TABLE posts (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5),
    n int UNIQUE CHECK (n < 100),
    created_at timestamptz GENERATED ALWAYS AS (snowflake_created_at(id, 'postgres')) STORED
);

-- The order of IDs by that of n.
CREATE FUNCTION out_of_order() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM posts) AS p WHERE id <= before
$$;

-- The IDs that a statement takes, and how many rows are out of order after it. Its error, if it has one.
CREATE FUNCTION effect(statement text, OUT taken bigint, OUT out_of_order bigint, OUT error text) LANGUAGE plpgsql AS $$
BEGIN
    error := nullif(split_part(error_of(statement), ' | ', 1), 'none');
    taken := taken();
    out_of_order := out_of_order();
END $$;

\echo -- rows take one each, in their order, after ORDER BY and LIMIT
SELECT statement, e.* FROM unnest(ARRAY[
    'SELECT',
    'INSERT INTO posts (n) VALUES (1), (2), (3)',
    'INSERT INTO posts (n) SELECT n FROM (VALUES (6), (4), (5)) AS v (n) ORDER BY n',
    'INSERT INTO posts (n) SELECT n FROM generate_series(19, 10, -1) AS n ORDER BY n LIMIT 4']) AS statement, effect(statement) AS e
    \g (tuples_only=off)
COPY posts (n) FROM stdin;
20
21
\.
SELECT 'COPY of two rows', taken(), out_of_order();
INSERT INTO posts (n) SELECT 22 RETURNING id = snowflake_currval('s') AS is_current, snowflake_seq(id) > 0 AS has_seq;
SELECT 'INSERT ... RETURNING', taken(), out_of_order();

\echo -- a row that does not arrive has taken its ID
SELECT statement, taken, error FROM unnest(ARRAY[
    'INSERT INTO posts (n) VALUES (1), (30) ON CONFLICT DO NOTHING',
    'INSERT INTO posts (n) VALUES (1), (31) ON CONFLICT (n) DO UPDATE SET n = EXCLUDED.n',
    'INSERT INTO posts (n) VALUES (42), (100)']) AS statement, effect(statement);
COPY posts (n) FROM stdin WHERE n > 40;
40
41
\.
SELECT 'COPY ... WHERE of two rows', taken();
BEGIN;
INSERT INTO posts (n) VALUES (43);
ROLLBACK;
SELECT 'BEGIN; INSERT INTO posts (n) VALUES (43); ROLLBACK', taken();

\echo -- a row with an ID of its own takes none, and neither does one that is found
SELECT statement, taken, error FROM unnest(ARRAY[
    'INSERT INTO posts (id, n) VALUES (1, -1)',
    'MERGE INTO posts USING (VALUES (1), (50)) AS new (n) ON posts.n = new.n '
    'WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (n) VALUES (new.n)',
    'WITH found AS (SELECT id FROM posts WHERE n = 1), '
    'added AS (INSERT INTO posts (n) SELECT 1 WHERE NOT EXISTS (SELECT FROM found) RETURNING id) '
    'SELECT id FROM found UNION ALL SELECT id FROM added']) AS statement, effect(statement);
COPY posts (id, n) FROM stdin;
2	-2
\.
SELECT 'COPY of a row with an ID', taken();

\echo -- the ID is there for a trigger and a generated column; the first row is left out by the trigger
CREATE FUNCTION see_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'id is there: %', NEW.id = snowflake_currval('s');
    RETURN CASE WHEN NEW.n = 60 THEN NULL ELSE NEW END;
END $$;
CREATE TRIGGER see_id BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION see_id();
INSERT INTO posts (n) VALUES (60), (61) RETURNING n, created_at = snowflake_created_at(id, 'postgres') AS has_its_time;
SELECT 'INSERT of two rows', taken();
DROP TRIGGER see_id ON posts;

\echo -- the ID is there for the choice of a partition
CREATE TABLE by_day (LIKE posts INCLUDING DEFAULTS, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE of_all_days PARTITION OF by_day DEFAULT;
INSERT INTO by_day (n) VALUES (1), (2) RETURNING tableoid::regclass, n;
SELECT 'INSERT of two rows', taken();

\echo -- a generated column cannot generate IDs, and an UPDATE can; a query takes an ID for each row, unless the ID decides which
SELECT statement, taken, error FROM unnest(ARRAY[
    'CREATE TABLE generated (n int, id bigint GENERATED ALWAYS AS (snowflake_nextval(''s'', 5)) STORED)',
    'UPDATE posts SET id = DEFAULT WHERE n = -1',
    'SELECT snowflake_nextval(''s'', 5) FROM generate_series(1, 9) AS n ORDER BY n LIMIT 3',
    'SELECT DISTINCT snowflake_nextval(''s'', 5) FROM generate_series(1, 9) LIMIT 3',
    'SELECT snowflake_nextval(''s'', 5) FROM generate_series(1, 9) ORDER BY 1 LIMIT 3']) AS statement, effect(statement);
