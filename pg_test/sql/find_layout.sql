-- The layouts of copies of Instagram's function, as public repositories have them, and of the presets, are found from the times of
-- the rows.

\set ECHO none
-- A number from 0 to 1 that looks random.
CREATE FUNCTION part(n bigint, seed bigint) RETURNS float8 LANGUAGE sql AS $$ SELECT (n * seed * 40503 + seed) % 1000003 / 1000003.0 $$;

-- Rows of the days since 2026-01-01. The server's clock is up to two seconds off, and one row in ten was inserted up to ten days late.
CREATE FUNCTION times(rows int, days int, OUT n int, OUT us bigint, OUT created_at timestamptz) RETURNS SETOF record
LANGUAGE sql AS $$
    SELECT n, us, 'epoch'::timestamptz + interval '1 us' *
        (us + CASE WHEN n % 10 = 0 THEN part(n, 7) * 10 * 86400e6 ELSE (part(n, 11) - 0.5) * 4e6 END)::bigint
    FROM (SELECT n, 1767225600000000 + (86400e6 * $2 * (n + part(n::bigint * n, 13)) / $1)::bigint AS us FROM generate_series(1, $1) AS n) AS clock
$$;

-- 3,000 rows of each, in the middle of which the counter begins again.
CREATE TABLE copied (copy text, id bigint, created_at timestamptz);
CREATE FUNCTION copy(name text, epoch_ms bigint, shift int, shards int[], shard_shift int, modulo bigint, unit_us int DEFAULT 1000, first bigint DEFAULT NULL)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO copied
    SELECT $1, (((us - $2 * 1000) / $7) << $3) | ($4[1 + n * 7 / 3 % cardinality($4)]::bigint << $5)
               | ((n / cardinality($4) + coalesce($8, 2 * $6 - 1500 / cardinality($4))) % $6), created_at
    FROM times(3000, 100)
$$;
SELECT copy('01 the original, shard 1', 1314220021721, 23, '{1}', 10, 1024),
       copy('02 shard 0', 1620213659000, 23, '{0}', 10, 1024),
       copy('03 no shard', 1735689600000, 23, '{0}', 10, 8388608),
       copy('04 epoch of 1970, 15 bits of seq', 0, 21, '{1}', 15, 32768),
       copy('05 an hour of 2016', 1451624400000, 23, '{0}', 10, 1024),
       copy('06 Twitter''s', 1288834974657, 22, '{1}', 12, 4096),
       copy('07 Twitter''s bits, of 2024', 1713484069680, 22, '{1}', 12, 4096),
       copy('08 11 bits of seq', 1451606400000, 21, '{3}', 11, 2048),
       copy('09 seconds taken for milliseconds, shard on the counter', 1577836800, 22, '{1}', 9, 1024),
       copy('10 14 bits of seq, 1 of shard', 1609459200000, 15, '{1}', 14, 16384),
       copy('11 seconds', 1420070400000, 31, '{7}', 16, 65536, 1000000),
       copy('12 three shards', 1420070400000, 23, '{3,4,900}', 10, 1024),
       copy('13 no modulo', 1314220021721, 23, '{1}', 10, 1::bigint << 40, first => 700),
       copy('14 the counter has not begun again', 1420070400000, 22, '{5}', 12, 4096, first => 0) \g /dev/null

-- Counters that do not rise by one: of a sequence that other tables use, of CACHE 50 in three sessions, and of ten rows that somebody picked.
INSERT INTO copied
SELECT '15 a sequence that other tables use', ((us / 1000 - 1420070400000) << 23) | (5 << 10) | (sum((part(n, 31) * 300)::int + 1) OVER (ORDER BY n) & 1023), created_at
FROM times(3000, 100)
UNION ALL
SELECT '16 CACHE 50, three sessions', ((us / 1000 - 1420070400000) << 23) | (5 << 10) | (((n / 150 * 3 + n % 3) * 50 + n / 3 % 50) & 1023), created_at
FROM times(3000, 100)
UNION ALL
SELECT '17 ten rows of the original', ((us / 1000 - 1314220021721) << 23) | (5 << 10) | (part(n, 31) * 1023)::int, created_at
FROM times(3000, 100) WHERE n % 300 = 7;

-- Counters that begin at 5 in each millisecond, and ticks of a length that no layout has.
INSERT INTO copied
SELECT '18 from 5 in each tick, 8 and 8 bits', ((us / 1000 - 1582136402000) << 16) | (3 << 8) | (5 + id), 'epoch'::timestamptz + interval '1 us' * us
FROM times(100, 10), generate_series(0, n % 5) AS id
UNION ALL
SELECT format('19 ticks of %s ms', ms), ((us / 1000 - 1420070400000) / ms << 22) | (5 << 12) | ((4000 + n) & 4095), 'epoch'::timestamptz + interval '1 us' * us
FROM times(1000, 100), unnest('{2,5,50,500}'::int[]) AS ms
UNION ALL
SELECT '20 an epoch of seconds, exact clocks', (us / 1000000 - 1605024000 << 21) | (5 << 16) | ((65000 + n) & 65535), 'epoch'::timestamptz + interval '1 us' * us
FROM times(1000, 100);

