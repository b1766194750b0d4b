-- snowflake_create_partitions(): the properties of partitions, whatever the time.

\set ECHO none
\pset format unaligned
\pset tuples_only on
-- The partition that is created for now.
CREATE FUNCTION created(name text) RETURNS text LANGUAGE sql AS $$
    SELECT partition FROM snowflake_create_partitions(name::regclass, '1 year', 0) WHERE action = 'created' $$;

\echo -- a partition is like one that core creates
CREATE ROLE regress_partitions_owner;
GRANT ALL ON SCHEMA public TO regress_partitions_owner;
SET default_toast_compression = 'pglz';
SET ROLE regress_partitions_owner;
CREATE TABLE users (id bigint PRIMARY KEY);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TABLE posts (
    id bigint PRIMARY KEY, dropped int, user_id bigint NOT NULL REFERENCES users, body text DEFAULT upper('x'),
    length int GENERATED ALWAYS AS (length(body)) STORED, number bigint GENERATED ALWAYS AS IDENTITY,
    CONSTRAINT short CHECK (length(body) < 10), UNIQUE (id, number)) PARTITION BY RANGE (id);
ALTER TABLE posts DROP COLUMN dropped, ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX by_user ON posts (user_id) WHERE user_id > 5;
CREATE TRIGGER noted BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION note();
COMMENT ON TABLE posts IS 'all';
ALTER TABLE posts ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON posts TO PUBLIC;
CREATE TABLE posts_core PARTITION OF posts FOR VALUES FROM (1) TO (2);
RESET ROLE;
CREATE FUNCTION shape(name text) RETURNS TABLE (part text) LANGUAGE sql AS $$
    SELECT replace(part, replace(name, 'public.', ''), 'PARTITION') FROM (
        SELECT ROW (relowner, relpersistence, reltablespace, relam, relrowsecurity, relacl, reloptions, relreplident,
            obj_description(oid, 'pg_class'))::text FROM pg_class WHERE oid = name::regclass
        UNION ALL SELECT ROW (attnum, attname, format_type(atttypid, atttypmod), attnotnull, attstorage, attcompression, attidentity,
            attgenerated, pg_get_expr(adbin, adrelid), attacl, attislocal, attinhcount)::text
        FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = name::regclass AND attnum > 0
        UNION ALL SELECT ROW (conname, contype, pg_get_constraintdef(oid), conislocal, coninhcount, convalidated)::text
        FROM pg_constraint WHERE conrelid = name::regclass
        UNION ALL SELECT ROW (pg_get_indexdef(indexrelid), indisvalid, inhparent::regclass)::text
        FROM pg_index LEFT JOIN pg_inherits ON inhrelid = indexrelid WHERE indrelid = name::regclass
        UNION ALL SELECT ROW (tgname, tgenabled)::text FROM pg_trigger WHERE tgrelid = name::regclass AND NOT tgisinternal) AS parts (part)
$$;
SELECT created('posts') AS made \gset
SELECT count(*) >= 14 FROM shape('posts_core');
SELECT 'ours alone', part FROM (SELECT shape(:'made') EXCEPT SELECT shape('posts_core')) AS differing (part);
SELECT 'of core alone', part FROM (SELECT shape('posts_core') EXCEPT SELECT shape(:'made')) AS differing (part);
DROP TABLE posts, users;
DROP FUNCTION note;
REVOKE ALL ON SCHEMA public FROM regress_partitions_owner;
DROP ROLE regress_partitions_owner;

\echo -- it has the persistence and the replica identity of its table
CREATE TABLE d (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE f (LIKE d INCLUDING ALL) PARTITION BY RANGE (id);
CREATE TABLE n (LIKE d INCLUDING ALL) PARTITION BY RANGE (id);
CREATE TABLE i (LIKE d INCLUDING ALL) PARTITION BY RANGE (id);
CREATE TEMPORARY TABLE t (LIKE d INCLUDING ALL) PARTITION BY RANGE (id);
ALTER TABLE f REPLICA IDENTITY FULL;
ALTER TABLE n REPLICA IDENTITY NOTHING;
ALTER TABLE i REPLICA IDENTITY USING INDEX i_pkey;
CREATE TABLE made AS SELECT name, created(name)::regclass AS partition FROM unnest('{d,f,n,i,t}'::text[]) AS name;
SELECT name, relreplident, relpersistence FROM made JOIN pg_class ON oid = partition ORDER BY name;
