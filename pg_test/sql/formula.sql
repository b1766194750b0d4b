-- An ID is the formula of its layout, bit for bit, and its seq is the sequence's counter.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
-- An ID without its shard: what the sequence holds.
CREATE FUNCTION counter_of(id bigint) RETURNS bigint
LANGUAGE sql AS $$ SELECT ((id >> 22) << 10) | ((id >> 12) & 1023) $$;

CREATE FUNCTION unix_ms() RETURNS bigint
LANGUAGE sql AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

\echo -- the formula of the default layout, of a millisecond during the call
CREATE FUNCTION is_the_formula(seq int, shard int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before bigint := unix_ms();
    id bigint := snowflake_nextval('s', shard);
BEGIN
    RETURN EXISTS (
        SELECT FROM generate_series(before, unix_ms()) AS ms,
            LATERAL (SELECT ((ms - 1262304000000) << 22) | (seq << 12) AS x) AS above
        WHERE id = x | (shard # ((x >> 12) & 4095))
    ) AND ((id # (id >> 12)) & 4095) = shard;
END $$;
CREATE SEQUENCE s;
SELECT is_the_formula(1, 0), is_the_formula(2, 1), is_the_formula(3, 5), is_the_formula(4, 1341), is_the_formula(5, 4095);

\echo -- the one that Instagram published
CREATE FUNCTION is_instagrams_formula(seq int, shard int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before bigint := unix_ms();
    id bigint := snowflake_nextval('instagrams', shard, 'instagram');
BEGIN
    RETURN EXISTS (
        SELECT FROM generate_series(before, unix_ms()) AS ms
        WHERE id = ((ms - 1314220021721) << 23) | (shard << 10) | seq
    );
END $$;
CREATE SEQUENCE instagrams;
SELECT is_instagrams_formula(1, 0), is_instagrams_formula(2, 1), is_instagrams_formula(3, 5), is_instagrams_formula(4, 1341),
       is_instagrams_formula(5, 8191);

\echo -- a fresh ID decodes to the time of the call
WITH before AS MATERIALIZED (SELECT clock_timestamp() AS at),
    generated AS MATERIALIZED (SELECT at, snowflake_nextval('s', 5) AS id FROM before)
SELECT created_at BETWEEN date_trunc('milliseconds', at) AND clock_timestamp() AS is_of_now
FROM generated, snowflake_decode(id);

\echo -- the shard of an ID in plain SQL
CREATE FUNCTION wrong_shards(layout snowflake_layout, formula text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    wrong text;
BEGIN
    EXECUTE format($q$
        SELECT format('%%s of %%s', count(*) FILTER (WHERE %s IS DISTINCT FROM snowflake_shard_id(id, $1)), count(*))
        FROM (
            SELECT snowflake_encode('2026-11-21 00:46:04.617Z'::timestamptz + n * interval '1.234567 s',
                (n * 7 %% shards)::int, n * 5 %% (2 ^ seq_bits)::int, $1) AS id
            FROM snowflake_layout_info($1), generate_series(0, 999) AS n
        ) AS ids $q$, formula) USING layout INTO wrong;
    RETURN wrong;
END $$;
SELECT layout, shard_formula, wrong_shards(layout, shard_formula)
FROM (
    SELECT row_number() OVER () AS n, name::snowflake_layout AS layout FROM snowflake_layouts
    UNION ALL VALUES (101, snowflake_layout 'time:41 seq:8 shard_xor_above:14 epoch:2024-01-01 unit:1ms'),
        (102, 'time:33 seq:0 shard_xor_above:31 epoch:2000-01-01 unit:1s'),
        (103, 'time:41 seq:12 shard:10 epoch:2010-11-04T01:42:54.657Z unit:1ms'),
        (104, 'time:48 shard:0 seq:15 epoch:1970-01-01 unit:100us')
) AS layouts, snowflake_layout_info(layout) ORDER BY n \g (tuples_only=off format=aligned)

\echo -- the seq of the first ID depends on the shard: 1 + 617 times the shard, modulo 1024
CREATE SEQUENCE of_0;
CREATE SEQUENCE of_1;
CREATE SEQUENCE of_2;
CREATE SEQUENCE of_5;
CREATE SEQUENCE of_4095;
SELECT shard, snowflake_seq(snowflake_nextval('of_' || shard, shard)) FROM unnest('{0,1,2,5,4095}'::int[]) AS shard;
\echo -- also of one that is created anew in a session that knew the former one
DROP SEQUENCE of_5;
CREATE SEQUENCE of_5;
SELECT snowflake_seq(snowflake_nextval('of_5', 5));

\echo -- an existing sequence continues with the next one: 123457 is 577 modulo 1024
\echo -- one that was not called begins there, plus what the shard adds, 617 * 5
CREATE FUNCTION seq_after(value bigint, called boolean) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE SEQUENCE t';
    PERFORM CASE WHEN called IS NULL THEN setval('t', value) ELSE setval('t', value, called) END;
    value := snowflake_nextval('t', 5);
    EXECUTE 'DROP SEQUENCE t';
    RETURN snowflake_seq(value);
END $$;
SELECT value, called, seq_after(value, called) AS seq, expected % 1024 AS expected
FROM (VALUES (123456, NULL, 123457), (123456, true, 123457), (123456, false, 123456 + 617 * 5), (1023, NULL, 1024), (1024, NULL, 1025))
    AS cases (value, called, expected) \g (tuples_only=off)

\echo -- seq cycles through all of its values
CREATE SEQUENCE cycling;
SELECT count(*), count(*) FILTER (WHERE snowflake_seq(id) <> (1 + 617 * 5 + n - 1) % 1024) AS out_of_turn
FROM (SELECT n, snowflake_nextval('cycling', 5) AS id FROM generate_series(1, 3000) AS n) AS ids;

\echo -- the sequence holds the ID without its shard
SELECT counter_of(snowflake_nextval('s', 0)) AS counter \gset
SELECT last_value = :counter, is_called FROM s;
SELECT counter_of(snowflake_nextval('s', 5)) AS counter \gset
SELECT last_value = :counter, is_called FROM s;
SELECT counter_of(snowflake_nextval('s', 4095)) AS counter \gset
SELECT last_value = :counter, is_called FROM s;

\echo '-- core''s nextval() takes the next counter, and IDs continue above its values, also if it is carried into ticks to come'
SELECT counter_of(snowflake_nextval('s', 5)) AS counter \gset
SELECT nextval('s') - :counter AS next;
SELECT max(nextval('s')) AS highest FROM generate_series(1, 20000) \gset
SELECT counter_of(snowflake_nextval('s', 5)) > :highest AS is_above;
\echo -- log_cnt does not fall below zero
CREATE SEQUENCE mixed;
DO $$
BEGIN
    FOR turn IN 1..5 LOOP
        FOR n IN 1..8 LOOP
            PERFORM max(CASE WHEN n IN (1, 3, 8) THEN snowflake_nextval('mixed', 5) ELSE nextval('mixed') END)
            FROM generate_series(1, ('{10,40,1,1,150000,0,1,1}'::int[])[n]);
            IF n = 6 THEN CHECKPOINT; END IF;
            ASSERT (SELECT log_cnt >= 0 FROM mixed), format('log_cnt in turn %s, %s', turn, n);
        END LOOP;
    END LOOP;
END $$;

\echo -- IDs of several shards from one sequence differ in time and seq
SELECT count(*), count(*) FILTER (WHERE counter <= before) AS out_of_order
FROM (
    SELECT counter_of(id) AS counter, lag(counter_of(id)) OVER (ORDER BY n) AS before
    FROM (SELECT n, snowflake_nextval('s', n % 4096) AS id FROM generate_series(1, 50000) AS n) AS ids
) AS counters;
