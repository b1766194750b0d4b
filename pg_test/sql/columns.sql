-- The view snowflake_columns: which columns it shows, with which sequence, shard and layout.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
CREATE SCHEMA blog;
CREATE SEQUENCE s;
CREATE SEQUENCE "S";
CREATE SEQUENCE blog.s;
CREATE TABLE posts (id text);

-- What the view shows of posts if this is the default of its column.
CREATE FUNCTION shown(default_value text)
RETURNS TABLE (sequence text, shard_id int, uses_current_shard boolean, layout snowflake_layout)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'ALTER TABLE posts ALTER id SET DEFAULT ' || default_value;
    RETURN QUERY
        SELECT c.sequence::text, c.shard_id, c.uses_current_shard, c.layout FROM snowflake_columns AS c
        WHERE c.table_name = 'posts'::regclass ORDER BY c.shard_id;
END $$;

\echo -- a call is found however its default is written
SET pg_snowflake.shard_id = 77;
SELECT d.default_value, s.*
FROM unnest(ARRAY[
    $$snowflake_nextval('s', 5)$$,
    $$snowflake_nextval('"S"', 5, 'twitter')$$,
    $$snowflake_nextval('blog.s', 5, 'postgres')$$,
    $$public.snowflake_nextval('s'::regclass, 5)$$,
    $$snowflake_nextval(seq => 's', layout => 'js53', shard_id => 5)$$,
    $$snowflake_nextval(shard_id => 5, seq => 's')$$,
    $$snowflake_nextval('s', 5, 'time:41 shard:3 seq:10 epoch:2024-01-01 unit:1ms')$$,
    $$'cus_' || snowflake_to_base32(snowflake_nextval('s', 5))$$,
    $$CASE WHEN true THEN coalesce(snowflake_nextval('s', 5), 1) END$$,
    $$(ARRAY[snowflake_nextval('s', 5)])[1]$$,
    $$snowflake_nextval('s', 3::smallint)$$,
    $$snowflake_nextval('s', 3::bigint::int)$$,
    $$snowflake_nextval('s', -1)$$,
    -- the setting
    $$snowflake_nextval('s')$$,
    $$snowflake_nextval('s', snowflake_current_shard())$$,
    $$snowflake_nextval('s', snowflake_current_shard(), 'twitter')$$,
    -- values that only an evaluation would show
    $$snowflake_nextval('s', 2 + 3)$$,
    $$snowflake_nextval('s', snowflake_shard_id(42))$$,
    $$snowflake_nextval('s', NULL)$$,
    $$snowflake_nextval('s', 70000::int::smallint)$$,
    -- a name that the call looks up
    $$snowflake_nextval('s'::text::regclass, 5)$$,
    $$snowflake_nextval('s'::varchar::regclass, 5)$$,
    $$snowflake_nextval('PUBLIC. S'::text::regclass, 5)$$,
    $$snowflake_nextval('other.public.s'::text::regclass, 5)$$,
    $$snowflake_nextval('public."s'::text::regclass, 5)$$,
    $$snowflake_nextval(''::text::regclass, 5)$$,
    $$snowflake_nextval('missing'::text::regclass, 5)$$,
    $$snowflake_nextval('nowhere.s'::text::regclass, 5)$$,
    $$snowflake_nextval(lower('S')::regclass, 5)$$,
    $$snowflake_nextval('s', 5, 'twitter'::text::snowflake_layout)$$,
    -- two calls are two rows
    $$snowflake_nextval('s', 5) || '-' || snowflake_nextval('"S"', 6)$$,
    -- defaults that generate no IDs have no row
    $$'snowflake_nextval(''s'', 5)'$$,
    $$nextval('s')$$,
    $$snowflake_currval('s')$$,
    $$snowflake_current_shard()$$
]) WITH ORDINALITY AS d (default_value, n) LEFT JOIN shown(d.default_value) AS s ON true
ORDER BY n, shard_id \g (tuples_only=off format=aligned)
\echo -- with the name of the database
SELECT quote_ident(current_database()) || '.public."S"' AS name \gset
SELECT format('snowflake_nextval(%L::text::regclass, 5)', :'name') AS default_value \gset
SELECT * FROM shown(:'default_value') \g (tuples_only=off)
RESET pg_snowflake.shard_id;

