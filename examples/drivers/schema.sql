-- The two tables that the programs of this folder read and write: IDs as bigint, and IDs as snowflake.

CREATE SEQUENCE posts_id_seq;
CREATE TABLE posts (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5),
    body text NOT NULL
);
ALTER SEQUENCE posts_id_seq OWNED BY posts.id;

CREATE SEQUENCE notes_id_seq;
CREATE TABLE notes (
    id snowflake PRIMARY KEY DEFAULT snowflake_nextval('notes_id_seq', 5),
    body text NOT NULL
);
ALTER SEQUENCE notes_id_seq OWNED BY notes.id;
