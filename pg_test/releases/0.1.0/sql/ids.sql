-- What an id says, and what makes an id of a number or an instant.
--
-- Of an error the SQLSTATE is promised and the words are not.
\set VERBOSITY sqlstate
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';

CREATE TABLE ids (layout snowflake_layout, id bigint);
INSERT INTO ids VALUES
    ('instagram', 11637205501278089),
    ('instagram', 0),
    ('instagram', 9223372036854775807),
    ('instagram', -1),
    ('instagram', -9223372036854775808),
    ('twitter', 1541815603606036480),
    ('twitter', 9223372036854775807),
    ('discord', 175928847299117063),
    ('discord', 9223372036854775807),
    ('mastodon', 103270115826048975),
    ('mastodon', 9223372036854775807),
    ('sonyflake', 559173563154432005),
    ('sonyflake', 9223372036854775807),
    ('pgedge', 135824145774612481),
    ('pgedge', 9223372036854775807),
    ('js53', 870000000000123),
    ('js53', 9007199254740991),
    ('time:41 seq:12 shard:10 epoch:2023-01-01 unit:1ms', 136169504773242881),
    ('time:33 shard:0 seq:31 epoch:1970-01-01 unit:1s', 3737169375232000000),
    ('time:48 shard:15 seq:0 epoch:2024-01-01 unit:10us', 12345678901234567),
    ('time:40 shard:4 seq:8 epoch:2024-02-29T12:34:56.789Z unit:100us', 4503599627370495),
    ('time:36 shard:10 seq:10 epoch:2020-06-01 unit:100ms', 72057594037927935);

--
-- Reading
--
SELECT layout, id, d.* FROM ids, snowflake_decode(id, layout) AS d;
SELECT layout, id,
       snowflake_created_at(id, layout) = d.created_at AS same_time,
       snowflake_shard_id(id, layout) = d.shard_id AS same_shard,
       snowflake_seq(id, layout) = d.seq AS same_seq
FROM ids, snowflake_decode(id, layout) AS d;

-- without a layout it is instagram
SELECT * FROM snowflake_decode(11637205501278089);
SELECT snowflake_created_at(11637205501278089), snowflake_shard_id(11637205501278089), snowflake_seq(11637205501278089);

-- arguments by name
SELECT * FROM snowflake_decode(layout => 'twitter', id => 1541815603606036480);

SELECT snowflake_decode(NULL) IS NULL AS decode, snowflake_created_at(NULL) IS NULL AS created_at,
       snowflake_shard_id(NULL) IS NULL AS shard_id, snowflake_seq(NULL, 'twitter') IS NULL AS seq,
       snowflake_seq(5, NULL) IS NULL AS layout;

-- more bits than the layout's ids have
SELECT snowflake_decode(9007199254740992, 'js53');
SELECT snowflake_created_at(-1, 'twitter');
SELECT snowflake_shard_id(-1, 'sonyflake');
SELECT snowflake_seq(9007199254740992, 'js53');
SELECT snowflake_explain(-1, 'twitter');
-- or none more
SELECT snowflake_explain(-1, 'mastodon');

-- a time that timestamptz has not
SELECT * FROM snowflake_decode(9223372036854775807, 'time:48 shard:8 seq:7 epoch:2024-01-01 unit:1s');

SELECT snowflake_explain(id, layout) FROM ids;
SELECT snowflake_explain(11637205501278089);

--
-- Making
--
SELECT layout, id, snowflake_encode(created_at, shard_id, seq, layout) = id AS is_back
FROM ids, snowflake_decode(id, layout) AS d;
SELECT snowflake_encode('2024-05-06 07:08:09.123Z', 1341, 905);
SELECT snowflake_encode('2024-05-06 07:08:09.123999Z', 1341, 905);
SELECT snowflake_encode('2024-05-06 07:08:09.123Z', 1023, 4095, 'twitter');
SELECT snowflake_encode('2024-05-06 07:08:09.123Z', 0, 65535, 'mastodon');
SELECT snowflake_encode('2024-05-06 07:08:09.123Z', 65535, 255, layout => 'sonyflake');

SELECT snowflake_encode('2011-08-24 21:07:01.720Z', 0, 0);
SELECT snowflake_encode('2090-01-01Z', 0, 0, 'js53');
SELECT snowflake_encode('infinity', 0, 0);
SELECT snowflake_encode('2024-01-01Z', 8192, 0);
SELECT snowflake_encode('2024-01-01Z', -1, 0);
SELECT snowflake_encode('2024-01-01Z', 0, 1024);
SELECT snowflake_encode('2024-01-01Z', 0, -1);
SELECT snowflake_encode('2024-01-01Z', 1, 0, 'mastodon');
SELECT snowflake_encode(NULL, 0, 0) IS NULL AS is_null;

