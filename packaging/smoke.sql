-- What a package must do on a system that has never had the extension. It leaves nothing behind.
\set VERBOSITY terse
CREATE EXTENSION pg_snowflake;
SELECT name, default_version, installed_version FROM pg_available_extensions WHERE name = 'pg_snowflake';

CREATE TABLE posts (id bigint PRIMARY KEY, body text);
CREATE SEQUENCE posts_id_seq OWNED BY posts.id;
ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5);
INSERT INTO posts (body) SELECT 'smoke' FROM generate_series(1, 10000);

DO $$
BEGIN
    ASSERT (SELECT count(DISTINCT id) FROM posts) = 10000, 'every row has a unique ID';
    ASSERT (SELECT bool_and((snowflake_decode(id)).shard_id = 5) FROM posts), 'each ID contains its shard';
    ASSERT (SELECT bool_and(abs(extract(epoch FROM snowflake_created_at(id) - now())) < 60) FROM posts),
        'each ID contains its time';
    ASSERT NOT EXISTS (
        SELECT FROM pg_available_extensions, pg_extension_update_paths(name)
        WHERE name IN ('pg_snowflake', 'pg_snowflake_registry') AND target = default_version AND path IS NULL
    ), 'every older version can be updated to this one';
END
$$;
SELECT * FROM snowflake_decode((SELECT max(id) FROM posts));

DROP TABLE posts;
DROP EXTENSION pg_snowflake;

-- The registry of leases, alone.
CREATE EXTENSION pg_snowflake_registry;
DO $$
BEGIN
    ASSERT (SELECT granted FROM snowflake_registry.claim(NULL, 'smoke', gen_random_uuid(), NULL, gen_random_uuid(),
        clock_timestamp() + interval '10 s', interval '10 s')), 'the registry grants a lease';
END
$$;
SELECT shard_id, node, state FROM snowflake_registry.leases;
DROP EXTENSION pg_snowflake_registry;
