-- Finding the layout of another generator's IDs.

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_snowflake" to load this file. \quit

-- With core's search path alone, the function resolves no other names. If row security would hide rows, it fails.
CREATE FUNCTION snowflake_find_layout(
    table_name regclass,
    id_column name,
    created_at_column name,
    OUT layout snowflake_layout,
    OUT compared integer,
    OUT fitting integer,
    OUT shards integer[],
    OUT doubt text,
    OUT misfits bigint[],
    OUT conversion text)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_find_layout_wrapper';

COMMENT ON FUNCTION snowflake_find_layout(regclass, name, name) IS
'finds the layout of a column''s IDs by the times of their rows, with the conversion of the column';

CREATE FUNCTION snowflake_find_layout(
    ids bigint[],
    created_at timestamptz[],
    OUT layout snowflake_layout,
    OUT compared integer,
    OUT fitting integer,
    OUT shards integer[],
    OUT doubt text,
    OUT misfits bigint[],
    OUT conversion text)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_find_layout_of_ids_wrapper';

COMMENT ON FUNCTION snowflake_find_layout(bigint[], timestamptz[]) IS
'finds the layout of IDs by their times';