--
-- Searching by time
--
SELECT name, snowflake_min_id('2024-05-06 07:08:09.123Z', name::snowflake_layout) AS min_id,
       snowflake_min_id('2024-05-06 07:08:09.1234Z', name::snowflake_layout) AS next_tick,
       snowflake_min_id('1969-01-01Z', name::snowflake_layout) AS before,
       snowflake_min_id('-infinity', name::snowflake_layout) AS long_before,
       snowflake_min_id('9999-01-01Z', name::snowflake_layout) AS after,
       snowflake_min_id('infinity', name::snowflake_layout) AS long_after
FROM snowflake_layouts;
SELECT snowflake_min_id('2024-05-06 07:08:09.123Z'), snowflake_min_id(NULL) IS NULL AS is_null;

-- since belongs to it, until does not
SELECT at, snowflake_between(snowflake_min_id(at), '2024-01-01Z', '2024-02-01Z') AS is_between
FROM (VALUES ('2023-12-31 23:59:59.999Z'::timestamptz), ('2024-01-01Z'), ('2024-01-31 23:59:59.999Z'), ('2024-02-01Z'))
    AS instants (at);
SELECT snowflake_between(1541815603606036480, '2022-06-28Z', '2022-06-29Z', 'twitter') AS in_twitter,
       snowflake_between(1541815603606036480, '2022-06-28Z', '2022-06-29Z') AS in_instagram,
       snowflake_between(-1, '-infinity', 'infinity') AS negative,
       snowflake_between(0, '-infinity', 'infinity') AS zero,
       snowflake_between(5, '2024-01-01Z', NULL) AS out_whatever_the_end,
       snowflake_between(NULL, '2024-01-01Z', 'infinity') IS NULL AS of_null;

--
-- Where an immutable function may stand
--
CREATE TABLE posts (
    id bigint PRIMARY KEY CHECK (snowflake_shard_id(id) = 1341),
    day date GENERATED ALWAYS AS ((snowflake_created_at(id) AT TIME ZONE 'UTC')::date) STORED,
    layout snowflake_layout DEFAULT 'instagram');
CREATE INDEX posts_by_time ON posts (snowflake_created_at(id), snowflake_seq(id));
INSERT INTO posts VALUES (11637205501278089);
INSERT INTO posts VALUES (5);
TABLE posts;
CREATE TABLE by_month (id bigint) PARTITION BY RANGE (id);
CREATE TABLE january PARTITION OF by_month
    FOR VALUES FROM (snowflake_min_id('2024-01-01Z')) TO (snowflake_min_id('2024-02-01Z'));
INSERT INTO by_month SELECT snowflake_encode('2024-01-31 12:00Z', shard, 7) FROM generate_series(1, 3) AS shard;
INSERT INTO by_month VALUES (snowflake_min_id('2024-02-01Z'));
SELECT tableoid::regclass, id FROM by_month WHERE snowflake_between(id, '2024-01-31Z', '2024-02-01Z') ORDER BY id;

--
-- Other notations
--
SELECT id, snowflake_to_base32(id), snowflake_from_base32(snowflake_to_base32(id)) = id AS is_back FROM ids;
SELECT snowflake_from_base32('00ABCDEFGHJKM'), snowflake_from_base32('00abcdefghjkm'),
       snowflake_from_base32('0000000000oil');
SELECT snowflake_from_base32('');
SELECT snowflake_from_base32('00ABCDEFGHJK');
SELECT snowflake_from_base32('00ABCDEFGHJKMN');
SELECT snowflake_from_base32('00ABCDEFGHJKU');
SELECT snowflake_from_base32('ZZZZZZZZZZZZZ');
SELECT snowflake_to_base32(NULL) IS NULL AS to_null, snowflake_from_base32(NULL) IS NULL AS from_null;

SELECT layout, id, snowflake_to_uuid(id, layout), snowflake_from_uuid(snowflake_to_uuid(id, layout), layout) = id AS is_back
FROM ids;
SELECT snowflake_to_uuid(11637205501278089), snowflake_from_uuid(snowflake_to_uuid(11637205501278089));
SELECT snowflake_to_uuid(-1, 'twitter');
SELECT snowflake_to_uuid(9223372036854775807, 'time:48 shard:8 seq:7 epoch:2024-01-01 unit:1s');
SELECT snowflake_from_uuid('00000000-0000-0000-0000-000000000000');
SELECT snowflake_from_uuid('4d9b2ea5-3f0e-4f73-8f0b-6b1c1f3f5a77');
SELECT snowflake_from_uuid(snowflake_to_uuid(11637205501278089), 'twitter');
SELECT snowflake_to_uuid(NULL) IS NULL AS to_null, snowflake_from_uuid(NULL) IS NULL AS from_null;
