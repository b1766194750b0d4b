-- Which leases the functions of a registry grant, and what they refuse. Each case is of shards of its own.

\set ECHO none
CREATE EXTENSION pg_snowflake_registry;

\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\pset fieldsep '|'
\set helpers :folder '/data/registry.sql'
\i :helpers
-- The whole row of a shard, to see that it is unchanged.
CREATE FUNCTION row_of(shard int) RETURNS text LANGUAGE sql AS $$
    SELECT s::text FROM snowflake_registry.shards AS s WHERE shard_id = shard $$;
CREATE FUNCTION refusal_of(statement text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(error_of(statement),
        '\d+-\d+-\d+ [\d:.]+\+00( BC)?|[\d.]+ (ms|s|minutes|hours|days) (ahead|behind)', '<time>', 'g') $$;

\echo -- a repeated claim has the same answer, before and after a renewal
CREATE TABLE first AS SELECT * FROM claim('{4}', 'db-a', 1, NULL, 1);
SELECT (again.granted, again.starts, again.ends, again.serial) = (first.granted, first.starts, first.ends, first.serial)
FROM claim('{4}', 'db-a', 1, NULL, 1) AS again, first;
CREATE TABLE renewed AS SELECT renewed.* FROM first, claim('{4}', 'db-a', 1, ARRAY[first.serial], 2) AS renewed;
SELECT (again.granted, again.starts, again.ends, again.serial) = (renewed.granted, renewed.starts, renewed.ends, renewed.serial)
FROM first, renewed, claim('{4}', 'db-a', 1, ARRAY[first.serial], 2) AS again;

\echo -- the holder extends its span, and another server is refused with the name of the holder
SELECT granted, starts = read_at FROM claim('{5}', 'db-a', 1, NULL, 1);
SELECT serial, starts, ends FROM snowflake_registry.leases NATURAL JOIN snowflake_registry.shards WHERE shard_id = 5 \gset
SELECT granted, starts = :'starts', ends > :'ends' FROM claim('{5}', 'db-a', 1, ARRAY[:serial], 2);
SELECT row_of(5) AS before \gset
SELECT granted, starts, serial, regexp_replace(reason, ' until 20.*', ' until <time>') FROM claim('{5}', 'db-b', 2, NULL, 3);
\echo -- so is a claim with an old serial
SELECT granted, reason FROM claim('{5}', 'db-a', 1, ARRAY[:serial], 4);
SELECT row_of(5) = :'before', state FROM snowflake_registry.leases WHERE shard_id = 5;
\echo -- only the holder with the current serial releases, once
SELECT serial AS current FROM snowflake_registry.shards WHERE shard_id = 5 \gset
SELECT release(2, 5, :current), release(1, 5, :serial), release(1, 5, NULL), release(1, 6, :current), row_of(5) = :'before', row_of(6);
SELECT release(1, 5, :current), release(1, 5, :current);

\echo -- a release lowers the end to the mark, or gives back a span of which nothing was used; the next span begins there, or at the clock
CREATE FUNCTION released(shard int, mark text, new_end text) RETURNS TABLE (released int, state text, is_end boolean, is_next boolean)
LANGUAGE plpgsql AS $$
DECLARE
    lease record;
    at timestamptz;
BEGIN
    SELECT * INTO lease FROM claim(ARRAY[shard], 'db-a', 1, NULL, 1);
    EXECUTE format('SELECT %s, %s FROM snowflake_registry.leases WHERE shard_id = $1', new_end, mark) INTO new_end, at USING shard;
    released := release(1, shard, lease.serial, at);
    SELECT l.state, greatest(ends, '2000-01-01') = new_end::timestamptz INTO state, is_end
    FROM snowflake_registry.leases AS l WHERE shard_id = shard;
    SELECT starts = greatest(new_end::timestamptz, read_at) INTO is_next FROM claim(ARRAY[shard], 'db-b', 2, NULL, 2);
    RETURN NEXT;
END $$;
SELECT mark, released.* FROM (VALUES (10, 'starts + interval ''2 min''', 'starts + interval ''2 min'''),
    (11, 'starts + interval ''1 us''', 'starts + interval ''1 us'''), (12, 'starts', 'timestamptz ''2000-01-01'''),
    (13, '''-infinity''', 'timestamptz ''2000-01-01'''), (14, 'ends + interval ''1 h''', 'ends'), (15, '''infinity''', 'ends')
) AS cases (shard, mark, new_end), released(shard, mark, new_end);

\echo -- a refusal says when the shard is free: when the lease ends, or is no longer kept; nobody knows when it is no longer reserved
SELECT granted FROM claim('{16}', 'db-a', 1, NULL, 1);
SELECT granted, retry_at = (SELECT ends FROM snowflake_registry.leases WHERE shard_id = 16) FROM claim('{16}', 'db-b', 2, NULL, 2);
SELECT snowflake_registry.release(incarnation, '{16}', ARRAY[serial], starts, keep => true) FROM snowflake_registry.shards WHERE shard_id = 16;
SELECT granted, retry_at = kept_until FROM claim('{16}', 'db-b', 2, NULL, 3), snowflake_registry.shards AS s WHERE s.shard_id = 16;
SELECT snowflake_registry.take_over(16, 'db-c') IS NOT NULL;
SELECT granted, retry_at FROM claim('{16}', 'db-b', 2, NULL, 4);

\echo -- of several shards, those that are free are granted, and each serial is that of its shard
SELECT granted FROM claim('{21}', 'db-a', 1, NULL, 1);
CREATE TABLE answers AS SELECT * FROM claim('{22, 21, 20}', 'db-b', 2, NULL, 2);
SELECT shard_id, granted FROM answers;
SELECT serial FROM answers WHERE shard_id = 22 \gset
SELECT shard_id, renewed.starts = old.starts, renewed.starts = old.ends
FROM claim('{22, 20}', 'db-b', 2, ARRAY[:serial, NULL], 3) AS renewed JOIN answers AS old USING (shard_id) ORDER BY shard_id;
\echo -- a shard that nobody had can be reserved
SELECT snowflake_registry.take_over(30, 'db-b') IS NOT NULL;
SELECT granted FROM claim('{30}', 'db-a', 1, NULL, 1);
SELECT granted, starts = read_at FROM claim('{30}', 'db-b', 2, NULL, 2);
\echo -- a take-over bars the holder, and the span of the new node begins where that of the holder ends
SELECT granted FROM claim('{32}', 'db-a', 1, NULL, 1);
SELECT serial, ends FROM snowflake_registry.leases NATURAL JOIN snowflake_registry.shards WHERE shard_id = 32 \gset
SELECT snowflake_registry.take_over(32, 'db-b') = :'ends';
SELECT reason FROM claim('{32}', 'db-a', 1, ARRAY[:serial], 2) UNION ALL SELECT reason FROM claim('{32}', 'db-a', 1, NULL, 3)
UNION ALL SELECT reason FROM claim('{32}', 'db-c', 3, NULL, 3) UNION ALL SELECT split_part(reason, ' at 20', 1) FROM claim('{32}', 'db-b', 2, NULL, 3);
SELECT release(1, 32, :serial), state FROM snowflake_registry.leases WHERE shard_id = 32;
-- As if an hour had passed.
CREATE PROCEDURE an_hour_later(shard int) LANGUAGE sql AS $$
    ALTER TABLE snowflake_registry.shards DISABLE TRIGGER refuse_change;
    UPDATE snowflake_registry.shards SET starts = starts - interval '1 h', ends = ends - interval '1 h', former_end = former_end - interval '1 h',
        kept_until = kept_until - interval '1 h' WHERE shard_id = shard;
    ALTER TABLE snowflake_registry.shards ENABLE ALWAYS TRIGGER refuse_change $$;
CALL an_hour_later(32);
SELECT reason FROM claim('{32}', 'db-c', 3, NULL, 4);
SELECT granted, starts = read_at FROM claim('{32}', 'db-b', 2, NULL, 4);
\echo -- after its end a lease goes to any server, and begins at the clock
CALL an_hour_later(32);
SELECT state FROM snowflake_registry.leases WHERE shard_id = 32;
SELECT granted, starts = read_at FROM claim('{32}', 'db-c', 3, NULL, 5);
\echo -- a retired node leaves its shard to others when it is released or has ended
SELECT refusal_of('SELECT snowflake_registry.retire(''db-e'')');
SELECT granted FROM claim('{33}', 'db-e', 5, NULL, 5);
SELECT refusal_of('SELECT snowflake_registry.retire(''db-e'')');
SELECT release(5, 33, serial) FROM snowflake_registry.shards WHERE shard_id = 33;
SELECT shard_id, free_at <= clock_timestamp() FROM snowflake_registry.retire('db-e');
SELECT node IS NULL, state FROM snowflake_registry.leases WHERE shard_id = 33;
SELECT granted, starts = read_at FROM claim('{33}', 'db-f', 6, NULL, 6);
SELECT left(refusal_of('SELECT snowflake_registry.retire(''db-f'')'), 29);
CALL an_hour_later(33);
SELECT shard_id, free_at <= clock_timestamp() FROM snowflake_registry.retire('db-f');
\echo -- one that has taken over leaves it where the span of the holder ends
SELECT ends FROM claim('{34}', 'db-a', 1, NULL, 1) \gset
SELECT snowflake_registry.take_over(34, 'db-g') = :'ends';
SELECT shard_id, free_at = :'ends' FROM snowflake_registry.retire('db-g');
SELECT split_part(reason, ' at 20', 1) FROM claim('{34}', 'db-b', 2, NULL, 2);
\echo -- a serial of a shard without a lease shows that the registry has lost leases: the next spans begin when these have ended
SELECT granted, row_of(6) FROM claim('{6}', 'db-a', 1, '{1}', 1);
SELECT granted, starts > read_at + interval '4 min' FROM claim('{31}', 'db-a', 1, NULL, 1);

\echo -- a session claims after errors, and in a registry that was created anew or changed, more often than it plans anew for its arguments
CREATE FUNCTION granted(nonce int) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FILTER (WHERE granted) FROM claim('{40,41}', 'db-a', 1, NULL, nonce) $$;
\c
SET timezone = 'UTC';
SET datestyle = 'ISO';
\set VERBOSITY sqlstate
BEGIN;
ALTER TABLE snowflake_registry.shards RENAME TO hidden;
SELECT granted(1);
ROLLBACK;
SELECT granted(1);
SELECT snowflake_registry.claim('{40}', 'db-a', uuid(1), NULL, uuid(2), clock_timestamp() + interval '1 h', '5 min');
SELECT granted(2);
\set VERBOSITY default
ALTER TABLE snowflake_registry.shards ADD COLUMN other text;
VACUUM FULL snowflake_registry.shards;
SELECT DISTINCT granted(nonce) FROM generate_series(3, 12) AS nonce;
DISCARD PLANS;
SELECT DISTINCT granted(nonce) FROM generate_series(3, 12) AS nonce;
DROP EXTENSION pg_snowflake_registry;
CREATE EXTENSION pg_snowflake_registry;
SELECT DISTINCT granted(nonce) FROM generate_series(3, 12) AS nonce;

\echo -- unusual arguments are taken as they are
SELECT count(*), count(*) FILTER (WHERE granted) FROM claim(ARRAY(SELECT generate_series(0, 1023)), 'db-a', 1, NULL, 1);
SELECT shard_id, granted FROM claim('[7:8]={2147483647, 8192}', 'db-a', 1, NULL, 1);
SELECT granted FROM claim('{9000}', 'd"b'' \; --', 1, NULL, 1);
SELECT regexp_replace(reason, ' until 20.*', ' until <time>') FROM claim('{9000}', 'db-b', 2, NULL, 2);
SELECT release(1, 5, NULL), snowflake_registry.release(uuid(1), NULL, NULL, now());

\echo -- bad arguments are refused and change nothing
SELECT md5(string_agg(s::text, ',' ORDER BY shard_id)) AS before FROM snowflake_registry.shards AS s \gset
-- A call with another argument.
CREATE FUNCTION call(argument text DEFAULT '', other text DEFAULT '') RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT snowflake_registry.claim(%s)', string_agg(CASE name WHEN argument THEN other ELSE value END, ', ' ORDER BY n))
    FROM (VALUES (1, 'shard_ids', '''{6}'''), (2, 'node', '''db-a'''), (3, 'incarnation', 'uuid(1)'), (4, 'serials', 'NULL'),
        (5, 'nonce', 'uuid(1)'), (6, 'until', 'clock_timestamp() + interval ''5 min'''), (7, 'length', '''5 min''')
    ) AS arguments (n, name, value)
$$;
SELECT refusal_of(call(argument, value)) FROM (VALUES ('shard_ids', '''{6, NULL}'''), ('shard_ids', '''{{6, 7}, {8, 9}}'''),
    ('shard_ids', '''{6, 7, 6}'''), ('shard_ids', '''{6, -1}'''), ('shard_ids', '''{-2147483648}'''),
    ('shard_ids', 'array_fill(6, ARRAY[1000000])'), ('serials', '''{1, 2}'''), ('serials', '''{{1}}'''), 
    ('node', ''''''), ('node', 'repeat(''x'', 256)'), ('node', 'E''db\nLOG:  forged'''), ('node', 'chr(127)'), ('node', 'NULL'),
    ('incarnation', 'NULL'), ('nonce', 'NULL'), ('until', 'NULL'), ('until', '''infinity'''), ('until', '''-infinity'''),
    ('until', '''294276-12-31'''), ('until', '''4000-01-01 BC'''), ('until', 'clock_timestamp() + interval ''5 min 2 s'''),
    ('until', 'clock_timestamp()'), ('until', 'clock_timestamp() - interval ''1 h'''),
    ('until', 'clock_timestamp() + interval ''1000 years'''),
    ('length', 'NULL'), ('length', '''0 s'''), ('length', '''-10 s'''), ('length', '''1 h'''), ('length', '''178000000 years''')
) AS cases (argument, value);
SELECT refusal_of('SELECT snowflake_registry.claim(NULL, ''db-a'', uuid(1), ''{1}'', uuid(1), clock_timestamp() + interval ''5 min'', ''5 min'')');
SELECT refusal_of('SELECT snowflake_registry.' || call) FROM unnest(ARRAY['release(uuid(1), ''{5, 5}'', ''{1, 1}'', now())',
    'release(uuid(1), ''{5}'', ''{1}'', NULL)', 'release(uuid(1), ''{5}'', ''{1, 2}'', now())',
    'release(uuid(1), ''{{5}}'', ''{1}'', now())', 'release(NULL, ''{5}'', ''{1}'', now())', 'take_over(-1, ''db-b'')',
    'take_over(NULL, ''db-b'')', 'take_over(5, NULL)', 'take_over(5, '''')']) AS call;
SELECT md5(string_agg(s::text, ',' ORDER BY shard_id)) = :'before' FROM snowflake_registry.shards AS s;
-- half a second is nothing unusual
SELECT granted FROM snowflake_registry.claim('{9001}', 'db-a', uuid(1), NULL, uuid(1), clock_timestamp() + interval '5 min 0.5 s', '5 min');

\echo -- a transaction that could miss a lease is refused
CREATE TABLE calls (n serial, call text);
INSERT INTO calls (call) VALUES (call()), ('SELECT snowflake_registry.release(uuid(1), ''{5}'', ''{1}'', now())'),
    ('SELECT snowflake_registry.take_over(5, ''db-b'')'), ('SELECT snowflake_registry.retire(''db-b'')');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT refusal_of(call) FROM calls ORDER BY n;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT DISTINCT left(refusal_of(call), 5) FROM calls;
COMMIT;
BEGIN READ ONLY;
SELECT refusal_of(call) FROM calls ORDER BY n;
COMMIT;

\echo -- a registry whose schema an ordinary role owns, which could put a table with triggers in place of ours
CREATE ROLE regress_registry_claims_mallory;
CREATE ROLE regress_registry_claims_other SUPERUSER;
ALTER SCHEMA snowflake_registry OWNER TO regress_registry_claims_mallory;
SELECT DISTINCT refusal_of(call) FROM calls;
ALTER SCHEMA snowflake_registry OWNER TO regress_registry_claims_other;
SELECT DISTINCT refusal_of(call) FROM calls WHERE n < 4;
ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER;
SELECT refusal_of(call) FROM calls ORDER BY n;
DROP ROLE regress_registry_claims_mallory, regress_registry_claims_other;

\echo -- of the numbers of the default layout, the lowest free one is assigned, and to a copy that of the original, in vain
DROP EXTENSION pg_snowflake_registry;
CREATE EXTENSION pg_snowflake_registry;
ALTER TABLE snowflake_registry.shards DISABLE TRIGGER refuse_change;
INSERT INTO snowflake_registry.shards (shard_id, node, serial, starts, ends, released, renewed_at, former_end, kept_until)
SELECT shard, 'db-' || shard, 1, '-infinity', '-infinity', true, '-infinity', '-infinity', '-infinity'
FROM generate_series(0, 4094) AS shard;
ALTER TABLE snowflake_registry.shards ENABLE ALWAYS TRIGGER refuse_change;
SELECT shard_id, granted FROM claim(NULL, 'db-a', 1, NULL, 1);
SELECT shard_id, granted FROM claim(NULL, 'db-a', 3, NULL, 3);
SELECT refusal_of('SELECT claim(NULL, ''db-b'', 2, NULL, 2)');
SELECT shard_id, granted FROM claim(NULL, 'db-a', 1, NULL, 1);
-- nor one that a person has reserved
SELECT snowflake_registry.take_over(5000, 'db-b') IS NOT NULL;
SELECT left(refusal_of('SELECT claim(NULL, ''db-b'', 2, NULL, 2)'), 5);
SELECT shard_id FROM snowflake_registry.retire('db-7');
SELECT shard_id, granted FROM claim(NULL, 'db-new', 3, NULL, 3);
