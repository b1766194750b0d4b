-- What PostgreSQL's hash of a bigint costs IDs whose bits are in different orders: the table in docs/hashing.md. It needs
-- psql, an empty database and no extension:
--
--     createdb hashing && psql -X -f docs/hashing/measure.sql hashing
--
-- Variables, with -v NAME=VALUE:
--
--     rows      IDs in each table. 3,000,000 need 3 GB of disk, 30,000,000 need 30 GB
--     rounds    how often each query runs; the tables show medians. A query over the timeout is not repeated
--     memory    work_mem
--     timeout   statement_timeout
--     layouts   whose IDs to measure, beside bigserial's
--     rates     IDs per millisecond; 100/16 are 100 per millisecond over 16 shards
--     start     an expression for the number with which the count of a shard begins: differs from shard to shard at random.
--               A fresh sequence of pg_snowflake begins with 1 + 617 * shard. With 1, all shards use the same counters in step

\if :{?rows} \else \set rows 3000000 \endif
\if :{?rounds} \else \set rounds 5 \endif
\if :{?memory} \else \set memory 256MB \endif
\if :{?timeout} \else \set timeout 60s \endif
\if :{?layouts} \else \set layouts instagram,twitter,pgedge,tsid,sonyflake,postgres,uuidv7 \endif
\if :{?rates} \else \set rates 1,10,100,1000,100/16,100/100 \endif
\if :{?start} \else \set start 'hashint8(shard - 5) & 65535' \endif

\set QUIET on
\set ON_ERROR_STOP on
SET work_mem = :'memory';
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_sort = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;

-- The formulas take the number n of an ID, from 0; its millisecond ms; its shard, from 5; and its number in the shard: count
-- from the start of the shard, and count_in_ms from 0 in each millisecond. Time begins in 2026.
--
-- instagram, twitter, sonyflake and postgres are pg_snowflake's, whose counter continues from tick to tick. pgEdge's starts
-- with 0 in each millisecond, and TSID's with a random number. A tick of Sonyflake has 10 ms and at most 256 IDs of a shard.
CREATE TABLE formulas (place serial, layout text, rates numrange, hash text, formula text);
INSERT INTO formulas (layout, rates, hash, formula) VALUES
    ('bigserial', NULL, 'hashint8', 'n'),
    ('instagram', '[0,1024]', 'hashint8', '(460000000000 + ms) << 23 | (shard << 10) | (count % 1024)'),
    ('twitter', '[0,4096]', 'hashint8', '(480000000000 + ms) << 22 | (shard << 12) | (count % 4096)'),
    ('pgedge', '[0,4096]', 'hashint8', '(94694400000 + ms) << 22 | (shard << 12) | count_in_ms'),
    ('tsid', '[0,4096]', 'hashint8',
        '(189388800000 + ms) << 22 | (shard << 12) | ((hashint8(ms << 10 | shard) & 4095) + count_in_ms) % 4096'),
    ('sonyflake', '[0,25.6]', 'hashint8', '(35770000000 + ms / 10) << 24 | (count % 256 << 16) | shard'),
    ('postgres', '[0,1024]', 'hashint8',
        '((504921600000 + ms) << 10 | (count % 1024)) << 12 | (shard # (((504921600000 + ms) << 10 | (count % 1024)) & 4095))'),
    ('uuidv7', NULL, 'uuid_hash', CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'uuidv7()'
        ELSE '(lpad(to_hex(1767225600000 + ms), 12, ''0'') || ''7'' || substr(gen_random_uuid()::text, 16))::uuid' END);

-- The tables, and what is measured with them.
CREATE TABLE ids AS
SELECT row_number() OVER (ORDER BY place, shards, rate) AS place, layout, rate, shards,
    concat_ws('_', layout, rate, nullif(shards, 1) || 'shards') AS name, hash,
    format('SELECT %s AS id FROM (
            SELECT n, ms, shard, n / %3$s + (%5$s) AS count, n %% %2$s / %3$s AS count_in_ms
            FROM (SELECT n, n / %2$s AS ms, 5 + n %% %3$s AS shard FROM generate_series(0::bigint, %4$s - 1) AS n) AS numbers
        ) AS counted', formula, coalesce(rate, 100), coalesce(shards, 1), :rows, :'start') AS query,
    NULL::bigint AS hashes, NULL::bigint AS memory, NULL::bigint AS disk
