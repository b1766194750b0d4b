-- The statements that call snowflake_nextval() in practice, each as core's nextval() would take it.
--
-- An ID depends on the time, but its seq does not: it counts from 1 by one.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
CREATE SEQUENCE s;
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5), body text UNIQUE);

-- A session goes on above what it took within the same tick, even where its sequence was reset.
CREATE PROCEDURE wait_for_the_next_tick() LANGUAGE sql AS $$ SELECT pg_sleep(0.002) $$;

-- INSERT
INSERT INTO posts (body) VALUES ('a'), ('b') RETURNING snowflake_seq(id), body;
INSERT INTO posts (body) SELECT 'row ' || g FROM generate_series(1, 3) g RETURNING snowflake_seq(id), body;
INSERT INTO posts DEFAULT VALUES RETURNING snowflake_seq(id), body;

-- a row that meets a conflict has taken its ID, as in core
INSERT INTO posts (body) VALUES ('a'), ('c') ON CONFLICT (body) DO NOTHING RETURNING snowflake_seq(id), body;
INSERT INTO posts (body) VALUES ('a'), ('d')
    ON CONFLICT (body) DO UPDATE SET body = 'a, again' RETURNING snowflake_seq(id), body;

-- a statement that fails has taken its IDs too
INSERT INTO posts (body) VALUES ('e'), ('b');
INSERT INTO posts (body) VALUES ('e') RETURNING snowflake_seq(id);

UPDATE posts SET id = DEFAULT WHERE body = 'e' RETURNING snowflake_seq(id);
WITH added AS (INSERT INTO posts (body) VALUES ('f') RETURNING id) SELECT snowflake_seq(id) FROM added;
MERGE INTO posts USING (VALUES ('g')) AS new (body) ON posts.body = new.body
    WHEN NOT MATCHED THEN INSERT (body) VALUES (new.body);
SELECT snowflake_seq(id) FROM posts WHERE body = 'g';

-- in the order of the rows
SELECT count(*) AS out_of_order
FROM (SELECT id, lag(id) OVER (ORDER BY snowflake_seq(id)) AS before FROM posts) AS p WHERE id <= before;

-- COPY
TRUNCATE posts;
COPY posts (body) FROM stdin;
one
two
\.
COPY posts (id, body) FROM stdin;
7	with its id
\.
SELECT snowflake_seq(id), body FROM posts ORDER BY body;

-- a table of its own, added to rows that are there
CREATE TABLE old (body text);
INSERT INTO old VALUES ('x'), ('y');
ALTER TABLE old ADD id bigint DEFAULT snowflake_nextval('s', 5);
SELECT snowflake_seq(id), body FROM old ORDER BY body;

CREATE TABLE made AS SELECT snowflake_nextval('s', 5) AS id FROM generate_series(1, 2);
SELECT snowflake_seq(id) FROM made ORDER BY id;

-- Triggers
CREATE TABLE events (id bigint, body text);
CREATE FUNCTION give_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := snowflake_nextval('s', 6);
    RETURN NEW;
END $$;
CREATE TRIGGER give_id BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION give_id();
INSERT INTO events (body) VALUES ('a'), ('b')
    RETURNING snowflake_shard_id(id), snowflake_seq(id), id = snowflake_currval('s') AS is_current \g (tuples_only=off format=aligned)

-- Prepared statements
SET plan_cache_mode = force_generic_plan;
PREPARE take (regclass, int) AS SELECT snowflake_seq(id), snowflake_shard_id(id) FROM snowflake_nextval($1, $2) AS id;
EXECUTE take ('s', 5);
EXECUTE take ('s', 6);
PREPARE add (text) AS INSERT INTO posts (body) VALUES ($1) RETURNING snowflake_seq(id);
EXECUTE add ('prepared');
EXECUTE add ('prepared again');
-- a plan does not hold on to a sequence that was altered
ALTER SEQUENCE s RESTART WITH 100;
EXECUTE add ('prepared thrice');
EXECUTE take ('s', 5);
-- nor to one that is gone
CREATE SEQUENCE gone;
PREPARE take_gone AS SELECT snowflake_nextval('gone', 5) > 0 AS is_id;
EXECUTE take_gone;
DROP SEQUENCE gone;
\set VERBOSITY sqlstate
EXECUTE take_gone;
\set VERBOSITY default
DEALLOCATE ALL;
RESET plan_cache_mode;
ALTER SEQUENCE s RESTART WITH 200;

