SELECT pg_replication_origin_create('rekey');
SELECT pg_replication_origin_session_setup('rekey');
DELETE FROM posts WHERE id = :id RETURNING body \gset
SELECT pg_replication_origin_session_reset();
SELECT pg_replication_origin_drop('rekey');
INSERT INTO posts (body) VALUES (:'body');
