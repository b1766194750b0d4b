-- Routing by the shard in an ID: operator classes for PARTITION BY HASH, and the location of a row.

-- Each class has core's = and core's hash of an integer. It differs from core's class only in support function
-- 2, which partitioning uses. The members for integer exist because a small literal is an integer: without
-- them, WHERE id = 5 would not be pruned.

CREATE FUNCTION _snowflake_shard_hash(id bigint, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_wrapper';

CREATE FUNCTION _snowflake_shard_hash(id integer, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_of_integer_wrapper';

COMMENT ON FUNCTION _snowflake_shard_hash(bigint, bigint) IS 'hash';
COMMENT ON FUNCTION _snowflake_shard_hash(integer, bigint) IS 'hash';

CREATE OPERATOR CLASS snowflake_shard_ops
FOR TYPE bigint USING hash AS
    OPERATOR 1 pg_catalog.= (bigint, bigint),
    OPERATOR 1 pg_catalog.= (bigint, integer),
    OPERATOR 1 pg_catalog.= (integer, bigint),
    OPERATOR 1 pg_catalog.= (integer, integer),
    FUNCTION 1 pg_catalog.hashint8(bigint),
    FUNCTION 2 _snowflake_shard_hash(bigint, bigint),
    FUNCTION 1 (integer, integer) pg_catalog.hashint4(integer),
    FUNCTION 2 (integer, integer) _snowflake_shard_hash(integer, bigint);

COMMENT ON OPERATOR CLASS snowflake_shard_ops USING hash IS
'partitioning by the shard of an ID in layout postgres, the default: remainder = shard mod modulus';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops USING hash IS 'partitioning by the shard of an ID in layout postgres, the default';

CREATE FUNCTION _snowflake_shard_hash_instagram(id bigint, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_instagram_wrapper';

CREATE FUNCTION _snowflake_shard_hash_instagram(id integer, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_instagram_of_integer_wrapper';

COMMENT ON FUNCTION _snowflake_shard_hash_instagram(bigint, bigint) IS 'hash';
COMMENT ON FUNCTION _snowflake_shard_hash_instagram(integer, bigint) IS 'hash';

CREATE OPERATOR CLASS snowflake_shard_ops_instagram
FOR TYPE bigint USING hash AS
    OPERATOR 1 pg_catalog.= (bigint, bigint),
    OPERATOR 1 pg_catalog.= (bigint, integer),
    OPERATOR 1 pg_catalog.= (integer, bigint),
    OPERATOR 1 pg_catalog.= (integer, integer),
    FUNCTION 1 pg_catalog.hashint8(bigint),
    FUNCTION 2 _snowflake_shard_hash_instagram(bigint, bigint),
    FUNCTION 1 (integer, integer) pg_catalog.hashint4(integer),
    FUNCTION 2 (integer, integer) _snowflake_shard_hash_instagram(integer, bigint);

COMMENT ON OPERATOR CLASS snowflake_shard_ops_instagram USING hash IS
'partitioning by the shard of an ID in layout instagram: remainder = shard mod modulus';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_instagram USING hash IS 'partitioning by the shard of an ID in layout instagram';

CREATE FUNCTION _snowflake_shard_hash_twitter(id bigint, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_twitter_wrapper';

CREATE FUNCTION _snowflake_shard_hash_twitter(id integer, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_twitter_of_integer_wrapper';

COMMENT ON FUNCTION _snowflake_shard_hash_twitter(bigint, bigint) IS 'hash';
COMMENT ON FUNCTION _snowflake_shard_hash_twitter(integer, bigint) IS 'hash';

CREATE OPERATOR CLASS snowflake_shard_ops_twitter
FOR TYPE bigint USING hash AS
    OPERATOR 1 pg_catalog.= (bigint, bigint),
    OPERATOR 1 pg_catalog.= (bigint, integer),
    OPERATOR 1 pg_catalog.= (integer, bigint),
    OPERATOR 1 pg_catalog.= (integer, integer),
    FUNCTION 1 pg_catalog.hashint8(bigint),
    FUNCTION 2 _snowflake_shard_hash_twitter(bigint, bigint),
    FUNCTION 1 (integer, integer) pg_catalog.hashint4(integer),
    FUNCTION 2 (integer, integer) _snowflake_shard_hash_twitter(integer, bigint);

COMMENT ON OPERATOR CLASS snowflake_shard_ops_twitter USING hash IS
'partitioning by the shard of an ID in layout twitter, or another with 10 shard bits above 12: remainder = shard mod modulus';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_twitter USING hash IS
'partitioning by the shard of an ID in layout twitter, or another with 10 shard bits above 12';

CREATE FUNCTION _snowflake_shard_hash_sonyflake(id bigint, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_sonyflake_wrapper';

CREATE FUNCTION _snowflake_shard_hash_sonyflake(id integer, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_sonyflake_of_integer_wrapper';

COMMENT ON FUNCTION _snowflake_shard_hash_sonyflake(bigint, bigint) IS 'hash';
COMMENT ON FUNCTION _snowflake_shard_hash_sonyflake(integer, bigint) IS 'hash';

CREATE OPERATOR CLASS snowflake_shard_ops_sonyflake
FOR TYPE bigint USING hash AS
    OPERATOR 1 pg_catalog.= (bigint, bigint),
    OPERATOR 1 pg_catalog.= (bigint, integer),
    OPERATOR 1 pg_catalog.= (integer, bigint),
    OPERATOR 1 pg_catalog.= (integer, integer),
    FUNCTION 1 pg_catalog.hashint8(bigint),
    FUNCTION 2 _snowflake_shard_hash_sonyflake(bigint, bigint),
    FUNCTION 1 (integer, integer) pg_catalog.hashint4(integer),
    FUNCTION 2 (integer, integer) _snowflake_shard_hash_sonyflake(integer, bigint);

COMMENT ON OPERATOR CLASS snowflake_shard_ops_sonyflake USING hash IS
'partitioning by the shard of an ID in layout sonyflake: remainder = shard mod modulus';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_sonyflake USING hash IS
'partitioning by the shard of an ID in layout sonyflake';

CREATE FUNCTION _snowflake_shard_hash_js53(id bigint, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_js53_wrapper';

CREATE FUNCTION _snowflake_shard_hash_js53(id integer, seed bigint)
RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_shard_hash_js53_of_integer_wrapper';

COMMENT ON FUNCTION _snowflake_shard_hash_js53(bigint, bigint) IS 'hash';
COMMENT ON FUNCTION _snowflake_shard_hash_js53(integer, bigint) IS 'hash';

CREATE OPERATOR CLASS snowflake_shard_ops_js53
FOR TYPE bigint USING hash AS
    OPERATOR 1 pg_catalog.= (bigint, bigint),
    OPERATOR 1 pg_catalog.= (bigint, integer),
    OPERATOR 1 pg_catalog.= (integer, bigint),
    OPERATOR 1 pg_catalog.= (integer, integer),
    FUNCTION 1 pg_catalog.hashint8(bigint),
    FUNCTION 2 _snowflake_shard_hash_js53(bigint, bigint),
    FUNCTION 1 (integer, integer) pg_catalog.hashint4(integer),
    FUNCTION 2 (integer, integer) _snowflake_shard_hash_js53(integer, bigint);

COMMENT ON OPERATOR CLASS snowflake_shard_ops_js53 USING hash IS
'partitioning by the shard of an ID in layout js53: remainder = shard mod modulus';
COMMENT ON OPERATOR FAMILY snowflake_shard_ops_js53 USING hash IS 'partitioning by the shard of an ID in layout js53';

CREATE FUNCTION snowflake_locate(
    table_name regclass,
    id bigint,
    layout snowflake_layout DEFAULT 'postgres',
    OUT shard_id integer,
    OUT partition regclass,
    OUT server name,
    OUT host text,
    OUT port integer,
    OUT dbname text)
RETURNS record
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_locate_wrapper';

COMMENT ON FUNCTION snowflake_locate(regclass, bigint, snowflake_layout) IS
'partition of a table that contains an ID, and its server if the partition is a foreign table';
