-- The fast path: IDs that a session takes after its first, without opening the sequence, and with a reading of the clock that may be some
-- microseconds old.

\set ECHO none
\pset format unaligned
\pset tuples_only on
CREATE SEQUENCE s;

\echo -- a session opens the sequence for its first ID and for one in a thousand, and not each time that it returns late
-- How often sessions have opened it and then accessed its page. Messages that a session misses make it open it again, too.
CREATE VIEW openings AS SELECT blks_hit + blks_read AS openings FROM pg_statio_user_sequences WHERE relname = 's';
CREATE PROCEDURE take(ids int, pause float8) LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN 1..ids LOOP
        PERFORM snowflake_nextval('s', 5), pg_sleep(pause);
        IF pause > 0 THEN COMMIT; END IF;
    END LOOP;
    PERFORM pg_stat_force_next_flush();
END $$;
SELECT openings AS before FROM openings \gset
CALL take(1002, 0);
SELECT openings - :before BETWEEN 2 AND 4 FROM openings;
-- Other tests' messages may make it open the sequence, but not in each attempt.
CREATE PROCEDURE take_late(INOUT opens_seldom boolean) LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    FOR attempt IN 1..20 LOOP
        before := (SELECT openings FROM openings);
        CALL take(20, 0.05);
        COMMIT;
        opens_seldom := (SELECT openings - before < 10 FROM openings);
        EXIT WHEN opens_seldom;
    END LOOP;
END $$;
CALL take_late(NULL);

\echo -- a statement that sleeps reads the clock anew
DO $$
DECLARE
    before bigint;
BEGIN
    FOR n IN 1..3 LOOP before := snowflake_nextval('s', 5); END LOOP;
    PERFORM pg_sleep(0.02);
    ASSERT snowflake_created_at(snowflake_nextval('s', 5)) - snowflake_created_at(before) >= '19 ms', 'no new reading';
END $$;

\echo -- no reading of the clock is older than one that was used, which would repeat an ID after a reset
CREATE SEQUENCE t;
CREATE FUNCTION next() RETURNS bigint LANGUAGE sql AS $$
    SELECT snowflake_nextval('t', 5, 'time:48 shard:4 seq:5 epoch:2024-01-01 unit:10us') $$;
SET pg_snowflake.max_lead = 0;
CREATE TABLE pairs AS SELECT next() AS one, setval('t', 1), next() AS other FROM generate_series(1, 100000);
SELECT count(*) - count(DISTINCT id) FROM (SELECT one FROM pairs UNION ALL SELECT other FROM pairs) AS ids (id);

\echo -- a session that uses 1,100 sequences has searched for dropped ones at the first 1,024, and not again for each of the others
CREATE VIEW searches AS SELECT idx_scan AS searches FROM pg_stat_sys_indexes WHERE indexrelname = 'pg_class_oid_index';
CREATE PROCEDURE use(first int, last int) LANGUAGE plpgsql AS $$ BEGIN
    FOR n IN first..last LOOP
        EXECUTE format('CREATE SEQUENCE s%s', n);
        PERFORM snowflake_nextval(('s' || n)::regclass, 5);
    END LOOP;
    PERFORM pg_stat_force_next_flush();
END $$;
CALL use(1, 1030);
SELECT searches AS before FROM searches \gset
-- 279 searches; 73,920 if each use searched.
CALL use(1031, 1100);
SELECT searches - :before < 5000 FROM searches;
