-- Making ids. An id depends on the time, but its seq does not: it counts from the sequence's START by one.
--
-- Of an error the SQLSTATE is promised and the words are not.
\set VERBOSITY sqlstate
\set what 'snowflake_shard_id(id), snowflake_seq(id), snowflake_created_at(id) BETWEEN now() - interval \'5 s\' AND clock_timestamp() + interval \'1 s\' AS is_of_now'

CREATE SEQUENCE s;

--
-- One at a time
--
SELECT :what FROM snowflake_nextval('s', 5) AS id;
SELECT :what FROM snowflake_nextval('s', 8191) AS id;
SELECT :what FROM snowflake_nextval(seq => 's', shard_id => 0, layout => 'instagram') AS id;
SELECT id > before AS is_above FROM snowflake_currval('s') AS before, snowflake_nextval('s', 5) AS id;
SELECT snowflake_nextval('s', NULL) IS NULL AS of_null, snowflake_nextval(NULL, 5) IS NULL AS from_null,
       snowflake_nextval(NULL) IS NULL AS from_null_of_this;
-- which took none
SELECT snowflake_seq(snowflake_nextval('s', 5));
SELECT last_value = (snowflake_currval('s') >> 23 << 10) + 5 AS is_the_counter, is_called FROM s;

-- each layout on a sequence of its own
CREATE SEQUENCE s_twitter;
CREATE SEQUENCE s_discord;
CREATE SEQUENCE s_mastodon;
CREATE SEQUENCE s_sonyflake;
CREATE SEQUENCE s_pgedge;
CREATE SEQUENCE s_js53;
CREATE SEQUENCE s_custom;
CREATE TABLE minters (seq regclass, layout snowflake_layout, shard int);
INSERT INTO minters VALUES ('s_twitter', 'twitter', 1023), ('s_discord', 'discord', 1023), ('s_mastodon', 'mastodon', 0),
    ('s_sonyflake', 'sonyflake', 65535), ('s_pgedge', 'pgedge', 1023), ('s_js53', 'js53', 127),
    ('s_custom', 'time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms', 255);
SELECT layout, d.shard_id, d.seq,
       abs(extract(epoch FROM d.created_at - now())) < 5 AS is_of_now,
       id = snowflake_currval(minters.seq) AS is_current
FROM minters, LATERAL snowflake_nextval(minters.seq, shard, layout) AS id, snowflake_decode(id, layout) AS d;

SELECT snowflake_nextval('s', 8192);
SELECT snowflake_nextval('s', -1);
SELECT snowflake_nextval('s_twitter', 1024, 'twitter');
SELECT snowflake_nextval('s_mastodon', 1, 'mastodon');
SELECT snowflake_nextval('minters', 5);
SELECT snowflake_nextval('missing', 5);
SELECT snowflake_nextval('s_js53', 5, 'twiter');
-- of another layout, years ahead of the clock
SELECT snowflake_nextval('s', 5, 'js53');

--
-- Sequences that are not fit, and become it
--
CREATE SEQUENCE unfit AS integer;
SELECT snowflake_nextval('unfit', 5);
ALTER SEQUENCE unfit AS bigint INCREMENT 2;
SELECT snowflake_nextval('unfit', 5);
ALTER SEQUENCE unfit INCREMENT 1 CYCLE;
SELECT snowflake_nextval('unfit', 5);
ALTER SEQUENCE unfit NO CYCLE MAXVALUE 1000000;
SELECT snowflake_nextval('unfit', 5);
ALTER SEQUENCE unfit NO MAXVALUE;
SELECT snowflake_seq(snowflake_nextval('unfit', 5));
CREATE UNLOGGED SEQUENCE unlogged;
CREATE TEMP SEQUENCE temporary;
SELECT snowflake_seq(snowflake_nextval('unlogged', 5)), snowflake_seq(snowflake_nextval('temporary', 5));
CREATE SEQUENCE start_at START 1000 CACHE 3;
SELECT snowflake_seq(snowflake_nextval('start_at', 5));
SELECT last_value & 1023 AS taken FROM start_at;
SELECT nextval('start_at') & 1023 AS counter;

--
-- The last one
--
CREATE SEQUENCE fresh;
SELECT snowflake_currval('fresh');
SELECT nextval('fresh');
SELECT snowflake_currval('fresh');
SELECT snowflake_currval('minters');
SELECT snowflake_currval(NULL) IS NULL AS of_null;
SELECT snowflake_nextval('fresh', 5) = snowflake_currval('fresh') AS is_current;
SELECT lastval();
DISCARD SEQUENCES;
SELECT snowflake_currval('fresh');