-- The tables above are also read by a test of the JavaScript module, which runs this script up to the next one.
CREATE TABLE rows (id bigint PRIMARY KEY, created_at timestamptz);
CREATE FUNCTION found(copy text, OUT layout snowflake_layout, OUT compared int, OUT fitting_percent int, OUT shards int[], OUT doubt text)
LANGUAGE plpgsql AS $$
BEGIN
    TRUNCATE rows;
    INSERT INTO rows SELECT c.id, c.created_at FROM copied AS c WHERE c.copy = $1 ON CONFLICT DO NOTHING;
    SELECT f.layout, f.compared, round(100.0 * f.fitting / f.compared), f.shards, f.doubt
    INTO layout, compared, fitting_percent, shards, doubt FROM snowflake_find_layout('rows', 'id', 'created_at') AS f;
END $$;
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\echo -- copies of the function
SELECT copy, (found(copy)).* FROM (SELECT DISTINCT copy FROM copied ORDER BY copy) AS copies \g (tuples_only=off)

\echo -- every preset, from rows that it has made
SELECT name, f.layout = name::snowflake_layout AS found, f.shards, f.doubt
FROM snowflake_layouts AS preset,
    LATERAL (SELECT array_agg(snowflake_encode('epoch'::timestamptz + us * interval '1 us', (3 % preset.shards)::int, n % (1 << seq_bits), name::snowflake_layout)) AS ids,
                    array_agg(created_at) AS times
             FROM times(6000, 100)) AS rows,
    LATERAL snowflake_find_layout(ids, times) AS f \g (tuples_only=off format=aligned)

\echo -- the rows that do not fit, and the conversion
TRUNCATE rows;
INSERT INTO rows SELECT id, CASE WHEN n % 500 = 0 THEN created_at + interval '1 hour' ELSE created_at END
FROM (SELECT n, ((us / 1000 - 1495331934000) << 23) | (2 << 10) | (n % 1024) AS id, 'epoch'::timestamptz + interval '1 us' * us AS created_at
      FROM times(3000, 100) WHERE n % 10 <> 0 OR n % 500 = 0) AS t;
SELECT layout, compared, fitting, shards, doubt, (SELECT array_agg(id & 1023) FROM unnest(misfits) AS id) AS seq_of_misfits, conversion
FROM snowflake_find_layout('rows', 'id', 'created_at') \g (tuples_only=off)

\echo -- a busy minute does not hide a year of rows that do not fit
SELECT layout, fitting, compared, doubt
FROM (SELECT array_agg(id) AS ids, array_agg(CASE WHEN n <= 500 THEN created_at - n % 97 * interval '10 min' ELSE created_at END) AS times
      FROM (SELECT n, ((us / 1000 - 1495331934000) << 23) | (2 << 10) | (n % 1024) AS id, 'epoch'::timestamptz + interval '1 us' * us AS created_at
            FROM (SELECT n, 1735689600000000 + CASE WHEN n <= 500 THEN (n + part(n::bigint * n, 13)) * 60000000000 ELSE 30100000000000 + n * 17001 END::bigint AS us
                  FROM generate_series(1, 20000) AS n) AS clock) AS t) AS rows,
    LATERAL snowflake_find_layout(ids, times) \g (tuples_only=off)

\echo -- what cannot be converted: a materialized view, a partition, a child, a generated column
CREATE MATERIALIZED VIEW seen AS SELECT id, created_at FROM rows;
CREATE TABLE parent (LIKE rows) PARTITION BY HASH (id);
CREATE TABLE partition PARTITION OF parent FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO parent SELECT * FROM rows;
CREATE TABLE child () INHERITS (rows);
INSERT INTO child SELECT * FROM ONLY rows;
CREATE TABLE generated (copied bigint, id bigint GENERATED ALWAYS AS (copied) STORED, created_at timestamptz);
INSERT INTO generated (copied, created_at) SELECT id, created_at FROM ONLY rows;
SELECT name, (snowflake_find_layout(name, 'id', 'created_at')).conversion IS NULL AS is_null
FROM unnest('{rows,seen,parent,partition,child,generated}'::regclass[]) AS name;
DROP TABLE child;
DROP MATERIALIZED VIEW seen;

