-- The operator classes, which partition a table by the shard in an ID: its remainder is that of the shard.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
-- An ID of that shard in the default layout, whose low bits are XORed with the bits above them.
CREATE FUNCTION id_of_shard(shard bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN (1387263000::bigint << 12) | (shard # (1387263000 & 4095));

\echo -- the ends of bigint, and null
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
SELECT format('CREATE TABLE posts_%s PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER %1$s)', n)
FROM generate_series(0, 3) AS n \gexec
INSERT INTO posts VALUES (9223372036854775807), (9223372036854771712), (-9223372036854775808), (-1), (-4096), (0), (NULL);
SELECT id, tableoid::regclass FROM posts ORDER BY id;
DROP TABLE posts;

\echo -- partitions of several moduli in a table
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE even PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE one_of_four PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE three_of_four PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO posts SELECT id_of_shard(shard) FROM generate_series(0, 4095) AS shard;
SELECT tableoid::regclass, array_agg(DISTINCT snowflake_shard_id(id) % 4) AS remainders, count(*)
FROM posts GROUP BY tableoid ORDER BY remainders \g (tuples_only=off format=aligned)
DROP TABLE posts;

\echo -- a shard without a partition is refused on insert, by core
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts_1 PARTITION OF posts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
INSERT INTO posts VALUES (id_of_shard(5));
SELECT split_part(error_of('INSERT INTO posts VALUES (id_of_shard(6))'), ' ', 1);
SELECT count(*) FROM posts WHERE id = id_of_shard(6);
DROP TABLE posts;

\echo -- so is a column that cannot hold an ID
SELECT type, split_part(error_of(format('CREATE TABLE posts (id %s) PARTITION BY HASH (id snowflake_shard_ops)', type)), ' ', 1)
FROM unnest('{int,text,numeric,uuid}'::text[]) AS type;

\echo -- core finds each class complete
SELECT opcname, amvalidate(c.oid) AS is_valid, string_agg(concat_ws(' ', amprocnum, amproclefttype::regtype, proname), ', '
    ORDER BY amprocnum, amproclefttype) AS functions
FROM pg_opclass AS c JOIN pg_amproc ON amprocfamily = opcfamily JOIN pg_proc AS p ON p.oid = amproc
WHERE opcname LIKE 'snowflake_shard_ops%' AND NOT opcdefault
GROUP BY opcname, c.oid ORDER BY opcname;
