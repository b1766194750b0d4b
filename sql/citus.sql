-- Under Citus.

-- PARALLEL UNSAFE, because it sees metadata that the calling statement does not.
CREATE FUNCTION snowflake_citus_ranges(table_name regclass)
RETURNS int8multirange
LANGUAGE c STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_citus_ranges_wrapper';

COMMENT ON FUNCTION snowflake_citus_ranges(regclass) IS
'hashes of the shards that this node of Citus has of a distributed table; all hashes if it has none';
