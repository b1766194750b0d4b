-- The type snowflake: a bigint that is a string in JSON.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
SET timezone = 'UTC';

-- It is a bigint in all expressions. This ID is above 2^53, so that a JavaScript number would lose it.
SELECT '1409869991632729716'::snowflake, 1409869991632729716::snowflake, 5::snowflake, '-1'::snowflake \g (tuples_only=off)
SELECT ('1409869991632729716'::snowflake)::bigint + 1, '1409869991632729716'::snowflake + 1;
SELECT '1409869991632729716'::snowflake = 1409869991632729716, '1409869991632729716'::snowflake > 5,
       '10'::snowflake > '9'::snowflake, '1409869991632729716'::snowflake IN (1, 1409869991632729716),
       '1409869991632729716'::snowflake = ANY (ARRAY[1, 1409869991632729716]),
       '1409869991632729716'::snowflake BETWEEN 1 AND 1409869991632729716 \g (tuples_only=off)
SELECT snowflake_shard_id('1409869991632729716'::snowflake),
       snowflake_between('1409869991632729716'::snowflake, '2020-08-26', '2020-08-27'),
       snowflake_to_base32('1409869991632729716'::snowflake) = snowflake_to_base32(1409869991632729716) AS base32 \g (tuples_only=off)
SELECT ARRAY['1409869991632729716'::snowflake, 5]::snowflake[], '{9,10}'::snowflake[] @> ARRAY[10::snowflake] AS contains,
       ('{9,10}'::snowflake[])[2] AS second \g (tuples_only=off)
SELECT greatest('9'::snowflake, '10'::snowflake), coalesce(NULL::snowflake, 3::bigint::snowflake);
-- with an integer, such as a literal, it stays a snowflake
SELECT pg_typeof(coalesce('3'::snowflake, 0)), greatest('3'::snowflake, 4), ARRAY['3'::snowflake, 5] \g (tuples_only=off)
-- with a bigint the common type is bigint
SELECT coalesce('3'::snowflake, 4::bigint), pg_typeof(greatest('3'::snowflake, 4::bigint));
SELECT '3'::snowflake AS united UNION SELECT 3::bigint;
SELECT id FROM (SELECT '3'::snowflake AS id) AS a JOIN (SELECT 3::bigint AS id) AS b USING (id);

