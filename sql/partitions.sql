-- Partitions by time of a table that is partitioned by RANGE of its IDs.

-- With core's search path alone, the functions resolve no other names. If row security would hide rows of the default partition,
-- the query fails instead of missing them.
CREATE FUNCTION snowflake_create_partitions(
    parent regclass,
    step interval,
    ahead integer DEFAULT 4,
    layout snowflake_layout DEFAULT NULL,
    OUT table_name regclass,
    OUT partition text,
    OUT starts timestamptz,
    OUT ends timestamptz,
    OUT action text,
    OUT message text)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_create_partitions_wrapper';

COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, integer, snowflake_layout) IS
'creates the partitions of a table by time for now and the next steps, and reports them, gaps and the default partition';

CREATE FUNCTION snowflake_drop_partitions(
    parent regclass,
    older_than interval,
    detach_only boolean DEFAULT false,
    layout snowflake_layout DEFAULT NULL,
    OUT table_name regclass,
    OUT partition text,
    OUT starts timestamptz,
    OUT ends timestamptz,
    OUT action text,
    OUT message text)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS 'MODULE_PATHNAME', 'snowflake_drop_partitions_wrapper';

COMMENT ON FUNCTION snowflake_drop_partitions(regclass, interval, boolean, snowflake_layout) IS
'drops or detaches the partitions of a table that are proved to be older than an interval, and reports them and the others';
