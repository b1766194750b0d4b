-- The type of layouts: the presets, what follows from a specification, and its input and output.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql

\echo -- the presets, in their order; a released one never changes, since stored IDs would be decoded differently
SELECT name, spec FROM snowflake_layouts;
SELECT name, time_bits, shard_bits, seq_bits, unit, epoch, ends_at, shards, ids_per_second FROM snowflake_layouts
    \g (tuples_only=off format=aligned)

\echo -- the figures follow from the specification
SELECT info.* FROM unnest(ARRAY[
    'time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us', 'time:44 shard:12 seq:7 epoch:2020-02-29T12:34:56.789Z unit:10us',
    'time:33 seq:31 shard:0 epoch:2000-01-01 unit:100ms', 'time:17 seq:3 shard_xor_above:29 epoch:2000-01-01 unit:10ms',
    'time:32 shard:31 seq:0 epoch:1970-01-01 unit:1s', 'time:14 shard:22 seq:9 epoch:1970-01-12T17:03:31.456Z unit:10us',
    'time:1 shard:0 seq:0 epoch:1970-01-01 unit:1s', 'time:41 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:1ms',
    'time:30 shard:0 seq:0 epoch:2000-01-01 unit:1s', 'time:20 shard:31 seq:0 epoch:2000-01-01 unit:10us']::snowflake_layout[])
    WITH ORDINALITY AS specs (spec, n), snowflake_layout_info(spec) AS info ORDER BY n \g (tuples_only=off)

\echo -- a layout is printed as a preset or in one spelling, which is the same layout
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

\echo -- comparisons are by value
CREATE TABLE used (id int, layout snowflake_layout);
INSERT INTO used VALUES (1, 'twitter'), (2, 'time:41 shard:10 seq:12 epoch:2010-11-04T01:42:54.657Z unit:1ms'),
    (3, 'pgedge'), (4, 'time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us'), (5, NULL);
SELECT array_agg(id ORDER BY id) FILTER (WHERE layout = 'twitter') AS twitter,
       array_agg(id ORDER BY id) FILTER (WHERE layout <> 'twitter') AS others,
       array_agg(id ORDER BY id) FILTER (WHERE layout IN ('js53', 'pgedge')) AS of_two,
       (SELECT count(*) FROM (SELECT DISTINCT layout FROM used) AS distinct_ones) AS distinct_ones,
       (SELECT max(n) FROM (SELECT count(*) AS n FROM used GROUP BY layout) AS groups) AS largest_group,
       (SELECT count(*) FROM used JOIN snowflake_layouts ON layout = name::snowflake_layout) AS presets
FROM used \g (tuples_only=off)
\echo -- layouts can be hashed
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT 1 FROM used AS a JOIN used AS b USING (layout);
SELECT count(*) FROM used AS a JOIN used AS b USING (layout);
RESET enable_mergejoin;
RESET enable_nestloop;

\echo -- a typo in a default, a constraint or an index fails when it is created
CREATE SEQUENCE s;
CREATE TABLE posts (id bigint);
SELECT error_of(statement) FROM unnest(ARRAY[
    $$CREATE TABLE typo (id bigint DEFAULT snowflake_nextval('s', 5, 'twiter'))$$,
    $$ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('s', 5, 'twiter')$$,
    $$ALTER TABLE posts ADD CHECK (snowflake_shard_id(id, 'twiter') = 5)$$,
    $$CREATE INDEX ON posts (snowflake_created_at(id, 'twiter'))$$]) AS statement;
