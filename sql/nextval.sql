-- Generating ids. VOLATILE and PARALLEL UNSAFE like core's nextval.

CREATE FUNCTION snowflake_nextval(
    seq regclass, shard_id integer, layout snowflake_layout DEFAULT 'instagram')
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
    seq regclass, shard_id integer, count integer, layout snowflake_layout DEFAULT 'instagram')
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_wrapper';

COMMENT ON FUNCTION snowflake_nextvals(regclass, integer, integer, snowflake_layout) IS
'next IDs of a shard from a sequence, in increasing order';

CREATE FUNCTION snowflake_nextval_homed(
    seq regclass,
    shard_id integer,
    modulus integer,
    layout snowflake_layout DEFAULT 'instagram',
    generators integer DEFAULT 1)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_homed_wrapper';

COMMENT ON FUNCTION snowflake_nextval_homed(regclass, integer, integer, snowflake_layout, integer) IS
'next ID from a sequence whose hash partition of that modulus, by PostgreSQL''s own hash, is the shard modulo the modulus';

CREATE FUNCTION snowflake_nextval_homed(
    seq regclass, shard_id integer, ranges int8multirange, layout snowflake_layout DEFAULT 'instagram')
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_homed_in_ranges_wrapper';

COMMENT ON FUNCTION snowflake_nextval_homed(regclass, integer, int8multirange, snowflake_layout) IS
'next ID of a shard from a sequence whose hash by hashint8 is in the ranges';

CREATE FUNCTION snowflake_nextvals_homed(
    seq regclass,
    shard_id integer,
    modulus integer,
    count integer,
    layout snowflake_layout DEFAULT 'instagram',
    generators integer DEFAULT 1)
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_homed_wrapper';

COMMENT ON FUNCTION snowflake_nextvals_homed(regclass, integer, integer, integer, snowflake_layout, integer) IS
'next IDs from a sequence whose hash partition of that modulus, by PostgreSQL''s own hash, is the shard modulo the modulus';

CREATE FUNCTION snowflake_nextvals_homed(
    seq regclass,
    shard_id integer,
    ranges int8multirange,
    count integer,
    layout snowflake_layout DEFAULT 'instagram')
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_homed_in_ranges_wrapper';

COMMENT ON FUNCTION snowflake_nextvals_homed(regclass, integer, int8multirange, integer, snowflake_layout) IS
'next IDs of a shard from a sequence whose hash by hashint8 is in the ranges';

CREATE FUNCTION snowflake_currval(seq regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_currval_wrapper';

COMMENT ON FUNCTION snowflake_currval(regclass) IS 'last ID that this session got from a sequence';

CREATE FUNCTION snowflake_current_shard()
RETURNS integer
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_current_shard_wrapper';

COMMENT ON FUNCTION snowflake_current_shard() IS
'shard ID of this database: pg_snowflake.shard_id, else that of a lease, else the group in Citus';
