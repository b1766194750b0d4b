-- On shard 1: a place for the rows of both shards, and this shard's own in it.
-- "home" is the server that has the row; the ID alone must say the same.
CREATE UNLOGGED TABLE posts_of_both (home int, began timestamptz, id bigint, ended timestamptz, body text);
INSERT INTO posts_of_both SELECT 1, began, id, ended, body FROM posts;
