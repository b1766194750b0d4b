-- IDs in every layout.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
CREATE TABLE layouts AS
SELECT row_number() OVER () AS n, name::snowflake_layout AS layout FROM snowflake_layouts
UNION ALL SELECT 101, 'time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us';
SET client_min_messages = 'warning';

\echo -- the first ID of a sequence has the shard, its first seq, and now, for the lowest, a middle and the highest shard
CREATE FUNCTION first_id(layout snowflake_layout, shard int,
    OUT shard_id int, OUT is_first_seq boolean, OUT is_of_now boolean) LANGUAGE plpgsql AS $$
DECLARE
    before timestamptz := clock_timestamp();
    id bigint;
BEGIN
    EXECUTE 'DROP SEQUENCE IF EXISTS first; CREATE SEQUENCE first';
    id := snowflake_nextval('first', shard, layout);
    SELECT d.shard_id, d.seq = (1 + 617 * shard::bigint) % (1::bigint << seq_bits),
        d.created_at BETWEEN before - unit AND clock_timestamp()
    INTO shard_id, is_first_seq, is_of_now
    FROM snowflake_layout_info(layout), snowflake_decode(id, layout) AS d;
END $$;
SELECT layout::text, array_agg(shard ORDER BY shard) AS shards, array_agg(shard_id ORDER BY shard) AS of_ids,
    bool_and(is_first_seq) AS are_first_seq, bool_and(is_of_now) AS are_of_now
FROM layouts, snowflake_layout_info(layout), unnest(ARRAY[0, shards / 2, shards - 1]) AS shard, first_id(layout, shard::int)
GROUP BY n, layout::text ORDER BY n \g (tuples_only=off format=aligned)

\echo -- IDs increase, one by one and in batches, and all have the shard
CREATE FUNCTION ids(layout snowflake_layout, shard int) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
BEGIN
    EXECUTE 'DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s';
    ids := ARRAY(SELECT snowflake_nextval('s', shard, layout) FROM generate_series(1, 500));
    ids := ids || ARRAY(SELECT snowflake_nextvals('s', shard, 500, layout));
    ids := ids || snowflake_nextval('s', shard, layout);
    IF snowflake_currval('s') <> ids[1001] THEN
        RAISE 'snowflake_currval() does not return the last ID';
    END IF;
    RETURN ids;
END $$;
SELECT layout, count(*), count(*) FILTER (WHERE id <= before) AS out_of_order, min(shard_id) AS lowest_shard, max(shard_id) AS highest
FROM (
    SELECT layouts.n, layout, id, lag(id) OVER (PARTITION BY layouts.n ORDER BY id.n) AS before,
        snowflake_shard_id(id, layout) AS shard_id
    FROM layouts, snowflake_layout_info(layout), unnest(ids(layout, (shards - 1)::int)) WITH ORDINALITY AS id (id, n)
) AS generated
GROUP BY n, layout ORDER BY n \g (tuples_only=off format=aligned)

\echo -- a shard that the layout does not have, and whether the error of a batch is the same
CREATE SEQUENCE t;
SELECT error, error = error_of(format('SELECT snowflake_nextvals(''t'', %s, 10, %L)', shard, layout)) AS is_that_of_a_batch
FROM layouts, snowflake_layout_info(layout), unnest(CASE n WHEN 1 THEN ARRAY[-1, shards] ELSE ARRAY[shards] END) AS shard,
    error_of(format('SELECT snowflake_nextval(''t'', %s, %L)', shard, layout)) AS error
ORDER BY n, shard;

\echo -- a default generates in its layout
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('t', 100, 'js53'), body text);
INSERT INTO posts (body) SELECT 'a' FROM generate_series(1, 100);
SELECT count(*) FROM posts WHERE id < 1::bigint << 53 AND snowflake_shard_id(id, 'js53') = 100;

\echo -- a sequence that was used under another layout: the counters of mastodon are far above those of all others, those of js53 far below
CREATE TABLE used (name text, layout snowflake_layout, other snowflake_layout);
INSERT INTO used VALUES ('of_mastodon', 'mastodon', 'instagram'), ('of_twitter', 'twitter', 'js53'),
    ('of_instagram', 'instagram', 'sonyflake');
SELECT format('CREATE SEQUENCE %I', name) FROM used \gexec
SELECT name, snowflake_nextval(name, 0, layout) > 0 AS is_id FROM used;
CREATE VIEW errors AS
SELECT regexp_replace(error_of(format('SELECT snowflake_nextval(%L, 0, %L)', name, other)), '[\d.]+ days|\d{9,}|\d{4}-[\dT:.-]+Z', 'N', 'g')
FROM used;
TABLE errors;
\echo -- somebody has set the first one back, whose last_value is 1 now
SELECT setval('of_mastodon', 1);
TABLE errors LIMIT 1;
\echo -- the first layout is continued
SELECT name, snowflake_nextval(name, 0, layout) > 0 AS is_id FROM used;
