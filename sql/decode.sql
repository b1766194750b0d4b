-- Reading ids, and making them of what they say. Nothing here depends on a setting, so all of it may stand in an
-- index, a CHECK, a generated column or the bound of a partition.

CREATE FUNCTION snowflake_decode(
    id bigint,
    layout snowflake_layout DEFAULT 'instagram',
    OUT created_at timestamptz,
    OUT shard_id integer,
    OUT seq integer)
RETURNS record
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_decode_wrapper';

COMMENT ON FUNCTION snowflake_decode(bigint, snowflake_layout) IS
'when, on which shard, and with which counter bits an id was generated';

CREATE FUNCTION snowflake_created_at(id bigint, layout snowflake_layout DEFAULT 'instagram')
RETURNS timestamptz
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_created_at_wrapper';

COMMENT ON FUNCTION snowflake_created_at(bigint, snowflake_layout) IS
'when an id was generated';

CREATE FUNCTION snowflake_shard_id(id bigint, layout snowflake_layout DEFAULT 'instagram')
RETURNS integer
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_id_wrapper';

COMMENT ON FUNCTION snowflake_shard_id(bigint, snowflake_layout) IS
'the shard that an id was generated on';

CREATE FUNCTION snowflake_seq(id bigint, layout snowflake_layout DEFAULT 'instagram')
RETURNS integer
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_seq_wrapper';

COMMENT ON FUNCTION snowflake_seq(bigint, snowflake_layout) IS
'the counter bits of an id';

CREATE FUNCTION snowflake_encode(
    created_at timestamptz,
    shard_id integer,
    seq integer,
    layout snowflake_layout DEFAULT 'instagram')
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_encode_wrapper';

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, snowflake_layout) IS
'the id that has these fields';

CREATE FUNCTION snowflake_min_id(at timestamptz, layout snowflake_layout DEFAULT 'instagram')
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_min_id_wrapper';

COMMENT ON FUNCTION snowflake_min_id(timestamptz, snowflake_layout) IS
'the smallest id of that instant or later';

-- Not STRICT: the planner inlines a strict function only where every part of it is strict, and AND is not.
CREATE FUNCTION snowflake_between(
    id bigint,
    since timestamptz,
    until timestamptz,
    layout snowflake_layout DEFAULT 'instagram')
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN id OPERATOR(pg_catalog.>=) snowflake_min_id(since, layout)
    AND id OPERATOR(pg_catalog.<) snowflake_min_id(until, layout);

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, snowflake_layout) IS
'whether an id was generated at or after one instant and before another; a range on the id, which an index serves';

CREATE FUNCTION snowflake_explain(id bigint, layout snowflake_layout DEFAULT 'instagram')
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_explain_wrapper';

COMMENT ON FUNCTION snowflake_explain(bigint, snowflake_layout) IS
'the bits of an id drawn with their meaning, for people';

CREATE FUNCTION snowflake_to_base32(id bigint)
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_to_base32_wrapper';

COMMENT ON FUNCTION snowflake_to_base32(bigint) IS
'an id as 13 characters of Crockford''s base 32, which sort as the ids do';

CREATE FUNCTION snowflake_from_base32(text)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_from_base32_wrapper';

COMMENT ON FUNCTION snowflake_from_base32(text) IS
'the id that 13 characters of Crockford''s base 32 stand for';

CREATE FUNCTION snowflake_to_uuid(id bigint, layout snowflake_layout DEFAULT 'instagram')
RETURNS uuid
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_to_uuid_wrapper';

COMMENT ON FUNCTION snowflake_to_uuid(bigint, snowflake_layout) IS
'a UUID of version 7 that carries an id: the same time, the same order, and reversible';

CREATE FUNCTION snowflake_from_uuid(uuid, layout snowflake_layout DEFAULT 'instagram')
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_from_uuid_wrapper';

COMMENT ON FUNCTION snowflake_from_uuid(uuid, snowflake_layout) IS
'the id that a UUID carries';
