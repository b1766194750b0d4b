-- Who may manage the partitions of a table, and as whom it happens.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
\i :folder/data/partitions.sql
CREATE ROLE regress_partition_roles_owner;
CREATE ROLE regress_partition_roles_other;
CREATE SCHEMA blog AUTHORIZATION regress_partition_roles_owner;
GRANT ALL ON SCHEMA blog TO regress_partition_roles_other;

\echo -- the owner and a superuser may, and the owner owns the partitions
SET SESSION AUTHORIZATION regress_partition_roles_owner;
CREATE TABLE blog.posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
GRANT ALL ON blog.posts TO regress_partition_roles_other;
SET SESSION AUTHORIZATION regress_partition_roles_other;
SELECT error_of($$SELECT snowflake_create_partitions('blog.posts', '1 day')$$);
SELECT error_of($$SELECT snowflake_drop_partitions('blog.posts', '1 day')$$);
SET SESSION AUTHORIZATION regress_partition_roles_owner;
:created('blog.posts', '1 day', 0);
RESET SESSION AUTHORIZATION;
:created('blog.posts', '1 day', 1);
SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname LIKE 'posts%';
\echo -- to create them, the owner needs a right on the schema; to drop them, none
ALTER SCHEMA blog OWNER TO CURRENT_USER;
REVOKE CREATE ON SCHEMA blog FROM regress_partition_roles_owner;
GRANT USAGE ON SCHEMA blog TO regress_partition_roles_owner;
CALL add_partition('blog.posts_p20261101', '2026-11-01', '2026-11-23', parent => 'blog.posts');
ALTER TABLE blog.posts_p20261101 OWNER TO regress_partition_roles_owner;
SET SESSION AUTHORIZATION regress_partition_roles_owner;
SELECT error_of($$SELECT snowflake_create_partitions('blog.posts', '1 day')$$);
:dropped('blog.posts', '1 hour');
RESET SESSION AUTHORIZATION;
DROP TABLE blog.posts;
ALTER SCHEMA blog OWNER TO regress_partition_roles_owner;

