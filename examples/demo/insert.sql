-- One transaction of a pgbench client.
INSERT INTO posts (author_id, body)
SELECT 1 + n % 10, 'post ' || n FROM generate_series(1, :rows) AS n;
