CREATE EXTENSION pg_snowflake;
CREATE SEQUENCE posts_id_seq;
CREATE TABLE posts (
    id   bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq'),
    body text NOT NULL
);
ALTER SEQUENCE posts_id_seq OWNED BY posts.id;
CREATE PUBLICATION app FOR TABLE posts;
CREATE ROLE replicator LOGIN REPLICATION;
GRANT pg_read_all_data TO replicator;
