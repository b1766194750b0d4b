-- IDs that other generators returned at known times with known shard numbers, in the layouts of docs/generators.md.

\set ECHO none
\pset format unaligned
\pset footer off
SET timezone = 'UTC';
\getenv folder PG_ABS_SRCDIR
\set file :folder '/data/generators.csv'
CREATE TABLE ids (generator text, version text, layout snowflake_layout, id bigint, unix_ms bigint, shard int);
COPY ids FROM :'file' (FORMAT csv, HEADER);

-- The time of an ID is the beginning of its tick.
CREATE VIEW decoded AS
SELECT ids.*, shard_id, created_at, generated_at,
       created_at <= generated_at AND generated_at < created_at + substring(spec FROM 'unit:(.*)')::interval AS has_time
FROM ids, snowflake_decode(id, layout), snowflake_layout_info(layout), to_timestamp(unix_ms / 1000.0) AS generated_at;

\set ECHO queries
SELECT generator, id, shard, shard_id, generated_at, created_at FROM decoded WHERE NOT has_time OR shard_id <> shard;
SELECT count(DISTINCT generator) AS generators, count(DISTINCT layout::text) AS layouts, count(*) AS ids,
       count(*) FILTER (WHERE snowflake_encode(generated_at, shard, snowflake_seq(id, layout), layout) = id) AS encoded
FROM decoded;
