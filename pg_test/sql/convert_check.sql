-- check_shard of snowflake_convert_column(): a table that refuses rows of other shards.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
CREATE VIEW checks AS
SELECT conname, pg_get_constraintdef(oid) AS definition, convalidated FROM pg_constraint
WHERE contype = 'c' AND coninhcount = 0 AND conrelid = to_regclass('posts');

-- The error of a violated CHECK is core's.
\set VERBOSITY sqlstate

-- an empty table refuses every other row
CREATE TABLE posts (id bigint);
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks \g (tuples_only=off)
INSERT INTO posts (id) VALUES (DEFAULT), (snowflake_encode(now(), 5, 0));
INSERT INTO posts (id) SELECT snowflake_encode(now(), 6, 0);
INSERT INTO posts VALUES (1);
DROP TABLE posts;

-- negative values pass in a layout that has no shard for them
CREATE TABLE posts (id bigint);
INSERT INTO posts VALUES (-1), (-4711);
SELECT snowflake_convert_column('posts', 'id', 5, 'js53', check_shard => true);
SELECT * FROM checks \g (tuples_only=off)
INSERT INTO posts VALUES (DEFAULT);
DROP TABLE posts;

-- rows that are all of the shard make it strict
CREATE TABLE posts (id bigint);
INSERT INTO posts VALUES (snowflake_encode('2020-01-01', 5, 7));
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks \g (tuples_only=off)
DROP TABLE posts;

-- the partitions of a table have it too
CREATE TABLE posts (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts_0 PARTITION OF posts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
INSERT INTO posts (id) VALUES (DEFAULT), (snowflake_encode(now(), 5, 0));
INSERT INTO posts (id) SELECT snowflake_encode(now(), 6, 0);
INSERT INTO posts_0 (id) SELECT snowflake_encode(now(), 6, 0);
DROP TABLE posts;

-- an omitted shard is that of the setting
SET pg_snowflake.shard_id = 5;
CREATE TABLE posts (id bigint);
SELECT snowflake_convert_column('posts', 'id', check_shard => true);
SELECT * FROM checks \g (tuples_only=off)
INSERT INTO posts (id) VALUES (DEFAULT), (snowflake_encode(now(), 5, 0));
INSERT INTO posts (id) SELECT snowflake_encode(now(), 6, 0);
RESET pg_snowflake.shard_id;
DROP TABLE posts;

--
-- It gets an unused name, and is created once
--
CREATE TABLE posts (id bigint, body text CONSTRAINT posts_id_shard_check CHECK (body <> ''));
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
INSERT INTO posts DEFAULT VALUES;
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks ORDER BY conname \g (tuples_only=off format=aligned)
DROP TABLE posts;

CREATE TABLE posts (id bigint, body text CONSTRAINT posts_id_shard_check CHECK (body <> ''));
INSERT INTO posts VALUES (4711);
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
INSERT INTO posts DEFAULT VALUES;
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks ORDER BY conname \g (tuples_only=off format=aligned)
DROP TABLE posts;

--
-- Another CHECK on the column does not replace it
--

-- How many of 20 IDs of shard 6 the table refuses. They are of one tick, so they fall into all partitions.
CREATE FUNCTION refused() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    refused int := 0;
BEGIN
    FOR seq IN 0 .. 19 LOOP
        BEGIN
            INSERT INTO posts (id) SELECT snowflake_encode(now(), 6, seq);
        EXCEPTION WHEN check_violation THEN
            refused := refused + 1;
        END;
    END LOOP;
    RETURN refused;
END $$;

CREATE TABLE posts (id bigint) PARTITION BY HASH (id);
CREATE TABLE a PARTITION OF posts (CHECK (snowflake_shard_id(id) = 5)) FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE b PARTITION OF posts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks ORDER BY conname \g (tuples_only=off)
SELECT refused();
DROP TABLE posts;

CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) BETWEEN 5 AND 10));
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks ORDER BY conname \g (tuples_only=off format=aligned)
SELECT refused();
DROP TABLE posts;

CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) <> 4));
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks ORDER BY conname \g (tuples_only=off format=aligned)
SELECT refused();
DROP TABLE posts;

CREATE TABLE posts (id bigint CHECK (snowflake_shard_id(id) = 5) NO INHERIT);
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks ORDER BY conname \g (tuples_only=off format=aligned)
SELECT refused();
DROP TABLE posts;

CREATE TABLE posts (id bigint);
INSERT INTO posts VALUES (4711);
ALTER TABLE posts ADD CHECK (snowflake_shard_id(id) = 5) NOT VALID;
SELECT snowflake_convert_column('posts', 'id', 5, check_shard => true);
SELECT * FROM checks ORDER BY conname \g (tuples_only=off format=aligned)
SELECT refused();
