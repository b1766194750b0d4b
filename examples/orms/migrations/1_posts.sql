-- A migration in SQL, which sqlx runs itself.

CREATE SEQUENCE posts_id_seq;
CREATE TABLE posts (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5),
    body text NOT NULL
);
ALTER SEQUENCE posts_id_seq OWNED BY posts.id;

CREATE SEQUENCE comments_id_seq;
CREATE TABLE comments (
    id snowflake PRIMARY KEY DEFAULT snowflake_nextval('comments_id_seq', 5),
    post_id bigint NOT NULL REFERENCES posts,
    body text NOT NULL
);
ALTER SEQUENCE comments_id_seq OWNED BY comments.id;
