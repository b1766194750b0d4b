-- The type of layouts, and functions and a view on layouts.

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_snowflake" to load this file. \quit

CREATE TYPE snowflake_layout;

-- STABLE: an epoch must not be after the clock.
CREATE FUNCTION snowflake_layout_in(cstring)
RETURNS snowflake_layout
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_layout_in_wrapper';

COMMENT ON FUNCTION snowflake_layout_in(cstring) IS 'I/O';

CREATE FUNCTION snowflake_layout_out(snowflake_layout)
RETURNS cstring
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_layout_out_wrapper';

COMMENT ON FUNCTION snowflake_layout_out(snowflake_layout) IS 'I/O';

CREATE FUNCTION snowflake_layout_recv(internal)
RETURNS snowflake_layout
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_layout_recv_wrapper';

COMMENT ON FUNCTION snowflake_layout_recv(internal) IS 'I/O';

-- Stored as 8 bytes by value, like a bigint.
CREATE FUNCTION snowflake_layout_send(snowflake_layout)
RETURNS bytea
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'int8send';

COMMENT ON FUNCTION snowflake_layout_send(snowflake_layout) IS 'I/O';

CREATE TYPE snowflake_layout (
    INPUT = snowflake_layout_in,
    OUTPUT = snowflake_layout_out,
    RECEIVE = snowflake_layout_recv,
    SEND = snowflake_layout_send,
    INTERNALLENGTH = 8,
    PASSEDBYVALUE,
    ALIGNMENT = double
);

COMMENT ON TYPE snowflake_layout IS
'layout of the bits of an ID: the name of a preset, or ''time:41 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:1ms''';

CREATE FUNCTION snowflake_layout_eq(snowflake_layout, snowflake_layout)
RETURNS boolean
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
AS 'int8eq';

COMMENT ON FUNCTION snowflake_layout_eq(snowflake_layout, snowflake_layout) IS
'implementation of = operator';

CREATE FUNCTION snowflake_layout_ne(snowflake_layout, snowflake_layout)
RETURNS boolean
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF
AS 'int8ne';

COMMENT ON FUNCTION snowflake_layout_ne(snowflake_layout, snowflake_layout) IS
'implementation of <> operator';

CREATE FUNCTION snowflake_layout_hash(snowflake_layout)
RETURNS integer
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'hashint8';

COMMENT ON FUNCTION snowflake_layout_hash(snowflake_layout) IS 'hash';

CREATE OPERATOR = (
    FUNCTION = snowflake_layout_eq,
    LEFTARG = snowflake_layout,
    RIGHTARG = snowflake_layout,
    COMMUTATOR = =,
    NEGATOR = <>,
    RESTRICT = pg_catalog.eqsel,
    JOIN = pg_catalog.eqjoinsel,
    HASHES
);

COMMENT ON OPERATOR = (snowflake_layout, snowflake_layout) IS 'equal';

CREATE OPERATOR <> (
    FUNCTION = snowflake_layout_ne,
    LEFTARG = snowflake_layout,
    RIGHTARG = snowflake_layout,
    COMMUTATOR = <>,
    NEGATOR = =,
    RESTRICT = pg_catalog.neqsel,
    JOIN = pg_catalog.neqjoinsel
);

COMMENT ON OPERATOR <> (snowflake_layout, snowflake_layout) IS 'not equal';

CREATE OPERATOR CLASS snowflake_layout_ops
DEFAULT FOR TYPE snowflake_layout USING hash AS
    OPERATOR 1 = (snowflake_layout, snowflake_layout),
    FUNCTION 1 snowflake_layout_hash(snowflake_layout);

COMMENT ON OPERATOR CLASS snowflake_layout_ops USING hash IS 'equality of layouts';
COMMENT ON OPERATOR FAMILY snowflake_layout_ops USING hash IS 'equality of layouts';

CREATE FUNCTION snowflake_layout_info(
    layout snowflake_layout DEFAULT 'postgres',
    OUT spec text,
    OUT time_bits integer,
    OUT shard_bits integer,
    OUT seq_bits integer,
    OUT unit interval,
    OUT epoch timestamptz,
    OUT ends_at timestamptz,
    OUT shards bigint,
    OUT ids_per_second bigint,
    OUT distinct_folds bigint,
    OUT shard_formula text)
RETURNS record
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_layout_info_wrapper';

COMMENT ON FUNCTION snowflake_layout_info(snowflake_layout) IS
'properties of a layout: field widths, time range, number of shards, IDs per second of one sequence, distinct folds, and its shard as an SQL expression';

-- STABLE: a newer library may have more of them.
CREATE FUNCTION _snowflake_presets()
RETURNS SETOF snowflake_layout
LANGUAGE c STABLE STRICT PARALLEL SAFE ROWS 10
AS 'MODULE_PATHNAME', 'snowflake_presets_wrapper';

COMMENT ON FUNCTION _snowflake_presets() IS 'preset layouts of the library; used by snowflake_layouts';

-- Whoever reads the view calls them, also where default privileges withhold EXECUTE on new functions.
GRANT EXECUTE ON FUNCTION _snowflake_presets(), snowflake_layout_info(snowflake_layout) TO PUBLIC;

CREATE VIEW snowflake_layouts AS
SELECT preset.layout::pg_catalog.text AS name, info.*
FROM _snowflake_presets() AS preset (layout), snowflake_layout_info(preset.layout) AS info;

COMMENT ON VIEW snowflake_layouts IS 'preset layouts';

GRANT SELECT ON snowflake_layouts TO PUBLIC;
