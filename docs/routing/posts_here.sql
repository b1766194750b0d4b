-- All posts of a server under one name, for a router that does not know which shard has which.
SELECT 'CREATE VIEW posts_here AS '
       || string_agg(format('SELECT id, user_id, body FROM %I.posts', nspname), ' UNION ALL ')
FROM pg_namespace WHERE nspname ~ '^shard_\d+$' \gexec
