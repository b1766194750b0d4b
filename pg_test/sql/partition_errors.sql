-- What snowflake_create_partitions() and snowflake_drop_partitions() refuse, at any time of the clock.

SET timezone = 'UTC';

CREATE SEQUENCE ids;
CREATE TABLE posts (id bigint) PARTITION BY RANGE (id);
CREATE TABLE plain (id bigint);
CREATE VIEW v AS SELECT 1 AS id;
CREATE TABLE by_date (id bigint, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE by_two (id bigint, n bigint) PARTITION BY RANGE (id, n);
CREATE TABLE by_expression (id bigint) PARTITION BY RANGE ((id / 2));
CREATE TABLE by_int (id int) PARTITION BY RANGE (id);
CREATE TABLE by_list (id bigint) PARTITION BY LIST (id);
CREATE TABLE by_hash (id bigint) PARTITION BY HASH (id);
CREATE TABLE by_hash_0 PARTITION OF by_hash FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE FUNCTION backwards(bigint, bigint) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint8cmp($2, $1)';
CREATE OPERATOR CLASS backwards FOR TYPE bigint USING btree AS
    OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 backwards(bigint, bigint);
CREATE TABLE in_reverse (id bigint) PARTITION BY RANGE (id backwards);

-- The tables of the last section, whose default has one layout, and two.
CREATE TABLE of_postgres (id bigint DEFAULT snowflake_nextval('ids', 5, 'postgres')) PARTITION BY RANGE (id);
CREATE TABLE of_postgres_p20200601 PARTITION OF of_postgres
    FOR VALUES FROM (snowflake_min_id('2020-06-01 00:00+00')) TO (snowflake_min_id('2020-07-01 00:00+00'));
CREATE TABLE either (id bigint DEFAULT coalesce(snowflake_nextval('ids', 5, 'js53'), snowflake_nextval('ids', 5, 'twitter')))
    PARTITION BY RANGE (id);
CREATE TABLE either_p20200601 PARTITION OF either
    FOR VALUES FROM (snowflake_min_id('2020-06-01 00:00+00', 'js53')) TO (snowflake_min_id('2020-07-01 00:00+00', 'js53'));

CREATE TABLE relations_before (relname name);
INSERT INTO relations_before SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace;

--
-- Creation
--
SELECT * FROM snowflake_create_partitions(NULL, '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', NULL); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '1 day', NULL); \echo :LAST_ERROR_SQLSTATE

-- tables that are not partitioned by a range of their IDs
SELECT * FROM snowflake_create_partitions(999999, '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('plain', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('v', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('by_date', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('by_two', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('by_expression', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('by_int', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('by_list', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('by_hash', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('in_reverse', '1 day'); \echo :LAST_ERROR_SQLSTATE

-- steps
SELECT * FROM snowflake_create_partitions('posts', '59 minutes'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '5 hours'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '0'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '-1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '1 day 1 hour'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '101 years'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '1 day', -1); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('posts', '1 day', 1001); \echo :LAST_ERROR_SQLSTATE

-- transactions
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_create_partitions('posts', '1 day'); \echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT snowflake_create_partitions('posts', '1 day'); \echo :LAST_ERROR_SQLSTATE
ROLLBACK;

--
-- Removal
--
SELECT * FROM snowflake_drop_partitions(NULL, '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('of_postgres', NULL); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('of_postgres', '1 day', NULL); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('plain', '1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('of_postgres', '0'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('of_postgres', '-1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('of_postgres', '2 months -1 day'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('of_postgres', '100000 years'); \echo :LAST_ERROR_SQLSTATE

--
-- A layout that is not that of the default
--
SELECT * FROM snowflake_drop_partitions('of_postgres', '1 month', false, 'instagram'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('of_postgres', '1 month', 1, 'js53'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('either', '1 month'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_drop_partitions('either', '1 month', false, 'js53'); \echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions('either', '1 month', 1, 'instagram'); \echo :LAST_ERROR_SQLSTATE

-- nothing has been created or removed
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace EXCEPT SELECT relname FROM relations_before;
SELECT relname FROM relations_before EXCEPT SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace;

-- one of the layouts of the default
SELECT action, count(*) FROM snowflake_create_partitions('either', '1 month', 1, 'js53') GROUP BY action ORDER BY action;
