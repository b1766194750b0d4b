-- IDs in every layout: from their fields and back, to texts and UUIDs and back, and their order.

\set ECHO none
\pset footer off
SET timezone = 'UTC';

-- Random fields, their ID by the formula, and their time. Half of the rows are from a few ticks, so that the order of the lower fields
-- matters. An ID may be negative if the layout has 64 bits; after the layout's end none is encoded. No time is after the year 9000.
CREATE FUNCTION checked(layout snowflake_layout, rows int, OUT ids bigint, OUT agree bigint, OUT in_text bigint, OUT in_uuid bigint,
    OUT not_negative boolean, OUT out_of_order bigint) LANGUAGE sql AS $$
    WITH info AS (
        SELECT shard_bits, seq_bits, epoch_us, unit_us, spec ~ 'seq:.* shard' AS is_lowest, spec ~ 'shard_xor_above' AS is_xored,
            least((2::numeric ^ time_bits)::bigint, (221845392000000000 - epoch_us) / unit_us) AS ticks
        FROM snowflake_layout_info(layout), LATERAL (
            SELECT (extract(epoch FROM epoch) * 1000000)::bigint, (extract(epoch FROM unit) * 1000000)::bigint) AS us (epoch_us, unit_us)
    ), fields AS MATERIALIZED (
        SELECT (CASE WHEN n % 2 = 0 THEN floor(random() * ticks)
                     ELSE ticks / 4 + floor(random() * least(20, ticks / 2)) END)::bigint AS tick,
            floor(random() * (1::bigint << shard_bits))::bigint AS shard, floor(random() * (1::bigint << seq_bits))::bigint AS seq
        FROM info, generate_series(1, rows) AS n
    ), drawn AS MATERIALIZED (
        SELECT above | CASE WHEN is_xored THEN shard # (above >> shard_bits & ((1::bigint << shard_bits) - 1))
                            WHEN is_lowest THEN shard ELSE shard << seq_bits END AS id,
            shard::int, seq::int, is_lowest, is_xored,
            timestamptz 'epoch' + make_interval(days => (us / 86400000000)::int, secs => (us % 86400000000) / 1e6) AS at
        FROM info, fields, LATERAL (SELECT (tick << (shard_bits + seq_bits)) | (CASE WHEN is_lowest THEN seq << shard_bits ELSE seq END),
            (epoch_us + tick * unit_us)::bigint) AS placed (above, us)
    ), ranked AS (
        SELECT rank() OVER (ORDER BY id) AS by_id, rank() OVER (ORDER BY snowflake_to_base32(id) COLLATE "C") AS by_text,
            rank() OVER (ORDER BY snowflake_to_uuid(id, layout)) AS by_uuid,
            rank() OVER (ORDER BY at, CASE WHEN is_lowest THEN seq ELSE shard END,
                CASE WHEN is_xored THEN id WHEN is_lowest THEN shard ELSE seq END) AS by_fields
        FROM drawn WHERE id >= 0
    )
    SELECT count(*), count(*) FILTER (WHERE d IS NOT DISTINCT FROM ROW (at, shard, drawn.seq)
            AND (snowflake_created_at(id, layout), snowflake_shard_id(id, layout), snowflake_seq(id, layout)) = (at, shard, drawn.seq)
            AND CASE WHEN id >= 0 THEN snowflake_encode(at, shard, drawn.seq, layout) = id ELSE true END),
        count(*) FILTER (WHERE snowflake_from_base32(base32) = id AND snowflake_from_base32(lower(base32)) = id),
        -- RFC 9562: 48 bits of Unix milliseconds, then the version, 7; the variant is binary 10
        count(*) FILTER (WHERE snowflake_from_uuid(uuid, layout) = id AND hex ~ '^.{12}7.{3}[89ab]'
            AND ('x' || left(hex, 12))::bit(48)::bigint = floor(extract(epoch FROM date_trunc('milliseconds', at)) * 1000)),
        (SELECT count(*) > rows / 4 FROM ranked), (SELECT count(*) FROM ranked WHERE by_id <> ANY (ARRAY[by_text, by_uuid, by_fields]))
    FROM drawn, snowflake_decode(id, layout) AS d, snowflake_to_base32(id) AS base32, snowflake_to_uuid(id, layout) AS uuid,
        replace(uuid::text, '-', '') AS hex
$$;

SELECT layout, checked.* FROM (
    SELECT row_number() OVER () AS n, name::snowflake_layout AS layout FROM snowflake_layouts
    UNION ALL VALUES (101, snowflake_layout 'time:44 shard:12 seq:7 epoch:2020-02-29T12:34:56.789Z unit:10us'),
        (102, 'time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us'), (103, 'time:33 seq:31 shard:0 epoch:2000-01-01 unit:100ms'),
        (104, 'time:17 seq:3 shard_xor_above:29 epoch:2000-01-01 unit:10ms'), (105, 'time:32 shard:31 seq:0 epoch:1970-01-01 unit:1s'),
        (106, 'time:14 shard:22 seq:9 epoch:1970-01-12T17:03:31.456Z unit:10us'), (107, 'time:1 shard:0 seq:0 epoch:1970-01-01 unit:1s')
) AS layouts, checked(layout, 4000) ORDER BY n;

\echo 40 random layouts
SELECT sum(ids) AS ids, sum(agree) AS agree, sum(in_text) AS in_text, sum(in_uuid) AS in_uuid, sum(out_of_order) AS out_of_order FROM (
    SELECT format('time:%1$s ' || place || ' epoch:%4$s unit:%5$s', time, shard, seq,
        to_char(to_timestamp(epoch), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), unit)
    FROM (SELECT floor(1 + 48 * random())::int AS time, floor(32 * random())::int AS shard, floor(32 * random())::int AS seq,
              floor(1.7e12 * random()) / 1000 AS epoch, ('{10us,100us,1ms,10ms,100ms,1s}'::text[])[ceil(6 * random())] AS unit,
              ('{shard:%2$s seq:%3$s,seq:%3$s shard:%2$s,seq:%3$s shard_xor_above:%2$s}'::text[])[ceil(3 * random())] AS place
          FROM generate_series(1, 1000)) AS drawn
    WHERE time + shard + seq <= 64 LIMIT 40) AS layouts (spec), checked(spec::snowflake_layout, 500);
