-- snowflake_locate(): the place of a row, from the catalog alone.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\pset null NULL

-- An ID of that shard in the default layout, whose low bits are XORed with the bits above them.
CREATE FUNCTION id_of_shard(shard bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN (1387263000::bigint << 12) | (shard # (1387263000 & 4095));

-- IDs of all shards, with times in the first half of 2024.
CREATE VIEW ids AS
SELECT snowflake_encode(timestamptz '2024-01-01' + interval '1 hour' * shard, shard, 0) AS id
FROM generate_series(0, 4095) AS shard;

CREATE PROCEDURE add_hash_partitions(name text, modulus int) LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN 0..modulus - 1 LOOP
        EXECUTE format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES WITH (MODULUS %3$s, REMAINDER %2$s)', name, n, modulus);
    END LOOP;
END $$;

\echo -- a local partition has no server
CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY HASH (id snowflake_shard_ops);
CALL add_hash_partitions('posts', 4);
SELECT l.* FROM unnest(ARRAY[id_of_shard(5), id_of_shard(4095), -1, -4096]) AS id, snowflake_locate('posts', id) AS l \g (tuples_only=off)

\echo -- null is located nowhere
SELECT l, l IS NULL AS is_null FROM snowflake_locate(NULL, 5) AS l
UNION ALL SELECT l, l IS NULL FROM snowflake_locate('posts', NULL) AS l
UNION ALL SELECT l, l IS NULL FROM snowflake_locate('posts', 5, NULL) AS l;

\echo -- a detached partition is no longer found
ALTER TABLE posts DETACH PARTITION posts_1;
SELECT partition FROM snowflake_locate('posts', id_of_shard(5));
ALTER TABLE posts ATTACH PARTITION posts_1 FOR VALUES WITH (MODULUS 4, REMAINDER 1);
SELECT partition FROM snowflake_locate('posts', id_of_shard(5));

\echo -- a role that cannot read a table can ask where its rows are
CREATE ROLE regress_locate_somebody;
SET SESSION AUTHORIZATION regress_locate_somebody;
SELECT error_of('SELECT FROM posts'), partition FROM snowflake_locate('posts', 3);
RESET SESSION AUTHORIZATION;
DROP TABLE posts;

\echo -- an ID without a partition
CREATE TABLE none (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE part (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE part_1 PARTITION OF part FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES WITH (MODULUS 4, REMAINDER 2) PARTITION BY RANGE (id);
CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
CREATE TABLE listed_1 PARTITION OF listed FOR VALUES IN (5);
SELECT name, shard_id, partition
FROM (VALUES ('none'::regclass, 5), ('part', 5), ('part', 6), ('part', 7), ('listed', 7)) AS cases (name, shard),
    snowflake_locate(name, id_of_shard(shard));
DROP TABLE none, part, listed;

\echo -- a table without partitions is the place of all its rows
CREATE TABLE posts (id bigint);
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing OPTIONS (host 'db7.example');
CREATE FOREIGN TABLE remote (id bigint) SERVER elsewhere;
CREATE TABLE parent (id bigint);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE bereft (id bigint);
CREATE TABLE gone () INHERITS (bereft);
DROP TABLE gone;
SELECT l.* FROM unnest('{posts,remote,child,bereft}'::regclass[]) AS name, snowflake_locate(name, id_of_shard(5)) AS l \g (tuples_only=off)
DROP TABLE posts, parent, child, bereft;
DROP FOREIGN TABLE remote;

\echo -- of a server it shows what everybody can read in the catalog, and nothing of a user mapping
CREATE SERVER shown FOREIGN DATA WRAPPER nothing OPTIONS (host 'db7.example', port '6432', dbname 'app');
CREATE USER MAPPING FOR PUBLIC SERVER shown OPTIONS (host 'secret', password 'secret');
CREATE FOREIGN TABLE remote (id bigint) SERVER shown;
SET SESSION AUTHORIZATION regress_locate_somebody;
SELECT has_server_privilege('shown', 'USAGE') AS usage, has_table_privilege('remote', 'SELECT') AS select, host, port, dbname, srvoptions
FROM snowflake_locate('remote', 3), pg_foreign_server WHERE srvname = 'shown' \g (tuples_only=off)
RESET SESSION AUTHORIZATION;
DROP ROLE regress_locate_somebody;
DROP FOREIGN TABLE remote;

\echo -- every option can be missing; several hosts have no one port
CREATE SERVER "Shard 1" FOREIGN DATA WRAPPER nothing OPTIONS (dbname 'app', host 'a.example,b.example', port '5432,5433');
CREATE SERVER shard_2 FOREIGN DATA WRAPPER nothing OPTIONS (host '/var/run/postgresql', port '5432', fetch_size '100');
CREATE SERVER shard_3 FOREIGN DATA WRAPPER nothing;
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE FOREIGN TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 0) SERVER elsewhere;
CREATE FOREIGN TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1) SERVER "Shard 1";
CREATE FOREIGN TABLE posts_2 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 2) SERVER shard_2;
CREATE FOREIGN TABLE posts_3 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3) SERVER shard_3;
SELECT l.* FROM generate_series(4, 7) AS shard, snowflake_locate('posts', shard) AS l \g (tuples_only=off)
DROP TABLE posts;

