-- What PostgreSQL's hash of a bigint costs IDs whose bits are in different orders: the table in docs/hashing.md. It needs
-- psql, an empty database and no extension:
--
--     createdb hashing && psql -X -f docs/hashing/measure.sql hashing
--
-- Variables, with -v NAME=VALUE: rows, rounds, memory (work_mem), timeout. A statement that was cancelled is not repeated.

\if :{?rows} \else \set rows 3000000 \endif
\if :{?rounds} \else \set rounds 3 \endif
\if :{?memory} \else \set memory 256MB \endif
\if :{?timeout} \else \set timeout 60s \endif

\set QUIET on
\set ON_ERROR_STOP on
SET work_mem = :'memory';
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_sort = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;

-- IDs of shard 5. Time begins in 2026, and seq keeps counting from tick to tick.
CREATE TABLE ids AS
SELECT layout || coalesce('_' || rate, '') AS name, layout, rate, format(formula, rate) AS id
FROM (VALUES
    ('bigserial', 'n'),
    ('instagram', '((460000000000 + n / %s) << 23) | (5 << 10) | (n %% 1024)'),
    ('twitter', '((480000000000 + n / %s) << 22) | (5 << 12) | (n %% 4096)'),
    ('postgres', '((31536000000 + n / %s) << 22) | ((n %% 1024) << 12) | 5')
) AS layouts (layout, formula)
JOIN (VALUES (NULL), (1), (10), (100), (1000)) AS rates (rate) ON (rate IS NULL) = (layout = 'bigserial');

SELECT format('CREATE TABLE %I AS SELECT %s AS id FROM generate_series(0::bigint, %s - 1) AS n', name, id, :rows)
FROM ids \gexec
SELECT format('ANALYZE %I', name) FROM ids \gexec

-- Distinct values of the fold, which are as many as those of hashint8().
CREATE TABLE hashes (name text, hashes bigint);
SET enable_hashagg = off;
SET enable_sort = on;
SELECT format('INSERT INTO hashes SELECT %1$L, count(*) FROM (SELECT DISTINCT hashint8(id) FROM %1$I) AS h', name)
FROM ids \gexec
SET enable_hashagg = on;
SET enable_sort = off;

CREATE TABLE timings (name text, query text, began timestamptz DEFAULT clock_timestamp(), took interval);

-- Each round goes through all tables, so that what disturbs the machine disturbs all of them. Three statements for
-- each: the last also runs after a statement that was cancelled.
\set ON_ERROR_STOP off
SET statement_timeout = :'timeout';
\o /dev/null
SELECT format('INSERT INTO timings (name, query) VALUES (%L, %L)', name, query),
    format(statement, name,
        format('(SELECT coalesce(max(took), ''0'') < %L FROM timings WHERE name = %L AND query = %L)',
            :'timeout', name, query)),
    'UPDATE timings SET took = clock_timestamp() - began WHERE took IS NULL'
FROM generate_series(1, :rounds) AS round,
    (VALUES ('aggregate', 'SELECT count(*) FROM (SELECT id FROM %1$I WHERE %2$s GROUP BY id OFFSET 0) AS g'),
            ('join', 'SELECT count(*) FROM %1$I AS a JOIN %1$I AS b USING (id) WHERE %2$s')) AS queries (query, statement),
    ids
ORDER BY round, query, layout <> 'bigserial', layout, rate \gexec
\o

SELECT layout, rate AS "IDs per ms", hashes AS "distinct hashes", aggregate AS "HashAggregate", "join" AS "hash join"
FROM ids JOIN hashes USING (name),
    LATERAL (
        SELECT max(shown) FILTER (WHERE query = 'aggregate'), max(shown) FILTER (WHERE query = 'join')
        FROM (
            SELECT query, CASE WHEN max(took) >= :'timeout' THEN '> ' || :'timeout'
                ELSE round(extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY took)), 1) || ' s' END AS shown
            FROM timings WHERE timings.name = ids.name GROUP BY query
        ) AS medians
    ) AS shown (aggregate, "join")
ORDER BY layout <> 'bigserial', layout, rate;
