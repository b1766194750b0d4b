-- Under Citus.

-- PARALLEL UNSAFE, because it sees metadata that the calling statement does not.
CREATE FUNCTION snowflake_citus_ranges(table_name regclass)
RETURNS int8multirange
LANGUAGE c STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_citus_ranges_wrapper';

COMMENT ON FUNCTION snowflake_citus_ranges(regclass) IS
'hash ranges of the shards of a distributed table on this Citus node; all hashes if the node has no shard of it';