\echo -- the setting is that of this session
SELECT * FROM shown($$snowflake_nextval('s')$$) \g (tuples_only=off)
SET pg_snowflake.shard_id = 6;
SELECT shard_id, error FROM snowflake_columns;
RESET pg_snowflake.shard_id;

\echo -- no part of a default is evaluated
CREATE TABLE called ();
CREATE FUNCTION trap() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN DROP TABLE called; RETURN 5; END $$;
SELECT call, s.* FROM unnest(ARRAY[$$snowflake_nextval('s', trap())$$, $$snowflake_nextval('s', 1 / 0)$$]) AS call, shown(call) AS s;
SELECT count(*) FROM called;

\echo -- a function of the same name elsewhere is not ours
CREATE SCHEMA other;
CREATE FUNCTION other.snowflake_nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
SELECT call, s.* FROM unnest(ARRAY[$$other.snowflake_nextval('s')$$, $$other.snowflake_nextval('s') + public.snowflake_nextval('s', 6)$$])
    AS call LEFT JOIN shown(call) AS s ON true;
\echo -- nor is one that the owner of the extension has added to it: its arguments can be of any type, whose bits would be shown
BEGIN;
CREATE FUNCTION snowflake_nextval(text) RETURNS bigint LANGUAGE sql RETURN 1;
CREATE FUNCTION snowflake_nextval(text, int, text) RETURNS bigint LANGUAGE sql RETURN 1;
ALTER EXTENSION pg_snowflake ADD FUNCTION snowflake_nextval(text);
ALTER EXTENSION pg_snowflake ADD FUNCTION snowflake_nextval(text, int, text);
SELECT * FROM shown($$snowflake_nextval('s'::regclass, 6) + snowflake_nextval('s'::text) + snowflake_nextval('s'::text, 5, 'x'::text)$$);
ROLLBACK;

\echo -- the extension in another schema
BEGIN;
SELECT * FROM shown($$snowflake_nextval('s', 5)$$) \g (tuples_only=off)
CREATE SCHEMA elsewhere;
ALTER EXTENSION pg_snowflake SET SCHEMA elsewhere;
SET LOCAL search_path = '';
SELECT table_name, function, sequence, layout FROM elsewhere.snowflake_columns \g (tuples_only=off)
ROLLBACK;

\echo -- a default that is too long to read
DO $$ BEGIN
    EXECUTE format('CREATE TABLE long (id bigint DEFAULT snowflake_nextval(''s'', length(%L)))', repeat('x', 300000));
END $$;
SELECT * FROM shown($$snowflake_nextval('s', 6)$$) \g (tuples_only=off)
SELECT table_name, column_name, sequence, shard_id, regexp_replace(error, '\d{7,} bytes', '<size> bytes') AS error
FROM snowflake_columns ORDER BY table_name::text \g (tuples_only=off format=aligned)
DROP TABLE long;

\echo -- one that is nested too deeply for the stack of this session, which continues, in the same transaction
SELECT repeat('::bigint::int', 1000) AS casts \gset
CREATE TABLE deep (id bigint DEFAULT snowflake_nextval('s', 5:casts));
SELECT table_name, shard_id, error FROM snowflake_columns ORDER BY table_name::text;
SET max_stack_depth = '200kB';
BEGIN;
SELECT json_strip_nulls(to_json(c)) FROM snowflake_columns AS c WHERE table_name = 'deep'::regclass;
SELECT table_name, function, sequence, shard_id, error FROM snowflake_columns ORDER BY table_name::text;
COMMIT;
RESET max_stack_depth;
DROP TABLE deep;
\echo -- a deep view as the sequence, and a table with a deep policy or rule: opening these would read it
CREATE VIEW deep AS SELECT 5:casts AS id;
CREATE TABLE by_view (id bigint DEFAULT snowflake_nextval('deep', 5));
CREATE TABLE by_none (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5));
INSERT INTO by_none
SELECT (extract(epoch FROM now()) * 1000)::bigint - 1314220021721 << 23 | n * 2 FROM generate_series(1, 2) AS n;
CREATE TABLE by_policy (LIKE by_none INCLUDING ALL);
INSERT INTO by_policy TABLE by_none;
CREATE POLICY p ON by_policy USING (5:casts = 5);
ALTER TABLE by_policy ENABLE ROW LEVEL SECURITY;
CREATE TABLE by_rule (LIKE by_none INCLUDING ALL);
INSERT INTO by_rule TABLE by_none;
CREATE RULE r AS ON INSERT TO by_rule WHERE 5:casts = 5 DO ALSO NOTHING;
\c -
SET max_stack_depth = '200kB';
SELECT table_name, sequence, shard_id, left(error, 43) FROM snowflake_columns ORDER BY table_name::text;
RESET max_stack_depth;
DROP TABLE by_view, by_none, by_policy, by_rule;
DROP VIEW deep;

