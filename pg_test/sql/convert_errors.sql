-- What snowflake_convert_column() refuses.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
CREATE TABLE posts (id serial PRIMARY KEY, body text, gone int, twice int GENERATED ALWAYS AS (7 * 2) STORED);
ALTER TABLE posts DROP COLUMN gone;
INSERT INTO posts (body) VALUES ('old');
CREATE TABLE wide (id bigint PRIMARY KEY);
INSERT INTO wide VALUES (4711), (5000000000000000000);
CREATE VIEW seen AS SELECT * FROM wide;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM wide;
CREATE TYPE pair AS (id bigint);
CREATE SEQUENCE s;
CREATE FOREIGN DATA WRAPPER w;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER w;
CREATE FOREIGN TABLE remote (id bigint) SERVER elsewhere;
CREATE TABLE parted (id bigserial, n int) PARTITION BY LIST (n);
CREATE TABLE part PARTITION OF parted DEFAULT;
CREATE TABLE by_id (id int) PARTITION BY LIST (id);
CREATE TABLE child () INHERITS (posts);
CREATE TABLE uuids (id uuid);
CREATE DOMAIN small AS int;
CREATE TABLE smalls (id small);
CREATE TABLE referred (id bigint PRIMARY KEY);
CREATE TABLE referring (referred_id small REFERENCES referred);
CREATE TABLE shared (id bigserial);
CREATE TABLE sharing (id bigint DEFAULT nextval('shared_id_seq'));
CREATE SCHEMA other;
CREATE SEQUENCE other.s;
CREATE TABLE apart (id bigint DEFAULT nextval('other.s'));
CREATE TABLE bounded (id int CONSTRAINT small_ids CHECK (id < 2000000000));
CREATE TABLE blocked (id serial, n int);
CREATE VIEW on_blocked AS SELECT id FROM blocked;
CREATE FUNCTION count_blocked() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(id) FROM blocked; END;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER on_id BEFORE UPDATE OF id ON blocked FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE POLICY by_id ON blocked USING (id > 3);
CREATE TABLE computed (id serial, twice int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE seen_from (id serial PRIMARY KEY);
CREATE TABLE refers (seen_id int REFERENCES seen_from);
CREATE VIEW on_refers AS SELECT seen_id FROM refers;
CREATE DOMAIN low AS bigint CONSTRAINT is_low CHECK (value < 1000);
CREATE TABLE lows (id low);
CREATE TABLE far (id int, n int) PARTITION BY LIST (n);
CREATE FOREIGN TABLE farther PARTITION OF far DEFAULT SERVER elsewhere;
CREATE TABLE near (id bigint PRIMARY KEY);
CREATE TABLE of_near (near_id int REFERENCES near);
CREATE FOREIGN TABLE of_near_too () INHERITS (of_near) SERVER elsewhere;

-- The error of a conversion, with other words for what varies: the name of the database and the next ID.
CREATE FUNCTION refusal(arguments text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(replace(error, quote_ident(current_database()), '<database>'), 'would be about \d{19}\.', 'would be about <ID>.')
    FROM error_of('SELECT snowflake_convert_column(' || arguments || ')') AS error
$$;

-- All that a conversion changes, to compare before and after.
CREATE VIEW state (kind, object, name, properties) AS
SELECT 'column', a.attrelid::regclass::text, a.attname::text,
       concat_ws(' ', a.atttypid::regtype, a.attnotnull, a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid))
FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
UNION ALL SELECT 'constraint', conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint
UNION ALL SELECT 'dependency', classid::regclass::text, objid::text, concat_ws(' ', objsubid, refclassid, refobjid, refobjsubid, deptype)
FROM pg_depend
UNION ALL SELECT 'relation', oid::text, relname::text, concat_ws(' ', relowner, relacl, relfilenode) FROM pg_class
UNION ALL SELECT 'sequence', seqrelid::text, '', s::text FROM pg_sequence AS s
UNION ALL SELECT 'last value', sequencename::text, '', last_value::text FROM pg_sequences;
CREATE TABLE state_before (kind text, object text, name text, properties text);
INSERT INTO state_before SELECT * FROM state;

\echo -- arguments
SELECT refusal(arguments) FROM unnest(ARRAY[
    $$NULL, 'id', 5$$, $$'posts', NULL, 5$$, $$'posts', 'id', 5, 'twitter', NULL$$, $$'posts', 'id'$$, $$'posts', 'id', 4096$$,
    $$'posts', 'id', -1$$, $$'posts', 'id', 0, 'mastodon', true$$, $$99999::oid, 'id', 5$$, $$'posts', 'nope', 5$$, $$'posts', 'ID', 5$$,
    $$'posts', '........pg.dropped.3........', 5$$]) AS arguments;

\echo -- columns that cannot have generated IDs
SELECT refusal(arguments) FROM unnest(ARRAY[
    $$'posts', 'ctid', 5$$, $$'posts', 'body', 5$$, $$'uuids', 'id', 5$$, $$'smalls', 'id', 5$$, $$'posts', 'twice', 5$$,
    $$'seen', 'id', 5$$, $$'kept', 'id', 5$$, $$'remote', 'id', 5$$, $$'s', 'last_value', 5$$, $$'pair', 'id', 5$$,
    $$'posts_pkey', 'id', 5$$, $$'part', 'id', 5$$, $$'child', 'id', 5$$]) AS arguments;

\echo -- what prevents a conversion: a column that references it, values, the sequence, constraints (core checks the one of a domain), rows
\echo -- on other servers, and what depends on the type of the column
SELECT refusal(format('%L, ''id'', 5', name)) FROM unnest(
    '{referred,wide,shared,sharing,apart,bounded,lows,far,near,by_id,computed,seen_from,blocked}'::text[]) AS name;

\echo -- transactions: read only, with another isolation level, and with a cursor that reads the table, which core refuses
BEGIN READ ONLY;
SELECT refusal($$'posts', 'id', 5$$);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT refusal($$'posts', 'id', 5$$);
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT refusal($$'posts', 'id', 5$$);
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM posts;
SELECT split_part(refusal($$'posts', 'id', 5$$), ' ', 1);
ROLLBACK;

\echo -- nothing has changed: what is compared, and the differences
SELECT string_agg(DISTINCT kind, ', ' ORDER BY kind) FROM state_before;
(TABLE state EXCEPT TABLE state_before) UNION ALL (TABLE state_before EXCEPT TABLE state);

\echo -- without what has depended on it, the column is converted
BEGIN;
DROP VIEW on_blocked;
DROP FUNCTION count_blocked();
DROP TRIGGER on_id ON blocked;
DROP POLICY by_id ON blocked;
SELECT snowflake_convert_column('blocked', 'id', 5);
CREATE VIEW on_blocked AS SELECT id FROM blocked;
COMMIT;
