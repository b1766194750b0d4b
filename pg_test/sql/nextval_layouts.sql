-- IDs in every layout.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
CREATE TABLE layouts AS
SELECT row_number() OVER () AS n, name::snowflake_layout AS layout FROM snowflake_layouts
UNION ALL SELECT 101, 'time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us';

--
-- The first ID of a sequence has the shard, its first seq, and now, for the lowest, a middle and the highest shard
--
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
SET client_min_messages = 'warning';
SELECT layout, shard, f.*
FROM layouts, snowflake_layout_info(layout), unnest(ARRAY[0, shards / 2, shards - 1]) AS shard, first_id(layout, shard::int) AS f
ORDER BY n, shard \g (tuples_only=off format=aligned)
RESET client_min_messages;

--
-- IDs increase, one by one and in batches, and all have the shard
--
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
SET client_min_messages = 'warning';
SELECT layout, count(*), count(*) FILTER (WHERE id <= before) AS out_of_order, min(shard_id) AS lowest_shard, max(shard_id) AS highest
FROM (
    SELECT layouts.n, layout, id, lag(id) OVER (PARTITION BY layouts.n ORDER BY id.n) AS before,
        snowflake_shard_id(id, layout) AS shard_id
    FROM layouts, snowflake_layout_info(layout), unnest(ids(layout, (shards - 1)::int)) WITH ORDINALITY AS id (id, n)
) AS generated
GROUP BY n, layout ORDER BY n \g (tuples_only=off format=aligned)
RESET client_min_messages;

--
-- A shard that the layout does not have
--
-- The error of a statement. Where a part of it varies, the script replaces it.
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'none';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', 'ERROR:  ' || SQLSTATE || ': ' || SQLERRM,
                     'DETAIL:  ' || nullif(detail, ''), 'HINT:  ' || nullif(hint, ''));
END $$;
CREATE SEQUENCE t;
\pset format unaligned
\pset tuples_only on
SELECT replace(error_of(format('SELECT snowflake_nextval(''t'', %s, %L)', shard, layout)), E'\n', ' '),
       error_of(format('SELECT snowflake_nextvals(''t'', %s, 10, %L)', shard, layout))
       = error_of(format('SELECT snowflake_nextval(''t'', %s, %L)', shard, layout)) AS in_batches_too
FROM layouts, snowflake_layout_info(layout), unnest(ARRAY[-1, shards]) AS shard
ORDER BY n, shard;
\pset format aligned
\pset tuples_only off

--
-- A default generates in its layout
--
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('t', 100, 'js53'), body text);
INSERT INTO posts (body) SELECT 'a' FROM generate_series(1, 100);
SELECT count(*) FROM posts WHERE id < 1::bigint << 53 AND snowflake_shard_id(id, 'js53') = 100;
DROP TABLE posts;

--
-- A sequence that was used under another layout. mastodon's counters are far above those of every other layout, js53's far below.
--
CREATE SEQUENCE of_mastodon;
CREATE SEQUENCE of_twitter;
CREATE SEQUENCE of_instagram;
SELECT snowflake_nextval('of_mastodon', 0, 'mastodon') > 0 AS mastodon, snowflake_nextval('of_twitter', 0, 'twitter') > 0 AS twitter,
       snowflake_nextval('of_instagram', 0, 'instagram') > 0 AS instagram \g (tuples_only=off)
SELECT regexp_replace(error_of($$SELECT snowflake_nextval('of_mastodon', 0, 'instagram')$$), '[\d.]+ days|\d{9,}|\d{4}-[\dT:.-]+Z', 'N', 'g') AS error;
SELECT regexp_replace(error_of($$SELECT snowflake_nextval('of_twitter', 0, 'js53')$$), '[\d.]+ days|\d{9,}|\d{4}-[\dT:.-]+Z', 'N', 'g') AS error;
SELECT regexp_replace(error_of($$SELECT snowflake_nextval('of_instagram', 0, 'sonyflake')$$), '[\d.]+ days|\d{9,}|\d{4}-[\dT:.-]+Z', 'N', 'g') AS error;
-- the first layout is continued
SELECT snowflake_nextval('of_mastodon', 0, 'mastodon') > 0 AS mastodon, snowflake_nextval('of_twitter', 0, 'twitter') > 0 AS twitter,
       snowflake_nextval('of_instagram', 0, 'instagram') > 0 AS instagram \g (tuples_only=off)
