-- What ./dev demo has psql run on the first of two servers. Their sockets are in the folders $SERVERS/1 and $SERVERS/2, pgbench is
-- on PATH, and pg_snowflake.shard_id is 1 and 2.
\set first `echo "$SERVERS/1"`
\set second `echo "$SERVERS/2"`
\pset footer off

\echo '==> creating the same table on both servers; each has the number of its shard in pg_snowflake.shard_id'
\echo '      CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(''posts_id_seq''), …)'
\ir schema.sql
\connect - - :second
\ir schema.sql
\connect - - :first

\echo '==> inserting 1,000,000 rows from 8 clients at once, 100 rows a transaction, each commit flushed to disk'
\set began `date +%s%3N`
\! for i in 1 2; do pgbench -h "$SERVERS/$i" -U postgres -n -M prepared -D rows=100 -c 4 -j 4 -t 1250 -f examples/demo/insert.sql postgres 2>&1 | grep -i error & done; wait
\set ended `date +%s%3N`
SELECT to_char(1e9 / (:ended - :began), 'FM999,999') AS rows_per_second;

\echo '==> collecting the IDs of both shards in one table, to look at them together'
-- "home" is the server that has the row; the ID alone must say the same.
CREATE UNLOGGED TABLE posts_of_both (home int, began timestamptz, id bigint, ended timestamptz, body text);
INSERT INTO posts_of_both SELECT 1, began, id, ended, body FROM posts;
\copy posts_of_both FROM PROGRAM 'psql -X -h "$SERVERS/2" -U postgres -c "COPY (SELECT 2, began, id, ended, body FROM posts) TO STDOUT"'
ANALYZE posts_of_both;

\echo '==> some rows from the middle of the run, their IDs taken apart by snowflake_decode(id):'
SELECT id, created_at, shard_id, seq, body
FROM (SELECT id, body FROM posts_of_both ORDER BY id OFFSET 500000 LIMIT 2000) AS middle, snowflake_decode(id)
WHERE body = 'post 7' ORDER BY id LIMIT 8;

\echo '==> rows per shard, found from the IDs alone by snowflake_shard_id(id):'
SELECT snowflake_shard_id(id) AS shard_id, count(*) FROM posts_of_both GROUP BY 1 ORDER BY 1;

\echo '==> checking the IDs of both shards:'
-- Sorted by ID, a row is out of order if a row before it began only after it had ended: then the larger ID was
-- generated first. Two rows that each began before the other ended were inserted concurrently and may be in either
-- order.
CREATE TEMPORARY TABLE measured AS
SELECT count(*) FILTER (WHERE latest_on_shard > ended) AS out_of_order,
       greatest(0, round(1000 * extract(epoch FROM max(latest_on_both - ended)), 3)) AS strays_ms
FROM (SELECT ended,
             max(began) OVER (PARTITION BY home ORDER BY id) AS latest_on_shard,
             max(began) OVER (ORDER BY id) AS latest_on_both
      FROM posts_of_both) AS sorted;
ALTER TABLE measured ADD early_ms numeric, ADD late_ms numeric;
UPDATE measured SET (early_ms, late_ms) = (
    SELECT round(1000 * extract(epoch FROM max(began - created_at)), 3),
           greatest(0, round(1000 * extract(epoch FROM max(created_at - ended)), 3))
    FROM posts_of_both, snowflake_decode(id));

CREATE TEMPORARY TABLE claims (holds boolean, claim text);
INSERT INTO claims
SELECT count(*) = 1000000, format('count(*) is %s', to_char(count(*), 'FM9,999,999')) FROM posts_of_both;
INSERT INTO claims
SELECT count(DISTINCT id) = count(*),
       format('count(DISTINCT id) is %s: no duplicate ID on the two shards', to_char(count(DISTINCT id), 'FM9,999,999'))
FROM posts_of_both;
INSERT INTO claims
SELECT count(*) FILTER (WHERE snowflake_shard_id(id) <> home) = 0,
       'every ID contains the number of the shard that has its row'
FROM posts_of_both;
-- A tick is 1 ms, and a session reads the clock anew after 4 us, so the time in an ID may be that much early; 100 ms
-- late is what pg_snowflake.max_lead allows.
INSERT INTO claims
SELECT early_ms < 1.004 AND late_ms <= 100,
       format('the time in every ID is the time of its insert (at most %s ms early, %s ms late)', early_ms, late_ms)
FROM measured;
INSERT INTO claims
SELECT out_of_order = 0,
       format('ORDER BY id is creation order on each shard (%s rows out of order by the clock around each insert)', out_of_order)
FROM measured;
-- The sum of how early the time in one ID and how late that in the other may be.
INSERT INTO claims
SELECT strays_ms < 1.004 + late_ms,
       format('ORDER BY id over both shards together is creation order, off by %s ms at most', strays_ms)
FROM measured;

SELECT CASE WHEN holds THEN 'holds' ELSE 'DOES NOT HOLD' END AS verdict, claim FROM claims;
DO $$ BEGIN ASSERT (SELECT bool_and(holds) AND count(*) = 6 FROM claims), 'one of these claims does not hold'; END $$;
