-- The fields of an ID, and IDs from their fields.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql

\echo -- IDs that others have published together with their fields; a null is not published
SELECT layout, id, d.created_at, d.shard_id, d.seq,
       d.created_at::text LIKE at || '%' AND d.shard_id = coalesce(shard, d.shard_id)
           AND d.seq = coalesce(p.seq, d.seq) AS as_published
FROM (VALUES
    -- X Developer Platform, Tweet object, https://developer.x.com/overview/api/tweets
    (1, 1050118621198921728, 'twitter', '2018-10-10 20:19:24', NULL, NULL),
    -- Wikipedia, Snowflake ID, https://en.wikipedia.org/wiki/Snowflake_ID
    (2, 1541815603606036480, 'twitter', '2022-06-28 16:07:40.105', 378, 0),
    -- Discord developer documentation, Snowflakes, https://docs.discord.com/developers/reference: worker 1, process 0
    (3, 175928847299117063, 'discord', '2016-04-30 11:18:25.796', 1 << 5, 7),
    -- discord-snowflake (a package for Node), README, Usage: worker 0, process 3
    (4, 90339695967350784, 'discord', '2015-09-07 06:57:41.949', 3, 0),
    -- Mastodon documentation, Status, https://docs.joinmastodon.org/entities/Status: its created_at, 03:48:33.901, is taken 52 ms after
    -- the ID
    (5, 103270115826048975, 'mastodon', '2019-12-08 03:48:33', 0, NULL),
    -- Instagram Engineering, Sharding & IDs at Instagram,
    -- https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c: 1387263000 ms after the epoch 1314220021721;
    -- user 31341 of 2000 shards; the table's 5001st ID
    (6, (1387263000::bigint << 23) | (1341 << 10) | (5001 % 1024), 'instagram', '2011-09-09 22:28:04.721', 31341 % 2000, 905),
    -- Stack Overflow, question 63683015, https://stackoverflow.com/questions/63683015
    (7, 2384288897814875714, 'instagram', '2020-08-26 13:43:27', NULL, NULL),
    (8, 2383568809444681765, 'instagram', '2020-08-25 13:52:46', NULL, NULL),
    -- Unfurl, test of its Sonyflake parser, https://github.com/obsidianforensics/unfurl: 0x45eec4a4600041b of machine 4.27
    (9, x'045eec4a4600041b'::bigint, 'sonyflake', '2020-08-12 17:35:29.98', (4 << 8) | 27, NULL),
    -- sonyflake for TypeScript, README, https://github.com/thedv91/sonyflake: a dialect whose unit is 1 ms; 1589832189861
    (10, 1211144891006978, 'time:39 seq:8 shard:16 epoch:2020-05-18 unit:1ms', '2020-05-18 20:03:09.861', 2, 0),
    -- pgEdge documentation, Snowflake functions, https://docs.pgedge.com/snowflake/snowflake_functions: get_epoch() returns
    -- 1704996539.845
    (11, 136169504773242881, 'pgedge', '2024-01-11 18:08:59.845', NULL, NULL),
    -- the same ID in pgEdge's first order of the fields, which its version 1.2 changed, and which the examples in its documentation
    -- have; the page states seq 0 in one place and 3 in another
    (12, 136169504773242881, 'time:41 seq:12 shard:10 epoch:2023-01-01 unit:1ms', '2024-01-11 18:08:59.845', 1, NULL),
    -- pgEdge snowflake, Converting a sequence, https://github.com/pgEdge/snowflake, docs/converting.md
    (13, 135824181823537153, 'time:41 seq:12 shard:10 epoch:2023-01-01 unit:1ms', '2024-01-10 19:16:48.438', 1, 0),
    -- pgEdge snowflake, Hibernate, https://github.com/pgEdge/snowflake, hibernate.md: it states no time, but was committed on that day
    (14, 170505378935607296, 'pgedge', '2024-04-15', NULL, NULL),
    -- PgDog, test_regression_fixed_clock_ids, https://github.com/pgdogdev/pgdog, pgdog/src/unique_id.rs: 11405873126 ms after the
    -- epoch 1764184395000; node 42, the second ID of the millisecond
    (15, 47839699276046337, 'pgdog', '2026-04-07 19:31:08.126', 42, 1)
) AS p (n, id, layout, at, shard, seq), snowflake_decode(id, layout::snowflake_layout) AS d
ORDER BY n \g (tuples_only=off format=aligned)

