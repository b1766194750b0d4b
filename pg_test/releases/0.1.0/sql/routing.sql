-- Partitions by the shard in the id, and where a row is.
--
-- Of an error the SQLSTATE is promised and the words are not.
\set VERBOSITY sqlstate

--
-- The remainder is the shard modulo the modulus
--
CREATE TABLE shards (shard int);
INSERT INTO shards VALUES (0), (1), (5), (77), (127), (1000), (1023), (8191), (65535);

CREATE TABLE instagram (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE instagram_0 PARTITION OF instagram FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE instagram_1 PARTITION OF instagram FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE instagram_2 PARTITION OF instagram FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE instagram_3 PARTITION OF instagram FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO instagram SELECT snowflake_encode('2024-01-01Z', shard, seq) FROM shards, (VALUES (0), (1023)) AS s (seq)
WHERE shard < 8192;
INSERT INTO instagram VALUES (5), (2048), (-1), (9223372036854775807);
SELECT tableoid::regclass, snowflake_shard_id(id), id FROM instagram ORDER BY 1, 2, 3;

CREATE TABLE twitter (id bigint) PARTITION BY HASH (id snowflake_shard_ops_twitter);
CREATE TABLE twitter_0 PARTITION OF twitter FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE twitter_1 PARTITION OF twitter FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE twitter_2 PARTITION OF twitter FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO twitter SELECT snowflake_encode('2024-01-01Z', shard, 4095, layout)
FROM shards, (VALUES ('twitter'::snowflake_layout), ('discord'), ('pgedge')) AS l (layout) WHERE shard < 1024;
INSERT INTO twitter VALUES (8192);
SELECT tableoid::regclass, snowflake_shard_id(id, 'twitter'), count(*) FROM twitter GROUP BY 1, 2 ORDER BY 1, 2;

CREATE TABLE sonyflake (id bigint) PARTITION BY HASH (id snowflake_shard_ops_sonyflake);
CREATE TABLE sonyflake_0 PARTITION OF sonyflake FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE sonyflake_1 PARTITION OF sonyflake FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE sonyflake_2 PARTITION OF sonyflake FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO sonyflake SELECT snowflake_encode('2024-01-01Z', shard, 255, 'sonyflake') FROM shards;
INSERT INTO sonyflake VALUES (7);
SELECT tableoid::regclass, snowflake_shard_id(id, 'sonyflake') FROM sonyflake ORDER BY 1, 2;

CREATE TABLE js53 (id bigint) PARTITION BY HASH (id snowflake_shard_ops_js53);
CREATE TABLE js53_0 PARTITION OF js53 FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE js53_1 PARTITION OF js53 FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE js53_2 PARTITION OF js53 FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO js53 SELECT snowflake_encode('2024-01-01Z', shard, 31, 'js53') FROM shards WHERE shard < 128;
INSERT INTO js53 VALUES (64);
SELECT tableoid::regclass, snowflake_shard_id(id, 'js53') FROM js53 ORDER BY 1, 2;

-- what the classes call: with the seed of partitioning the shard less a constant, with any other core's hash
SELECT seed, snowflake_shard_hash(id, seed), snowflake_shard_hash_twitter(id, seed), snowflake_shard_hash_sonyflake(id, seed),
       snowflake_shard_hash_js53(id, seed)
FROM (VALUES (8816678312871386365), (0), (5)) AS seeds (seed), (VALUES (5242887), (-1)) AS integers (id)
ORDER BY seed, id;
SELECT seed, snowflake_shard_hash(id, seed), snowflake_shard_hash_twitter(id, seed), snowflake_shard_hash_sonyflake(id, seed),
       snowflake_shard_hash_js53(id, seed)
FROM (VALUES (8816678312871386365), (0), (5)) AS seeds (seed), (VALUES (5242887::bigint), (-1), (1541815603606036480)) AS bigints (id)
ORDER BY seed, id;

-- rows are found where the id leads
SELECT tableoid::regclass, id FROM instagram WHERE id = 5;
SELECT tableoid::regclass, id FROM instagram WHERE id IN (5, 2048) ORDER BY id;
PREPARE find (bigint) AS SELECT tableoid::regclass, id FROM instagram WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE find (2048);
RESET plan_cache_mode;
INSERT INTO instagram_0 VALUES (1024);

-- for an index each class is core's hash
CREATE TABLE indexed (id bigint);
CREATE INDEX ON indexed USING hash (id snowflake_shard_ops);
CREATE INDEX ON indexed USING hash (id snowflake_shard_ops_twitter);
CREATE INDEX ON indexed USING hash (id snowflake_shard_ops_sonyflake);
CREATE INDEX ON indexed USING hash (id snowflake_shard_ops_js53);
INSERT INTO indexed SELECT id FROM instagram;
SET enable_seqscan = off;
SELECT count(*) FROM indexed WHERE id = 2048;
RESET enable_seqscan;

--
-- Where a row is
--
SELECT * FROM snowflake_locate('instagram', 5 << 10);
SELECT * FROM snowflake_locate('instagram', -1);
SELECT * FROM snowflake_locate('twitter', snowflake_encode('2024-01-01Z', 1000, 0, 'pgedge'), 'pgedge');
SELECT * FROM snowflake_locate(tab => 'sonyflake', id => 7, layout => 'sonyflake');
SELECT * FROM snowflake_locate('js53', 64, 'js53');
SELECT * FROM snowflake_locate('indexed', 5 << 10);
SELECT snowflake_locate('instagram', NULL) IS NULL AS of_null;
SELECT count(*) AS misplaced FROM instagram, snowflake_locate('instagram', id) AS l WHERE l.partition <> instagram.tableoid;

CREATE FOREIGN DATA WRAPPER anywhere;
CREATE SERVER east FOREIGN DATA WRAPPER anywhere OPTIONS (host 'db-east', port '5433', dbname 'blog');
CREATE SERVER west FOREIGN DATA WRAPPER anywhere OPTIONS (host 'a,b', port '5433,5434');
CREATE TABLE far (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
CREATE FOREIGN TABLE far_0 PARTITION OF far FOR VALUES WITH (MODULUS 4, REMAINDER 0) SERVER east;
CREATE FOREIGN TABLE far_1 PARTITION OF far FOR VALUES WITH (MODULUS 4, REMAINDER 1) SERVER west;
CREATE TABLE far_2 PARTITION OF far FOR VALUES WITH (MODULUS 4, REMAINDER 2) PARTITION BY RANGE (id);
CREATE TABLE far_2_all PARTITION OF far_2 DEFAULT;
SELECT l.* FROM generate_series(0, 3) AS shard, snowflake_locate('far', shard << 10) AS l;

SELECT snowflake_locate('instagram', 5, 'twitter');
SELECT snowflake_locate('js53', 9007199254740992, 'js53');
SELECT snowflake_locate('missing', 5);
CREATE TABLE by_two (id bigint, n int) PARTITION BY RANGE (id, n);
SELECT snowflake_locate('by_two', 5);
CREATE VIEW a_view AS SELECT 1;
SELECT snowflake_locate('a_view', 5);
CREATE TABLE parent (id bigint);
CREATE TABLE child () INHERITS (parent);
SELECT snowflake_locate('parent', 5);
