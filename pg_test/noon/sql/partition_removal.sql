-- snowflake_drop_partitions(): what is removed is proved to be old. The rest is kept, with the reason and the command that detaches it.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\i :folder/data/partitions.sql

\echo -- August ended more than two months before 23 November, September less; the first one could have IDs of any layout
CALL create_posts();
CREATE TABLE posts_history PARTITION OF posts FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2026-07-01'));
CREATE TABLE posts_default PARTITION OF posts DEFAULT;
CALL add_months('2026-07', '2026-08', '2026-09', '2026-10', '2026-11');
CREATE TABLE posts_future PARTITION OF posts FOR VALUES FROM (snowflake_min_id('2026-12-01')) TO (MAXVALUE);
SELECT action, partition, starts, ends, message FROM snowflake_drop_partitions('posts', '2 months');
:dropped('posts', '2 months');
SELECT string_agg(body, ' ' ORDER BY body), partitions_of('posts') FROM posts;
\echo -- however short the age: not the current partition, nor the default one, nor one without an upper bound
ALTER TABLE posts DETACH PARTITION posts_history;
:dropped('posts', '1 microsecond', true);
SELECT partitions_of('posts');
SELECT body FROM posts_p20261001;
DROP TABLE posts_history, posts_p20260901, posts_p20261001;

\echo -- what depends on a partition keeps it, and the others go
CALL create_posts();
CALL add_months('2026-06', '2026-07', '2026-08', '2026-09', '2026-10', '2026-11');
CREATE TABLE comments (post_id bigint REFERENCES posts);
INSERT INTO comments SELECT id FROM posts WHERE body = '2026-07';
CREATE VIEW of_june AS SELECT * FROM posts_p20260601;
-- The versions number the constraint of a partition in two ways.
SELECT action, partition, regexp_replace(message, 'fkey_?\d', 'fkey') FROM snowflake_drop_partitions('posts', '1 month');
SELECT partitions_of('posts');
DROP TABLE comments;
DROP VIEW of_june;
:dropped('posts', '1 month');

\echo -- a foreign table below a partition, at any level
CALL create_posts();
ALTER TABLE posts DROP CONSTRAINT posts_pkey;
CALL add_months('2026-07', '2026-08', '2026-09', '2026-10', '2026-11');
CREATE TABLE posts_p20260601 (LIKE posts) PARTITION BY HASH (id);
CREATE TABLE june_0 PARTITION OF posts_p20260601 FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY LIST (body);
CREATE TABLE june_a PARTITION OF june_0 FOR VALUES IN ('a');
SELECT format('ALTER TABLE posts ATTACH PARTITION posts_p20260601 FOR VALUES FROM (%s) TO (%s)',
    snowflake_min_id('2026-06-01'), snowflake_min_id('2026-07-01')) AS attach \gset
:attach;
INSERT INTO posts VALUES (snowflake_min_id('2026-06-05'), 'a');
CREATE FOREIGN DATA WRAPPER w;
CREATE SERVER s FOREIGN DATA WRAPPER w;
CREATE FOREIGN TABLE archive PARTITION OF june_0 FOR VALUES IN ('b') SERVER s;
CREATE FOREIGN TABLE first PARTITION OF posts FOR VALUES FROM (0) TO (5) SERVER s;
BEGIN;
:dropped('posts', '4 months');
:dropped('posts', '4 months', true);
DROP FOREIGN TABLE archive, first;
:dropped('posts', '4 months');
ROLLBACK;
DROP FOREIGN TABLE archive, first;

\echo -- what needs a table below a partition keeps the whole tree
ALTER TABLE june_a ADD UNIQUE (id);
CREATE TABLE likes (post_id bigint REFERENCES june_a (id));
:dropped('posts', '4 months');
DROP TABLE likes;
CREATE EXTENSION pg_snowflake_registry;
ALTER EXTENSION pg_snowflake_registry ADD TABLE june_a;
:dropped('posts', '4 months');
ALTER EXTENSION pg_snowflake_registry DROP TABLE june_a;
CREATE ROLE regress_partition_removal_other;
GRANT ALL ON SCHEMA public TO regress_partition_removal_other;
CREATE FUNCTION is_true() RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
ALTER TABLE june_a OWNER TO regress_partition_removal_other, ADD CONSTRAINT planted CHECK (is_true());
:dropped('posts', '4 months');
SELECT body FROM june_a;
\echo -- as in core, the owner of the tree may drop a table of another role, and the publication remains
ALTER TABLE june_a DROP CONSTRAINT planted;
SET client_min_messages = 'error';
CREATE PUBLICATION of_june FOR TABLE june_a, posts_p20260701;
:dropped('posts', '4 months');
SELECT tablename FROM pg_publication_tables WHERE pubname = 'of_june';
DROP PUBLICATION of_june;
REVOKE ALL ON SCHEMA public FROM regress_partition_removal_other;
DROP ROLE regress_partition_removal_other;

