-- The table of the demo, on one shard of which :shard is the number.
CREATE SEQUENCE posts_id_seq;

-- Defaults are evaluated in column order, so the call that makes an id lies between the two clock readings
-- beside it. They are the demo's witnesses, independent of the id: a real table has no use for them.
CREATE TABLE posts (
    began     timestamptz NOT NULL DEFAULT clock_timestamp(),
    id        bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', :shard),
    ended     timestamptz NOT NULL DEFAULT clock_timestamp(),
    author_id bigint NOT NULL,
    body      text NOT NULL
);
ALTER SEQUENCE posts_id_seq OWNED BY posts.id;
