-- The operator classes: the shard in an ID determines the partition of its row, and what a statement reads.

\set ECHO none
\pset footer off

-- The bits below the shard, its own bits, and whether they are XORed with as many bits above them.
CREATE TABLE classes (n int, class text, shift int, bits int, is_xored boolean);
INSERT INTO classes VALUES (1, 'snowflake_shard_ops', 0, 12, true), (2, 'snowflake_shard_ops_instagram', 10, 13, false),
    (3, 'snowflake_shard_ops_twitter', 12, 10, false), (4, 'snowflake_shard_ops_sonyflake', 0, 16, false),
    (5, 'snowflake_shard_ops_js53', 5, 7, false);
SELECT opcname FROM pg_opclass WHERE opcname LIKE 'snowflake\_shard%' AND NOT opcdefault EXCEPT SELECT class FROM classes \g (footer=on)

-- An ID of that shard with these bits above it and below it.
CREATE FUNCTION id_of(c classes, shard bigint, above bigint DEFAULT 1387263000, below bigint DEFAULT 0) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT (above << c.shift + c.bits) | ((shard # CASE WHEN c.is_xored THEN above & (1 << c.bits) - 1 ELSE 0 END) << c.shift) | below
$$;
-- Every shard and IDs of it: all other bits 0, all 1, and two others; two of four are negative.
CREATE FUNCTION ids_of(c classes) RETURNS TABLE (shard bigint, id bigint) LANGUAGE sql AS $$
    SELECT shard, id_of(c, shard, above, below) FROM generate_series(0, (1::bigint << c.bits) - 1) AS shard,
        (VALUES (0::bigint, 0::bigint), (-1, (1::bigint << c.shift) - 1), (1, (1::bigint << c.shift) - 1), (-1000000007, 0)
        ) AS rest (above, below)
$$;
CREATE PROCEDURE partition(name text, columns text, key text, modulus int) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %s (%s) PARTITION BY HASH (%s)', name, columns, key);
    FOR remainder IN 0..modulus - 1 LOOP
        EXECUTE format('CREATE TABLE %s_%s PARTITION OF %1$s FOR VALUES WITH (MODULUS %3$s, REMAINDER %2$s)', name, remainder, modulus);
    END LOOP;
END $$;

\echo -- the remainder is the shard modulo the modulus; the hash of any other seed is the one of core
CREATE FUNCTION remainders(c classes, OUT ids bigint, OUT strangers bigint, OUT in_partition bigint, OUT other_hashes bigint)
LANGUAGE plpgsql AS $$
BEGIN
    CALL partition('t', 'shard bigint, id bigint PRIMARY KEY', 'id ' || c.class, 3);
    INSERT INTO t SELECT * FROM ids_of(c);
    SELECT count(*), count(*) FILTER (WHERE tableoid = ('t_' || shard % 3)::regclass) INTO ids, in_partition FROM t;
    SELECT count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, modulus, (shard % modulus)::int, id)) INTO strangers
    FROM t, unnest(ARRAY[1, 2, 3, 4, 7, 16, 1000, 8192]) AS modulus;
    DROP TABLE t;
    -- the last is the seed of partitioning
    EXECUTE format('SELECT count(*) FROM (VALUES (0::bigint), (1), (-1), (2147483647), (12293), (9223372036854775807)) AS ids (id),
            (VALUES (0::bigint), (1), (-1), (42), (8816678312871386365)) AS seeds (seed), LATERAL (SELECT %1$s(id, seed)) AS h (hash)
        WHERE seed <> 8816678312871386365 AND hash <> hashint8extended(id, seed) OR seed = 0 AND (hash # hashint8(id)) & 4294967295 <> 0
            OR id < 2147483648 AND hash <> %1$s((id & 2147483647 | CASE WHEN id < 0 THEN -2147483648 ELSE 0 END)::int, seed)',
        '_' || replace(c.class, '_ops', '_hash')) INTO other_hashes;
END $$;
SELECT class, remainders.* FROM classes AS c, remainders(c) ORDER BY n;

\echo -- a class takes the layouts whose shard is there; each row is where snowflake_locate() finds it
CREATE FUNCTION located(c classes, OUT layouts text, OUT rows bigint, OUT partitions bigint, OUT astray bigint) LANGUAGE plpgsql AS $$
DECLARE
    preset text;
    others bigint;
BEGIN
    CALL partition('posts', 'id bigint', 'id ' || c.class, 7);
    INSERT INTO posts SELECT hashint8extended(n, 1) FROM generate_series(1, 5000) AS n;
    INSERT INTO posts VALUES (9223372036854775807), (-9223372036854775808), (-1), (0);
    SELECT count(*), count(DISTINCT tableoid), 0 INTO rows, partitions, astray FROM posts;
    FOR preset IN SELECT name FROM snowflake_layouts LOOP
        BEGIN
            SELECT count(*) INTO others FROM posts AS p, snowflake_locate('posts', id, preset::snowflake_layout)
            WHERE partition IS DISTINCT FROM p.tableoid;
            layouts := concat_ws(' ', layouts, preset);
            astray := astray + others;
        EXCEPTION WHEN invalid_parameter_value THEN
        END;
    END LOOP;
    DROP TABLE posts;
END $$;
SELECT class, located.* FROM classes AS c, located(c) ORDER BY n;

-- The tables that a statement has read, and how many partitions were pruned when it ran.
CREATE FUNCTION read_by(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || statement INTO plan;
    RETURN (SELECT string_agg(DISTINCT name, ' ' ORDER BY name) FROM jsonb_path_query(plan,
            '$.** ? (@."Relation Name" != null && @."Node Type" != "ModifyTable" && @."Actual Loops" > 0)."Relation Name"') AS node,
            LATERAL (SELECT node #>> '{}') AS n (name))
        || coalesce(', without ' || (jsonb_path_query_array(plan, 'strict $.**."Subplans Removed" ? (@ > 0)')->>0), '');
END $$;
-- With IDs of shards in the places of FIVE, ANOTHER, SIX and NINE, and a small one of shard 7.
CREATE FUNCTION with_ids(c classes, statement text) RETURNS text LANGUAGE sql AS $$
    SELECT replace(replace(replace(replace(replace(statement, 'FIVE', id_of(c, 5)::text), 'ANOTHER', id_of(c, 5, 1387263001)::text),
        'SIX', id_of(c, 6)::text), 'NINE', id_of(c, 9)::text), 'SMALL', id_of(c, 7, 1)::text)
$$;

\echo -- each class
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION read_in(c classes, statements text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    found text[];
BEGIN
    CALL partition('t', 'id snowflake', 'id ' || c.class, 4);
    PREPARE one (bigint) AS SELECT * FROM t WHERE id = $1;
    PREPARE of_integer (int) AS SELECT * FROM t WHERE id = $1;
    found := ARRAY(SELECT read_by(with_ids(c, statement)) FROM unnest(statements) AS statement);
    DEALLOCATE one;
    DEALLOCATE of_integer;
    DROP TABLE t;
    RETURN found;
END $$;
SELECT class, read_in(c, ARRAY['SELECT * FROM t WHERE id = FIVE', 'SELECT * FROM t WHERE id = ''SIX''::snowflake',
    'SELECT * FROM t WHERE id = SMALL', 'SELECT * FROM t WHERE id IN (FIVE, NINE)', 'SELECT * FROM t WHERE id = (SELECT SIX)',
    'DELETE FROM t WHERE id = SIX', 'EXECUTE one (NINE)', 'EXECUTE of_integer (SMALL)']) FROM classes AS c ORDER BY n;

\echo -- a snowflake or a domain as the key
CREATE DOMAIN post_id AS bigint CHECK (VALUE >= 0);
CALL partition('of_snowflake', 'id snowflake PRIMARY KEY', 'id snowflake_shard_ops', 4);
CALL partition('of_post_id', 'id post_id PRIMARY KEY', 'id snowflake_shard_ops', 4);
INSERT INTO of_snowflake SELECT id_of(c, shard) FROM classes AS c, generate_series(0, 4095) AS shard WHERE n = 1;
INSERT INTO of_post_id TABLE of_snowflake;
SELECT count(*) FILTER (WHERE s.tableoid = ('of_snowflake_' || snowflake_shard_id(id) % 4)::regclass) AS of_snowflake,
    count(*) FILTER (WHERE p.tableoid = ('of_post_id_' || snowflake_shard_id(id) % 4)::regclass) AS of_post_id
FROM of_snowflake AS s JOIN of_post_id AS p USING (id);
SELECT condition, read_by('SELECT * FROM of_snowflake WHERE ' || statement) AS of_snowflake,
    read_by('SELECT * FROM of_post_id WHERE ' || statement) AS of_post_id
FROM classes AS c, unnest(ARRAY['id = FIVE', 'id = ''FIVE''', 'id IN (FIVE, ANOTHER)', 'id = FIVE::bigint', 'id = SMALL']) AS condition,
    LATERAL (SELECT with_ids(c, condition)) AS s (statement) WHERE n = 1;

\echo -- posts of 64 shards, and their comments
CALL partition('posts', 'id bigint PRIMARY KEY, body text', 'id snowflake_shard_ops', 4);
CALL partition('comments', 'post_id bigint NOT NULL, n int', 'post_id snowflake_shard_ops', 4);
INSERT INTO posts SELECT id_of(c, shard), 'old' FROM classes AS c, generate_series(0, 63) AS shard WHERE n = 1;
INSERT INTO comments SELECT id, n FROM posts, generate_series(1, 2) AS n;
ANALYZE;
PREPARE one (bigint) AS SELECT * FROM posts WHERE id = $1;
PREPARE two (bigint, bigint) AS SELECT * FROM posts WHERE id IN ($1, $2);
PREPARE of_integer (int) AS SELECT * FROM posts WHERE id = $1;
SELECT template, read_by(CASE WHEN template LIKE 'EXECUTE%' THEN statement ELSE 'SELECT * FROM posts WHERE ' || statement END)
FROM classes AS c, unnest(ARRAY[
    'id = FIVE', 'id = ''FIVE''', 'SIX = id', 'id IN (FIVE, NINE)', 'id IN (FIVE, SIX)', 'id = ANY (''{FIVE,NINE}'')',
    'id = FIVE OR id = SIX', 'id = FIVE AND body = ''old''', 'id = 3', 'id = 3 << 12 | 1', 'id = 12289', 'id IN (1, 12289)',
    -- unknown before the statement runs
    'id = (SELECT SIX)', 'id = SIX + extract(epoch FROM now() - now())::bigint', 'EXECUTE one (FIVE)', 'EXECUTE one (SIX)',
    'EXECUTE two (FIVE, NINE)', 'EXECUTE two (FIVE, SIX)', 'EXECUTE of_integer (12289)',
    -- a range does not determine the shard
    'id > FIVE']) AS template, LATERAL (SELECT with_ids(c, template)) AS s (statement) WHERE n = 1;

\echo -- what a statement that writes locks and reads
\pset format unaligned
\pset tuples_only on
CREATE FUNCTION locked_by(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN (SELECT string_agg(relid::text, ' ' ORDER BY relid) FROM pg_partition_tree('posts') WHERE isleaf AND relid IN (
        SELECT relation FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'RowExclusiveLock'));
END $$;
SELECT format('SELECT %L AS statement, locked_by(%L) AS locked, %s AS read', template, with_ids(c, template),
    CASE WHEN template LIKE 'INSERT%' THEN 'NULL' ELSE format('read_by(%L)', with_ids(c, template)) END)
FROM classes AS c, unnest(ARRAY['UPDATE posts SET body = ''new'' WHERE id = FIVE',
    'UPDATE posts SET body = ''newer'' WHERE id IN (FIVE, NINE)',
    'INSERT INTO posts VALUES (FIVE, ''first'') ON CONFLICT (id) DO UPDATE SET body = posts.body || '' again''',
    'INSERT INTO posts VALUES (ANOTHER, ''first'') ON CONFLICT (id) DO UPDATE SET body = posts.body || '' again''',
    'INSERT INTO posts VALUES (ANOTHER, ''first'') ON CONFLICT (id) DO UPDATE SET body = posts.body || '' again''',
    'DELETE FROM posts WHERE id = FIVE']) AS template WHERE n = 1 \gexec
SELECT tableoid::regclass, body, count(*) FROM posts WHERE body <> 'old' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT count(*) FROM posts;
-- a row whose ID changes its shard moves
UPDATE posts SET id = id_of(c, 6, 1387263001) FROM classes AS c WHERE n = 1 AND id = id_of(c, 5, 1387263001)
RETURNING posts.tableoid::regclass;
\pset format aligned
\pset tuples_only off

\echo -- with 500 posts of each shard: arrays, joins and groups, shard by shard
TRUNCATE posts, comments;
INSERT INTO posts SELECT id_of(c, shard, 1387263000 + post), 'old'
FROM classes AS c, generate_series(0, 63) AS shard, generate_series(0, 499) AS post WHERE n = 1;
INSERT INTO comments SELECT id, n FROM posts, generate_series(1, 2) AS n;
CREATE TABLE wanted AS SELECT id_of(c, shard) AS id FROM classes AS c, unnest('{5,9}'::int[]) AS shard WHERE n = 1;
ANALYZE;
PREPARE many (bigint[]) AS SELECT * FROM posts WHERE id = ANY ($1);
PREPARE joined (bigint[]) AS SELECT * FROM unnest($1) AS wanted (id) JOIN posts USING (id);
-- without hash joins, since 19 takes one of all partitions to be cheaper, also of core's own hash partitions
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
CREATE FUNCTION read_with(mode text, template text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('plan_cache_mode', mode, true);
    RETURN (SELECT read_by(with_ids(c, template)) FROM classes AS c WHERE n = 1);
END $$;
-- core prunes by an array if it knows the elements, but not when a generic plan runs; a join does it there
SELECT mode, template, read_with(mode, template) FROM (VALUES ('force_custom_plan', 'EXECUTE many (''{FIVE,NINE}'')'),
    ('force_custom_plan', 'EXECUTE many (''{FIVE,SIX}'')'), ('force_custom_plan', 'EXECUTE joined (''{FIVE,NINE}'')'),
    ('force_generic_plan', 'EXECUTE joined (''{FIVE,NINE}'')'), ('force_generic_plan', 'EXECUTE joined (''{FIVE,SIX}'')'),
    ('auto', 'SELECT * FROM wanted JOIN posts USING (id)'),
    ('auto', 'SELECT id, count(*) FROM posts JOIN comments ON post_id = id GROUP BY id HAVING id = FIVE')) AS cases (mode, template);
RESET enable_mergejoin;
RESET enable_seqscan;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
CREATE FUNCTION nodes(statement text, OUT top text, OUT joins bigint, OUT aggregates bigint) LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
    top := plan->0->'Plan'->>'Node Type';
    SELECT count(*) FILTER (WHERE node #>> '{}' ~ 'Join|Nested'), count(*) FILTER (WHERE node #>> '{}' ~ 'Aggregate') INTO joins, aggregates
    FROM jsonb_path_query(plan, 'strict $.**."Node Type"') AS node;
END $$;
SELECT * FROM nodes('SELECT body, n FROM posts JOIN comments ON post_id = id');
SELECT * FROM nodes('SELECT post_id, count(*) FROM comments GROUP BY post_id');
SELECT count(*), sum(count) FROM (SELECT id, count(*) FROM posts JOIN comments ON post_id = id GROUP BY id) AS groups;
RESET enable_hashjoin;

\echo -- wrong use costs speed, and never returns a wrong answer
CREATE VIEW ids AS SELECT shard, id_of(c, shard) AS id FROM classes AS c, generate_series(0, 63) AS shard WHERE n = 1;
CREATE FUNCTION rows_with(name text, id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    rows bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM %s WHERE id = %s', name, id) INTO rows;
    RETURN rows;
END $$;
-- a key of two columns is not pruned by the ID alone
CALL partition('two', 'id bigint, tenant bigint', 'id snowflake_shard_ops, tenant', 2);
INSERT INTO two SELECT id, shard % 3 FROM ids;
SELECT condition, read_by('SELECT * FROM two WHERE ' || with_ids(c, condition))
FROM classes AS c, unnest('{id = FIVE,id = FIVE AND tenant = 2}'::text[]) AS condition WHERE n = 1;
-- classes of other layouts, another modulus, and core's own class
SELECT format('CALL partition(%L, ''id bigint PRIMARY KEY'', %L, %s); INSERT INTO %1$s SELECT id FROM ids', name, 'id ' || class,
    CASE n WHEN 1 THEN 3 ELSE 4 END)
FROM (SELECT 'by' || n AS name, n, class FROM classes UNION ALL VALUES ('by_core', 0, 'int8_ops')) AS c \gexec
ANALYZE;
CREATE FUNCTION joined(name text, OUT found_once bigint, OUT joins bigint, OUT rows bigint, OUT groups bigint, OUT comments bigint)
LANGUAGE plpgsql AS $$
BEGIN
    found_once := (SELECT count(*) FROM ids WHERE rows_with(name, ids.id) = 1);
    joins := (nodes(format('SELECT count(*) FROM posts JOIN %s USING (id)', name))).joins;
    EXECUTE format('SELECT count(*) FROM posts JOIN %s USING (id)', name) INTO rows;
    EXECUTE format('SELECT count(*), sum(n) FROM (SELECT id, count(*) AS n FROM %s JOIN comments ON post_id = id GROUP BY id) AS g', name)
        INTO groups, comments;
END $$;
SELECT name, joined.* FROM unnest('two'::text || ARRAY(SELECT 'by' || n FROM classes ORDER BY n) || 'by_core'::text) AS name, joined(name);

\echo -- in a parallel query, and in a hash index
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_indexscan = off;
CREATE FUNCTION in_parallel(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || statement INTO plan;
    RETURN jsonb_path_exists(plan, 'strict $.**."Workers Planned" ? (@ > 0)');
END $$;
SELECT in_parallel('SELECT count(*) FROM posts WHERE (snowflake_locate(''posts'', id)).partition = tableoid');
SELECT count(*) FROM posts WHERE (snowflake_locate('posts', id)).partition = tableoid;
CREATE INDEX hashed ON wanted USING hash (id snowflake_shard_ops);
SET enable_seqscan = off;
RESET enable_indexscan;
SELECT (nodes(format('SELECT * FROM wanted WHERE id = %s', id))).top, rows_with('wanted', id) FROM wanted;

\echo -- a hash join of bigints stays fast even if core took the hash from a class
-- Joins and aggregates take the hash of the family that core finds first: the one with the lowest OID, which is its own. With one hash
-- for a whole shard, every row would be compared with every other one, which takes half an hour on a fast machine.
CREATE TABLE many AS SELECT id_of(c, 5, post) AS id FROM classes AS c, generate_series(1, 500000) AS post WHERE n = 1;
ANALYZE many;
SET allow_system_table_mods = on;
UPDATE pg_amop SET amopfamily = 1500 WHERE amopfamily = (SELECT oid FROM pg_opfamily WHERE opfname = 'snowflake_shard_ops');
UPDATE pg_amproc SET amprocfamily = 1500 WHERE amprocfamily = (SELECT oid FROM pg_opfamily WHERE opfname = 'snowflake_shard_ops');
UPDATE pg_opfamily SET oid = 1500 WHERE opfname = 'snowflake_shard_ops';
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SET statement_timeout = '10min';
SELECT (nodes('SELECT count(*) FROM many AS a JOIN many AS b USING (id)')).joins, count(*) FROM many AS a JOIN many AS b USING (id);
SELECT count(*) FROM (SELECT id FROM many GROUP BY id) AS groups;
SELECT count(*) FROM many JOIN generate_series(0, 9) AS n (n) ON n = id % 4096 - 4096;