--
-- Batches
--
CREATE SEQUENCE b;
SELECT :what FROM snowflake_nextvals('b', 5, 3) AS id;
SELECT snowflake_seq(snowflake_currval('b'));
SELECT count(*), count(DISTINCT id), bool_and(id > before) AS is_increasing
FROM (SELECT id, lag(id, 1, 0::bigint) OVER () AS before FROM snowflake_nextvals('b', 5, 3000) AS id) AS ids;
SELECT snowflake_seq(snowflake_nextval('b', 5)) = (3 + 3000 + 1) % 1024 AS goes_on;
SELECT snowflake_shard_id(id, 'twitter'), snowflake_seq(id, 'twitter') FROM snowflake_nextvals('s_twitter', 7, 2, 'twitter') AS id;
SELECT count(*) FROM snowflake_nextvals('b', 5, 0);
SELECT count(*) FROM snowflake_nextvals('b', 5, NULL);
SELECT snowflake_nextvals('b', 5, -1);
SELECT snowflake_nextvals('b', 8192, 1);
SELECT snowflake_nextvals('minters', 5, 1);

--
-- This database's shard
--
SHOW pg_snowflake.shard_id;
SELECT snowflake_shard_id();
SELECT snowflake_nextval('s');
SET pg_snowflake.shard_id = 77;
SELECT snowflake_shard_id();
SELECT :what FROM snowflake_nextval('s') AS id;
SELECT snowflake_shard_id(id, 'twitter') FROM snowflake_nextval('s_twitter', snowflake_shard_id(), 'twitter') AS id;
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'), body text);
INSERT INTO posts (body) VALUES ('a'), ('b') RETURNING snowflake_shard_id(id), snowflake_seq(id), body;
SET pg_snowflake.shard_id = 8192;
SELECT snowflake_nextval('s');
SET pg_snowflake.shard_id = -2;
SET pg_snowflake.shard_id = 'x';
RESET pg_snowflake.shard_id;
SELECT snowflake_shard_id();

--
-- A sequence ahead of the clock
--
SHOW pg_snowflake.max_lead;
SHOW pg_snowflake.max_wait;
SELECT setval('b', (snowflake_min_id(clock_timestamp() + interval '1 min') >> 13) | 5) > 0 AS is_ahead;
SELECT snowflake_nextval('b', 5);
SET pg_snowflake.max_lead = '2 min';
SELECT snowflake_seq(id), snowflake_created_at(id) > now() + interval '50 s' AS is_ahead FROM snowflake_nextval('b', 5) AS id;
RESET pg_snowflake.max_lead;
SELECT snowflake_nextvals('b', 5, 1);
SET pg_snowflake.max_wait = 0;
SELECT snowflake_nextval('b', 5);
RESET pg_snowflake.max_wait;
SELECT setval('b', (snowflake_min_id(clock_timestamp() + interval '300 ms') >> 13) | 5) > 0 AS is_a_little_ahead;
-- which it waits for
SELECT snowflake_seq(id), snowflake_created_at(id) < clock_timestamp() + interval '101 ms' AS is_within_the_lead
FROM snowflake_nextval('b', 5) AS id;
SET pg_snowflake.max_lead = -1;
SET pg_snowflake.max_wait = 'x';

--
-- The fences
--
SHOW pg_snowflake.owned_shards;
SHOW pg_snowflake.allowed_hosts;
SET pg_snowflake.owned_shards = '0-3, 5';
SELECT snowflake_shard_id(snowflake_nextval('s', 5)), snowflake_shard_id(snowflake_nextval('s', 3));
SELECT snowflake_nextval('s', 4);
SELECT snowflake_nextvals('s', 6, 1);
SET pg_snowflake.owned_shards = '5-3';
SET pg_snowflake.owned_shards = 'x';
RESET pg_snowflake.owned_shards;
SET pg_snowflake.allowed_hosts = 'no-such-host-1, no-such-host-2';
SELECT snowflake_nextval('s', 5);
SET pg_snowflake.allowed_hosts = 'db 1';
RESET pg_snowflake.allowed_hosts;
SELECT snowflake_shard_id(snowflake_nextval('s', 5));
SET pg_snowflake.misspelt = 5;

--
-- Who may, and when
--
START TRANSACTION READ ONLY;
SELECT snowflake_nextval('s', 5);
ROLLBACK;
CREATE ROLE regress_snowflake_release;
SET ROLE regress_snowflake_release;
SELECT snowflake_nextval('s', 5);
SELECT snowflake_nextvals('s', 5, 1);
SELECT snowflake_currval('s');
SET pg_snowflake.shard_id = 5;
RESET ROLE;
GRANT USAGE ON SEQUENCE s TO regress_snowflake_release;
SET ROLE regress_snowflake_release;
SELECT snowflake_shard_id(snowflake_nextval('s', 5)), snowflake_shard_id(snowflake_currval('s'));
RESET ROLE;
REVOKE ALL ON SEQUENCE s FROM regress_snowflake_release;
DROP ROLE regress_snowflake_release;
