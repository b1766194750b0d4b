-- Generating ids. VOLATILE and PARALLEL UNSAFE as core's nextval.

CREATE FUNCTION snowflake_nextval(
    seq regclass, shard_id integer, layout snowflake_layout DEFAULT 'instagram')
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';

COMMENT ON FUNCTION snowflake_nextval(regclass, integer, snowflake_layout) IS
'the next id of a shard, from a sequence';

CREATE FUNCTION snowflake_nextval(seq regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_of_this_shard_wrapper';

COMMENT ON FUNCTION snowflake_nextval(regclass) IS
'the next id of this database''s shard (setting pg_snowflake.shard_id), from a sequence';

CREATE FUNCTION snowflake_nextvals(
    seq regclass, shard_id integer, count integer, layout snowflake_layout DEFAULT 'instagram')
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_nextvals_wrapper';

COMMENT ON FUNCTION snowflake_nextvals(regclass, integer, integer, snowflake_layout) IS
'a number of ids of a shard in increasing order, from a sequence, at the cost of a batch';

CREATE FUNCTION snowflake_currval(seq regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_currval_wrapper';

COMMENT ON FUNCTION snowflake_currval(regclass) IS
'the last id that this session got from a sequence';

CREATE FUNCTION snowflake_current_shard()
RETURNS integer
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_current_shard_wrapper';

COMMENT ON FUNCTION snowflake_current_shard() IS
'this database''s shard id (setting pg_snowflake.shard_id); an error where it is unset';
