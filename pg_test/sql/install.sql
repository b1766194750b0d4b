-- The extensions: what they create, for whom, and where.

\set ECHO none
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION pg_snowflake_registry;
CREATE VIEW members AS
SELECT extname, classid, objid, pg_describe_object(classid, objid, 0) AS object
FROM pg_depend JOIN pg_extension AS e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
WHERE deptype = 'e' AND extname LIKE 'pg\_snowflake%';

\echo -- no tables and no functions of the rights of its owner, other than in the registry
SELECT object FROM members LEFT JOIN pg_class AS c ON classid = 'pg_class'::regclass AND objid = c.oid
    LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid
WHERE extname = 'pg_snowflake' AND (relkind <> 'v' OR prosecdef);

\echo -- functions by volatility, parallel safety and strictness: first how many are immutable, safe and strict, then all others
SELECT count(*) FROM members JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid
WHERE (provolatile, proparallel, proisstrict) = ('i', 's', true);
SELECT provolatile, proparallel, proisstrict, object FROM members JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid
WHERE (provolatile, proparallel, proisstrict) <> ('i', 's', true) ORDER BY object COLLATE "C";

\echo -- without a comment, of what a user can see
-- From 17 on the array type of a type and the row type of a view count as the extension's too. The server makes them along with the type
-- and the view, where the comment is.
SELECT object FROM members AS m WHERE obj_description(objid, classid::regclass::name) IS NULL AND NOT EXISTS (
    SELECT FROM pg_depend AS internal WHERE internal.classid = m.classid AND internal.objid = m.objid AND internal.deptype = 'i');
SELECT extname FROM pg_extension AS e WHERE extname LIKE 'pg\_snowflake%' AND obj_description(oid, 'pg_extension') IS NULL;
SELECT name FROM pg_settings WHERE name LIKE 'pg\_snowflake.%' AND coalesce(short_desc, '') = '';

\echo -- moved to another schema, and created anew
CREATE SEQUENCE s;
CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5));
INSERT INTO posts DEFAULT VALUES;
CREATE SCHEMA elsewhere;
ALTER EXTENSION pg_snowflake SET SCHEMA elsewhere;
INSERT INTO posts DEFAULT VALUES;
SELECT count(DISTINCT id), max(id) AS last FROM posts \gset
\echo :count
ALTER TABLE posts ALTER id DROP DEFAULT;
DROP EXTENSION pg_snowflake;
CREATE EXTENSION pg_snowflake;
SELECT snowflake_nextval('s', 5) > :last;

\echo -- created by an ordinary owner of the database
SELECT quote_ident(current_database()) AS database \gset
DROP EXTENSION pg_snowflake;
CREATE ROLE regress_install_owner;
ALTER DATABASE :database OWNER TO regress_install_owner;
SET SESSION AUTHORIZATION regress_install_owner;
CREATE EXTENSION pg_snowflake;
CREATE SEQUENCE t;
SELECT snowflake_shard_id(snowflake_nextval('t', 5));
RESET SESSION AUTHORIZATION;
ALTER DATABASE :database OWNER TO CURRENT_USER;
DROP OWNED BY regress_install_owner CASCADE;
DROP ROLE regress_install_owner;
