-- A type for IDs that JavaScript keeps exact: a bigint in all but its OID. JSON functions write a type as a
-- number only if they know its OID as numeric, so they write this one as a string. Its category is still
-- numeric, so that JOIN USING, UNION and coalesce find a common type with bigint.

CREATE TYPE snowflake;

CREATE FUNCTION snowflake_in(cstring)
RETURNS snowflake
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'int8in';

CREATE FUNCTION snowflake_out(snowflake)
RETURNS cstring
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'int8out';

CREATE FUNCTION snowflake_recv(internal)
RETURNS snowflake
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'int8recv';

CREATE FUNCTION snowflake_send(snowflake)
RETURNS bytea
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'int8send';

COMMENT ON FUNCTION snowflake_in(cstring) IS 'I/O';
COMMENT ON FUNCTION snowflake_out(snowflake) IS 'I/O';
COMMENT ON FUNCTION snowflake_recv(internal) IS 'I/O';
COMMENT ON FUNCTION snowflake_send(snowflake) IS 'I/O';

CREATE TYPE snowflake (
    INPUT = snowflake_in,
    OUTPUT = snowflake_out,
    RECEIVE = snowflake_recv,
    SEND = snowflake_send,
    LIKE = bigint,
    CATEGORY = 'N'
);

COMMENT ON TYPE snowflake IS 'ID: a bigint in storage, order, indexes and arithmetic, and a string in JSON';

CREATE CAST (snowflake AS bigint) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (snowflake AS bigint) IS 'converts an ID to bigint';

CREATE CAST (bigint AS snowflake) WITHOUT FUNCTION AS ASSIGNMENT;
COMMENT ON CAST (bigint AS snowflake) IS 'converts a bigint to an ID';

-- These accept a small literal, which is an integer, where a bigint literal would do, as in coalesce(id, 0) and
-- ARRAY[ID, 5], and what a client sends as a smallint.
CREATE FUNCTION snowflake(smallint)
RETURNS snowflake
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'int28';

COMMENT ON FUNCTION snowflake(smallint) IS 'converts a smallint to an ID';

CREATE CAST (smallint AS snowflake) WITH FUNCTION snowflake(smallint) AS IMPLICIT;
COMMENT ON CAST (smallint AS snowflake) IS 'converts a smallint to an ID';

CREATE FUNCTION snowflake(integer)
RETURNS snowflake
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
AS 'int48';

COMMENT ON FUNCTION snowflake(integer) IS 'converts an integer to an ID';

CREATE CAST (integer AS snowflake) WITH FUNCTION snowflake(integer) AS IMPLICIT;
COMMENT ON CAST (integer AS snowflake) IS 'converts an integer to an ID';
