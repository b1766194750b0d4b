-- The demo's claims about the million IDs in posts_of_both. One line each: whether it holds, and the claim in words.

SELECT count(*) = 1000000, format('count(*) is %s', to_char(count(*), 'FM9,999,999')) FROM posts_of_both;

SELECT count(DISTINCT id) = count(*),
       format('count(DISTINCT id) is %s: no duplicate ID on the two shards', to_char(count(DISTINCT id), 'FM9,999,999'))
FROM posts_of_both;

SELECT count(*) FILTER (WHERE snowflake_shard_id(id) <> home) = 0,
       'every ID contains the number of the shard that has its row'
FROM posts_of_both;

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

-- A tick is 1 ms, and a session reads the clock anew after 4 us, so the time in an ID may be that much early; 100 ms
-- late is what pg_snowflake.max_lead allows.
ALTER TABLE measured ADD early_ms numeric, ADD late_ms numeric;
UPDATE measured SET (early_ms, late_ms) = (
    SELECT round(1000 * extract(epoch FROM max(began - created_at)), 3),
           greatest(0, round(1000 * extract(epoch FROM max(created_at - ended)), 3))
    FROM posts_of_both, snowflake_decode(id));

SELECT early_ms < 1.004 AND late_ms <= 100,
       format('the time in every ID is the time of its insert (at most %s ms early, %s ms late)', early_ms, late_ms)
FROM measured;

SELECT out_of_order = 0,
       format('ORDER BY id is creation order on each shard (%s rows out of order by the clock around each insert)', out_of_order)
FROM measured;

-- The sum of how early the time in one ID and how late that in the other may be.
SELECT strays_ms < 1.004 + late_ms,
       format('ORDER BY id over both shards together is creation order, off by %s ms at most', strays_ms)
FROM measured;
