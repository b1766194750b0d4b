-- How the planner uses the functions and the type: index ranges, pruned partitions, estimates, and queries on other servers.

\set ECHO none
\pset footer off
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET enable_bitmapscan = off;

-- The plan of a statement: what finds the rows, with its condition before the first value, and the partitions that are scanned.
CREATE FUNCTION plan_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    found text[];
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
        found := found || substring(line, '(?:using|on) (posts_\w+|by_\w+|(?:ranged|hashed)_\d)')
            || substring(line, '(?:Index Only Scan Backward|Filter|Subplans Removed: \d+)')
            || substring(line, 'Index Cond: (?:\(+id [<>=]+ [\w(.$]*)?');
    END LOOP;
    RETURN array_to_string(array_remove(found, NULL), ', ');
END $$;

-- IDs at regular intervals from the beginning of 2024, twice as dense at the end.
CREATE TABLE posts ();
CREATE PROCEDURE fill(rows int, layout snowflake_layout) LANGUAGE plpgsql AS $$
BEGIN
    DROP TABLE posts;
    CREATE TABLE posts (id bigint);
    INSERT INTO posts SELECT snowflake_encode(timestamptz '2024-01-01' + interval '366 days' * (x * (1.5 - x / 2)), n % 100, n % 32, layout)
        FROM generate_series(1, rows) AS n, LATERAL (SELECT n::float8 / rows) AS spread (x);
    ALTER TABLE posts ADD PRIMARY KEY (id);
    ANALYZE posts;
END $$;

\echo -- a range of times is a range of the primary key
SET plan_cache_mode = force_generic_plan;
CALL fill(10000, 'js53');
PREPARE span (timestamptz, timestamptz) AS SELECT * FROM posts WHERE snowflake_between(id, $1, $2, 'js53');
SELECT condition, plan_of('SELECT * FROM posts WHERE ' || condition) FROM unnest(ARRAY[
    'snowflake_between(id, ''2024-03-01'', ''2024-03-02'', ''js53'')',
    'id >= snowflake_min_id(''2024-03-01'', ''js53'') AND id < snowflake_min_id(''2024-03-02'', ''js53'')',
    'id >= snowflake_min_id(''2024-12-30'', ''js53'')',
    'snowflake_between(id, now() - interval ''1 hour'', ''infinity'', ''js53'')']) AS condition
UNION ALL SELECT 'EXECUTE', plan_of('EXECUTE span (''2024-03-01'', ''2024-03-02'')');
DEALLOCATE span;

\echo -- an index on a field is used, in its layout alone
CALL fill(10000, 'postgres');
CREATE INDEX by_shard ON posts (snowflake_shard_id(id));
CREATE INDEX by_seq ON posts (snowflake_seq(id, 'twitter'));
CREATE INDEX by_time ON posts (snowflake_created_at(id));
CREATE INDEX by_token ON posts (snowflake_to_base32(id));
CREATE INDEX by_uuid ON posts (snowflake_to_uuid(id));
CREATE INDEX partial ON posts (id) WHERE snowflake_shard_id(id) = 7;
ANALYZE posts;
SELECT condition, plan_of('SELECT * FROM posts WHERE ' || condition) FROM unnest(ARRAY['snowflake_shard_id(id) = 5',
    'snowflake_seq(id, ''twitter'') = 5', 'snowflake_created_at(id) < ''2024-01-02''', 'snowflake_to_base32(id) = ''0000000000000''',
    'snowflake_to_uuid(id) = ''00000000-0000-0000-0000-000000000000''', 'snowflake_shard_id(id, ''twitter'') = 5']) AS condition;
SELECT count(*) FROM posts WHERE snowflake_shard_id(id) = 5;

\echo -- the type is planned like a bigint
CREATE TABLE typed AS SELECT id::snowflake FROM posts;
ALTER TABLE typed ADD CONSTRAINT posts_typed PRIMARY KEY (id);
ANALYZE typed;
SELECT condition, plan_of('SELECT * FROM typed WHERE ' || replace(condition, 'ID', (SELECT max(id)::text FROM posts))) FROM unnest(ARRAY[
    'id = ID', 'id = ''ID''', 'id = ID::snowflake', 'id = 5', 'id IN (5, ID)', 'id >= ID', 'id > ID AND id < ID + 100000000',
    'id >= snowflake_min_id(''2024-12-31'')', 'snowflake_between(id, ''2024-12-30'', ''2024-12-31'')']) AS condition;
SELECT plan_of('SELECT max(id) FROM typed') ~ '^posts_typed, Index Only Scan Backward' AS max_by_index;