-- PL/pgSQL
DO $$
DECLARE
    first bigint := snowflake_nextval('s', 5);
    id bigint;
BEGIN
    FOR i IN 1..3 LOOP
        id := snowflake_nextval('s', 5);
        RAISE NOTICE 'seq %', snowflake_seq(id);
    END LOOP;
    FOR id IN SELECT snowflake_nextvals('s', 5, 3) LOOP
        RAISE NOTICE 'seq %', snowflake_seq(id);
        EXIT WHEN snowflake_seq(id) = 218;
    END LOOP;
    -- the loop took three, whatever it used of them
    RAISE NOTICE 'seq %', snowflake_seq(snowflake_nextval('s', 5));
    RAISE NOTICE 'increasing %', snowflake_currval('s') > first;
END $$;

CREATE FUNCTION fails_after_an_id() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM snowflake_nextval('s', 5);
    RAISE EXCEPTION 'no';
EXCEPTION WHEN raise_exception THEN
    RETURN snowflake_seq(snowflake_currval('s'));
END $$;
SELECT fails_after_an_id();
SELECT snowflake_seq(snowflake_nextval('s', 5));

CREATE PROCEDURE across_transactions() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..4 LOOP
        RAISE NOTICE 'seq %', snowflake_seq(snowflake_nextval('s', 5));
        IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
    END LOOP;
END $$;
CALL across_transactions();

-- Subtransactions: nothing is given back
ALTER SEQUENCE s RESTART WITH 300;
BEGIN;
SELECT snowflake_seq(snowflake_nextval('s', 5));
SAVEPOINT a;
SELECT snowflake_seq(snowflake_nextval('s', 5));
SAVEPOINT b;
SELECT snowflake_seq(snowflake_nextval('s', 5));
ROLLBACK TO b;
SELECT snowflake_seq(snowflake_nextval('s', 5));
RELEASE a;
SELECT snowflake_seq(snowflake_currval('s'));
ROLLBACK;
SELECT snowflake_seq(snowflake_currval('s'));
SELECT snowflake_seq(snowflake_nextval('s', 5));

-- the lock is that of core's nextval()
BEGIN;
SELECT snowflake_seq(snowflake_nextval('s', 5));
SAVEPOINT a;
SELECT snowflake_seq(snowflake_nextval('s', 5));
SELECT mode FROM pg_locks WHERE relation = 's'::regclass AND pid = pg_backend_pid();
COMMIT;

-- after an error in a subtransaction the transaction goes on
BEGIN;
SAVEPOINT a;
SELECT snowflake_nextval('s', 4096);
ROLLBACK TO a;
SELECT snowflake_seq(snowflake_nextval('s', 5));
COMMIT;

-- A sequence created, altered and rolled back in one transaction
BEGIN;
CREATE SEQUENCE t;
SELECT snowflake_seq(snowflake_nextval('t', 5));
ALTER SEQUENCE t RESTART WITH 50;
SELECT snowflake_seq(snowflake_nextval('t', 5));
SAVEPOINT a;
ALTER SEQUENCE t RESTART WITH 70 CACHE 20;
SELECT snowflake_seq(snowflake_nextval('t', 5));
SELECT last_value & 1023 AS taken FROM t;
-- back on the page of before
ROLLBACK TO a;
CALL wait_for_the_next_tick();
SELECT snowflake_seq(snowflake_nextval('t', 5));
SELECT last_value & 1023 AS taken FROM t;
SAVEPOINT b;
DROP SEQUENCE t;
ROLLBACK TO b;
SELECT snowflake_seq(snowflake_nextval('t', 5));
COMMIT;
SELECT snowflake_seq(snowflake_nextval('t', 5));

