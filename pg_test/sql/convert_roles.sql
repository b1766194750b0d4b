-- snowflake_convert_column(): who may convert a column, as whom its expressions are evaluated, and who may insert afterwards.

\set ECHO none
\getenv folder PG_ABS_SRCDIR
\i :folder/data/cases.sql
SET client_min_messages = 'warning';
-- A superuser whose name is known, since messages have it.
CREATE ROLE regress_convert_roles_superuser SUPERUSER;
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
CREATE ROLE regress_convert_roles_owner;
CREATE ROLE regress_convert_roles_other;
CREATE SCHEMA blog AUTHORIZATION regress_convert_roles_owner;
GRANT USAGE ON SCHEMA blog TO regress_convert_roles_other;

\echo -- who may convert
SET SESSION AUTHORIZATION regress_convert_roles_owner;
CREATE TABLE blog.posts (id bigint);
GRANT ALL ON blog.posts TO regress_convert_roles_other;
SET SESSION AUTHORIZATION regress_convert_roles_other;
SELECT error_of($$SELECT snowflake_convert_column('blog.posts', 'id', 5)$$);
SET SESSION AUTHORIZATION regress_convert_roles_owner;
SELECT snowflake_convert_column('blog.posts', 'id', 5);
DROP TABLE blog.posts;

\echo -- the owner of a table that references it, too
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
CREATE TABLE blog.posts (id serial PRIMARY KEY);
ALTER TABLE blog.posts OWNER TO regress_convert_roles_owner;
CREATE TABLE comments (post_id int REFERENCES blog.posts);
SET SESSION AUTHORIZATION regress_convert_roles_owner;
SELECT error_of($$SELECT snowflake_convert_column('blog.posts', 'id', 5)$$);
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
DROP TABLE comments, blog.posts;

\echo -- a superuser, for the owner
CREATE TABLE blog.posts (id int GENERATED ALWAYS AS IDENTITY);
ALTER TABLE blog.posts OWNER TO regress_convert_roles_owner;
SELECT snowflake_convert_column('blog.posts', 'id', 5);
SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'posts_id_seq';
DROP TABLE blog.posts;

\echo -- the hint names the right that an owner lacks on a schema
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE TABLE posts (id int);
ALTER TABLE posts OWNER TO regress_convert_roles_owner;
SELECT error_of($$SELECT snowflake_convert_column('posts', 'id', 5)$$);
GRANT CREATE ON SCHEMA public TO regress_convert_roles_owner;
SELECT snowflake_convert_column('posts', 'id', 5);
DROP TABLE posts;

\echo -- row-level security hides no value: core refuses that, and a role that bypasses it sees the value
SET SESSION AUTHORIZATION regress_convert_roles_owner;
CREATE TABLE blog.posts (id bigint);
INSERT INTO blog.posts VALUES (5000000000000000000);
CREATE POLICY mine ON blog.posts USING (false);
ALTER TABLE blog.posts ENABLE ROW LEVEL SECURITY;
ALTER TABLE blog.posts FORCE ROW LEVEL SECURITY;
SELECT split_part(error_of($$SELECT snowflake_convert_column('blog.posts', 'id', 5)$$), ' | ', 1);
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
SELECT split_part(error_of($$SELECT snowflake_convert_column('blog.posts', 'id', 5)$$), ' | ', 1);
DROP TABLE blog.posts;

\echo -- tables of several owners are not converted with the rights of one
CREATE ROLE "regress_convert_roles_some Owner";
GRANT CREATE ON SCHEMA public TO "regress_convert_roles_some Owner";
CREATE TABLE posts (id int, n int) PARTITION BY LIST (n);
CREATE TABLE posts_any PARTITION OF posts DEFAULT;
ALTER TABLE posts OWNER TO "regress_convert_roles_some Owner";
SELECT error_of($$SELECT snowflake_convert_column('posts', 'id', 5)$$);
ALTER TABLE public.posts_any OWNER TO "regress_convert_roles_some Owner";
SELECT snowflake_convert_column('posts', 'id', 5);
\echo -- not even without a rewrite
ALTER TABLE posts_any OWNER TO CURRENT_USER;
SELECT error_of($$SELECT snowflake_convert_column('posts', 'id', 5)$$);
DROP TABLE posts;
REVOKE CREATE ON SCHEMA public FROM "regress_convert_roles_some Owner";
DROP ROLE "regress_convert_roles_some Owner";

\echo -- the owner of a table wrote the CHECKs that its children inherit, and perhaps its type, which must not be evaluated with the rights
\echo -- of the owner of a child: converted by a superuser, and by the owner of the table
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
SELECT error_of($$SELECT snowflake_convert_column('blog.inherited', 'id', 5)$$);
SELECT error_of($$SELECT snowflake_convert_column('blog.parted', 'id', 5)$$);
SET SESSION AUTHORIZATION regress_convert_roles_owner;
SELECT error_of($$SELECT snowflake_convert_column('blog.inherited', 'id', 5)$$);
SELECT error_of($$SELECT snowflake_convert_column('blog.parted', 'id', 5)$$);
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
DROP TABLE child, part, blog.inherited, blog.parted;
DROP DOMAIN blog.id;

