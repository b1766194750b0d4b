-- Reading ids. Nothing here depends on a setting, so all of it may stand in an index or a CHECK.

CREATE FUNCTION snowflake_decode(
    id bigint, OUT created_at timestamptz, OUT shard_id integer, OUT seq integer)
RETURNS record
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_decode_wrapper';

COMMENT ON FUNCTION snowflake_decode(bigint) IS
'when, on which shard, and with which counter bits an id was minted';

CREATE FUNCTION snowflake_shard_id(id bigint)
RETURNS integer
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_id_wrapper';

COMMENT ON FUNCTION snowflake_shard_id(bigint) IS
'the shard that an id was minted on';
