-- From 0.1.0 to what comes next.
-- Whoever changes the SQL brings it here too; a test compares what comes out with a fresh installation.

-- complain where the script is sourced in psql instead of run by ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0-dev'" to load this file. \quit

-- The rate is that of a sequence, of which a shard may have many.
COMMENT ON FUNCTION snowflake_layout_info(snowflake_layout) IS
'a layout''s widths, first and last instant, number of shards, and ids per second of a sequence';

-- Functions and views are renamed in place: so they keep their privileges, and what depends on them.
ALTER FUNCTION snowflake_shard_id() RENAME TO snowflake_current_shard;

CREATE OR REPLACE FUNCTION snowflake_current_shard()
RETURNS integer
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_current_shard_wrapper';

ALTER FUNCTION snowflake_adopt(regclass, name, integer, snowflake_layout, boolean) RENAME TO snowflake_convert_column;

-- No command renames an argument. DROP FUNCTION would fail over each view that calls the function. Views list the result
-- columns of a function under names of their own, so theirs stay.
UPDATE pg_catalog.pg_proc
SET proargnames = '{table_name,column_name,shard_id,layout,check_shard}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_convert_column(pg_catalog.regclass, pg_catalog.name, pg_catalog.int4, snowflake_layout, pg_catalog.bool)'::pg_catalog.regprocedure::pg_catalog.oid;

UPDATE pg_catalog.pg_proc
SET proargnames = '{table_name,id,layout,shard_id,partition,server,host,port,dbname}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_locate(pg_catalog.regclass, pg_catalog.int8, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid;

UPDATE pg_catalog.pg_proc
SET proargnames = '{layout,spec,time_bits,shard_bits,seq_bits,unit,epoch,ends_at,shards,ids_per_second}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_layout_info(snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid;

UPDATE pg_catalog.pg_proc
SET proargnames = '{seq,layout,last_id_at,lead,ids_left,ends_at,last_value,is_called,cache,logged,error}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_sequence_status(pg_catalog.regclass, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid;

UPDATE pg_catalog.pg_proc
SET proargnames = '{expression,function,sequence,shard_id,shard_from_setting,layout,last_id_at,lead,ids_left,ends_at,error}'::pg_catalog.text[]
WHERE oid OPERATOR(pg_catalog.=)
    'snowflake_generator_calls(pg_catalog.pg_node_tree)'::pg_catalog.regprocedure::pg_catalog.oid;

CREATE OR REPLACE FUNCTION snowflake_convert_column(
    table_name regclass,
    column_name name,
    shard_id integer DEFAULT NULL,
    layout snowflake_layout DEFAULT 'instagram',
    check_shard boolean DEFAULT false)
RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_convert_column_wrapper';

COMMENT ON FUNCTION snowflake_convert_column(regclass, name, integer, snowflake_layout, boolean) IS
'turns a serial, identity or plain integer column into one that generates ids, and returns its sequence';

ALTER VIEW snowflake_layouts RENAME COLUMN ends TO ends_at;

CREATE OR REPLACE VIEW snowflake_layouts AS
SELECT preset.layout::pg_catalog.text AS name, info.*
FROM (VALUES
        ('instagram'::snowflake_layout),
        ('twitter'::snowflake_layout),
        ('discord'::snowflake_layout),
        ('mastodon'::snowflake_layout),
        ('sonyflake'::snowflake_layout),
        ('pgedge'::snowflake_layout),
        ('js53'::snowflake_layout)
    ) AS preset (layout),
    snowflake_layout_info(preset.layout) AS info;

ALTER VIEW snowflake_columns RENAME COLUMN tab TO table_name;
ALTER VIEW snowflake_columns RENAME COLUMN col TO column_name;
ALTER VIEW snowflake_columns RENAME COLUMN ends TO ends_at;
ALTER VIEW snowflake_columns RENAME COLUMN fault TO error;

-- The view of 0.1.0 left it to the search path of its creation which operators it calls.
CREATE OR REPLACE VIEW snowflake_columns AS
WITH generating AS (
    SELECT DISTINCT classid, objid
    FROM pg_catalog.pg_depend
    WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
        AND refobjid OPERATOR(pg_catalog.=) ANY (ARRAY[
            'snowflake_nextval(pg_catalog.regclass)'::pg_catalog.regprocedure::pg_catalog.oid,
            'snowflake_nextval(pg_catalog.regclass, pg_catalog.int4, snowflake_layout)'::pg_catalog.regprocedure::pg_catalog.oid])
), generating_columns AS (
    SELECT d.adrelid AS relid, d.adnum AS attnum, d.adbin AS expression
    FROM generating
    JOIN pg_catalog.pg_attrdef AS d
        ON generating.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid
            AND generating.objid OPERATOR(pg_catalog.=) d.oid
    UNION ALL
    SELECT a.attrelid, a.attnum, t.typdefaultbin
    FROM generating
    JOIN pg_catalog.pg_type AS t
        ON generating.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid
            AND generating.objid OPERATOR(pg_catalog.=) t.oid
    JOIN pg_catalog.pg_attribute AS a
        ON a.atttypid OPERATOR(pg_catalog.=) t.oid
            AND NOT a.atthasdef
            AND a.attidentity OPERATOR(pg_catalog.=) ''::pg_catalog."char"
            AND NOT a.attisdropped
    JOIN pg_catalog.pg_class AS c
        ON a.attrelid OPERATOR(pg_catalog.=) c.oid
            AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,f}'::pg_catalog."char"[])
)
SELECT c.oid::pg_catalog.regclass AS table_name, a.attname AS column_name, call.*
FROM generating_columns AS g
JOIN pg_catalog.pg_class AS c ON g.relid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_attribute AS a
    ON g.relid OPERATOR(pg_catalog.=) a.attrelid AND g.attnum OPERATOR(pg_catalog.=) a.attnum
CROSS JOIN LATERAL snowflake_generator_calls(g.expression) AS call
WHERE NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace);

-- Ids are generated and returned, and what goes wrong is an error.
COMMENT ON FUNCTION snowflake_decode(bigint, snowflake_layout) IS
'when, on which shard, and with which counter bits an id was generated';
COMMENT ON FUNCTION snowflake_created_at(bigint, snowflake_layout) IS
'when an id was generated';
COMMENT ON FUNCTION snowflake_shard_id(bigint, snowflake_layout) IS
'the shard that an id was generated on';
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, snowflake_layout) IS
'whether an id was generated at or after one instant and before another; a range on the id, which an index serves';
COMMENT ON FUNCTION snowflake_sequence_status(regclass, snowflake_layout) IS
'where a sequence stands: its last id''s time, its lead over the clock, its ids left, and the error that a call would raise now';
COMMENT ON VIEW snowflake_columns IS
'the columns whose default generates ids, and where their sequences stand; a row for each call in a default';
COMMENT ON COLUMN snowflake_columns.ids_left IS
'how many ids it can return from now on, up to the end of the layout or its MAXVALUE';

-- It also says that a default could not be read, or that its sequence is locked.
COMMENT ON COLUMN snowflake_columns.error IS
'the error that a call would raise now, but for missing privileges, read-only transactions and standbys; or why the row is incomplete';
