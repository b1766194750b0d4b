-- The operator classes, which partition a table by the shard in an ID: its remainder is that of the shard.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
-- An ID of that shard in the default layout, whose low bits are XORed with the bits above them.
CREATE FUNCTION id_of_shard(shard bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN (1387263000::bigint << 12) | (shard # (1387263000 & 4095));

-- the ends of bigint, and null
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE posts_2 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE posts_3 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO posts VALUES (9223372036854775807), (9223372036854771712), (-9223372036854775808), (-1), (-4096), (0), (NULL);
SELECT id, tableoid::regclass FROM posts ORDER BY id;
DROP TABLE posts;

-- partitions of several moduli in a table
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE even PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE one_of_four PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE three_of_four PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO posts SELECT id_of_shard(shard) FROM generate_series(0, 4095) AS shard;
SELECT tableoid::regclass, array_agg(DISTINCT snowflake_shard_id(id) % 4) AS remainders, count(*)
FROM posts GROUP BY tableoid ORDER BY remainders \g (tuples_only=off format=aligned)
DROP TABLE posts;

-- a shard without a partition is refused on insert, by core
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
INSERT INTO posts VALUES (id_of_shard(5));
\set VERBOSITY sqlstate
INSERT INTO posts VALUES (id_of_shard(6));
\set VERBOSITY default
SELECT count(*) FROM posts WHERE id = id_of_shard(6);
DROP TABLE posts;

-- so is a column that cannot hold an ID
\set VERBOSITY sqlstate
CREATE TABLE posts (id int) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts (id text) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts (id numeric) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts (id uuid) PARTITION BY HASH (id snowflake_shard_ops);
\set VERBOSITY default

-- core finds each class complete
SELECT opcname, amvalidate(c.oid), amprocnum, amproclefttype::regtype, proname
FROM pg_opclass AS c JOIN pg_amproc ON amprocfamily = opcfamily JOIN pg_proc AS p ON p.oid = amproc
WHERE opcname LIKE 'snowflake_shard_ops%' AND NOT opcdefault
ORDER BY opcname, amprocnum, amproclefttype \g (tuples_only=off format=aligned)
