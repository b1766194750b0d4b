-- From 0.1.0 to what comes next.
-- Whoever changes the SQL brings it here too; a test compares what comes out with a fresh installation.

-- complain where the script is sourced in psql instead of run by ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0-dev'" to load this file. \quit

-- The rate is that of a sequence, of which a shard may have many.
COMMENT ON FUNCTION snowflake_layout_info(snowflake_layout) IS
'a layout''s widths, first and last instant, number of shards, and ids per second of a sequence';

-- The view of 0.1.0 left it to the search path of its creation which operators it calls.
CREATE OR REPLACE VIEW snowflake_columns AS
WITH minting AS (
    SELECT DISTINCT classid, objid
    FROM pg_catalog.pg_depend
    WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
        AND refobjid OPERATOR(pg_catalog.=) ANY (ARRAY[
            'snowflake_nextval(pg_catalog.regclass)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval(pg_catalog.regclass, pg_catalog.int4, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid])
), minting_columns AS (
    SELECT d.adrelid AS relid, d.adnum AS attnum, d.adbin AS expression
    FROM minting
    JOIN pg_catalog.pg_attrdef AS d
        ON minting.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid
            AND minting.objid OPERATOR(pg_catalog.=) d.oid
    UNION ALL
    SELECT a.attrelid, a.attnum, t.typdefaultbin
    FROM minting
    JOIN pg_catalog.pg_type AS t
        ON minting.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid
            AND minting.objid OPERATOR(pg_catalog.=) t.oid
    JOIN pg_catalog.pg_attribute AS a
        ON a.atttypid OPERATOR(pg_catalog.=) t.oid
            AND NOT a.atthasdef
            AND a.attidentity OPERATOR(pg_catalog.=) ''::pg_catalog."char"
            AND NOT a.attisdropped
    JOIN pg_catalog.pg_class AS c
        ON a.attrelid OPERATOR(pg_catalog.=) c.oid
            AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,f}'::pg_catalog."char"[])
)
SELECT c.oid::pg_catalog.regclass AS tab, a.attname AS col, call.*
FROM minting_columns AS m
JOIN pg_catalog.pg_class AS c ON m.relid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_attribute AS a
    ON m.relid OPERATOR(pg_catalog.=) a.attrelid AND m.attnum OPERATOR(pg_catalog.=) a.attnum
CROSS JOIN LATERAL snowflake_generator_calls(m.expression) AS call
WHERE NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace);

-- It also says that a default could not be read, or that its sequence is locked.
COMMENT ON COLUMN snowflake_columns.fault IS
'what a call would be refused with now, other than for a missing right, a read-only transaction or a standby; or why the row is incomplete';
