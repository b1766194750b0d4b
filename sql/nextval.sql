-- Generating IDs. VOLATILE and PARALLEL UNSAFE like core's nextval.

CREATE FUNCTION snowflake_nextval(
    seq regclass, shard_id integer, layout snowflake_layout DEFAULT 'postgres')
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';

COMMENT ON FUNCTION snowflake_nextval(regclass, integer, snowflake_layout) IS 'next ID of a shard from a sequence';

CREATE FUNCTION snowflake_nextval(seq regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_of_this_shard_wrapper';

COMMENT ON FUNCTION snowflake_nextval(regclass) IS
'next ID of this database''s shard from a sequence';

CREATE FUNCTION snowflake_nextvals(
    seq regclass, shard_id integer, count integer, layout snowflake_layout DEFAULT 'postgres')
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_wrapper';

COMMENT ON FUNCTION snowflake_nextvals(regclass, integer, integer, snowflake_layout) IS
'next IDs of a shard from a sequence, in increasing order';

CREATE FUNCTION snowflake_nextvals(seq regclass, count integer)
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_of_this_shard_wrapper';

COMMENT ON FUNCTION snowflake_nextvals(regclass, integer) IS
'next IDs of this database''s shard from a sequence, in increasing order';

CREATE FUNCTION snowflake_nextval_homed(
    seq regclass,
    shard_id integer,
    modulus integer,
    generators integer DEFAULT 1,
    layout snowflake_layout DEFAULT 'postgres')
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_homed_wrapper';

COMMENT ON FUNCTION snowflake_nextval_homed(regclass, integer, integer, integer, snowflake_layout) IS
'next homed ID from a sequence: an ID that hash partitioning with this modulus puts into partition shard_id mod modulus';

CREATE FUNCTION snowflake_nextval_homed_in_ranges(
    seq regclass, shard_id integer, ranges int8multirange, layout snowflake_layout DEFAULT 'postgres')
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_homed_in_ranges_wrapper';

COMMENT ON FUNCTION snowflake_nextval_homed_in_ranges(regclass, integer, int8multirange, snowflake_layout) IS
'next homed ID of a shard from a sequence: an ID whose hash, by hashint8, is in the ranges';

CREATE FUNCTION snowflake_nextvals_homed(
    seq regclass,
    shard_id integer,
    modulus integer,
    count integer,
    generators integer DEFAULT 1,
    layout snowflake_layout DEFAULT 'postgres')
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_homed_wrapper';

COMMENT ON FUNCTION snowflake_nextvals_homed(regclass, integer, integer, integer, integer, snowflake_layout) IS
'next homed IDs from a sequence: IDs that hash partitioning with this modulus puts into partition shard_id mod modulus';

CREATE FUNCTION snowflake_nextvals_homed_in_ranges(
    seq regclass,
    shard_id integer,
    ranges int8multirange,
    count integer,
    layout snowflake_layout DEFAULT 'postgres')
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_homed_in_ranges_wrapper';

COMMENT ON FUNCTION snowflake_nextvals_homed_in_ranges(regclass, integer, int8multirange, integer, snowflake_layout) IS
'next homed IDs of a shard from a sequence: IDs whose hashes, by hashint8, are in the ranges';

CREATE FUNCTION snowflake_currval(seq regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_currval_wrapper';

COMMENT ON FUNCTION snowflake_currval(regclass) IS 'last ID that this session generated from a sequence';

CREATE FUNCTION snowflake_current_shard()
RETURNS integer
LANGUAGE c STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_current_shard_wrapper';

COMMENT ON FUNCTION snowflake_current_shard() IS
'shard ID of this database: pg_snowflake.shard_id, else the shard that the registry of leases assigned, else the node''s group in Citus';
