-- Claims and releases of servers whose numbers are short.

CREATE FUNCTION uuid(n int) RETURNS uuid LANGUAGE sql AS $$ SELECT format('00000000-0000-4000-8000-%s', lpad(n::text, 12, '0'))::uuid $$;
-- Again, with a clock that is ahead by the time of the last attempt, if it took the server more than a second to come to it.
CREATE FUNCTION claim(shard_ids int[], node text, incarnation int, serials bigint[], nonce int, OUT shard_id int, OUT granted boolean,
    OUT starts timestamptz, OUT ends timestamptz, OUT serial bigint, OUT reason text, OUT read_at timestamptz,
    OUT retry_at timestamptz)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz;
    late interval := '0';
BEGIN
    FOR attempt IN 1 .. 100 LOOP
        began := clock_timestamp();
        BEGIN
            RETURN QUERY SELECT c.shard_id, c.granted, c.starts, c.ends, c.serial, c.reason, c.read_at, c.retry_at
                FROM snowflake_registry.claim($1, $2, uuid($3), $4, uuid($5), began + late + interval '5 min', '5 min') AS c;
            RETURN;
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
            IF SQLERRM !~ 'too far (behind|ahead)' THEN RAISE; END IF;
            late := clock_timestamp() - began;
        END;
    END LOOP;
    RAISE 'the registry always finds the clock behind or ahead';
END $$;
CREATE FUNCTION release(incarnation int, shard int, serial bigint, mark timestamptz DEFAULT '-infinity') RETURNS int LANGUAGE sql AS $$
    SELECT snowflake_registry.release(uuid(incarnation), ARRAY[shard], ARRAY[serial], mark) $$;