BEGIN;
ALTER SEQUENCE t RESTART WITH 500;
SELECT snowflake_seq(snowflake_nextval('t', 5));
ROLLBACK;
CALL wait_for_the_next_tick();
SELECT snowflake_seq(snowflake_nextval('t', 5));

BEGIN;
CREATE SEQUENCE never;
SELECT snowflake_seq(snowflake_nextval('never', 5));
ROLLBACK;
SELECT snowflake_nextval('never', 5);
BEGIN;
CREATE SEQUENCE never;
SELECT snowflake_seq(snowflake_nextval('never', 5));
COMMIT;
DROP SEQUENCE never, t;

-- Cursors
ALTER SEQUENCE s RESTART WITH 400;
BEGIN;
DECLARE ids CURSOR FOR SELECT snowflake_seq(snowflake_nextval('s', 5)) FROM generate_series(1, 10);
FETCH 2 FROM ids;
-- the cursor and the statements between its fetches take turns
SELECT snowflake_seq(snowflake_nextval('s', 5));
FETCH 1 FROM ids;
SAVEPOINT a;
FETCH 1 FROM ids;
ROLLBACK TO a;
FETCH 1 FROM ids;
CLOSE ids;
COMMIT;

-- scrolling back computes the row anew, as core's nextval() shows
CREATE SEQUENCE core START 406;
BEGIN;
DECLARE ids SCROLL CURSOR FOR
    SELECT snowflake_seq(snowflake_nextval('s', 5)), nextval('core') FROM generate_series(1, 10);
FETCH 2 FROM ids;
FETCH BACKWARD 1 FROM ids;
FETCH 1 FROM ids;
COMMIT;
DROP SEQUENCE core;

-- WITH HOLD runs to its end at commit
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT snowflake_seq(snowflake_nextval('s', 5)) FROM generate_series(1, 5);
FETCH 1 FROM held;
COMMIT;
SELECT snowflake_seq(snowflake_nextval('s', 5));
FETCH ALL FROM held;
CLOSE held;

-- a batch takes a run of counters, which other calls do not get, and uses them until the clock has passed them: here in an hour
SELECT setval('s', (snowflake_min_id(now() + '1 hour') >> 12) + 500, false) > 0 AS is_ahead;
SET pg_snowflake.max_lead = '2h';
BEGIN;
DECLARE batch CURSOR WITH HOLD FOR SELECT snowflake_seq(id) FROM (SELECT snowflake_nextvals('s', 5, 4)) AS b (id);
FETCH 1 FROM batch;
SELECT snowflake_seq(snowflake_nextval('s', 5));
FETCH 1 FROM batch;
COMMIT;
SELECT snowflake_seq(snowflake_nextval('s', 5));
FETCH ALL FROM batch;
CLOSE batch;
RESET pg_snowflake.max_lead;
ALTER SEQUENCE s RESTART WITH 506;

-- Batches
SELECT snowflake_shard_id(id), snowflake_seq(id) FROM snowflake_nextvals('s', 5, 2) AS id;
SELECT snowflake_seq(snowflake_currval('s'));
-- one that is not read to its end
SELECT snowflake_seq(id) FROM (SELECT snowflake_nextvals('s', 5, 3)) AS b (id) LIMIT 1;
SELECT snowflake_seq(snowflake_currval('s')), snowflake_seq(snowflake_nextval('s', 5));
-- two at once in one statement, and one for each row
SELECT snowflake_seq(snowflake_nextvals('s', 5, 2)), snowflake_seq(snowflake_nextvals('s', 6, 1));
SELECT g, snowflake_seq(id) FROM generate_series(1, 2) g, snowflake_nextvals('s', 5, g) AS id;
INSERT INTO posts (id) SELECT snowflake_nextvals('s', 5, 2) RETURNING snowflake_seq(id);

DROP TABLE posts, old, made, events;