\echo -- another unit is possible, so the column is not converted
TRUNCATE rows;
INSERT INTO rows SELECT snowflake_encode(at, 5, n % 1024, 'instagram'), at
FROM (SELECT n, '2026-01-01 00:00+00'::timestamptz + n * interval '20 ms' AS at FROM generate_series(1, 3000) AS n) AS t;
SELECT layout, doubt, conversion FROM snowflake_find_layout('rows', 'id', 'created_at') \g (tuples_only=off)
\echo -- errors
ALTER TABLE generated ADD float float8;
SELECT error_of('SELECT * FROM ' || call) FROM unnest(ARRAY[
    $$snowflake_find_layout('rows', 'id', 'nothing')$$,
    $$snowflake_find_layout('copied', 'copy', 'created_at')$$,
    $$snowflake_find_layout('rows', 'id', 'id')$$,
    $$snowflake_find_layout('generated', 'float', 'created_at')$$,
    $$snowflake_find_layout('snowflake_layouts', 'name', 'epoch')$$,
    $$snowflake_find_layout('nothing', 'id', 'created_at')$$,
    $$snowflake_find_layout(0, 'id', 'created_at')$$,
    $$snowflake_find_layout('{1,2}'::bigint[], ARRAY[now()])$$,
    $$snowflake_find_layout('{1,2}'::bigint[], ARRAY[now(), now()])$$,
    $$snowflake_find_layout('{1,2,3}'::bigint[], ARRAY[now(), now(), now()])$$,
    $$snowflake_find_layout('{1,2,3}'::bigint[], ARRAY[now(), 'infinity', NULL])$$,
    $$snowflake_find_layout(array_fill(1::bigint, '{201001}'), array_fill(now(), '{201001}'))$$]) AS call;
TRUNCATE rows;
INSERT INTO rows SELECT (part(n, 17) * 9e18)::bigint, '2026-01-01Z'::timestamptz + n * interval '1 hour' FROM generate_series(1, 1000) AS n;
SELECT * FROM snowflake_find_layout('rows', 'id', 'created_at');
\echo -- ticks of a minute
TRUNCATE rows;
INSERT INTO rows SELECT (us / 60000000 << 22) | (n & 4095), created_at FROM times(1000, 100) ON CONFLICT DO NOTHING;
SELECT * FROM snowflake_find_layout('rows', 'id', 'created_at');

\echo -- a role that may read both columns, and without one of the privileges
CREATE ROLE regress_find_layout_reader;
CREATE SCHEMA closed;
CREATE TABLE closed.t (id bigint, at timestamptz, secret int);
INSERT INTO closed.t SELECT snowflake_encode(at, 5, 1, 'instagram'), at
FROM generate_series(timestamptz '2020-01-01Z', '2020-01-02Z', '1 hour') AS at;
SELECT format($$SELECT compared FROM snowflake_find_layout(%s, 'id', 'at')$$, 'closed.t'::regclass::oid) AS find \gset
GRANT USAGE ON SCHEMA closed TO regress_find_layout_reader;
GRANT SELECT (id, at) ON closed.t TO regress_find_layout_reader;
SELECT unnest(ARRAY['BEGIN', format('REVOKE %s FROM regress_find_layout_reader; SET LOCAL ROLE regress_find_layout_reader', privilege),
    format($$SELECT split_part(error_of(%L), ' | ', 1)$$, :'find'), 'ROLLBACK'])
FROM unnest(ARRAY['SELECT (id) ON closed.t', 'SELECT (at) ON closed.t', 'USAGE ON SCHEMA closed']) AS privilege \gexec
SET ROLE regress_find_layout_reader;
:find;
RESET ROLE;
ALTER TABLE closed.t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_find_layout_reader;
:find;
RESET ROLE;
:find;

