-- The router: tables without local rows.
CREATE EXTENSION postgres_fdw;

-- The router also generates IDs for its own inserts. They carry the shard number + :shards, which is in the same
-- partition, and no other server generates IDs with that number.
CREATE SEQUENCE ids;

CREATE TABLE users (id bigint NOT NULL, name text NOT NULL, posts int NOT NULL DEFAULT 0)
    PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE posts (id bigint NOT NULL, user_id bigint NOT NULL, body text NOT NULL)
    PARTITION BY HASH (id snowflake_shard_ops);
CREATE TABLE comments (id bigint NOT NULL, post_id bigint NOT NULL, body text NOT NULL)
    PARTITION BY HASH (post_id snowflake_shard_ops);

-- The same rows as posts, found by their user. A post's ID carries its user's shard, so both names lead to one place.
CREATE TABLE posts_by_user (id bigint NOT NULL, user_id bigint NOT NULL, body text NOT NULL)
    PARTITION BY HASH (user_id snowflake_shard_ops);