FROM formulas
LEFT JOIN (
    SELECT split_part(item, '/', 1)::int AS rate, coalesce(nullif(split_part(item, '/', 2), ''), '1')::int AS shards
    FROM string_to_table(:'rates', ',') AS item
) AS cases ON rate::numeric / shards <@ rates
WHERE layout = 'bigserial' OR layout = ANY (string_to_array(:'layouts', ',')) AND (rates IS NULL OR rate IS NOT NULL);

CREATE TABLE timings (name text, query text, round int, began timestamptz DEFAULT clock_timestamp(), took interval);

SELECT format('CREATE TABLE %I AS %s', name, query), format('ANALYZE %I', name) FROM ids ORDER BY place \gexec

-- Distinct hashes. Distinct folds are a few more, since mixing maps some of them to the same value.
SET enable_hashagg = off;
SET enable_sort = on;
SELECT format('UPDATE ids SET hashes = (SELECT count(*) FROM (SELECT DISTINCT %s(id) FROM %I) AS h) WHERE name = %2$L',
    hash, name)
FROM ids ORDER BY place \gexec
SET enable_hashagg = on;
SET enable_sort = off;

-- Each round goes through all tables, so that what disturbs the machine disturbs all of them, and begins with another one, so
-- that none is always the first. Three statements for each: the last also runs after a statement that was cancelled. The
-- first two do nothing if an earlier round was cancelled.
\set ON_ERROR_STOP off
SET statement_timeout = :'timeout';
\o /dev/null
SELECT format('INSERT INTO timings (name, query, round) SELECT %L, %L, %s WHERE %s', name, label, round, in_time),
    format(statement, name, in_time),
    'UPDATE timings SET took = clock_timestamp() - began WHERE took IS NULL'
FROM generate_series(1, :rounds) AS round,
    (VALUES ('aggregate', 'SELECT count(*) FROM (SELECT id FROM %1$I WHERE %2$s GROUP BY id OFFSET 0) AS g'),
            ('join', 'SELECT count(*) FROM %1$I AS a JOIN %1$I AS b USING (id) WHERE %2$s')) AS queries (label, statement),
    ids,
    format('(SELECT coalesce(max(took), ''0'') < %L FROM timings WHERE name = %L AND query = %L)', :'timeout', name, label)
        AS in_time
ORDER BY round, label, (place + round) % (SELECT count(*) FROM ids) \gexec
\o

-- Memory and disk of the aggregate, in kB, if it was measured and not cancelled.
CREATE FUNCTION explain(query text, OUT plan json) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
END $$;
SELECT format('UPDATE ids SET memory = (plan->0->''Plan''->>''Peak Memory Usage'')::bigint, '
    'disk = (plan->0->''Plan''->>''Disk Usage'')::bigint FROM explain(%L) AS plan WHERE name = %L',
    format('SELECT id FROM %I GROUP BY id', name), name)
FROM ids
WHERE (SELECT max(took) < :'timeout' FROM timings WHERE timings.name = ids.name AND query = 'aggregate')
ORDER BY place \gexec

SELECT layout, rate AS "IDs per ms", shards, hashes AS "distinct hashes", aggregate AS "HashAggregate",
    pg_size_pretty(memory * 1024) AS memory, pg_size_pretty(nullif(disk, 0) * 1024) AS disk, "join" AS "hash join"
FROM ids,
    LATERAL (
        SELECT max(shown) FILTER (WHERE query = 'aggregate'), max(shown) FILTER (WHERE query = 'join')
        FROM (
            SELECT query, CASE WHEN max(took) >= :'timeout' THEN '> ' || :'timeout'
                ELSE round(extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY took)), 1) || ' s' END AS shown
            FROM timings WHERE timings.name = ids.name GROUP BY query
        ) AS medians
    ) AS shown (aggregate, "join")
ORDER BY place;
