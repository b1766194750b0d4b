-- snowflake_explain(): an ID with its bits and fields.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
SELECT snowflake_explain(175928847299117063, 'discord');
SELECT snowflake_explain(2235219950664999947, 'postgres');
-- the shard lowest, and no shard
SELECT snowflake_explain(2235219950664999947, 'sonyflake');
SELECT snowflake_explain(103270115826048975, 'mastodon');

-- without a layout: as each preset reads it; their order, which are in the future, and further layouts depend on the time
SELECT rtrim(regexp_replace(replace(line, 'in the future', ''), ' +', ' ', 'g'))
FROM string_to_table(snowflake_explain(2235219950664999947), E'\n') AS line
WHERE line !~ 'unit:|^none of these' ORDER BY line COLLATE "C";

-- an ID that fits none
SELECT line FROM string_to_table(snowflake_explain(1), E'\n') WITH ORDINALITY AS lines (line, n) ORDER BY n DESC LIMIT 1;

-- an ID that a TSID library or Yitter generates now
SELECT name, regexp_replace(split_part(snowflake_explain(snowflake_encode(now(), shard, seq, layout)), E'\n', 3), ' +\S+T\S+ +', ' … ') AS first
FROM (VALUES ('tsid', 'time:42 shard:10 seq:12 epoch:2020-01-01 unit:1ms'::snowflake_layout, 683, 2748),
             ('yitter', 'time:41 shard:6 seq:6 epoch:2020-02-19T18:20:02Z unit:1ms', 41, 5),
             ('simple-flakeid', 'time:41 shard:6 seq:6 epoch:2020-01-01 unit:1ms', 41, 5),
             ('js53', 'js53', 41, 0)) AS generators (name, layout, shard, seq);

-- the preset that generated an ID now comes first
DO $$ BEGIN EXECUTE (SELECT string_agg(format('CREATE SEQUENCE of_%s', name), ';') FROM snowflake_layouts); END $$;
SELECT name, first[1] AS first, first[2] LIKE to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '%' AS has_time,
       first[3]::int = shard_id AS has_shard, first[4]::int = seq AS has_seq
FROM snowflake_layouts, snowflake_nextval(('of_' || name)::regclass, CASE shards WHEN 1 THEN 0 ELSE 5 END, name::snowflake_layout) AS id,
    snowflake_decode(id, name::snowflake_layout),
    regexp_split_to_array(trim(split_part(snowflake_explain(id), E'\n', 3)), ' +') AS first \g (tuples_only=off format=aligned)
