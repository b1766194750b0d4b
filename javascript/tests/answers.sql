-- 10,000 random layouts and IDs, and what the extension answers, a line of JSON for each. tests/answers.js compares them.
SET timezone = 'UTC';
SELECT setseed(0.37);

CREATE TABLE cases AS
SELECT CASE WHEN n % 10 = 0 THEN (SELECT array_agg(name) FROM snowflake_layouts)[1 + n / 10 % 9]
            ELSE format('time:%s %s epoch:%s unit:%s', time_bits, below, to_char('epoch'::timestamp + epoch_ms * interval '1 ms', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), unit)
       END AS spec,
       -- Every tenth has bits above the layout's.
       CASE WHEN n % 9 = 0 OR bits = 64 THEN any_id
            WHEN bits = 63 THEN any_id & 9223372036854775807
            ELSE any_id & ((1::bigint << bits) - 1) END AS id,
       greatest(-1e15, least(9e15, epoch_ms * 1000 + (random() * 1.1 - 0.05) * 2 ^ time_bits * unit_us))::bigint AS time_us,
       least(2147483647, floor(random() * 1.1 * 2 ^ shard_bits))::int AS shard,
       least(2147483647, floor(random() * 1.1 * 2 ^ seq_bits))::int AS seq
FROM (
    SELECT n, time_bits, shard_bits, seq_bits, time_bits + shard_bits + seq_bits AS bits, epoch_ms,
           (floor(random() * 4294967296)::bigint << 32) | floor(random() * 4294967296)::bigint AS any_id,
           (ARRAY[format('shard:%s seq:%s', shard_bits, seq_bits), format('seq:%s shard:%s', seq_bits, shard_bits),
                  format('seq:%s shard_xor_above:%s', seq_bits, shard_bits)])[1 + n % 3] AS below,
           (ARRAY['10us', '100us', '1ms', '10ms', '100ms', '1s'])[unit] AS unit, 10.0 ^ unit AS unit_us
    FROM (
        SELECT n, 1 + floor(random() * 48)::int AS time_bits, floor(random() * 32)::int AS shard_bits, floor(random() * 32)::int AS seq_bits,
               1 + floor(random() * 6)::int AS unit, floor(random() * 1790000000000)::bigint AS epoch_ms
        FROM generate_series(1, 20000) AS n
    ) AS random
) AS random
WHERE bits <= 64
LIMIT 10000;

CREATE FUNCTION answer(c cases) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    layout snowflake_layout := c.spec;
    at timestamptz := 'epoch'::timestamptz + c.time_us * interval '1 us';
    info record;
    decoded jsonb;
    encoded text;
BEGIN
    SELECT * INTO info FROM snowflake_layout_info(layout);
    BEGIN
        SELECT jsonb_build_object(
                   'unix_us', CASE WHEN isfinite(created_at) THEN (extract(epoch FROM created_at) * 1000000)::bigint::text END,
                   'shard_id', shard_id, 'seq', seq)
        INTO decoded FROM snowflake_decode(c.id, layout);
    EXCEPTION WHEN numeric_value_out_of_range THEN NULL;
    END;
    BEGIN
        encoded := snowflake_encode(at, c.shard, c.seq, layout);
    EXCEPTION WHEN numeric_value_out_of_range THEN NULL;
    END;
    RETURN jsonb_build_object(
        'spec', c.spec, 'text', layout::text, 'id', c.id::text, 'time_us', c.time_us::text, 'shard', c.shard, 'seq', c.seq,
        'shards', info.shards, 'ids_per_second', info.ids_per_second, 'distinct_folds', info.distinct_folds,
        'shard_formula', info.shard_formula,
        'ends_us', CASE WHEN isfinite(info.ends_at) THEN (extract(epoch FROM info.ends_at) * 1000000)::bigint::text END,
        'decoded', decoded, 'encoded', encoded, 'min_id', snowflake_min_id(at, layout)::text);
END $$;