\echo -- it agrees with the place of each row: a key of any name, partitions of partitions, also from a lower level, and the class of core
CREATE TABLE comments (id bigint, "Post" bigint, body text) PARTITION BY HASH ("Post" snowflake_shard_ops);
CALL add_hash_partitions('comments', 4);
INSERT INTO comments ("Post", id) SELECT id, 0 FROM ids;

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

CREATE TABLE by_month (id bigint, n int) PARTITION BY RANGE (id);
CREATE TABLE m_1 PARTITION OF by_month FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2024-02-01'))
    PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE m_2 PARTITION OF by_month FOR VALUES FROM (snowflake_min_id('2024-02-01')) TO (MAXVALUE)
    PARTITION BY HASH (id snowflake_shard_ops);
CALL add_hash_partitions('m_1', 2);
CALL add_hash_partitions('m_2', 1);

CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
CREATE TABLE l_1 PARTITION OF listed FOR VALUES IN (1, 5);
CREATE TABLE l_2 PARTITION OF listed FOR VALUES IN (3, NULL);
INSERT INTO listed VALUES (1), (3), (5);

CREATE TABLE by_core (id bigint) PARTITION BY HASH (id);
CALL add_hash_partitions('by_core', 2);

SELECT format('INSERT INTO %s SELECT id FROM ids', name) FROM unnest('{by_shard,by_month,by_core}'::text[]) AS name \gexec
CREATE FUNCTION located(name text, key text, OUT rows bigint, OUT places bigint, OUT astray bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT count(*), count(DISTINCT t.tableoid), count(*) FILTER (WHERE partition IS DISTINCT FROM t.tableoid)
                    FROM %s AS t, snowflake_locate(%1$L, %I)', name, key) INTO rows, places, astray;
END $$;
SELECT name, l.* FROM (VALUES ('comments', 'Post'), ('by_shard', 'id'), ('s_0', 'id'), ('by_month', 'id'), ('listed', 'id'),
    ('by_core', 'id')) AS tables (name, key), located(name, key) AS l \g (tuples_only=off format=aligned)
DROP TABLE comments, by_shard, by_month, listed, by_core;

\echo -- tables in which IDs cannot be located: not partitioned by the ID alone, and not a table
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
SELECT error_of(format('SELECT snowflake_locate(%L, 5)', name))
FROM unnest('{two,by_time,by_int,by_half,mixed,parent,v,mv,s,posts_id,4000000000}'::text[]) AS name;

\echo -- another layout than that of the class
CREATE TABLE tweets (id bigint) PARTITION BY HASH (id snowflake_shard_ops_twitter);
SELECT error_of(format('SELECT snowflake_locate(%L, 5, %L)', name, layout))
FROM (VALUES ('tweets', 'postgres'), ('tweets', 'js53'), ('tweets', 'mastodon'), ('posts', 'twitter')) AS cases (name, layout);

\echo -- a custom layout is accepted if its shard is at the same place
CREATE TABLE by_four (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE by_four_2 PARTITION OF by_four FOR VALUES WITH (MODULUS 4, REMAINDER 2);
SELECT partition FROM snowflake_locate('by_four', 12289, 'time:40 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:10ms');
SELECT partition FROM snowflake_locate('by_four', 12289, 'time:40 seq:8 shard_xor_above:12 epoch:2024-01-01 unit:1ms');
SELECT error_of(format('SELECT partition FROM snowflake_locate(''by_four'', 12289, ''time:40 %s epoch:2024-01-01 unit:10ms'')', fields))
FROM unnest('{seq:10 shard:12,shard:12 seq:10,seq:10 shard_xor_above:13}'::text[]) AS fields;

\echo -- the expressions of a partition key are not evaluated
-- Core evaluates what is constant in them when a session reads the key for the first time.
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
SELECT error_of(format('SELECT snowflake_locate(%L, 5)', name)) FROM unnest('{two_keys,one_key,outer_key}'::text[]) AS name;