\echo -- estimates are within a fifth, by either condition
CALL fill(200000, 'postgres');
CREATE FUNCTION ratio(condition text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    plan json;
    rows float8;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM posts WHERE ' || condition INTO plan;
    EXECUTE 'SELECT count(*) FROM posts WHERE ' || condition INTO rows;
    RETURN (plan->0->'Plan'->>'Plan Rows')::float8 / rows;
END $$;
CREATE FUNCTION estimated(since timestamptz, until timestamptz, OUT of_between boolean, OUT of_bounds boolean) LANGUAGE sql AS $$
    SELECT ratio(format('snowflake_between(id, %L, %L)', since, until)) BETWEEN 0.8 AND 1.2,
        ratio(format('id >= snowflake_min_id(%L) AND id < snowflake_min_id(%L)', since, until)) BETWEEN 0.8 AND 1.2
$$;
SELECT spans.*, estimated.* FROM (VALUES (timestamptz '2024-01-10', timestamptz '2024-01-17'), ('2024-07-01', '2024-08-01'),
    ('2024-01-01', '2024-07-01'), ('2024-11-15', '2024-12-15'), ('2024-02-01', 'infinity'), ('-infinity', '2024-02-01')
) AS spans (since, until), estimated(since, until);
ALTER TABLE posts ALTER id SET STATISTICS 1000;
ANALYZE posts;
SELECT spans.*, estimated.* FROM (VALUES (timestamptz '2024-07-01', timestamptz '2024-07-02'), ('2024-12-24', '2024-12-25')
) AS spans (since, until), estimated(since, until);

\echo -- a partition for each month of 2024: where the IDs are, and which partitions are scanned
DROP TABLE posts;
CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE posts_%1$s PARTITION OF posts FOR VALUES FROM (snowflake_min_id(%2$L, %3$L)) TO (snowflake_min_id(%4$L, %3$L))',
    to_char(month, 'MM'), month, 'twitter', month + interval '1 month')
FROM generate_series(timestamp '2024-01-01', '2024-12-01', '1 month') AS month \gexec
INSERT INTO posts SELECT snowflake_encode(month + interval '28 days' * n / 1000, n, n, 'twitter')
FROM generate_series(timestamptz '2024-01-01', '2024-12-01', '1 month') AS month, generate_series(0, 999) AS n;
ANALYZE posts;
SELECT count(*), count(DISTINCT tableoid) FROM posts
WHERE to_char(snowflake_created_at(id, 'twitter'), 'MM') = right(tableoid::regclass::text, 2);
PREPARE span (timestamptz, timestamptz) AS SELECT * FROM posts WHERE snowflake_between(id, $1, $2, 'twitter');
PREPARE since (timestamptz) AS SELECT * FROM posts WHERE id >= snowflake_min_id($1, 'twitter');
SET enable_indexscan = off;
SELECT statement, plan_of(statement) FROM unnest(ARRAY[
    'SELECT * FROM posts WHERE snowflake_between(id, ''2024-03-05'', ''2024-03-06'', ''twitter'')',
    'SELECT * FROM posts WHERE snowflake_between(id, ''2024-03-05'', ''2024-04-01'', ''twitter'')',
    'SELECT * FROM posts WHERE snowflake_between(id, ''2024-03-05'', ''2024-04-01 00:00:00.001'', ''twitter'')',
    'SELECT * FROM posts WHERE id >= snowflake_min_id(''2024-11-30'', ''twitter'')',
    'SELECT * FROM posts WHERE id < snowflake_min_id(''2024-02-01'', ''twitter'')',
    'SELECT * FROM posts WHERE snowflake_between(id, now() - interval ''1 hour'', now(), ''twitter'')',
    'EXECUTE span (''2024-03-05'', ''2024-03-06'')', 'EXECUTE span (''2024-03-05'', ''2024-04-02'')', 'EXECUTE since (''2024-11-30'')'
]) AS statement;
CREATE TABLE ranged (id snowflake) PARTITION BY RANGE (id);
CREATE TABLE ranged_1 PARTITION OF ranged FOR VALUES FROM (snowflake_min_id('2024-01-01')) TO (snowflake_min_id('2024-02-01'));
CREATE TABLE ranged_2 PARTITION OF ranged FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (snowflake_min_id('2024-03-01'));
CREATE TABLE hashed (id snowflake) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT condition, plan_of('SELECT * FROM ' || condition) FROM unnest(ARRAY[
    'ranged WHERE snowflake_between(id, ''2024-02-03'', ''2024-02-04'')', 'hashed WHERE id = 5', 'hashed WHERE id = ''5''',
    'hashed WHERE id = 1409869991632729716']) AS condition;

\echo -- a check holds IDs to their shard, and generated columns show their parts
CREATE SEQUENCE s;
CREATE TABLE checked (
    id bigint PRIMARY KEY CHECK (snowflake_shard_id(id, 'twitter') = 5),
    written timestamptz GENERATED ALWAYS AS (snowflake_created_at(id, 'twitter')) STORED,
    token text GENERATED ALWAYS AS (snowflake_to_base32(id)) STORED,
    uuid uuid GENERATED ALWAYS AS (snowflake_to_uuid(id, 'twitter')) STORED,
    spell text GENERATED ALWAYS AS (snowflake_explain(id, 'twitter')) STORED,
    recent boolean GENERATED ALWAYS AS (snowflake_between(id, '2024-01-01', 'infinity', 'twitter')) STORED);
INSERT INTO checked VALUES (snowflake_encode('2024-02-03 04:05:06.007', 5, 1, 'twitter'));
SELECT written, snowflake_from_base32(token) = id AS token, snowflake_from_uuid(uuid, 'twitter') = id AS uuid,
    spell LIKE '%2024-02-03T04:05:06.007Z%' AS spell, recent FROM checked;
\set VERBOSITY sqlstate
INSERT INTO checked VALUES (snowflake_nextval('s', 6, 'twitter'));
