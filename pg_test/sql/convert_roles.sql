-- snowflake_convert_column(): who may convert a column, as whom its expressions are evaluated, and who may insert afterwards.

-- A superuser whose name is known, since messages have it.
CREATE ROLE regress_convert_roles_superuser SUPERUSER;
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
CREATE ROLE regress_convert_roles_owner;
CREATE ROLE regress_convert_roles_other;
CREATE SCHEMA blog AUTHORIZATION regress_convert_roles_owner;
GRANT USAGE ON SCHEMA blog TO regress_convert_roles_other;

--
-- Who may convert
--
SET SESSION AUTHORIZATION regress_convert_roles_owner;
CREATE TABLE blog.posts (id bigint);
GRANT ALL ON blog.posts TO regress_convert_roles_other;
SET SESSION AUTHORIZATION regress_convert_roles_other;
SELECT snowflake_convert_column('blog.posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SET SESSION AUTHORIZATION regress_convert_roles_owner;
SELECT snowflake_convert_column('blog.posts', 'id', 5);
DROP TABLE blog.posts;

-- the owner of a table that references it, too
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
CREATE TABLE blog.posts (id serial PRIMARY KEY);
ALTER TABLE blog.posts OWNER TO regress_convert_roles_owner;
CREATE TABLE comments (post_id int REFERENCES blog.posts);
SET SESSION AUTHORIZATION regress_convert_roles_owner;
SELECT snowflake_convert_column('blog.posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
DROP TABLE comments, blog.posts;

-- a superuser, for the owner
CREATE TABLE blog.posts (id int GENERATED ALWAYS AS IDENTITY);
ALTER TABLE blog.posts OWNER TO regress_convert_roles_owner;
SELECT snowflake_convert_column('blog.posts', 'id', 5);
SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'posts_id_seq';
DROP TABLE blog.posts;

-- the hint names the right that an owner lacks on a schema
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE TABLE posts (id int);
ALTER TABLE posts OWNER TO regress_convert_roles_owner;
SELECT snowflake_convert_column('posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
GRANT CREATE ON SCHEMA public TO regress_convert_roles_owner;
SELECT snowflake_convert_column('posts', 'id', 5);
DROP TABLE posts;

-- row-level security hides no value: core refuses that, and a role that bypasses it sees the value
SET SESSION AUTHORIZATION regress_convert_roles_owner;
CREATE TABLE blog.posts (id bigint);
INSERT INTO blog.posts VALUES (5000000000000000000);
CREATE POLICY mine ON blog.posts USING (false);
ALTER TABLE blog.posts ENABLE ROW LEVEL SECURITY;
ALTER TABLE blog.posts FORCE ROW LEVEL SECURITY;
\set VERBOSITY sqlstate
SELECT snowflake_convert_column('blog.posts', 'id', 5);
SELECT :'LAST_ERROR_MESSAGE' LIKE '%row-level security%' AS is_by_row_security;
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
\set VERBOSITY terse
SELECT snowflake_convert_column('blog.posts', 'id', 5);
\set VERBOSITY default
DROP TABLE blog.posts;

--
-- Tables of several owners are not converted with the rights of one
--
CREATE ROLE "regress_convert_roles_some Owner";
GRANT CREATE ON SCHEMA public TO "regress_convert_roles_some Owner";
CREATE TABLE posts (id int, n int) PARTITION BY LIST (n);
CREATE TABLE posts_any PARTITION OF posts DEFAULT;
ALTER TABLE posts OWNER TO "regress_convert_roles_some Owner";
SELECT snowflake_convert_column('posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
ALTER TABLE public.posts_any OWNER TO "regress_convert_roles_some Owner";
SELECT snowflake_convert_column('posts', 'id', 5);
-- not even without a rewrite
ALTER TABLE posts_any OWNER TO CURRENT_USER;
SELECT snowflake_convert_column('posts', 'id', 5); \echo :LAST_ERROR_SQLSTATE
DROP TABLE posts;
REVOKE CREATE ON SCHEMA public FROM "regress_convert_roles_some Owner";
DROP ROLE "regress_convert_roles_some Owner";

-- The owner of a table wrote the CHECKs that its children inherit, and perhaps its type. They must not be evaluated with
-- the rights of a child's owner.
SET SESSION AUTHORIZATION regress_convert_roles_owner;
CREATE FUNCTION blog.ok(bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'a stolen superuser';
    END IF;
    RETURN true;
END $$;
CREATE DOMAIN blog.id AS bigint CHECK (blog.ok(VALUE));
CREATE TABLE blog.inherited (id bigint CHECK (blog.ok(id)), n int);
CREATE TABLE blog.parted (id blog.id, n int) PARTITION BY RANGE (n);
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
CREATE TABLE child () INHERITS (blog.inherited);
CREATE TABLE part PARTITION OF blog.parted (CHECK (id IS NOT NULL)) DEFAULT;
SELECT snowflake_convert_column('blog.inherited', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('blog.parted', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SET SESSION AUTHORIZATION regress_convert_roles_owner;
SELECT snowflake_convert_column('blog.inherited', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SELECT snowflake_convert_column('blog.parted', 'id', 5); \echo :LAST_ERROR_SQLSTATE
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
DROP TABLE child, part, blog.inherited, blog.parted;
DROP DOMAIN blog.id;

-- A child also inherits the CHECKs of other parents, whose owners are not asked. They are not evaluated.
CREATE FUNCTION fails(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'run'; END $$;
CREATE TABLE posts (id bigint);
CREATE TABLE other (id bigint CHECK (fails(id)));
CREATE TABLE child () INHERITS (posts, other);
SELECT snowflake_convert_column('posts', 'id', 5);
DROP TABLE child, posts, other;

--
-- The CHECKs of an owner do not get the rights of a superuser who converts
--
SET SESSION AUTHORIZATION regress_convert_roles_owner;
CREATE FUNCTION blog.climb(bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    step text;
BEGIN
    PERFORM set_config('work_mem', '77kB', false);
    FOREACH step IN ARRAY ARRAY['RESET ROLE', 'RESET SESSION AUTHORIZATION', 'ALTER ROLE regress_convert_roles_owner SUPERUSER'] LOOP
        BEGIN EXECUTE step; EXCEPTION WHEN OTHERS THEN END;
    END LOOP;
    RETURN current_user = 'regress_convert_roles_owner' AND $1 > 0;
END $$;
CREATE TABLE blog.posts (id bigint CONSTRAINT climbs CHECK (blog.climb(id)), body text) PARTITION BY LIST (body);
CREATE TABLE blog.posts_any PARTITION OF blog.posts (CHECK (blog.climb(id + 1))) DEFAULT;
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
SELECT current_setting('work_mem') AS work_mem \gset
SELECT snowflake_convert_column('blog.posts', 'id', 5, check_shard => true);
SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_convert_roles_owner';
SELECT current_setting('work_mem') = :'work_mem' AS same_work_mem, current_user = session_user AS same_user;
DROP TABLE blog.posts;

--
-- Who may insert
--
CREATE ROLE "regress_convert_roles_some Columns";
CREATE ROLE regress_convert_roles_reader;
CREATE ROLE regress_convert_roles_child;

-- a role that could insert into an identity column still can
CREATE TABLE posts (id int GENERATED ALWAYS AS IDENTITY, body text) PARTITION BY LIST (body);
CREATE TABLE posts_any PARTITION OF posts DEFAULT;
GRANT INSERT ON posts TO regress_convert_roles_other;
GRANT INSERT (body) ON posts TO "regress_convert_roles_some Columns";
GRANT INSERT ON posts_any TO regress_convert_roles_child;
GRANT SELECT ON posts TO regress_convert_roles_reader;
GRANT SELECT ON SEQUENCE posts_id_seq TO regress_convert_roles_reader;
SELECT snowflake_convert_column('posts', 'id', 5);
SET SESSION AUTHORIZATION regress_convert_roles_other;
INSERT INTO posts (body) VALUES ('x');
SET SESSION AUTHORIZATION "regress_convert_roles_some Columns";
INSERT INTO posts (body) VALUES ('x');
SET SESSION AUTHORIZATION regress_convert_roles_child;
INSERT INTO posts_any (body) VALUES ('x');
SET SESSION AUTHORIZATION regress_convert_roles_reader;
SELECT count(last_value) FROM posts_id_seq;
SELECT snowflake_nextval('posts_id_seq', 5); \echo :LAST_ERROR_SQLSTATE
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
SELECT count(*) FROM posts;
DROP TABLE posts;

-- a role that could not use the sequence of a serial still cannot
CREATE TABLE posts (id bigserial, body text);
GRANT INSERT ON posts TO regress_convert_roles_other;
SELECT snowflake_convert_column('posts', 'id', 5);
SET SESSION AUTHORIZATION regress_convert_roles_other;
INSERT INTO posts (body) VALUES ('x'); \echo :LAST_ERROR_SQLSTATE
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
DROP TABLE posts;

RESET SESSION AUTHORIZATION;
DROP OWNED BY regress_convert_roles_superuser, regress_convert_roles_owner, regress_convert_roles_other;
DROP ROLE regress_convert_roles_superuser, regress_convert_roles_owner, regress_convert_roles_other, regress_convert_roles_reader,
    regress_convert_roles_child, "regress_convert_roles_some Columns";
