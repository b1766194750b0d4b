-- What an operator may look at.

CREATE FUNCTION snowflake_clock(
    OUT reading timestamptz,
    OUT high_water_mark timestamptz,
    OUT regressions bigint,
    OUT largest_regression interval,
    OUT forward_jumps bigint,
    OUT largest_forward_jump interval)
RETURNS record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'snowflake_clock_wrapper';

COMMENT ON FUNCTION snowflake_clock() IS
'this backend''s clock: what it reads, the highest it has read, and how often and how far it has stepped';
