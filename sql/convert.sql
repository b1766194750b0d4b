-- Converting columns of live tables to generate IDs.

-- With core's search path alone, the function resolves no other names. If row security would hide rows from the
-- table's owner, a query fails instead of missing rows.
CREATE FUNCTION snowflake_convert_column(
    table_name regclass,
    column_name name,
    shard_id integer DEFAULT NULL,
    layout snowflake_layout DEFAULT NULL,
    check_shard boolean DEFAULT false)
RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_convert_column_wrapper';

COMMENT ON FUNCTION snowflake_convert_column(regclass, name, integer, snowflake_layout, boolean) IS
'converts a serial, identity or plain integer column to one that generates IDs, and returns its sequence';