-- Beside each type: the operators that need a cast to bigint, and those with another result. An operand is on either side.
CREATE FUNCTION outcome(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'SELECT ' || expression INTO result;
    RETURN result;
EXCEPTION WHEN undefined_function OR cannot_coerce THEN RETURN 'cast';
    WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
SELECT operand,
       string_agg(DISTINCT operator, ' ') FILTER (WHERE of_bigint <> 'cast' AND of_snowflake = 'cast') AS needs_cast,
       string_agg(DISTINCT operator, ' ') FILTER (WHERE of_snowflake NOT IN (of_bigint, 'cast')) AS differs
FROM unnest('{0::smallint, 3, 3::bigint, "''3''::snowflake", "''3''", 3.5, 3.5::real, 3.5::float8, "interval ''1 s''", 3::oid, "''[1,9]''::int8range"}'::text[])
        WITH ORDINALITY AS operands (operand, n),
    unnest('{+,-,*,/,%,^,&,|,#,<<,>>,=,<>,<,<=,>,>=,<@,IS DISTINCT FROM}'::text[]) AS operator,
    unnest('{ID op operand, operand op ID}'::text[]) AS form,
    LATERAL (SELECT replace(replace(form, 'operand', operand), 'op', operator)) AS e (expression),
    LATERAL (SELECT outcome(replace(expression, 'ID', '9007199254740993::bigint')),
                    outcome(replace(expression, 'ID', '''9007199254740993''::snowflake'))) AS o (of_bigint, of_snowflake)
GROUP BY operand, n ORDER BY n \g (tuples_only=off format=aligned)
SELECT operand,
       string_agg(DISTINCT operator, ' ') FILTER (WHERE of_bigint <> 'cast' AND of_snowflake = 'cast') AS needs_cast,
       string_agg(DISTINCT operator, ' ') FILTER (WHERE of_snowflake NOT IN (of_bigint, 'cast')) AS differs
FROM unnest('{3, 3::bigint, "''3''::snowflake", "''{3,5}''", "''{3,5}''::bigint[]"}'::text[])
        WITH ORDINALITY AS operands (operand, n),
    unnest('{=,<>,<,@>,<@,&&,||,= ANY}'::text[]) AS operator,
    unnest('{IDS op (operand), (operand) op (IDS)}'::text[]) AS form,
    LATERAL (SELECT replace(replace(form, 'operand', operand), 'op', operator)) AS e (expression),
    LATERAL (SELECT outcome(replace(expression, 'IDS', '''{5,3}''::bigint[]')),
                    outcome(replace(expression, 'IDS', '''{5,3}''::snowflake[]'))) AS o (of_bigint, of_snowflake)
GROUP BY operand, n ORDER BY n \g (tuples_only=off format=aligned)
DROP FUNCTION outcome;

-- What is not a bigint is not a snowflake. The words are core's.
\set VERBOSITY sqlstate
SELECT 'x'::snowflake;
SELECT ''::snowflake;
SELECT '1.5'::snowflake;
SELECT '9223372036854775808'::snowflake;
\set VERBOSITY default

-- Order, groups and aggregates
CREATE TABLE posts (id snowflake PRIMARY KEY, n int);
INSERT INTO posts (id, n)
SELECT snowflake_encode('2024-01-01', g % 8, g % 1024) + (g::bigint << 22), g FROM generate_series(1, 10000) AS g;
SELECT count(*) AS out_of_order FROM (SELECT rank() OVER (ORDER BY id) AS r, n FROM posts) AS x WHERE r <> n;
SELECT n FROM posts ORDER BY id DESC LIMIT 2;
SELECT max(id) = (SELECT id FROM posts WHERE n = 10000) AS max, min(id) = (SELECT id FROM posts WHERE n = 1) AS min,
       count(DISTINCT id), cardinality(array_agg(id ORDER BY id)) FROM posts \g (tuples_only=off)
SELECT count(*) FROM (SELECT id FROM posts GROUP BY id) AS grouped;
SELECT count(*) FROM posts AS a JOIN posts AS b USING (id);

-- Foreign keys to and from bigints
CREATE SEQUENCE s;
CREATE TABLE comments (id snowflake PRIMARY KEY DEFAULT snowflake_nextval('s', 5), post_id bigint NOT NULL REFERENCES posts);
CREATE TABLE plain (id bigint PRIMARY KEY);
CREATE TABLE of_plain (plain_id snowflake REFERENCES plain ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO comments (post_id) SELECT id FROM posts LIMIT 10;
INSERT INTO plain VALUES (1), (2), (3);
INSERT INTO of_plain VALUES (1), (2);
UPDATE plain SET id = 20 WHERE id = 2;
DELETE FROM plain WHERE id = 1;
SELECT plain_id FROM of_plain;
\set VERBOSITY sqlstate
INSERT INTO comments (post_id) VALUES (-1);
INSERT INTO of_plain VALUES (99);
DELETE FROM posts WHERE id IN (SELECT post_id FROM comments);
\set VERBOSITY default
DROP TABLE comments, of_plain, plain, posts;

-- In JSON it is a string, and read as one
CREATE TABLE posts (id snowflake, ids snowflake[], plain bigint);
INSERT INTO posts VALUES (1409869991632729716, '{1409869991632729716,5}', 1409869991632729716);
SELECT row_to_json(posts) FROM posts;
SELECT to_jsonb(posts) FROM posts;
SELECT to_json(id), jsonb_build_object('id', id), json_object_agg(id, id), jsonb_agg(id) FROM posts GROUP BY id \g (tuples_only=off)
SELECT (SELECT (r).id FROM jsonb_populate_record(posts, to_jsonb(posts)) AS r) AS populated,
       jsonb_populate_record(NULL::posts, to_jsonb(posts)) = posts AS same_row,
       json_populate_record(NULL::posts, row_to_json(posts)) = posts AS same_row_json,
       (SELECT id FROM jsonb_to_record(to_jsonb(posts)) AS r (id snowflake)) AS to_record
FROM posts \g (tuples_only=off)
DROP TABLE posts;

-- Partitioned by it
CREATE TABLE ranged (id snowflake PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE ranged_1 PARTITION OF ranged
    FOR VALUES FROM (snowflake_min_id('2024-01-01')) TO (snowflake_min_id('2024-02-01'));
CREATE TABLE ranged_2 PARTITION OF ranged
    FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (snowflake_min_id('2024-03-01'));
-- 31 days and 28 days of hours, and the first of the 29th
INSERT INTO ranged SELECT snowflake_encode(t, 5, 1) FROM generate_series(timestamptz '2024-01-01', '2024-02-29', '1 hour') AS t;
SELECT count(*), 31 * 24 AS expected FROM ranged_1;
SELECT count(*), 28 * 24 + 1 AS expected FROM ranged_2;

CREATE TABLE hashed (id snowflake PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO hashed SELECT id FROM ranged;
SELECT count(*), count(*) FILTER (WHERE tableoid = 'hashed_0'::regclass) BETWEEN 600 AND 820 AS is_about_half FROM hashed;
DROP TABLE ranged, hashed;