\echo -- a lack of memory, in which the next partition would fail too, or a cancellation ends the call with its own error; it changes nothing
CALL create_posts();
CALL add_months('2026-07', '2026-08', '2026-09', '2026-10', '2026-11');
CREATE FUNCTION fail() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    IF to_regclass('posts_p20260701') IS NULL AND to_regclass('posts_p20260801') IS NULL THEN
        RAISE 'the message' USING ERRCODE = current_setting('test.sqlstate'), DETAIL = 'the detail', HINT = 'the hint';
    END IF;
END $$;
CREATE EVENT TRIGGER fail ON sql_drop EXECUTE FUNCTION public.fail();
\set SHOW_CONTEXT never
SET test.sqlstate = '53200';
SELECT snowflake_drop_partitions('posts', '1 month');
\echo :SQLSTATE
SET test.sqlstate = '57014';
SELECT snowflake_drop_partitions('posts', '1 month');
\echo :SQLSTATE
DROP EVENT TRIGGER fail;
SELECT partitions_of('posts');

\echo -- an omitted layout is that of the default
CREATE FUNCTION june(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN
    CALL create_posts(name);
    CALL add_partition('posts_p20260601', '2026-06-01', '2026-07-01', name);
    CALL add_partition('posts_p20260701', '2026-07-01', '2026-11-01', name);
    RETURN QUERY SELECT action || ' ' || partition FROM snowflake_create_partitions('posts', '1 month', 0);
    INSERT INTO posts DEFAULT VALUES;
    RETURN QUERY SELECT action || ' ' || partition FROM snowflake_drop_partitions('posts', '3 months');
END $$;
SELECT name, string_agg(row, ', ') FROM unnest('{instagram,postgres,js53,twitter,sonyflake,time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms}'::text[]) AS name,
    june(name) AS row GROUP BY name ORDER BY name COLLATE "C";

\echo -- nothing is dropped if no remaining partition has the IDs of now: in another layout than that of the IDs, the bounds of today look years old
DROP TABLE posts;
CREATE TABLE posts (id bigint) PARTITION BY RANGE (id);
SELECT DISTINCT action FROM snowflake_create_partitions('posts', '1 month', 2, 'discord');
CREATE TABLE by_number (id bigserial) PARTITION BY RANGE (id);
CREATE TABLE by_number_0 PARTITION OF by_number FOR VALUES FROM (0) TO (1000000);
CREATE TABLE by_number_1 PARTITION OF by_number FOR VALUES FROM (1000000) TO (2000000);
CREATE TABLE by_number_default PARTITION OF by_number DEFAULT;
SELECT name, layout, error_of(format('SELECT snowflake_drop_partitions(%L, ''24 months'', false, %L)', name, layout)), partitions_of(name)
FROM (VALUES ('posts', 'postgres'), ('posts', 'instagram'), ('posts', 'twitter'), ('by_number', 'postgres')) AS cases (name, layout);
\echo -- nor is anything created under the names that another layout would have
SELECT error_of($$SELECT snowflake_create_partitions('posts', '1 month')$$);

\echo -- a call removes at most 50 partitions from the oldest; one that is kept is not counted
CALL create_posts();
CALL add_partition('first', '2026-08-08', '2026-08-09');
DO $$ BEGIN FOR n IN 2..54 LOOP
    CALL add_partition(to_char(date '2026-08-07' + n, '"posts_p"YYYYMMDD'), date '2026-08-07' + n, date '2026-08-08' + n);
END LOOP; END $$;
CALL add_months('2026-10', '2026-11');
WITH rows AS (SELECT row_number() OVER () AS n, action, partition, message FROM snowflake_drop_partitions('posts', '1 month'))
SELECT * FROM rows WHERE n < 3 OR n > 50;
SELECT partitions_of('posts');

\echo -- a partition by hand is kept until its name says when it begins; the command can be run as it is
CALL create_posts();
CALL add_partition('"of ""june"', '2026-06-01', '2026-07-01');
CALL add_partition('posts_p20260701', '2026-07-01', '2026-11-01');
CALL add_months('2026-11');
:dropped('posts', '3 months');
SELECT partitions_of('posts');
ALTER TABLE "of ""june" RENAME TO "june""_p20260601";
:dropped('posts', '3 months', true);
ALTER TABLE "june""_p20260601" RENAME TO june;
ALTER TABLE posts ATTACH PARTITION june FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2026-07-01'));
SELECT message, split_part(message, 'run: ', 2) AS command FROM snowflake_drop_partitions('posts', '3 months') \gset kept_
\echo :kept_message
:kept_command
:dropped('posts', '3 months');

\echo -- a gap up to now keeps what is before it until it is filled
CALL create_posts('twitter');
CALL add_partition('posts_p20260601', '2026-06-01', '2026-07-01', 'twitter');
CALL add_partition('posts_p20260801', '2026-08-01', '2026-11-01', 'twitter');
CALL add_partition('posts_p20261101', '2026-11-01', '2026-12-01', 'twitter');
INSERT INTO posts DEFAULT VALUES;
:dropped('posts', '4 months');
CALL add_partition('july', '2026-07-01', '2026-08-01', 'twitter');
:dropped('posts', '4 months');
ALTER TABLE july RENAME TO posts_p20260701;
:dropped('posts', '4 months');

\echo -- a table without new rows keeps its last ones: to the function it looks as if the clock were ahead
CALL create_posts();
CALL add_months('2026-07');
CALL add_partition('posts_p20260601', '2026-06-01', '2026-07-01');
CALL add_partition('posts_p20260801', '2026-08-01', '2026-11-01');
CALL add_partition('posts_p20261101', '2026-11-01', '2026-12-01');
BEGIN;
:dropped('posts', '1 month');
\echo -- what has been read is not locked until the end of the transaction, but free for others
SELECT count(*) FROM pg_locks WHERE relation::regclass::text LIKE 'posts_p%';
COMMIT;
\echo -- without any row nothing can be lost
TRUNCATE posts;
:dropped('posts', '1 month');

\echo -- under a table partitioned by shard each table has its own proof
CREATE TABLE by_shard (id bigint DEFAULT snowflake_nextval('ids', 5)) PARTITION BY HASH (id);
CREATE TABLE by_shard_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY RANGE (id);
CREATE TABLE by_shard_1 PARTITION OF by_shard FOR VALUES WITH (MODULUS 2, REMAINDER 1) PARTITION BY RANGE (id);
CALL add_partition('by_shard_0_p20260601', '2026-06-01', '2026-11-01', parent => 'by_shard_0');
CALL add_partition('by_shard_1_june', '2026-06-01', '2026-11-01', parent => 'by_shard_1');
SELECT DISTINCT action FROM snowflake_create_partitions('by_shard', '1 month', 0);
INSERT INTO by_shard SELECT snowflake_nextval('ids', 5) FROM generate_series(1, 50);
:dropped('by_shard', '1 hour');

\echo -- a schema that is renamed between the statements that detach and drop, which takes no lock on tables, costs no row of another table
CREATE SCHEMA app;
SET search_path = app, public;
CREATE SEQUENCE ids;
CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('ids', 5), body text) PARTITION BY RANGE (id);
CALL add_months('2026-01');
CALL add_partition('posts_p20260201', '2026-02-01', '2026-12-01');
INSERT INTO posts (body) VALUES ('of now');
ALTER SCHEMA app RENAME TO staging;
CREATE SCHEMA app;
CREATE TABLE posts (id bigint, body text) PARTITION BY RANGE (id);
CALL add_months('2026-01');
CALL add_partition('posts_p20260201', '2026-02-01', '2026-12-01');
INSERT INTO posts VALUES (snowflake_nextval('staging.ids', 5), 'of now');
RESET search_path;
CREATE FUNCTION swap() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'staging') THEN
        ALTER SCHEMA app RENAME TO old;
        ALTER SCHEMA staging RENAME TO app;
    END IF;
END $$;
CREATE EVENT TRIGGER swap ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.swap();
:dropped('app.posts', '9 months', false, 'postgres');
SELECT (SELECT string_agg(body, ', ' ORDER BY body) FROM app.posts), (SELECT string_agg(body, ', ' ORDER BY body) FROM staging.posts);
