-- snowflake_explain(): an ID with its bits and fields.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
SELECT snowflake_explain(175928847299117063, 'discord');
SELECT snowflake_explain(2235219950664999947, 'postgres');
-- the shard lowest, and no shard
SELECT snowflake_explain(2235219950664999947, 'sonyflake');
SELECT snowflake_explain(103270115826048975, 'mastodon');

-- without a layout: as each preset reads it; their order, and which are in the future, depend on the time
SELECT rtrim(replace(line, 'in the future', ''))
FROM string_to_table(snowflake_explain(2235219950664999947), E'\n') AS line ORDER BY line COLLATE "C";

-- the preset that generated an ID now comes first
DO $$ BEGIN EXECUTE (SELECT string_agg(format('CREATE SEQUENCE of_%s', name), ';') FROM snowflake_layouts); END $$;
SELECT name, first[1] AS first, first[2] LIKE to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '%' AS has_time,
       first[3]::int = shard_id AS has_shard, first[4]::int = seq AS has_seq
FROM snowflake_layouts, snowflake_nextval(('of_' || name)::regclass, CASE shards WHEN 1 THEN 0 ELSE 5 END, name::snowflake_layout) AS id,
    snowflake_decode(id, name::snowflake_layout),
    regexp_split_to_array(trim(split_part(snowflake_explain(id), E'\n', 3)), ' +') AS first \g (tuples_only=off format=aligned)
