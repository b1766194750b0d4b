-- What an operator may look at. What depends on the time is compared, and of a fault it is said whether there is one.
--
-- Of an error the SQLSTATE is promised and the words are not.
\set VERBOSITY sqlstate
SET timezone = 'UTC';

--
-- The columns that mint
--
CREATE SEQUENCE s;
CREATE SEQUENCE s_twitter CACHE 7;
CREATE SEQUENCE unfit INCREMENT 2;
CREATE DOMAIN public_id AS bigint DEFAULT snowflake_nextval('s', 7);
CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5), body text);
CREATE TABLE tweets (id snowflake DEFAULT snowflake_nextval('s_twitter', 5, 'twitter'));
CREATE TABLE of_domain (id public_id);
CREATE TABLE of_this (id bigint DEFAULT snowflake_nextval('s'));
CREATE TABLE of_this_shard (id bigint DEFAULT snowflake_nextval('s', snowflake_shard_id()));
CREATE TABLE of_text (id text DEFAULT 'cus_' || snowflake_to_base32(snowflake_nextval('s'::text::regclass, 2 + 3)));
CREATE TABLE of_two (id bigint DEFAULT snowflake_nextval('s', 5) + snowflake_nextval('s_twitter', 6, 'twitter'));
CREATE TABLE of_unfit (id bigint DEFAULT snowflake_nextval('unfit', 5));
CREATE TABLE of_no_shard (id bigint DEFAULT snowflake_nextval('s', 8192));
CREATE TABLE of_core (id bigserial);
CREATE TABLE parted (id bigint DEFAULT snowflake_nextval('s', 5)) PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE VIEW a_view AS SELECT * FROM posts;
ALTER VIEW a_view ALTER id SET DEFAULT snowflake_nextval('s', 5);

SELECT tab, col, function, sequence, shard_id, shard_from_setting, layout, last_id_at IS NULL AS never,
       lead = '0' AS in_time, ends, fault IS NOT NULL AS has_fault
FROM snowflake_columns ORDER BY tab::text, shard_id;
SET pg_snowflake.shard_id = 77;
SELECT tab, shard_id, shard_from_setting, fault IS NOT NULL AS has_fault
FROM snowflake_columns WHERE shard_from_setting ORDER BY tab::text;
RESET pg_snowflake.shard_id;

INSERT INTO posts (body) VALUES ('a');
SELECT tab, abs(extract(epoch FROM last_id_at - now())) < 5 AS is_of_now, last_id_at = snowflake_created_at(id) AS is_its_time,
       ids_left > 1000000::bigint * 1000000 AS has_ids_left, fault
FROM snowflake_columns, posts WHERE tab = 'posts'::regclass;

-- the function behind it takes stored expressions only
SELECT g.function, g.sequence, g.shard_id, g.shard_from_setting, g.layout
FROM pg_attrdef, snowflake_generator_calls(adbin) AS g WHERE adrelid = 'of_two'::regclass ORDER BY shard_id;
SELECT count(*) FROM pg_attrdef, snowflake_generator_calls(adbin) AS g WHERE adrelid = 'of_core'::regclass;
SELECT count(*) FROM snowflake_generator_calls(NULL);
SELECT snowflake_generator_calls('posts');

-- everybody sees what mints; of a sequence only who may read it
CREATE ROLE regress_snowflake_release;
SET ROLE regress_snowflake_release;
SELECT tab, sequence, shard_id, last_id_at IS NULL AS is_hidden FROM snowflake_columns WHERE tab = 'posts'::regclass;
SELECT snowflake_sequence_status('s');
SELECT count(*) FROM snowflake_layouts;
RESET ROLE;
DROP ROLE regress_snowflake_release;

--
-- A sequence
--
CREATE SEQUENCE fresh;
SELECT last_id_at, lead, ids_left > 1000000 AS has_ids_left, ends, last_value, is_called, cache, logged, fault
FROM snowflake_sequence_status('fresh');
SELECT last_id_at, lead, ends, last_value, is_called, cache, logged, fault
FROM snowflake_sequence_status(seq => 's_twitter', layout => 'twitter');
SELECT id > 0 AS is_id FROM snowflake_nextval('fresh', 5) AS id;
SELECT last_id_at = snowflake_created_at(snowflake_currval('fresh')) AS is_its_time, last_value & 1023 AS seq,
       last_value >> 10 = snowflake_currval('fresh') >> 23 AS is_its_tick, is_called, fault
FROM snowflake_sequence_status('fresh');
SELECT setval('fresh', (snowflake_min_id(clock_timestamp() + interval '1 min') >> 13) | 5) > 0 AS is_ahead;
SELECT lead BETWEEN '50 s' AND '61 s' AS is_ahead, last_id_at > now() + interval '50 s' AS is_of_the_future,
       fault IS NOT NULL AS has_fault
FROM snowflake_sequence_status('fresh');
SELECT last_value, fault IS NOT NULL AS has_fault FROM snowflake_sequence_status('unfit');
CREATE UNLOGGED SEQUENCE unlogged;
CREATE TEMP SEQUENCE temporary CACHE 5;
SELECT last_value, is_called, cache, logged FROM snowflake_sequence_status('unlogged');
SELECT last_value, is_called, cache, logged FROM snowflake_sequence_status('temporary');
CREATE SEQUENCE limited MAXVALUE 1000000;
SELECT ids_left, fault IS NOT NULL AS has_fault FROM snowflake_sequence_status('limited');
SELECT snowflake_sequence_status('posts');
SELECT snowflake_sequence_status('missing');
SELECT snowflake_sequence_status(NULL) IS NULL AS of_null;

--
-- The clock of this session
--
SELECT reading BETWEEN now() - interval '1 s' AND clock_timestamp() + interval '1 s' AS is_now,
       high_water_mark >= reading AS is_highest, regressions >= 0 AS regressions,
       largest_regression >= '0' AS largest_regression, last_regression IS NULL = (regressions = 0) AS last_regression,
       forward_jumps >= 0 AS forward_jumps, largest_forward_jump >= '0' AS largest_forward_jump,
       last_forward_jump IS NULL = (forward_jumps = 0) AS last_forward_jump
FROM snowflake_clock();