\echo -- a superuser who reads the table of another role runs nothing of what that role has put into it, such as functions of constants when
\echo -- a query is planned
CREATE ROLE regress_find_layout_owner;
CREATE SCHEMA evil AUTHORIZATION regress_find_layout_owner;
SET SESSION AUTHORIZATION regress_find_layout_owner;
CREATE FUNCTION evil.spy(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF current_user <> 'regress_find_layout_owner' THEN RAISE EXCEPTION 'planted, run as %', current_user; END IF;
    RETURN true;
END $$;
CREATE TYPE evil.pair AS (n bigint);
CREATE TYPE evil.name AS ENUM ('a');
CREATE DOMAIN evil.checked AS bigint CHECK (evil.spy(VALUE));
CREATE FUNCTION evil.of_pair(evil.pair) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT evil.spy(1)::int::bigint';
CREATE FUNCTION evil.of_name(evil.name) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.spy(1); RETURN now(); END $$;
CREATE FUNCTION evil.above(evil.name, integer) RETURNS boolean LANGUAGE sql AS 'SELECT evil.spy(1)';
CREATE CAST (evil.pair AS bigint) WITH FUNCTION evil.of_pair(evil.pair) AS IMPLICIT;
CREATE CAST (evil.name AS timestamptz) WITH FUNCTION evil.of_name(evil.name) AS IMPLICIT;
CREATE OPERATOR evil.> (FUNCTION = evil.above, LEFTARG = evil.name, RIGHTARG = integer);
RESET SESSION AUTHORIZATION;
SET constraint_exclusion = on;
SET enable_seqscan = off;
-- What creates `t` if it is not a table of IDs and times, and what is done when it has rows.
SELECT unnest(ARRAY['BEGIN', 'SET LOCAL search_path = evil; SET SESSION AUTHORIZATION regress_find_layout_owner',
    coalesce(created, 'CREATE TABLE t (id bigint, at timestamptz)'),
    CASE WHEN has_rows THEN $$INSERT INTO t (id, at) SELECT public.snowflake_encode(at, 5, 1, 'instagram'), at
        FROM generate_series(timestamptz '2020-01-01Z', '2020-01-02Z', '1 hour') AS at$$ END, "then",
    'RESET SESSION AUTHORIZATION; SET LOCAL search_path = public',
    $$SELECT split_part(error_of('SELECT * FROM snowflake_find_layout(''evil.t'', ''id'', ''at'')'), ' | ', 1)$$, 'ROLLBACK'])
FROM (VALUES
    ('CREATE TABLE t (id evil.pair, at timestamptz)', false, $$INSERT INTO t VALUES ('(5)', now())$$),
    ('CREATE TABLE t (id evil.name, at timestamptz)', false, $$INSERT INTO t VALUES ('a', now())$$),
    ('CREATE TABLE t (id evil.checked, at timestamptz)', false, 'INSERT INTO t VALUES (5, now())'),
    ('CREATE TABLE t (id bigint, at evil.name)', false, $$INSERT INTO t VALUES (5, 'a')$$),
    ('CREATE VIEW t AS SELECT 5::bigint AS id, now() AS at WHERE evil.spy(1)', false, NULL),
    (NULL, true, 'CREATE INDEX ON t ((evil.spy(1)))'),
    (NULL, true, 'CREATE INDEX ON t (id) WHERE evil.spy(1)'),
    (NULL, true, 'CREATE INDEX ON t (id) WHERE evil.spy(id)'),
    (NULL, true, 'ALTER TABLE t ADD CHECK (evil.spy(1))'),
    (NULL, true, 'ALTER TABLE t ADD CHECK (evil.spy(1)); CREATE TABLE u () INHERITS (t)'),
    (NULL, true, 'CREATE STATISTICS s ON (evil.spy(1)), (evil.spy(id)) FROM t; ANALYZE t'),
    (NULL, true, 'CREATE POLICY spied ON t USING (evil.spy(id)); ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY'),
    (NULL, true, 'CREATE MATERIALIZED VIEW v AS TABLE t; CREATE INDEX ON v (id) WHERE evil.spy(1); ALTER TABLE t RENAME TO x;
        ALTER MATERIALIZED VIEW v RENAME TO t'),
    ('CREATE TABLE t (id bigint, at timestamptz, ok boolean GENERATED ALWAYS AS (evil.spy(1)) STORED)', true, NULL),
    ('CREATE TABLE t (id bigint, at timestamptz) PARTITION BY RANGE ((evil.spy(id))); CREATE TABLE u PARTITION OF t DEFAULT;
        CREATE INDEX ON t (id) WHERE evil.spy(1)', true, NULL)) AS tables (created, has_rows, "then") \gexec
\echo -- nor of tables that inherit from those of the superuser
CREATE TABLE t (id bigint, at timestamptz) PARTITION BY RANGE (id);
CREATE TABLE evil.t PARTITION OF t DEFAULT;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nothing FOREIGN DATA WRAPPER nothing;
CREATE TABLE far (id bigint, at timestamptz);
CREATE FOREIGN TABLE away () INHERITS (far) SERVER nothing;
ALTER TABLE evil.t OWNER TO regress_find_layout_owner;
SET SESSION AUTHORIZATION regress_find_layout_owner;
CREATE INDEX ON evil.t (id) WHERE evil.spy(1);
RESET SESSION AUTHORIZATION;
SELECT name, error_of(format($$SELECT snowflake_find_layout(%L, 'id', 'at')$$, name)) FROM unnest('{t,away,far}'::text[]) AS name;
SET client_min_messages = 'warning';
DROP OWNED BY regress_find_layout_owner, regress_find_layout_reader CASCADE;
DROP ROLE regress_find_layout_owner, regress_find_layout_reader;
