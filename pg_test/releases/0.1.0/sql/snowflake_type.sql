-- The type snowflake: a bigint that is a string in JSON.
--
-- Of an error the SQLSTATE is promised and the words are not.
\set VERBOSITY sqlstate

--
-- Text and binary
--
SELECT '4034936746192933889'::snowflake, '-9223372036854775808'::snowflake, ' 7 '::snowflake;
SELECT '9223372036854775808'::snowflake;
SELECT 'x'::snowflake;
SELECT ''::snowflake;
SELECT snowflake_in('4034936746192933889'), snowflake_out('4034936746192933889'), snowflake_send('4034936746192933889');

CREATE TABLE posts (id snowflake PRIMARY KEY, body text);
INSERT INTO posts VALUES (1, 'literal'), (2::smallint, 'smallint'), (3::integer, 'integer'),
    (4034936746192933889::bigint, 'bigint'), ('5', 'text'), (-6, 'negative');
INSERT INTO posts VALUES (1, 'again');
INSERT INTO posts VALUES (7.5, 'numeric');
SELECT current_setting('data_directory') || '/posts' AS file \gset
COPY posts TO :'file' (FORMAT binary);
CREATE TABLE received (LIKE posts);
COPY received FROM :'file' (FORMAT binary);
SELECT count(*) FROM received JOIN posts USING (id, body);
-- to a bigint column and back
CREATE TABLE plain (id bigint, body text);
COPY plain FROM :'file' (FORMAT binary);
SELECT * FROM plain ORDER BY id;

--
-- Casts
--
SELECT 5::snowflake::bigint, 5::bigint::snowflake, snowflake(5::smallint), snowflake(5::integer), 5::snowflake::text,
       5::snowflake::bigint::integer;
SELECT castsource::regtype, casttarget::regtype, castcontext, castmethod FROM pg_cast
WHERE 'snowflake'::regtype IN (castsource, casttarget) ORDER BY castsource::regtype::text, casttarget::regtype::text;
SELECT 5::snowflake::integer;
SELECT 5.0::numeric::snowflake;
SELECT pg_typeof(id) AS id, pg_typeof(id + 1) AS sum, pg_typeof(max(id)) AS max, pg_typeof(coalesce(id, 0)) AS coalesce,
       pg_typeof(ARRAY[id, 5]) AS array
FROM posts GROUP BY id LIMIT 1;

--
-- JSON
--
SELECT to_json(id), to_jsonb(id), json_build_object('id', id, 'n', id::bigint) FROM posts ORDER BY id;
SELECT row_to_json(posts), to_jsonb(posts) FROM posts WHERE id = 4034936746192933889;
SELECT json_agg(id ORDER BY id), jsonb_agg(max) FROM posts, (SELECT max(id)::snowflake FROM posts) AS m;
SELECT * FROM json_populate_record(NULL::posts, '{"id": "4034936746192933889", "body": "string"}');
SELECT * FROM jsonb_populate_record(NULL::posts, '{"id": 4034936746192933889, "body": "number"}');

--
-- As a bigint in all else
--
SELECT id FROM posts ORDER BY id DESC;
SELECT id FROM posts WHERE id > 2 AND id <= 5 ORDER BY id;
SELECT id FROM posts WHERE id IN (1, '5', 4034936746192933889) ORDER BY id;
SELECT id FROM posts WHERE id = ANY (ARRAY[1, 2]::bigint[]) ORDER BY id;
SELECT id + 1 AS sum, id % 3 AS remainder, id >> 1 AS half, -id AS negated FROM posts WHERE id = 5;
SELECT count(*), min(id), max(id), sum(id), count(DISTINCT id) FROM posts;
SELECT id FROM posts JOIN plain USING (id) ORDER BY id;
SELECT id FROM posts UNION SELECT 8::bigint ORDER BY id;
SELECT (snowflake_decode(id)).seq, snowflake_shard_id(id), snowflake_to_base32(id) FROM posts WHERE id = 4034936746192933889;
CREATE INDEX ON posts USING hash (id);
CREATE INDEX ON posts USING brin (id);
CREATE TABLE comments (post_id bigint REFERENCES posts);
INSERT INTO comments VALUES (4034936746192933889);
INSERT INTO comments VALUES (9);
CREATE SEQUENCE minted_id_seq;
CREATE TABLE minted (id snowflake DEFAULT snowflake_nextval('minted_id_seq', 5));
INSERT INTO minted DEFAULT VALUES RETURNING snowflake_shard_id(id), snowflake_seq(id);
CREATE TABLE by_shard (id snowflake) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE by_shard_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_shard_1 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO by_shard SELECT id FROM minted;
SELECT tableoid::regclass, snowflake_shard_id(id) FROM by_shard;
