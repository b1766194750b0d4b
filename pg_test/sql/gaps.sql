-- Which statements skip IDs, and in which order rows get them: the table in docs/reference.md.
--
-- An ID depends on the time, but its seq does not: it counts from 1 by one.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
CREATE FUNCTION seq_of(id bigint) RETURNS int
LANGUAGE sql AS $$ SELECT seq FROM snowflake_decode($1) $$;

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

--
-- Rows take one each, in their order
--
SELECT taken();
INSERT INTO posts (n) VALUES (1), (2), (3);
SELECT taken(), out_of_order();
INSERT INTO posts (n) SELECT n FROM (VALUES (6), (4), (5)) AS v (n) ORDER BY n;
SELECT taken(), out_of_order();
-- after ORDER BY and LIMIT, not before
INSERT INTO posts (n) SELECT n FROM generate_series(19, 10, -1) AS n ORDER BY n LIMIT 4;
SELECT taken(), out_of_order();
COPY posts (n) FROM stdin;
20
21
\.
SELECT taken(), out_of_order();
INSERT INTO posts (n) SELECT 22 RETURNING id = snowflake_currval('s') AS is_current, seq_of(id) > 0 AS has_seq;
SELECT taken();

--
-- A row that does not arrive has taken its ID
--
INSERT INTO posts (n) VALUES (1), (30) ON CONFLICT DO NOTHING;
SELECT taken();
INSERT INTO posts (n) VALUES (1), (31) ON CONFLICT (n) DO UPDATE SET n = EXCLUDED.n;
SELECT taken();
COPY posts (n) FROM stdin WHERE n > 40;
40
41
\.
SELECT taken();
\set VERBOSITY terse
INSERT INTO posts (n) VALUES (42), (100);
\set VERBOSITY default
SELECT taken();
BEGIN;
INSERT INTO posts (n) VALUES (43);
ROLLBACK;
SELECT taken();

--
-- A row with an ID of its own takes none, and neither does one that is found
--
INSERT INTO posts (id, n) VALUES (1, -1);
SELECT taken();
COPY posts (id, n) FROM stdin;
2	-2
\.
SELECT taken();
MERGE INTO posts USING (VALUES (1), (50)) AS new (n) ON posts.n = new.n
    WHEN MATCHED THEN DO NOTHING
    WHEN NOT MATCHED THEN INSERT (n) VALUES (new.n);
SELECT taken();
WITH found AS (SELECT id FROM posts WHERE n = 1),
    added AS (INSERT INTO posts (n) SELECT 1 WHERE NOT EXISTS (SELECT FROM found) RETURNING id)
SELECT count(*) FROM (SELECT id FROM found UNION ALL SELECT id FROM added) AS ids;
SELECT taken();

--
-- The ID is there for what needs it first
--
CREATE FUNCTION see_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'id is there: %', NEW.id = snowflake_currval('s');
    RETURN CASE WHEN NEW.n = 60 THEN NULL ELSE NEW END;
END $$;
CREATE TRIGGER see_id BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION see_id();
-- the first is left out by the trigger
INSERT INTO posts (n) VALUES (60), (61) RETURNING n, created_at = snowflake_created_at(id, 'postgres') AS has_its_time;
SELECT taken();
DROP TRIGGER see_id ON posts;

CREATE TABLE by_day (LIKE posts INCLUDING DEFAULTS, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE of_all_days PARTITION OF by_day DEFAULT;
INSERT INTO by_day (n) VALUES (1), (2) RETURNING tableoid::regclass, n;
SELECT taken();

-- a generated column cannot generate IDs
CREATE TABLE generated (n int, id bigint GENERATED ALWAYS AS (snowflake_nextval('s', 5)) STORED);

--
-- UPDATE
--
UPDATE posts SET id = DEFAULT WHERE n = -1;
SELECT taken();

--
-- A query takes an ID for each row that it returns, unless the ID decides which
--
SELECT count(*) FROM (SELECT snowflake_nextval('s', 5) FROM generate_series(1, 9) AS n ORDER BY n LIMIT 3) AS ids;
SELECT taken();
SELECT count(*) FROM (SELECT DISTINCT snowflake_nextval('s', 5) FROM generate_series(1, 9) LIMIT 3) AS ids;
SELECT taken();
SELECT count(*) FROM (SELECT snowflake_nextval('s', 5) FROM generate_series(1, 9) ORDER BY 1 LIMIT 3) AS ids;
SELECT taken();

DROP TABLE posts, by_day, calls;