\echo -- the first and the last ID that is not negative, and those around a tick
SELECT layout, id, d.*, snowflake_shard_id(id, layout) AS shard_id_alone
FROM (VALUES
    (1, snowflake_layout 'postgres', 0),
    -- x is the time and the seq: 2026 began 504921600000 ms after the epoch
    (2, 'postgres', ((504921600001 << 22) - (1 << 12)) | 1023),
    (3, 'postgres', (504921600001 << 22) | ((1 << 10) # 4095)),
    (4, 'postgres', 2235219950664999947),
    (5, 'postgres', 9223372036854775807),
    (6, 'instagram', 0),
    (7, 'instagram', (453005578279 << 23) | 1023),
    (8, 'instagram', (453005578280 << 23) | (8191 << 10)),
    (9, 'instagram', 9223372036854775807)
) AS ids (n, layout, id), snowflake_decode(id, layout) AS d
ORDER BY n \g (tuples_only=off format=aligned)

\echo -- in a layout of 64 bits, the sign bit is the highest bit of the time
SELECT d.*, extract(epoch FROM created_at) * 1000 = 1314220021721 + (1::bigint << 41) - 1 AS is_last_tick,
       snowflake_shard_id(-1, 'instagram') AS shard_id_alone
FROM snowflake_decode(-1, 'instagram') AS d \g (tuples_only=off)

\echo -- the smallest ID of an instant: rounded up to a tick, and clamped to the life of the layout
SELECT at, layout, snowflake_min_id(at, layout) AS id, snowflake_min_id(at, layout) = expected AS as_expected
FROM (VALUES
    -- at the beginning of a tick, before it, and after it
    (1, timestamptz '2011-08-24 21:07:01.722Z', snowflake_layout 'instagram', 1::bigint << 23),
    (2, '2011-08-24 21:07:01.721001Z', 'instagram', 1 << 23),
    (3, '2011-08-24 21:07:01.722001Z', 'instagram', 2 << 23),
    (4, '2014-09-01 00:00:00.01Z', 'sonyflake', 1 << 24),
    (5, '2014-09-01 00:00:00.010001Z', 'sonyflake', 2 << 24),
    (6, '1970-01-01 00:00:00.001Z', 'mastodon', 1 << 16),
    -- before the layout's epoch
    (7, '2011-08-24 21:07:01.721Z', 'instagram', 0),
    (8, '2011-08-24 21:07:01.720999Z', 'instagram', 0),
    (9, '4713-01-01 BC', 'twitter', 0),
    (10, '-infinity', 'instagram', 0),
    -- around its last tick whose IDs are not negative, and after it
    (11, '2046-06-27 17:00:49.496Z', 'instagram', ((1::bigint << 40) - 1) << 23),
    (12, '2046-06-27 17:00:49.497Z', 'instagram', 9223372036854775807),
    (13, '294276-12-31 23:59:59Z', 'instagram', 9223372036854775807),
    (14, 'infinity', 'instagram', 9223372036854775807),
    (15, 'infinity', 'mastodon', 9223372036854775807),
    (16, 'infinity', 'twitter', 9223372036854775807),
    (17, '2089-09-06 15:47:35.551Z', 'js53', ((1::bigint << 41) - 1) << 12),
    (18, '2089-09-06 15:47:35.552Z', 'js53', 1::bigint << 53),
    -- a layout that lasts longer than timestamps
    (19, 'infinity', 'time:48 shard:0 seq:0 epoch:2024-01-01 unit:1s', 1::bigint << 48),
    (20, 'infinity', 'js53', 1::bigint << 53)
) AS cases (n, at, layout, expected)
ORDER BY n \g (tuples_only=off format=aligned)

\echo -- a range includes its start and excludes its end: the last ID of the tick before noon, the first and the last of noon, the next
CREATE TABLE around AS
SELECT n, id
FROM snowflake_min_id('2024-01-01 12:00:00Z') AS first,
     unnest(ARRAY[first - 1, first, first + (1 << 22) - 1, first + (1 << 22)]) WITH ORDINALITY AS ids (id, n);
CREATE TABLE ranges (n int, since timestamptz, until timestamptz);
INSERT INTO ranges VALUES
    (1, '2024-01-01 12:00:00Z', '2024-01-01 12:00:00.001Z'),
    (2, '2024-01-01 11:59:59.999Z', '2024-01-01 12:00:00Z'),
    (3, '2024-01-01 12:00:00Z', '2024-01-01 12:00:00Z'),
    (4, '2024-01-01 12:00:01Z', '2024-01-01 11:00:00Z'),
    (5, '-infinity', 'infinity'),
    -- an ID's time is the beginning of its tick
    (6, '2024-01-01 12:00:00Z', '2024-01-01 12:00:00.000001Z'),
    (7, '2024-01-01 12:00:00.000001Z', '2024-01-01 12:00:00.001001Z'),
    (8, '2024-01-01 12:00:00.000001Z', '2024-01-01 12:00:00.000999Z');
SELECT since, until, array_agg(snowflake_between(id, since, until) ORDER BY around.n) AS "between",
       array_agg(t >= since AND t < until ORDER BY around.n) AS by_created_at
FROM ranges, around, snowflake_created_at(id) AS t
GROUP BY ranges.n, since, until ORDER BY ranges.n \g (tuples_only=off format=aligned)
DROP TABLE around, ranges;

\echo -- the last ID of each preset, and the instant after it; the highest bigint is the only ID that is before no instant
SELECT name, last_id, snowflake_created_at(last_id, layout) >= ends_at - unit AS is_last_tick,
       snowflake_between(last_id, ends_at - unit, 'infinity', layout) AS is_between,
       snowflake_between(last_id - 1, ends_at - unit, 'infinity', layout) AS is_previous_between
FROM (SELECT *, name::snowflake_layout AS layout FROM snowflake_layouts) AS l,
    LATERAL (SELECT max(snowflake_encode(ends_at - interval '1 us', shard::int, ((1::bigint << seq_bits) - 1)::int, layout)) AS last_id
             FROM unnest(ARRAY[0, shards - 1]) AS shards (shard)) AS last \g (tuples_only=off format=aligned)

\echo -- a null returns null: the calls, and those that do not
CREATE FUNCTION is_null(call text, OUT is_null boolean) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT (%s) IS NULL', call) INTO is_null;
END $$;
SELECT count(*), array_agg(call) FILTER (WHERE NOT is_null(call)) FROM unnest(ARRAY[
    $$snowflake_decode(NULL)$$, $$snowflake_decode(1, NULL)$$, $$snowflake_created_at(NULL)$$, $$snowflake_shard_id(NULL)$$,
    $$snowflake_shard_id(1, NULL)$$, $$snowflake_seq(NULL)$$, $$snowflake_encode(NULL, 1, 1)$$, $$snowflake_encode(now(), NULL, 1)$$,
    $$snowflake_encode(now(), 1, 1, NULL)$$, $$snowflake_min_id(NULL)$$, $$snowflake_between(NULL, now(), now())$$,
    $$snowflake_between(1, NULL, now())$$, $$snowflake_between(snowflake_min_id(now()), now(), NULL)$$,
    $$snowflake_between(1, now(), now(), NULL)$$, $$snowflake_explain(NULL)$$, $$snowflake_to_base32(NULL)$$,
    $$snowflake_from_base32(NULL)$$, $$snowflake_to_uuid(1, NULL)$$, $$snowflake_from_uuid(NULL)$$, $$snowflake_layout_info(NULL)$$,
    $$NULL::snowflake_layout$$, $$NULL::snowflake_layout = 'twitter'$$]) AS call;

\echo -- a value outside the layout
SELECT call, error_of('SELECT ' || call) FROM unnest(ARRAY[
    $$snowflake_decode(-1)$$,
    $$snowflake_decode(-1, 'twitter')$$,
    $$snowflake_created_at(9007199254740992, 'js53')$$,
    $$snowflake_shard_id(-1, 'sonyflake')$$,
    $$snowflake_seq(-1, 'pgedge')$$,
    $$snowflake_explain(-1, 'js53')$$,
    $$snowflake_to_uuid(-1, 'twitter')$$,
    $$snowflake_decode(2, 'time:1 shard:0 seq:0 epoch:2024-01-01 unit:1s')$$,
    $$snowflake_encode('2009-12-31 23:59:59.999999Z', 5, 1)$$,
    $$snowflake_encode('2079-09-07 15:47:35.552Z', 5, 1)$$,
    $$snowflake_encode('2046-06-27 17:00:49.497Z', 5, 1, 'instagram')$$,
    $$snowflake_encode('6429-10-17 02:45:55.328Z', 0, 1, 'mastodon')$$,
    $$snowflake_encode('infinity', 0, 0, 'time:48 shard:0 seq:0 epoch:2024-01-01 unit:1s')$$,
    $$snowflake_encode('infinity', 5, 1)$$,
    $$snowflake_encode('-infinity', 5, 1)$$,
    $$snowflake_encode('2024-01-01', 4096, 1)$$,
    $$snowflake_encode('2024-01-01', -1, 1)$$,
    $$snowflake_encode('2024-01-01', 1, 0, 'mastodon')$$,
    $$snowflake_encode('2024-01-01', 5, 1024)$$,
    $$snowflake_encode('2024-01-01', 5, -1)$$]) AS call;
