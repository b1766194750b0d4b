-- One logical shard on its server: a schema with its tables and the sequence that generates its IDs.
-- psql sets :schema, :shard and :shards.
CREATE SCHEMA :schema;
SET search_path = :schema, public;

CREATE SEQUENCE ids;

-- The checks reject rows from a client of another shard, or from a foreign table that points here by mistake.
CREATE TABLE users (
    id    bigint PRIMARY KEY DEFAULT snowflake_nextval('ids', :shard)
          CHECK (snowflake_shard_id(id) % :shards = :shard),
    name  text NOT NULL,
    posts int NOT NULL DEFAULT 0
);
CREATE TABLE posts (
    id      bigint PRIMARY KEY DEFAULT snowflake_nextval('ids', :shard)
            CHECK (snowflake_shard_id(id) % :shards = :shard),
    user_id bigint NOT NULL REFERENCES users,
    body    text NOT NULL
);
CREATE INDEX ON posts (user_id);
CREATE TABLE comments (
    id      bigint PRIMARY KEY DEFAULT snowflake_nextval('ids', :shard)
            CHECK (snowflake_shard_id(id) % :shards = :shard),
    post_id bigint NOT NULL REFERENCES posts,
    body    text NOT NULL
);
CREATE INDEX ON comments (post_id);
