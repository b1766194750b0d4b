-- The table of the demo. The same SQL runs on both servers: each database has the number of its shard.
CREATE SEQUENCE posts_id_seq;

-- Defaults are evaluated in column order, so the call that generates the ID is between the two clock readings beside
-- it. They let the demo check the ID independently: a real table does not need them.
CREATE TABLE posts (
    began     timestamptz NOT NULL DEFAULT clock_timestamp(),
    id        bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq'),
    ended     timestamptz NOT NULL DEFAULT clock_timestamp(),
    author_id bigint NOT NULL,
    body      text NOT NULL
);
ALTER SEQUENCE posts_id_seq OWNED BY posts.id;