\echo -- a superuser runs no code of the owner as a superuser, such as functions of constants when a constraint is compared with the bounds or
\echo -- an index is planned, also when the newest ID is read
SET SESSION AUTHORIZATION regress_partition_roles_owner;
CREATE TABLE blog.seen (who name);
CREATE FUNCTION blog.note() RETURNS void LANGUAGE sql AS 'INSERT INTO blog.seen VALUES (current_user)';
CREATE FUNCTION blog.spy(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM blog.note(); RETURN true; END';
CREATE TABLE blog.posts (id bigint, CHECK (blog.spy(1))) PARTITION BY RANGE (id);
CREATE INDEX ON blog.posts ((1)) WHERE blog.spy(1);
CREATE TABLE blog.posts_default PARTITION OF blog.posts DEFAULT;
ALTER TABLE blog.posts_default ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY spied ON blog.posts_default USING (blog.spy(id));
INSERT INTO blog.posts VALUES (1);
RESET SESSION AUTHORIZATION;
:created('blog.posts', '1 day', 1);
SET SESSION AUTHORIZATION regress_partition_roles_owner;
SELECT format('CREATE TABLE blog.posts_p20261101 PARTITION OF blog.posts FOR VALUES FROM (%s) TO (%s)',
    snowflake_min_id('2026-11-01'), snowflake_min_id('2026-11-23')) AS add \gset
:add;
ALTER TABLE blog.posts_p20261123 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY spied ON blog.posts_p20261123 USING (blog.spy(id));
TRUNCATE blog.seen;
RESET SESSION AUTHORIZATION;
:created('blog.posts', '1 day', 1) WHERE action <> 'exists';
:dropped('blog.posts', '1 hour');
SELECT DISTINCT who FROM blog.seen;
SELECT current_user = session_user;
DROP TABLE blog.posts;

\echo -- a policy could hide the newest rows from the owner
CREATE TABLE blog.posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CALL add_partition('blog.posts_p20261101', '2026-11-01', '2026-11-23', parent => 'blog.posts');
ALTER TABLE blog.posts OWNER TO regress_partition_roles_owner;
ALTER TABLE blog.posts_p20261101 OWNER TO regress_partition_roles_owner;
SET SESSION AUTHORIZATION regress_partition_roles_owner;
:created('blog.posts', '1 day', 0);
ALTER TABLE blog.posts_p20261123 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
:dropped('blog.posts', '1 hour');
ALTER TABLE blog.posts_p20261123 NO FORCE ROW LEVEL SECURITY;
:dropped('blog.posts', '1 hour');
RESET SESSION AUTHORIZATION;

\echo -- a table of another role is not evaluated as the owner: what a partition or a table with a foreign key runs when it is planned, or
\echo -- compared with the bounds of another partition
CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
GRANT REFERENCES ON posts TO regress_partition_roles_owner;
CREATE TABLE blog.theirs PARTITION OF posts DEFAULT;
ALTER TABLE blog.theirs OWNER TO regress_partition_roles_owner;
SET SESSION AUTHORIZATION regress_partition_roles_owner;
CREATE OR REPLACE FUNCTION blog.spy(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF current_user <> 'regress_partition_roles_owner' THEN RAISE EXCEPTION 'planted, run as %', current_user; END IF;
    RETURN true;
END $$;
ALTER TABLE blog.theirs ADD CHECK (blog.spy(1));
CREATE INDEX ON blog.theirs ((1)) WHERE blog.spy(1);
RESET SESSION AUTHORIZATION;
:created('posts', '1 day', 0);
DROP TABLE blog.theirs;
:created('posts', '1 day', 0);
CALL add_partition('posts_p20261101', '2026-11-01', '2026-11-23');
SET SESSION AUTHORIZATION regress_partition_roles_owner;
CREATE TABLE blog.likes (post_id bigint REFERENCES public.posts);
CREATE INDEX ON blog.likes ((1)) WHERE blog.spy(1);
RESET SESSION AUTHORIZATION;
:dropped('posts', '1 hour');
DROP INDEX blog.likes_expr_idx;
:dropped('posts', '1 hour');
DROP TABLE blog.likes, posts;
DROP OWNED BY regress_partition_roles_owner, regress_partition_roles_other CASCADE;
DROP ROLE regress_partition_roles_owner, regress_partition_roles_other;

\echo -- a function of the user that names no schema finds nothing in the search_path of ours: the message, all that a job shows, names it and
\echo -- the cure
CREATE TABLE ddl_log (tag text);
CREATE TABLE t (id bigserial PRIMARY KEY);
CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CALL add_partition('posts_p20261101', '2026-11-01', '2026-11-23');
-- A function whose name is not that of the function that fails.
CREATE FUNCTION job() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN
    RETURN QUERY SELECT message FROM snowflake_create_partitions('posts', '1 day', 0) WHERE action = 'failed';
END $$;
CREATE FUNCTION log_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ddl_log VALUES (tg_tag); END $$;
CREATE EVENT TRIGGER log_ddl ON ddl_command_start EXECUTE FUNCTION log_ddl();
CREATE FUNCTION one() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION "is positive"(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$;
CREATE TABLE narrow (id int PRIMARY KEY, CHECK ("is positive"(id)));
CREATE TABLE of_index (id bigint);
CREATE INDEX ON of_index (id) WHERE "is positive"(1);
CREATE FUNCTION "in SQL"(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT $1 >= one()';
CREATE TABLE of_sql (id int PRIMARY KEY, CHECK ("in SQL"(id)));
CREATE OR REPLACE FUNCTION "is positive"(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1 >= one(); END $$;
-- A new session has not compiled them.
\c -
SET timezone = 'UTC';
ALTER EVENT TRIGGER log_ddl DISABLE;
:created('posts', '1 day', 0);
ALTER EVENT TRIGGER log_ddl ENABLE;
INSERT INTO posts VALUES (snowflake_min_id(now()));
:dropped('posts', '1 hour');
ALTER EVENT TRIGGER log_ddl DISABLE;
DROP TABLE posts_p20261123;
ALTER EVENT TRIGGER log_ddl ENABLE;
SELECT job();
-- 19 adds a detail of its own.
SELECT name, replace(error_of(format('SELECT snowflake_convert_column(%L, ''id'', 5)', name)),
    'A function of that name exists, but it is not in the search_path. ', '')
FROM unnest('{t,narrow,of_index,of_sql}'::text[]) AS name;
ALTER FUNCTION log_ddl() SET search_path = public, pg_temp;
ALTER FUNCTION "is positive"(bigint) SET search_path = public, pg_temp;
ALTER FUNCTION "in SQL" SET search_path = public, pg_temp;
SELECT name, snowflake_convert_column(name::regclass, 'id', 5) FROM unnest('{t,narrow,of_index,of_sql}'::text[]) AS name;
:created('posts', '1 day', 0);