\echo -- a child also inherits the CHECKs of other parents, whose owners are not asked: they are not evaluated
CREATE FUNCTION fails(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'run'; END $$;
CREATE TABLE posts (id bigint);
CREATE TABLE other (id bigint CHECK (fails(id)));
CREATE TABLE child () INHERITS (posts, other);
SELECT snowflake_convert_column('posts', 'id', 5);
DROP TABLE child, posts, other;

\echo -- the CHECKs of an owner do not get the rights of a superuser who converts: is the owner a superuser then, and are work_mem and the
\echo -- user what they were
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

CREATE ROLE "regress_convert_roles_some Columns";
CREATE ROLE regress_convert_roles_reader;
CREATE ROLE regress_convert_roles_child;

\echo -- a role that could insert into an identity column still can, and one that could read its sequence can only read it
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
SELECT count(last_value) || ' last_value' FROM posts_id_seq;
SELECT error_of($$SELECT snowflake_nextval('posts_id_seq', 5)$$);
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
SELECT count(*) FROM posts;
DROP TABLE posts;

\echo -- nor through views and rules, which insert with the privileges of their owner; a role that only reads gets no privilege
CREATE ROLE regress_convert_roles_view;
CREATE ROLE regress_convert_roles_view_column;
CREATE ROLE regress_convert_roles_rule;
CREATE ROLE regress_convert_roles_view_rule;
CREATE TABLE posts (id bigint GENERATED ALWAYS AS IDENTITY, body text);
CREATE TABLE notes (body text);
CREATE VIEW inner_posts AS SELECT body FROM posts WHERE body IN (SELECT body FROM notes) OR true;
CREATE VIEW outer_posts AS SELECT body FROM inner_posts;
CREATE VIEW invoker_posts WITH (security_invoker) AS SELECT body FROM posts;
CREATE VIEW counted_posts AS SELECT count(*) FROM posts;
CREATE VIEW notes_with_posts AS SELECT body FROM notes WHERE body IN (SELECT body FROM posts);
CREATE RULE log AS ON DELETE TO notes DO ALSO INSERT INTO outer_posts VALUES (OLD.body);
CREATE RULE copy AS ON UPDATE TO notes DO ALSO INSERT INTO notes SELECT body FROM posts;
CREATE VIEW notes_view AS SELECT body FROM notes;
CREATE VIEW planted AS SELECT body FROM posts;
ALTER VIEW planted OWNER TO regress_convert_roles_reader;
GRANT INSERT ON outer_posts TO regress_convert_roles_view;
GRANT INSERT (body) ON inner_posts TO regress_convert_roles_view_column;
GRANT DELETE ON notes TO regress_convert_roles_rule;
GRANT DELETE ON notes_view TO regress_convert_roles_view_rule;
GRANT SELECT, UPDATE, DELETE ON posts TO regress_convert_roles_reader;
GRANT SELECT ON inner_posts TO regress_convert_roles_reader;
GRANT INSERT ON planted, invoker_posts, counted_posts, notes_with_posts, notes TO regress_convert_roles_reader;
GRANT UPDATE ON notes TO regress_convert_roles_reader;
INSERT INTO notes VALUES ('note');
SELECT snowflake_convert_column('posts', 'id', 5);
SET SESSION AUTHORIZATION regress_convert_roles_view;
INSERT INTO outer_posts VALUES ('by a view over a view');
SET SESSION AUTHORIZATION regress_convert_roles_view_column;
INSERT INTO inner_posts (body) VALUES ('by a column of a view');
SET SESSION AUTHORIZATION regress_convert_roles_rule;
DELETE FROM notes;
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
INSERT INTO notes VALUES ('note');
SET SESSION AUTHORIZATION regress_convert_roles_view_rule;
DELETE FROM notes_view;
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
SELECT body, snowflake_shard_id(id) FROM posts ORDER BY id;
SELECT g.grantee::regrole, g.privilege_type FROM pg_class, aclexplode(relacl) AS g
WHERE oid = 'posts_id_seq'::regclass AND g.grantee <> relowner ORDER BY g.grantee::regrole::text;
DROP TABLE posts, notes CASCADE;

\echo -- a role that could not use the sequence of a serial still cannot
CREATE TABLE posts (id bigserial, body text);
GRANT INSERT ON posts TO regress_convert_roles_other;
SELECT snowflake_convert_column('posts', 'id', 5);
SET SESSION AUTHORIZATION regress_convert_roles_other;
SELECT error_of($$INSERT INTO posts (body) VALUES ('x')$$);
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
DROP TABLE posts;

\echo -- nor does one that could insert by another default lose that
SELECT unnest(ARRAY['BEGIN', 'CREATE TABLE posts (id bigserial, body text) PARTITION BY LIST (body); CREATE TABLE posts_any PARTITION OF posts DEFAULT',
    $$CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT nextval(''posts_id_seq'')'$$, 'ALTER TABLE ' || defaults,
    'GRANT INSERT ON posts_any TO regress_convert_roles_other', $$SELECT snowflake_convert_column('posts', 'id', 5)$$,
    'SET LOCAL ROLE regress_convert_roles_other', $$INSERT INTO posts_any (body) VALUES ('x')$$, 'RESET ROLE',
    'SELECT snowflake_shard_id(id) FROM posts', 'ROLLBACK'])
FROM unnest(ARRAY['posts ALTER id SET DEFAULT next_id()', 'posts ALTER id DROP DEFAULT', 'posts ALTER id SET DEFAULT 7',
    'posts_any ALTER id SET DEFAULT next_id()']) AS defaults \gexec

\echo -- expressions are evaluated as the owner of their table, when a column is widened, which checks every row again, and when a query is
\echo -- planned, which evaluates the constants in predicates of indexes
CREATE FUNCTION blog.is_owner(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF current_user <> 'regress_convert_roles_owner' THEN RAISE EXCEPTION 'evaluated as %', current_user; END IF;
    RETURN true;
END $$;
SELECT unnest(ARRAY['BEGIN', 'SET LOCAL ROLE regress_convert_roles_owner',
    format('CREATE TABLE blog.posts (%s, n int, PRIMARY KEY (id)); INSERT INTO blog.posts VALUES (7, 1)', id),
    format('CREATE TABLE blog.comments (%s, FOREIGN KEY (post_id) REFERENCES blog.posts); INSERT INTO blog.comments VALUES (7)', post_id),
    'RESET ROLE', $$SELECT snowflake_convert_column('blog.posts', 'id', 5, check_shard => true)$$, 'SET LOCAL ROLE regress_convert_roles_owner',
    'INSERT INTO blog.posts (n) VALUES (2) RETURNING snowflake_shard_id(id)', 'ROLLBACK'])
FROM (VALUES ('id int CHECK (blog.is_owner(id))', 'post_id int'), ('id int', 'post_id int CHECK (blog.is_owner(post_id))'),
    ('id bigint', 'post_id int CHECK (blog.is_owner(post_id))'), ('id int, EXCLUDE (id WITH =) WHERE (blog.is_owner(1))', 'post_id bigint'),
    ('id int', 'post_id bigint, EXCLUDE (post_id WITH =) WHERE (blog.is_owner(1))'),
    ('id bigint, EXCLUDE (id WITH =) WHERE (blog.is_owner(1))', 'post_id bigint')) AS tables (id, post_id) \gexec
\echo -- a foreign key between tables of two owners, which is checked by one query on both, is not checked as either
SELECT unnest(ARRAY['BEGIN', format('CREATE TABLE posts (%s PRIMARY KEY, n int); INSERT INTO posts VALUES (7, 1)', id),
    'GRANT REFERENCES ON posts TO regress_convert_roles_owner; SET LOCAL ROLE regress_convert_roles_owner',
    format('CREATE TABLE blog.comments (%s REFERENCES posts); INSERT INTO blog.comments VALUES (7)', post_id),
    'CREATE INDEX ON blog.comments (post_id) WHERE blog.is_owner(1); RESET ROLE',
    $$SELECT split_part(error_of('SELECT snowflake_convert_column(''posts'', ''id'', 5)'), ' | ', 1)$$, 'ROLLBACK'])
FROM (VALUES ('id int', 'post_id int'), ('id int', 'post_id bigint'), ('id bigint', 'post_id int')) AS tables (id, post_id) \gexec

\echo -- a CHECK that gives the name of its table, which each statement looks up again, to another table gains nothing
SET SESSION AUTHORIZATION regress_convert_roles_owner;
CREATE TABLE blog.t (id bigserial PRIMARY KEY);
CREATE TYPE blog.ev AS ENUM ('a');
CREATE FUNCTION blog.evil(blog.ev) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    IF current_user <> 'regress_convert_roles_owner' THEN RAISE EXCEPTION 'a stolen superuser'; END IF;
    RETURN 1;
END $$;
CREATE CAST (blog.ev AS bigint) WITH FUNCTION blog.evil(blog.ev);
CREATE TABLE blog.t2 (id blog.ev);
INSERT INTO blog.t2 VALUES ('a');
CREATE FUNCTION blog.swap(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF $1 > 1000000 AND to_regclass('blog.t2') IS NOT NULL THEN
        ALTER TABLE blog.t RENAME TO t1;
        ALTER TABLE blog.t2 RENAME TO t;
    END IF;
    RETURN true;
END $$;
ALTER TABLE blog.t ADD CHECK (blog.swap(id));
SET SESSION AUTHORIZATION regress_convert_roles_superuser;
SELECT split_part(error_of($$SELECT snowflake_convert_column('blog.t', 'id', 5, check_shard => true)$$), ' | ', 1);

RESET SESSION AUTHORIZATION;
DROP OWNED BY regress_convert_roles_superuser, regress_convert_roles_owner, regress_convert_roles_other CASCADE;
DROP ROLE regress_convert_roles_superuser, regress_convert_roles_owner, regress_convert_roles_other, regress_convert_roles_reader,
    regress_convert_roles_child, "regress_convert_roles_some Columns", regress_convert_roles_view, regress_convert_roles_view_column,
    regress_convert_roles_rule, regress_convert_roles_view_rule;