\echo -- the error is the one that an INSERT raises
CREATE SEQUENCE small AS int;
CREATE TABLE not_one ();
CREATE SEQUENCE low MAXVALUE 1000;
SET pg_snowflake.owned_shards = '5, 128, 9000';

-- What the view shows, without a counter, which is a time; and whether an INSERT raises the same.
CREATE FUNCTION error_with(default_value text) RETURNS TABLE (error text, is_that_of_an_insert boolean)
LANGUAGE plpgsql AS $$
DECLARE
    a_counter CONSTANT text := 'counter, \d+';
    message text;
    detail text;
BEGIN
    PERFORM shown(default_value);
    SELECT regexp_replace(c.error, a_counter, 'counter, <counter>') INTO error FROM snowflake_columns AS c;
    INSERT INTO posts DEFAULT VALUES;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
    is_that_of_an_insert :=
        error = regexp_replace(concat_ws(': ', message, nullif(detail, '')), a_counter, 'counter, <counter>');
    RETURN NEXT;
END $$;

SELECT e.* FROM unnest(ARRAY[
    $$snowflake_nextval('low', 5)$$, $$snowflake_nextval('s', 6)$$, $$snowflake_nextval('s', 8192)$$, $$snowflake_nextval('s', 128, 'js53')$$,
    $$snowflake_nextval('s')$$, $$snowflake_nextval('small', 5)$$, $$snowflake_nextval('not_one', 5)$$, $$snowflake_nextval(99999::oid, 5)$$,
    $$snowflake_nextval('small', 9000)$$]) AS call, error_with(call) AS e;
RESET pg_snowflake.owned_shards;

\echo -- a fence for hosts is an error for every shard, here without the name of this host
SET pg_snowflake.allowed_hosts = 'elsewhere';
SELECT * FROM shown($$snowflake_nextval('s', 5)$$);
SELECT regexp_replace(error, 'host "[^"]*"', 'host <host>') FROM snowflake_columns;
SELECT * FROM shown($$snowflake_nextval('s', 2 + 3)$$);
SELECT regexp_replace(error, 'host "[^"]*"', 'host <host>') FROM snowflake_columns;
SELECT regexp_replace(error, 'host "[^"]*"', 'host <host>') FROM snowflake_sequence_status('s');
RESET pg_snowflake.allowed_hosts;
DROP TABLE posts;

\echo -- which relations and columns it lists
CREATE TABLE parted (id bigint DEFAULT snowflake_nextval('s', 1)) PARTITION BY LIST (id);
CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
CREATE FOREIGN DATA WRAPPER w;
CREATE SERVER far FOREIGN DATA WRAPPER w;
CREATE FOREIGN TABLE foreign_posts (id bigint DEFAULT snowflake_nextval('s', 2)) SERVER far;
CREATE TABLE plain (id bigint);
CREATE VIEW seen AS SELECT * FROM plain;
ALTER VIEW seen ALTER id SET DEFAULT snowflake_nextval('s', 3);
CREATE TEMPORARY TABLE mine (id bigint DEFAULT snowflake_nextval('s', 4));
SELECT table_name, column_name, sequence, shard_id, uses_current_shard, layout FROM snowflake_columns ORDER BY table_name::text
    \g (tuples_only=off format=aligned)
DROP TABLE parted, mine;
DROP FOREIGN TABLE foreign_posts;
DROP VIEW seen;

