-- ALTER SEQUENCE … CACHE n: a session takes n counters at once. What happens to the rest.
--
-- The sequence is an hour ahead of the clock, so that only calls move its counter. Counters are shown from its start. The output has the
-- name of each case and what its statements print.

\set ECHO none
\set VERBOSITY sqlstate
\pset format unaligned
\pset tuples_only on

SET pg_snowflake.max_lead = '2h';
SELECT snowflake_min_id(now() + '1 hour') >> 12 AS start \gset
CREATE FUNCTION counter_of(id bigint) RETURNS bigint
LANGUAGE sql RETURN (((id >> 22) << 10) | ((id >> 12) & 1023)) - :start;
CREATE TABLE posts (id bigint);
CREATE TABLE oids (seq regclass);
CREATE SEQUENCE s;
CREATE PROCEDURE churn(turns int) LANGUAGE plpgsql AS $$
BEGIN
    FOR turn IN 1..turns LOOP
        CREATE TEMP SEQUENCE t;
        PERFORM snowflake_nextval('t', 5);
        DROP SEQUENCE t;
    END LOOP;
END $$;

-- Statements one by one, with words for those that many cases have.
CREATE FUNCTION statements(name text, statements text, start bigint, cache int DEFAULT 10) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT replace(replace(replace(statement, 'TAKE', 'SELECT counter_of(snowflake_nextval(''s'', 5))'),
        'LAST', 'SELECT last_value - @ FROM s'), '@', start::text)
    FROM regexp_split_to_table(format('SELECT %L; DROP SEQUENCE s; CREATE SEQUENCE s CACHE %s START @ OWNED BY posts.id; %s',
        name, cache, statements), ';\s+') AS statement
$$;

SELECT statements(name, statements, :start, cache) FROM (VALUES
    (10, 'as many as the cache at a time', 'LAST;
        SELECT string_agg(counter_of(snowflake_nextval(''s'', 5))::text, '' '') FROM generate_series(1, 9); LAST; TAKE; LAST; TAKE; LAST'),
    (10, 'a rollback', 'BEGIN; TAKE; SAVEPOINT p; TAKE; ROLLBACK; TAKE'),
    (10, 'DISCARD SEQUENCES', 'TAKE; DISCARD SEQUENCES; TAKE'),
    (10, 'DISCARD ALL', 'TAKE; DISCARD ALL; SET pg_snowflake.max_lead = ''2h''; TAKE'),
    (10, 'a batch', 'TAKE; SELECT string_agg(counter_of(id)::text, '' '') FROM snowflake_nextvals(''s'', 5, 3) AS id; TAKE'),
    (10, 'a lower limit on the lead', 'TAKE; SET pg_snowflake.max_lead = ''100ms''; TAKE; SET pg_snowflake.max_lead = ''2h''; TAKE'),
    -- above the whole run, since some of it may have been returned
    (10, 'a definition that is rolled back', 'BEGIN; ALTER SEQUENCE s RESTART @; TAKE; ROLLBACK; TAKE'),
    (10, 'a drop in the transaction', 'INSERT INTO oids VALUES (''s''); BEGIN; SELECT snowflake_nextval(seq, 5) > 0 FROM oids;
        DROP SEQUENCE s; SAVEPOINT p; SELECT snowflake_nextval(seq, 5) FROM oids; ROLLBACK'),
    -- twice, since a refusal must not restore what was known before
    (1, 'INCREMENT 2', 'BEGIN; TAKE; TAKE; ALTER SEQUENCE s INCREMENT 2; SAVEPOINT p; TAKE; ROLLBACK TO p; TAKE; ROLLBACK; TAKE'),
    (1, 'CYCLE', 'BEGIN; TAKE; TAKE; ALTER SEQUENCE s CYCLE; SAVEPOINT p; TAKE; ROLLBACK TO p; TAKE; ROLLBACK; TAKE'),
    (1, 'MAXVALUE', 'BEGIN; TAKE; TAKE; ALTER SEQUENCE s MAXVALUE 7 START 7 RESTART 7; SAVEPOINT p; TAKE; ROLLBACK TO p; TAKE; ROLLBACK;
        TAKE'),
    -- a session continues above what it has taken
    (1, 'resets', 'TAKE; ALTER SEQUENCE s RESTART; TAKE; ALTER SEQUENCE s RESTART 1; TAKE; TRUNCATE posts RESTART IDENTITY; TAKE;
        SELECT setval(''s'', 1); TAKE; SELECT setval(''s'', 1, false); TAKE'),
    (1, 'a reset after DISCARD SEQUENCES', 'TAKE; TAKE; DISCARD SEQUENCES; ALTER SEQUENCE s RESTART; TAKE'),
    -- a session remembers what it has taken, whatever it uses meanwhile
    (1, 'a drop that is rolled back', 'TAKE; BEGIN; DROP SEQUENCE s; CALL churn(2000); ROLLBACK; SELECT setval(''s'', @, false) > 0; TAKE')
) AS cases (cache, name, statements) \gexec

\echo -- a cached counter that the clock has passed is not used
CREATE SEQUENCE behind CACHE 100;
SELECT count(*), count(*) FILTER (WHERE snowflake_created_at(id) < date_trunc('milliseconds', called_at)) AS late,
       count(*) FILTER (WHERE counter_of(id) <= before + 99) AS in_the_run_before
FROM (SELECT called_at, id, lag(counter_of(id)) OVER (ORDER BY n) AS before
      FROM (SELECT n, clock_timestamp() AS called_at, snowflake_nextval('behind', 5) AS id, pg_sleep(0.003)
            FROM generate_series(1, 20) AS n) AS calls) AS pairs;
