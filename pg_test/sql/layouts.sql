-- The type of layouts: the presets, what follows from a specification, and its input and output.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';

--
-- The presets, in their order. A released one never changes: stored IDs would be decoded differently.
--
SELECT name, spec FROM snowflake_layouts;
SELECT name, time_bits, shard_bits, seq_bits, unit, epoch, ends_at, shards, ids_per_second FROM snowflake_layouts \g (tuples_only=off format=aligned)

--
-- The figures follow from the specification
--
\pset expanded on
SELECT * FROM snowflake_layout_info('time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us');
SELECT * FROM snowflake_layout_info('time:44 shard:12 seq:7 epoch:2020-02-29T12:34:56.789Z unit:10us');
SELECT * FROM snowflake_layout_info('time:33 seq:31 shard:0 epoch:2000-01-01 unit:100ms');
SELECT * FROM snowflake_layout_info('time:17 seq:3 shard_xor_above:29 epoch:2000-01-01 unit:10ms');
SELECT * FROM snowflake_layout_info('time:32 shard:31 seq:0 epoch:1970-01-01 unit:1s');
SELECT * FROM snowflake_layout_info('time:14 shard:22 seq:9 epoch:1970-01-12T17:03:31.456Z unit:10us');
SELECT * FROM snowflake_layout_info('time:1 shard:0 seq:0 epoch:1970-01-01 unit:1s');
SELECT * FROM snowflake_layout_info('time:41 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:1ms');
SELECT * FROM snowflake_layout_info('time:30 shard:0 seq:0 epoch:2000-01-01 unit:1s');
SELECT * FROM snowflake_layout_info('time:20 shard:31 seq:0 epoch:2000-01-01 unit:10us');
\pset expanded off

--
-- A layout is printed as a preset or in one spelling, which is the same layout
--
SELECT input, input::snowflake_layout AS output, input::snowflake_layout::text::snowflake_layout = input::snowflake_layout AS is_same
FROM (VALUES
    (1, 'twitter'),
    (2, '  twitter '),
    -- a preset's specification, with its parts in another order
    (3, 'unit:1ms epoch:2010-11-04T01:42:54.657Z time:41 shard:10 seq:12'),
    (4, 'time:39 seq:8 shard:16 epoch:2014-09-01 unit:10ms'),
    (5, 'time:41 unit:1ms seq:10 shard_xor_above:12 epoch:2010-01-01'),
    (6, 'time:41 seq:10 shard:12 epoch:2010-01-01 unit:1ms'),
    (7, 'time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us'),
    (8, E'time:40   shard:6\tseq:4 unit:1s epoch:2024-01-01T00:00:00.000Z'),
    (9, 'time:40 shard:6 seq:4 unit:1s epoch:2024-01-01T00:00:00.5Z')
) AS cases (n, input) ORDER BY n \g (tuples_only=off format=aligned)

--
-- Comparisons are by value
--
CREATE TABLE used (id int, layout snowflake_layout);
INSERT INTO used VALUES (1, 'twitter'), (2, 'time:41 shard:10 seq:12 epoch:2010-11-04T01:42:54.657Z unit:1ms'),
    (3, 'pgedge'), (4, 'time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us'), (5, NULL);
SELECT id FROM used WHERE layout = 'twitter' ORDER BY id;
SELECT id FROM used WHERE layout <> 'twitter' ORDER BY id;
SELECT id FROM used WHERE layout IN ('js53', 'pgedge');
SELECT count(*) FROM (SELECT DISTINCT layout FROM used) AS distinct_ones;
SELECT max(n) FROM (SELECT count(*) AS n FROM used GROUP BY layout) AS groups;
SELECT count(*) FROM used JOIN snowflake_layouts ON layout = name::snowflake_layout;
-- layouts can be hashed
CREATE FUNCTION top_node(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    EXECUTE 'EXPLAIN (COSTS OFF) ' || query INTO line;
    RETURN line;
END $$;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT top_node('SELECT 1 FROM used AS a JOIN used AS b USING (layout)');
SELECT count(*) FROM used AS a JOIN used AS b USING (layout);
RESET enable_mergejoin;
RESET enable_nestloop;
DROP TABLE used;

--
-- A typo in a default, a constraint or an index fails when it is created
--
CREATE SEQUENCE s;
CREATE TABLE posts (id bigint);
CREATE TABLE typo (id bigint DEFAULT snowflake_nextval('s', 5, 'twiter'));
\echo :SQLSTATE
ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('s', 5, 'twiter');
\echo :SQLSTATE
ALTER TABLE posts ADD CHECK (snowflake_shard_id(id, 'twiter') = 5);
\echo :SQLSTATE
CREATE INDEX ON posts (snowflake_created_at(id, 'twiter'));
\echo :SQLSTATE
DROP TABLE posts;
DROP SEQUENCE s;
