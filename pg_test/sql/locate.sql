-- snowflake_locate(): the place of a row, from the catalog alone.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
SET timezone = 'UTC';

-- An ID of that shard in the default layout, whose low bits are XORed with the bits above them.
CREATE FUNCTION id_of_shard(shard bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN (1387263000::bigint << 12) | (shard # (1387263000 & 4095));

-- IDs of all shards, with times in the first half of 2024.
CREATE VIEW ids AS
SELECT snowflake_encode(timestamptz '2024-01-01' + interval '1 hour' * shard, shard, 0) AS id
FROM generate_series(0, 4095) AS shard;

--
-- A local partition has no server
--
CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE posts_2 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE posts_3 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3);
\pset null NULL
SELECT * FROM snowflake_locate('posts', id_of_shard(5)) \g (tuples_only=off)
SELECT * FROM snowflake_locate('posts', id_of_shard(4095)) \g (tuples_only=off)
SELECT * FROM snowflake_locate('posts', -1) \g (tuples_only=off)
SELECT * FROM snowflake_locate('posts', -4096) \g (tuples_only=off)

-- null is located nowhere
SELECT l, l IS NULL AS is_null FROM snowflake_locate(NULL, 5) AS l;
SELECT l, l IS NULL AS is_null FROM snowflake_locate('posts', NULL) AS l;
SELECT l, l IS NULL AS is_null FROM snowflake_locate('posts', 5, NULL) AS l;

-- a detached partition is no longer found
ALTER TABLE posts DETACH PARTITION posts_1;
SELECT partition FROM snowflake_locate('posts', id_of_shard(5));
ALTER TABLE posts ATTACH PARTITION posts_1 FOR VALUES WITH (MODULUS 4, REMAINDER 1);
SELECT partition FROM snowflake_locate('posts', id_of_shard(5));

-- a role that cannot read a table can ask where its rows are
CREATE ROLE regress_locate_somebody;
SET SESSION AUTHORIZATION regress_locate_somebody;
\set VERBOSITY sqlstate
SELECT * FROM posts;
\set VERBOSITY default
SELECT partition FROM snowflake_locate('posts', 3);
RESET SESSION AUTHORIZATION;
DROP ROLE regress_locate_somebody;
DROP TABLE posts;

-- an ID without a partition
CREATE TABLE none (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE part (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE part_1 PARTITION OF part FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES WITH (MODULUS 4, REMAINDER 2) PARTITION BY RANGE (id);
CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
CREATE TABLE listed_1 PARTITION OF listed FOR VALUES IN (5);
SELECT shard_id, partition FROM snowflake_locate('none', id_of_shard(5));
SELECT shard_id, partition FROM snowflake_locate('part', id_of_shard(5));
SELECT shard_id, partition FROM snowflake_locate('part', id_of_shard(6));
SELECT shard_id, partition FROM snowflake_locate('part', id_of_shard(7));
SELECT shard_id, partition FROM snowflake_locate('listed', id_of_shard(7));
DROP TABLE none, part, listed;

--
-- A table without partitions is the place of all its rows
--
CREATE TABLE posts (id bigint);
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing OPTIONS (host 'db7.example');
CREATE FOREIGN TABLE remote (id bigint) SERVER elsewhere;
CREATE TABLE parent (id bigint);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE bereft (id bigint);
CREATE TABLE gone () INHERITS (bereft);
DROP TABLE gone;
SELECT * FROM snowflake_locate('posts', id_of_shard(5)) \g (tuples_only=off)
SELECT * FROM snowflake_locate('remote', id_of_shard(5)) \g (tuples_only=off)
SELECT * FROM snowflake_locate('child', id_of_shard(5)) \g (tuples_only=off)
SELECT * FROM snowflake_locate('bereft', id_of_shard(5)) \g (tuples_only=off)
DROP TABLE posts, parent, child, bereft;
DROP FOREIGN TABLE remote;

-- of a server it shows what everybody can read in the catalog, and nothing of a user mapping
CREATE SERVER shown FOREIGN DATA WRAPPER nothing OPTIONS (host 'db7.example', port '6432', dbname 'app');
CREATE USER MAPPING FOR PUBLIC SERVER shown OPTIONS (host 'secret', password 'secret');
CREATE FOREIGN TABLE remote (id bigint) SERVER shown;
CREATE ROLE regress_locate_somebody;
SET SESSION AUTHORIZATION regress_locate_somebody;
SELECT has_server_privilege('shown', 'USAGE') AS usage, has_table_privilege('remote', 'SELECT') AS select;
SELECT host, port, dbname FROM snowflake_locate('remote', 3) \g (tuples_only=off)
SELECT srvname, option_name, option_value FROM pg_foreign_server, pg_options_to_table(srvoptions)
WHERE srvname = 'shown' ORDER BY option_name COLLATE "C" \g (tuples_only=off format=aligned)
RESET SESSION AUTHORIZATION;
DROP ROLE regress_locate_somebody;
DROP FOREIGN TABLE remote;

-- every option can be missing; several hosts have no one port
CREATE SERVER "Shard 1" FOREIGN DATA WRAPPER nothing OPTIONS (dbname 'app', host 'a.example,b.example', port '5432,5433');
CREATE SERVER shard_2 FOREIGN DATA WRAPPER nothing OPTIONS (host '/var/run/postgresql', port '5432', fetch_size '100');
CREATE SERVER shard_3 FOREIGN DATA WRAPPER nothing;
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE FOREIGN TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 0) SERVER elsewhere;
CREATE FOREIGN TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1) SERVER "Shard 1";
CREATE FOREIGN TABLE posts_2 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 2) SERVER shard_2;
CREATE FOREIGN TABLE posts_3 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3) SERVER shard_3;
SELECT l.* FROM generate_series(4, 7) AS shard, snowflake_locate('posts', shard) AS l \g (tuples_only=off format=aligned)
DROP TABLE posts;
\pset null ''

