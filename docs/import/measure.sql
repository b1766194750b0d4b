-- Measures the import of docs/import.md: time, disk and the properties of the IDs. It needs psql and an empty database with
-- pg_snowflake:
--
--     createdb import && psql -X -c 'CREATE EXTENSION pg_snowflake' import && psql -X -f docs/import/measure.sql import
--
-- Variables, with -v NAME=VALUE:
--
--     rows   rows of the table; 10,000,000 need 3 GB of disk
--     burst  how many of them are created in one millisecond, after which the next ones are spread over three years

\if :{?rows} \else \set rows 10000000 \endif
\if :{?burst} \else \set burst 50000 \endif

\set ON_ERROR_STOP on
\pset footer off
\set QUIET on
SET client_min_messages = warning;

-- Each tenth of the rows ends with a burst. Rows are stored in another order than they were created in.
CREATE TABLE imported_orders AS
SELECT n AS id, timestamptz '2023-01-01Z' + interval '1 us' * (least(at, burst_at) * (3 * 365 * 86400e6 / :rows))::bigint AS created_at, n % 1000 AS total
FROM (SELECT n, n * 7919 % :rows AS at FROM generate_series(1, :rows::bigint) AS n) AS shuffled,
    LATERAL (SELECT (at / (:rows / 10) + 1) * (:rows / 10) - :burst AS burst_at) AS burst;
ALTER TABLE imported_orders ADD PRIMARY KEY (id);
CREATE TABLE imported_items AS SELECT id AS order_id, 1 AS line, 'product' AS product FROM imported_orders;
ANALYZE imported_orders, imported_items;
CREATE TABLE steps (step text, at timestamptz);
INSERT INTO steps VALUES ('begin', clock_timestamp());

-- Steps 2 and 3 of the page.
CREATE TABLE order_ids AS
SELECT old_id, snowflake_encode('2010-01-01Z'::timestamptz + (counter >> 10) * interval '1 ms', 5, (counter & 1023)::int) AS new_id
FROM (SELECT old_id, n + max(first - n) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS counter
      FROM (SELECT id AS old_id, row_number() OVER (ORDER BY created_at NULLS FIRST, id) AS n, snowflake_encode(created_at, 0, 0) >> 12 AS first
            FROM imported_orders) AS numbered) AS counted;
ALTER TABLE order_ids ADD PRIMARY KEY (old_id), ADD UNIQUE (new_id), ALTER COLUMN new_id SET NOT NULL;
ANALYZE order_ids;
INSERT INTO steps VALUES ('IDs', clock_timestamp());

CREATE SEQUENCE orders_id_seq;
CREATE TABLE orders (id bigint DEFAULT snowflake_nextval('orders_id_seq', 5), created_at timestamptz DEFAULT now(), total int);
CREATE TABLE items (order_id bigint, line int, product text);
ALTER SEQUENCE orders_id_seq OWNED BY orders.id;
INSERT INTO orders SELECT new_id, created_at, total FROM imported_orders JOIN order_ids ON old_id = id ORDER BY new_id;
ALTER TABLE orders ADD PRIMARY KEY (id);
INSERT INTO steps VALUES ('orders', clock_timestamp());

INSERT INTO items SELECT new_id, line, product FROM imported_items JOIN order_ids ON old_id = order_id ORDER BY new_id;
ALTER TABLE items ADD PRIMARY KEY (order_id, line), ADD FOREIGN KEY (order_id) REFERENCES orders;
INSERT INTO steps VALUES ('items', clock_timestamp());

SELECT snowflake_convert_column('orders', 'id', 5, 'postgres');
INSERT INTO steps VALUES ('default', clock_timestamp());

SELECT step, at - lag(at) OVER (ORDER BY at) AS took FROM steps ORDER BY at OFFSET 1;
SELECT name, pg_size_pretty(pg_total_relation_size(name::regclass)) AS size
FROM unnest('{imported_orders,imported_items,order_ids,orders,items}'::text[]) AS name;

SELECT count(*) - (SELECT count(*) FROM imported_orders) AS missing, count(*) - count(DISTINCT id) AS repeated,
       count(*) FILTER (WHERE created_at < before) AS out_of_order, max(late) AS latest
FROM (SELECT id, created_at, lag(created_at) OVER (ORDER BY id) AS before,
             snowflake_created_at(id) - date_trunc('milliseconds', created_at) AS late
      FROM orders) AS imported;
SELECT max(count) AS most_of_a_millisecond FROM (SELECT count(*) FROM orders GROUP BY snowflake_created_at(id)) AS milliseconds;
SELECT max(count) AS most_created_in_a_millisecond FROM (SELECT count(*) FROM orders GROUP BY date_trunc('milliseconds', created_at)) AS milliseconds;
SELECT count(*) AS items_without_their_order FROM items JOIN order_ids ON new_id = order_id
    JOIN imported_orders ON old_id = id LEFT JOIN orders ON orders.id = order_id AND orders.created_at = imported_orders.created_at
WHERE orders.id IS NULL;
INSERT INTO orders (created_at) VALUES (now()) RETURNING id > (SELECT max(new_id) FROM order_ids) AS new_id_is_above;
