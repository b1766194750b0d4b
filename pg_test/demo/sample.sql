-- A few rows from the middle of the run, from all over both shards.
SELECT id, created_at, shard_id, seq, body
FROM (SELECT id, body FROM posts_of_both ORDER BY id OFFSET 500000 LIMIT 2000) AS middle, snowflake_decode(id)
WHERE body = 'post 7' ORDER BY id LIMIT 8;
