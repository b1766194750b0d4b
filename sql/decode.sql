-- Decoding and encoding IDs. Nothing here depends on a setting, so all of it, except snowflake_explain(id), can be
-- used in an index, a CHECK, a generated column or a partition bound.

CREATE FUNCTION snowflake_decode(
    id bigint,
    layout snowflake_layout DEFAULT 'postgres',
    OUT created_at timestamptz,
    OUT shard_id integer,
    OUT seq integer)
RETURNS record
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_decode_wrapper';

COMMENT ON FUNCTION snowflake_decode(bigint, snowflake_layout) IS 'time, shard and counter bits of an ID';

CREATE FUNCTION snowflake_created_at(id bigint, layout snowflake_layout DEFAULT 'postgres')
RETURNS timestamptz
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_created_at_wrapper';

COMMENT ON FUNCTION snowflake_created_at(bigint, snowflake_layout) IS 'time at which an ID was generated';

CREATE FUNCTION snowflake_shard_id(id bigint, layout snowflake_layout DEFAULT 'postgres')
RETURNS integer
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_id_wrapper';

COMMENT ON FUNCTION snowflake_shard_id(bigint, snowflake_layout) IS 'shard that an ID was generated for';

CREATE FUNCTION snowflake_seq(id bigint, layout snowflake_layout DEFAULT 'postgres')
RETURNS integer
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_seq_wrapper';

COMMENT ON FUNCTION snowflake_seq(bigint, snowflake_layout) IS 'counter bits of an ID';

CREATE FUNCTION snowflake_encode(
    created_at timestamptz,
    shard_id integer,
    seq integer,
    layout snowflake_layout DEFAULT 'postgres')
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_encode_wrapper';

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, snowflake_layout) IS
'ID composed of a time, a shard and counter bits';

CREATE FUNCTION snowflake_min_id(at timestamptz, layout snowflake_layout DEFAULT 'postgres')
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_min_id_wrapper';

COMMENT ON FUNCTION snowflake_min_id(timestamptz, snowflake_layout) IS 'smallest ID at or after a time';

-- Not STRICT: the planner inlines a strict function only if every part of it is strict, and AND is not.
CREATE FUNCTION snowflake_between(
    id bigint,
    since timestamptz,
    until timestamptz,
    layout snowflake_layout DEFAULT 'postgres')
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN id OPERATOR(pg_catalog.>=) snowflake_min_id(since, layout)
    AND id OPERATOR(pg_catalog.<) snowflake_min_id(until, layout);

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, snowflake_layout) IS
'whether an ID was generated at or after one time and before another; can use an index on the ID';

CREATE FUNCTION snowflake_explain(id bigint, layout snowflake_layout)
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_explain_wrapper';

COMMENT ON FUNCTION snowflake_explain(bigint, snowflake_layout) IS 'diagram of the bits of an ID';

-- STABLE: the likely layout depends on the time.
CREATE FUNCTION snowflake_explain(id bigint)
RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_explain_presets_wrapper';

COMMENT ON FUNCTION snowflake_explain(bigint) IS
'time, shard and counter bits of an ID in each preset layout and those of other generators that fit, the most likely layout first';

CREATE FUNCTION snowflake_to_base32(id bigint)
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_to_base32_wrapper';

COMMENT ON FUNCTION snowflake_to_base32(bigint) IS
'encodes an ID as 13 characters of Crockford''s base 32, which sort in the order of the IDs';

CREATE FUNCTION snowflake_from_base32(base32 text)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_from_base32_wrapper';

COMMENT ON FUNCTION snowflake_from_base32(text) IS 'decodes an ID from 13 characters of Crockford''s base 32';

CREATE FUNCTION snowflake_to_uuid(id bigint, layout snowflake_layout DEFAULT 'postgres')
RETURNS uuid
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_to_uuid_wrapper';

COMMENT ON FUNCTION snowflake_to_uuid(bigint, snowflake_layout) IS
'converts an ID to a version 7 UUID of the same time and order';

CREATE FUNCTION snowflake_from_uuid(uuid uuid, layout snowflake_layout DEFAULT 'postgres')
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_from_uuid_wrapper';

COMMENT ON FUNCTION snowflake_from_uuid(uuid, snowflake_layout) IS 'ID contained in a UUID of snowflake_to_uuid()';
