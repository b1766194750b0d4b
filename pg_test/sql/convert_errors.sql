-- What snowflake_convert_column() refuses.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
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

-- Raises the error of a statement, with other words for what varies: the name of the database and the next ID.
CREATE PROCEDURE with_fixed_words(statement text) LANGUAGE plpgsql AS $$
DECLARE
    code text;
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message,
        DETAIL = regexp_replace(detail, 'would be about \d{19}\.', 'would be about <ID>.'),
        HINT = replace(hint, quote_ident(current_database()), '<database>');
END $$;
\set SHOW_CONTEXT never

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

--
-- Arguments
--

SELECT snowflake_convert_column(NULL, 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', NULL, 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'id', 5, 'twitter', NULL); \echo :LAST_ERROR_SQLSTATE
CALL with_fixed_words($$SELECT snowflake_convert_column('posts', 'id')$$); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'id', 4096); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'id', -1); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'id', 0, 'mastodon', true); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column(99999::oid, 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'nope', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'ID', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', '........pg.dropped.3........', 5); \echo :LAST_ERROR_SQLSTATE

--
-- Columns that cannot have generated IDs
--
SELECT snowflake_convert_column('posts', 'ctid', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'body', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('uuids', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('smalls', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts', 'twice', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('seen', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('kept', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('remote', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('s', 'last_value', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('pair', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('posts_pkey', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('part', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('child', 'id', 5); \echo :LAST_ERROR_SQLSTATE

--
-- What prevents a conversion
--

-- a column that references it cannot hold its IDs
SELECT snowflake_convert_column('referred', 'id', 5); \echo :LAST_ERROR_SQLSTATE
-- values
CALL with_fixed_words($$SELECT snowflake_convert_column('wide', 'id', 5)$$); \echo :LAST_ERROR_SQLSTATE
-- the sequence
SELECT snowflake_convert_column('shared', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('sharing', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('apart', 'id', 5); \echo :LAST_ERROR_SQLSTATE
-- constraints; the one of a domain is checked by core
CALL with_fixed_words($$SELECT snowflake_convert_column('bounded', 'id', 5)$$); \echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
SELECT snowflake_convert_column('lows', 'id', 5);
\set VERBOSITY default
-- rows on other servers
SELECT snowflake_convert_column('far', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('near', 'id', 5); \echo :LAST_ERROR_SQLSTATE
-- what depends on the type of the column
SELECT snowflake_convert_column('by_id', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('computed', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('seen_from', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('blocked', 'id', 5); \echo :LAST_ERROR_SQLSTATE

--
-- Transactions
--
BEGIN READ ONLY;
SELECT snowflake_convert_column('posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_convert_column('posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT snowflake_convert_column('posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
ROLLBACK;
-- core refuses a table that the transaction is reading
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM posts;
\set VERBOSITY sqlstate
SELECT snowflake_convert_column('posts', 'id', 5);
\set VERBOSITY default
ROLLBACK;

-- nothing has changed
SELECT kind, count(*) > 0 AS compared FROM state_before GROUP BY kind ORDER BY kind;
(TABLE state EXCEPT TABLE state_before) UNION ALL (TABLE state_before EXCEPT TABLE state) \g (tuples_only=off footer=on)

--
-- Without what has depended on it, the column is converted
--
BEGIN;
DROP VIEW on_blocked;
DROP FUNCTION count_blocked();
DROP TRIGGER on_id ON blocked;
DROP POLICY by_id ON blocked;
SELECT snowflake_convert_column('blocked', 'id', 5);
CREATE VIEW on_blocked AS SELECT id FROM blocked;
COMMIT;