\echo -- the default of a domain counts if the column has none, as it does for the server
CREATE DOMAIN post_id AS snowflake DEFAULT snowflake_nextval('s', 5);
CREATE DOMAIN special_id AS post_id;
CREATE TABLE posts (id post_id, special special_id, other post_id DEFAULT 7, empty post_id DEFAULT NULL, dropped post_id,
    ids post_id[]);
ALTER TABLE posts DROP dropped;
CREATE VIEW recent AS SELECT * FROM posts;
CREATE TYPE pair AS (a post_id);
INSERT INTO posts DEFAULT VALUES;
SELECT table_name, column_name, sequence, shard_id, uses_current_shard, layout FROM snowflake_columns ORDER BY column_name
    \g (tuples_only=off format=aligned)
SELECT id > 7 AS id, special > 7 AS special, other, empty, ids FROM posts \g (tuples_only=off)
ALTER DOMAIN post_id DROP DEFAULT;
SELECT table_name, column_name, sequence, shard_id, uses_current_shard, layout FROM snowflake_columns ORDER BY column_name
    \g (tuples_only=off)
DROP VIEW recent;
DROP TABLE posts;

\echo -- a dropped column or default is not listed
CREATE TABLE posts (a bigint DEFAULT snowflake_nextval('s', 5), b bigint DEFAULT snowflake_nextval('s', 5));
ALTER TABLE posts DROP a, ALTER b DROP DEFAULT;
SELECT count(*) FROM snowflake_columns;
DROP TABLE posts;

\echo -- the state of the sequence
CREATE SEQUENCE of_posts;
CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('of_posts', 5, 'twitter'));
INSERT INTO posts DEFAULT VALUES;
SELECT pg_sleep(0.1) \g /dev/null
-- the two read the clock one after the other, well within ten minutes
SELECT c.last_id_at = s.last_id_at AS same_last_id_at, c.last_id_at = snowflake_created_at(id, 'twitter') AS is_of_the_id,
       c.lead = '0' AND s.lead = '0' AS no_lead, s.ids_left > 0 AS some_left,
       abs(c.ids_left - s.ids_left) < 4096 * 600000::bigint AS same_ids_left, c.ends_at = s.ends_at AS same_end,
       c.error, s.error
FROM posts, snowflake_columns AS c, snowflake_sequence_status('of_posts', 'twitter') AS s \g (tuples_only=off)
DROP TABLE posts;

\echo -- an ordinary user sees all columns, and the sequences that core shows
CREATE ROLE regress_columns_reader;
CREATE SCHEMA secret;
CREATE SEQUENCE secret.closed;
CREATE SEQUENCE open;
GRANT SELECT ON SEQUENCE open TO regress_columns_reader;
CREATE SEQUENCE usable;
GRANT USAGE ON SEQUENCE usable TO regress_columns_reader;
CREATE SEQUENCE writable;
GRANT UPDATE ON SEQUENCE writable TO regress_columns_reader;
CREATE SEQUENCE secret.unfit AS int;
CREATE TABLE secret.posts (
    closed bigint DEFAULT snowflake_nextval('secret.closed', 5),
    open bigint DEFAULT snowflake_nextval('open', 5),
    unfit bigint DEFAULT snowflake_nextval('secret.unfit', 5),
    usable bigint DEFAULT snowflake_nextval('usable', 5),
    writable bigint DEFAULT snowflake_nextval('writable', 5));
SELECT count(id) FROM (VALUES (snowflake_nextval('open', 5)), (snowflake_nextval('secret.closed', 5)),
    (snowflake_nextval('usable', 5)), (snowflake_nextval('writable', 5))) AS ids (id);
SET SESSION AUTHORIZATION regress_columns_reader;
SELECT column_name, shard_id, last_id_at IS NOT NULL AS last_id_at, lead IS NOT NULL AS lead, ids_left IS NOT NULL AS ids_left, error
FROM snowflake_columns ORDER BY column_name \g (tuples_only=off format=aligned)
SELECT sequencename FROM pg_sequences WHERE last_value IS NOT NULL ORDER BY sequencename;
RESET SESSION AUTHORIZATION;
DROP OWNED BY regress_columns_reader;
DROP ROLE regress_columns_reader;
