-- What each piece of a call of the SQL edition costs: the table in docs/benchmarks.md. It needs psql, and an empty database with the SQL
-- edition and the original:
--
--     createdb steps
--     psql -X -f sql/managed/pg_snowflake_managed.sql -f docs/benchmarks/original.sql -f docs/benchmarks/sql-edition.sql steps
--
-- Variables, with -v NAME=VALUE:
--
--     rounds    how often each function runs; the table has medians of the ratios of the rounds
--     calls     how often a statement calls the function

\if :{?rounds} \else \set rounds 20 \endif
\if :{?calls} \else \set calls 20000 \endif

\set QUIET on
\set ON_ERROR_STOP on

CREATE SEQUENCE ids;

-- Each of these adds a piece to the one above it.
CREATE FUNCTION step_1(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1;
END $$;

CREATE FUNCTION step_2(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
    END;
    RETURN 1;
END $$;

CREATE FUNCTION step_3(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
BEGIN
    BEGIN
        counter := CASE WHEN pg_advisory_xact_lock(1936617319, seq::oid::int) IS NOT NULL THEN 1 END;
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
    END;
    RETURN counter;
END $$;

CREATE FUNCTION step_4(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
BEGIN
    BEGIN
        counter := CASE WHEN pg_advisory_xact_lock(1936617319, seq::oid::int) IS NOT NULL THEN 1 END;
        counter := setval(seq, counter);
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
    END;
    RETURN counter;
END $$;

CREATE FUNCTION step_5(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
BEGIN
    BEGIN
        counter := CASE
            WHEN pg_advisory_xact_lock(1936617319, seq::oid::int) IS NOT NULL THEN pg_sequence_last_value(seq) END;
        counter := setval(seq, counter + 1);
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
    END;
    RETURN counter;
END $$;

-- Else a session that has altered the sequence in its open transaction could deadlock with one that holds the advisory lock.
CREATE FUNCTION step_6(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counter bigint := pg_sequence_last_value(seq);
BEGIN
    BEGIN
        counter := CASE
            WHEN pg_advisory_xact_lock(1936617319, seq::oid::int) IS NOT NULL THEN pg_sequence_last_value(seq) END;
        counter := setval(seq, counter + 1);
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
    END;
    RETURN counter;
END $$;

CREATE FUNCTION step_7(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counter bigint := pg_sequence_last_value(seq);
    now_tick bigint;
BEGIN
    BEGIN
        now_tick := CASE
            WHEN pg_advisory_xact_lock(1936617319, seq::oid::int) IS NOT NULL THEN snowflake_managed.clock_tick() END;
        counter := pg_sequence_last_value(seq);
        counter := setval(seq, counter + 1);
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
    END;
    RETURN counter;
END $$;

-- Other ways to abort the subtransaction of the second.
CREATE FUNCTION by_assert(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        ASSERT false;
    EXCEPTION WHEN assert_failure THEN
    END;
    RETURN 1;
END $$;

CREATE FUNCTION by_division(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
BEGIN
    BEGIN
        counter := 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
    END;
    RETURN 1;
END $$;

CREATE TABLE functions (place serial, title text, call text);
INSERT INTO functions (title, call) VALUES
    ('the original', 'copied_nextval(''ids'', 5)'),
    ('1 is empty', 'step_1(''ids'')'),
    ('2 also begins a subtransaction and aborts it with RAISE', 'step_2(''ids'')'),
    ('3 also takes the advisory lock in it', 'step_3(''ids'')'),
    ('4 also calls setval', 'step_4(''ids'')'),
    ('5 also reads the sequence before setval', 'step_5(''ids'')'),
    ('6 also locks the sequence before the advisory lock, by reading it', 'step_6(''ids'')'),
    ('7 also reads the clock', 'step_7(''ids'')'),
    ('the SQL edition', 'snowflake_managed.snowflake_nextval(''ids'', 5)'),
    ('2 with ASSERT', 'by_assert(''ids'')'),
    ('2 with a division by zero', 'by_division(''ids'')');

CREATE TABLE timings (round int, place int, took interval, PRIMARY KEY (round, place));
SELECT nextval('ids') \g /dev/null

-- The order changes from round to round, and each statement is a transaction. The first round, which fills the caches, does not count.
CREATE PROCEDURE measure(rounds int, calls int) LANGUAGE plpgsql AS $$
DECLARE
    next record;
    began timestamptz;
BEGIN
    FOR next IN
        SELECT call, round, place FROM generate_series(0, rounds) AS round, functions
        ORDER BY round, (place + round) % (SELECT count(*) FROM functions)
    LOOP
        began := clock_timestamp();
        EXECUTE format('SELECT count(%s) FROM (SELECT generate_series(1, %s)) AS series', next.call, calls);
        INSERT INTO timings VALUES (next.round, next.place, clock_timestamp() - began);
        COMMIT;
    END LOOP;
END $$;

CALL measure(:rounds, :calls);

\echo Time of each function by that of the original:
SELECT title,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ratio)::numeric(6, 2) AS median,
    percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY ratio)::numeric(6, 2)[] AS quartiles,
    (percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM took)) / :calls * 1e9)::int AS ns
FROM (
    SELECT place, took, extract(epoch FROM took)::float8 / extract(epoch FROM took_by_original)::float8 AS ratio
    FROM timings JOIN (SELECT round, took FROM timings WHERE place = 1) AS original (round, took_by_original) USING (round)
    WHERE round > 0
) AS ratios JOIN functions USING (place)
GROUP BY place, title
ORDER BY place;