--
-- It agrees with the place of each row
--

-- the key is whatever column the table is partitioned by
CREATE TABLE comments (id bigint, "Post" bigint, body text) PARTITION BY HASH ("Post" snowflake_shard_ops);
CREATE TABLE comments_0 PARTITION OF comments FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE comments_1 PARTITION OF comments FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE comments_2 PARTITION OF comments FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE comments_3 PARTITION OF comments FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO comments ("Post", id) SELECT id, 0 FROM ids;
SELECT count(*), count(DISTINCT t.tableoid) AS places, count(*) FILTER (WHERE partition IS DISTINCT FROM t.tableoid) AS astray
FROM comments AS t, snowflake_locate('comments', "Post") \g (tuples_only=off)

-- partitions of partitions
CREATE TABLE by_shard (id bigint, n int) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE s_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY RANGE (id);
CREATE TABLE s_1 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE s_0_january PARTITION OF s_0
    FOR VALUES FROM (snowflake_min_id('2024-01-01')) TO (snowflake_min_id('2024-02-01'));
-- the columns of this one are in another order
CREATE TABLE s_0_february (n int, dropped int, id bigint) PARTITION BY LIST (id);
ALTER TABLE s_0_february DROP dropped;
ALTER TABLE s_0 ATTACH PARTITION s_0_february
    FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (snowflake_min_id('2024-03-01'));
CREATE TABLE s_0_february_rest PARTITION OF s_0_february DEFAULT;
CREATE TABLE s_0_rest PARTITION OF s_0 DEFAULT;
INSERT INTO by_shard SELECT id FROM ids;
SELECT count(*), count(DISTINCT t.tableoid) AS places, count(*) FILTER (WHERE partition IS DISTINCT FROM t.tableoid) AS astray
FROM by_shard AS t, snowflake_locate('by_shard', id) \g (tuples_only=off)
-- also from a lower level
SELECT count(*), count(DISTINCT t.tableoid) AS places, count(*) FILTER (WHERE partition IS DISTINCT FROM t.tableoid) AS astray
FROM s_0 AS t, snowflake_locate('s_0', id) \g (tuples_only=off)

CREATE TABLE by_month (id bigint, n int) PARTITION BY RANGE (id);
CREATE TABLE m_1 PARTITION OF by_month FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2024-02-01'))
    PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE m_1_0 PARTITION OF m_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE m_1_1 PARTITION OF m_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE m_2 PARTITION OF by_month FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (MAXVALUE)
    PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE m_2_all PARTITION OF m_2 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO by_month SELECT id FROM ids;
SELECT count(*), count(DISTINCT t.tableoid) AS places, count(*) FILTER (WHERE partition IS DISTINCT FROM t.tableoid) AS astray
FROM by_month AS t, snowflake_locate('by_month', id) \g (tuples_only=off)

CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
CREATE TABLE l_1 PARTITION OF listed FOR VALUES IN (1, 5);
CREATE TABLE l_2 PARTITION OF listed FOR VALUES IN (3, NULL);
INSERT INTO listed VALUES (1), (3), (5);
SELECT count(*), count(DISTINCT t.tableoid) AS places, count(*) FILTER (WHERE partition IS DISTINCT FROM t.tableoid) AS astray
FROM listed AS t, snowflake_locate('listed', id) \g (tuples_only=off)

-- core's own operator class
CREATE TABLE by_core (id bigint) PARTITION BY HASH (id);
CREATE TABLE by_core_0 PARTITION OF by_core FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_core_1 PARTITION OF by_core FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO by_core SELECT id FROM ids;
SELECT count(*), count(DISTINCT t.tableoid) AS places, count(*) FILTER (WHERE partition IS DISTINCT FROM t.tableoid) AS astray
FROM by_core AS t, snowflake_locate('by_core', id) \g (tuples_only=off)
DROP TABLE comments, by_shard, by_month, listed, by_core;

--
-- Tables in which IDs cannot be located
--
CREATE TABLE two (id bigint, tenant bigint) PARTITION BY HASH (id snowflake_shard_ops, tenant);
CREATE TABLE by_time (id bigint, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE by_int (id int) PARTITION BY RANGE (id);
CREATE TABLE by_half (id bigint) PARTITION BY HASH ((id / 2));
CREATE TABLE mixed (id bigint, author bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE mixed_0 PARTITION OF mixed FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY RANGE (author);
CREATE TABLE parent (id bigint);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE posts (id bigint) PARTITION BY RANGE (id);
CREATE TABLE posts_all PARTITION OF posts DEFAULT PARTITION BY HASH (id snowflake_shard_ops);
CREATE INDEX posts_id ON posts (id);
CREATE VIEW v AS SELECT * FROM posts;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM posts;
CREATE SEQUENCE s;

-- not partitioned by the ID alone
SELECT snowflake_locate('two', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('by_time', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('by_int', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('by_half', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('mixed', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('parent', 5); \echo :LAST_ERROR_SQLSTATE

-- not a table
SELECT snowflake_locate('v', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('mv', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('s', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('posts_id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate(4000000000, 5); \echo :LAST_ERROR_SQLSTATE

-- another layout than that of the class
CREATE TABLE tweets (id bigint) PARTITION BY HASH (id snowflake_shard_ops_twitter);
SELECT snowflake_locate('tweets', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('tweets', 5, 'js53'); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('tweets', 5, 'mastodon'); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('posts', 5, 'twitter'); \echo :LAST_ERROR_SQLSTATE

-- a custom layout is accepted if its shard is at the same place
CREATE TABLE by_four (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE by_four_2 PARTITION OF by_four FOR VALUES WITH (MODULUS 4, REMAINDER 2);
SELECT partition FROM snowflake_locate('by_four', 12289, 'time:40 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:10ms');
SELECT partition FROM snowflake_locate('by_four', 12289, 'time:40 seq:8 shard_xor_above:12 epoch:2024-01-01 unit:1ms');
SELECT partition FROM snowflake_locate('by_four', 12289, 'time:40 seq:10 shard:12 epoch:2024-01-01 unit:10ms'); \echo :LAST_ERROR_SQLSTATE
SELECT partition FROM snowflake_locate('by_four', 12289, 'time:40 shard:12 seq:10 epoch:2024-01-01 unit:10ms'); \echo :LAST_ERROR_SQLSTATE
SELECT partition FROM snowflake_locate('by_four', 12289, 'time:40 seq:10 shard_xor_above:13 epoch:2024-01-01 unit:10ms'); \echo :LAST_ERROR_SQLSTATE

-- The expressions of a partition key are not evaluated. Core evaluates what is constant in them when a session reads the key
-- for the first time.
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'evaluated'; END $$;
CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF current_setting('test.key', true) IS NOT NULL THEN RETURN fails(); END IF;
    RETURN 1;
END $$;
CREATE TABLE two_keys (id bigint) PARTITION BY RANGE (id, (f(1) + id));
CREATE TABLE one_key (id bigint) PARTITION BY RANGE ((f(1) + id));
CREATE TABLE outer_key (id bigint) PARTITION BY RANGE (id);
CREATE TABLE inner_key PARTITION OF outer_key DEFAULT PARTITION BY RANGE ((f(1) + id));
\c
SET test.key = 'set';
SELECT snowflake_locate('two_keys', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('one_key', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_locate('outer_key', 5); \echo :LAST_ERROR_SQLSTATE
