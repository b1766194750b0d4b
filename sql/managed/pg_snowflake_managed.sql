-- Snowflake IDs in plain SQL and PL/pgSQL, for servers where the extension pg_snowflake cannot be installed.
--
--     psql --set ON_ERROR_STOP=1 --single-transaction --file pg_snowflake_managed.sql
--
-- Tested on PostgreSQL 15 to 19; no superuser is needed. The functions are in the schema snowflake_managed. They have the names,
-- results and errors of the extension's functions in its default layout. Their counter is in the same sequence, so the extension can
-- take over. Run the file again to update the functions. docs/managed.md is the manual.
--
-- Whatever stands in search_path, these functions do the same: a function either sets its own search_path, which costs 2 us a call and
-- keeps the planner from inlining it, or qualifies every operator, function and type. OPERATOR(...) has the same precedence for every
-- operator, so mixed expressions have parentheses.

DO $install$
DECLARE
    constant pg_catalog.record;
    installed pg_catalog.text;
    foreign_function pg_catalog.regprocedure;
    callers_path pg_catalog.text := pg_catalog.current_setting('search_path');
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    -- The owner of a schema or function can replace what others run, and this block runs the installed constants.
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'snowflake_managed' AND pg_get_userbyid(nspowner) <> current_user) THEN
        RAISE EXCEPTION USING ERRCODE = '42501',
            MESSAGE = 'schema "snowflake_managed" has another owner',
            HINT = 'Run the file as the owner of the schema.';
    END IF;
    SELECT oid::regprocedure INTO foreign_function FROM pg_proc
    WHERE pronamespace = to_regnamespace('snowflake_managed') AND pg_get_userbyid(proowner) <> current_user;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '42501',
            MESSAGE = format('function %s has another owner', foreign_function),
            HINT = format('If the function is of this file, run: ALTER FUNCTION %s OWNER TO %I; Otherwise drop it.',
                foreign_function, current_user);
    END IF;
    IF to_regnamespace('snowflake_managed') IS NULL THEN
        CREATE SCHEMA snowflake_managed;
    END IF;

    -- The planner inlines them. Choose a layout before the first ID is generated: another one reads other fields from old IDs.
    FOR constant IN
        SELECT * FROM (VALUES
            ('layout', 'text', 'postgres', 'name of the layout in messages', true),
            ('epoch_ms', 'int8', '1262304000000', 'start of tick 0, in milliseconds since 1970-01-01 UTC', true),
            ('tick_us', 'int8', '1000', 'length of a tick in microseconds', true),
            ('time_bits', 'int4', '41', 'width of the time field', true),
            ('shard_bits', 'int4', '12', 'width of the shard field', true),
            ('seq_bits', 'int4', '10', 'width of the seq field', true),
            ('shard_is_lowest', 'bool', 'true', 'whether the shard field is below the seq field', true),
            ('shard_is_xored', 'bool', 'true', 'whether the shard is XORed with as many bits above it', true),
            -- STABLE: a session that has planned an IMMUTABLE one keeps its value when it is replaced.
            ('max_lead_us', 'int8', '100000', 'how far IDs may run ahead of the clock, in microseconds', false),
            ('max_wait_us', 'int8', '1000000', 'how long a call may wait for the clock, in microseconds', false)
        ) AS constants (name, type, value, comment, is_of_layout)
    LOOP
        IF to_regprocedure(format('snowflake_managed.%I()', constant.name)) IS NULL THEN
            EXECUTE format(
                'CREATE FUNCTION snowflake_managed.%I() RETURNS %I LANGUAGE sql %s PARALLEL SAFE AS $$ SELECT %L::pg_catalog.%I $$',
                constant.name, constant.type, CASE WHEN constant.is_of_layout THEN 'IMMUTABLE' ELSE 'STABLE' END,
                constant.value, constant.type);
            EXECUTE format('COMMENT ON FUNCTION snowflake_managed.%I() IS %L', constant.name, constant.comment);
            CONTINUE;
        END IF;
        EXECUTE format('SELECT snowflake_managed.%I()::text', constant.name) INTO STRICT installed;
        IF constant.is_of_layout AND installed <> constant.value THEN
            RAISE EXCEPTION USING ERRCODE = '55000',
                MESSAGE = format('the installed snowflake_managed.%s() differs from the file', constant.name),
                DETAIL = format('It returns %s, and the file has %s.', installed, constant.value),
                HINT = 'Write the installed constants into the file. IDs that exist keep the layout that they were generated with.';
        END IF;
    END LOOP;

    IF snowflake_managed.time_bits() NOT BETWEEN 1 AND 48
        OR snowflake_managed.shard_bits() NOT BETWEEN 0 AND 31
        OR snowflake_managed.seq_bits() NOT BETWEEN 0 AND 31
        OR snowflake_managed.time_bits() + snowflake_managed.shard_bits() + snowflake_managed.seq_bits() > 64
        OR snowflake_managed.tick_us() NOT IN (10, 100, 1000, 10000, 100000, 1000000)
        OR snowflake_managed.epoch_ms() NOT BETWEEN 0 AND date_part('epoch', now()) * 1000
        OR (snowflake_managed.shard_is_xored() AND NOT snowflake_managed.shard_is_lowest())
        OR LEAST(snowflake_managed.max_lead_us(), snowflake_managed.max_wait_us()) < 0
    THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'invalid constants for a layout',
            DETAIL = 'time_bits is 1 to 48, shard_bits and seq_bits are 0 to 31, and their sum is at most 64. tick_us is one of '
                '10, 100, 1000, 10000, 100000 and 1000000. epoch_ms is 0 to now. shard_is_xored is true only if shard_is_lowest is. '
                'max_lead_us and max_wait_us are not negative.',
            HINT = 'Correct the constants at the top of the file, and run it again.';
    END IF;

    -- A database whose role may not run ALTER DATABASE ... SET pg_snowflake.shard_id has its own, which stays.
    IF to_regprocedure('snowflake_managed.this_shard()') IS NULL THEN
        CREATE FUNCTION snowflake_managed.this_shard() RETURNS text
        LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT pg_catalog.current_setting('pg_snowflake.shard_id', true) $$;
        COMMENT ON FUNCTION snowflake_managed.this_shard() IS 'shard ID of this database';
    END IF;
    PERFORM set_config('search_path', callers_path, true);
END $install$;

GRANT USAGE ON SCHEMA snowflake_managed TO PUBLIC;
COMMENT ON SCHEMA snowflake_managed IS 'Snowflake IDs in plain SQL, compatible with the extension pg_snowflake';

-- Derived from the constants.

CREATE OR REPLACE FUNCTION snowflake_managed.low_bits() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT snowflake_managed.shard_bits() OPERATOR(pg_catalog.+) snowflake_managed.seq_bits()
$$;
COMMENT ON FUNCTION snowflake_managed.low_bits() IS 'number of bits below the time field';

CREATE OR REPLACE FUNCTION snowflake_managed.id_bits() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT snowflake_managed.time_bits() OPERATOR(pg_catalog.+) snowflake_managed.low_bits()
$$;
COMMENT ON FUNCTION snowflake_managed.id_bits() IS 'number of bits of an ID';

CREATE OR REPLACE FUNCTION snowflake_managed.shard_shift() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN snowflake_managed.shard_is_lowest() THEN 0 ELSE snowflake_managed.seq_bits() END
$$;
COMMENT ON FUNCTION snowflake_managed.shard_shift() IS 'number of bits below the shard field';

CREATE OR REPLACE FUNCTION snowflake_managed.seq_shift() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN snowflake_managed.shard_is_lowest() THEN snowflake_managed.shard_bits() ELSE 0 END
$$;
COMMENT ON FUNCTION snowflake_managed.seq_shift() IS 'number of bits below the seq field';

CREATE OR REPLACE FUNCTION snowflake_managed.mask(bits integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT OPERATOR(pg_catalog.~) ('-1'::pg_catalog.int8 OPERATOR(pg_catalog.<<) bits)
$$;
COMMENT ON FUNCTION snowflake_managed.mask(integer) IS 'number with this many low bits set';

-- In a later tick, the sign bit of an ID would be set.
CREATE OR REPLACE FUNCTION snowflake_managed.max_tick() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT snowflake_managed.mask(LEAST(snowflake_managed.time_bits(), 63 OPERATOR(pg_catalog.-) snowflake_managed.low_bits()))
$$;
COMMENT ON FUNCTION snowflake_managed.max_tick() IS 'last tick in which IDs are generated';

-- Names its argument once: the planner does not inline a function that would repeat an expensive one. The product is exact, since a tick
-- is a multiple of 8 us, and a double has 53 bits.
CREATE OR REPLACE FUNCTION snowflake_managed.instant_of(tick bigint) RETURNS pg_catalog.timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT pg_catalog.timezone('UTC', '1970-01-01'::pg_catalog.timestamp
        OPERATOR(pg_catalog.+) ((snowflake_managed.epoch_ms() OPERATOR(pg_catalog./) 1000::pg_catalog.int8)::pg_catalog.float8
            OPERATOR(pg_catalog.*) '1 second'::pg_catalog.interval)
        OPERATOR(pg_catalog.+) ((snowflake_managed.epoch_ms() OPERATOR(pg_catalog.%) 1000::pg_catalog.int8)::pg_catalog.float8
            OPERATOR(pg_catalog.*) '1 millisecond'::pg_catalog.interval)
        OPERATOR(pg_catalog.+) (tick::pg_catalog.float8 OPERATOR(pg_catalog.*) (
            snowflake_managed.tick_us()::pg_catalog.float8 OPERATOR(pg_catalog.*) '1 microsecond'::pg_catalog.interval)))
$$;
COMMENT ON FUNCTION snowflake_managed.instant_of(bigint) IS 'start of a tick';

-- date_part('epoch') returns a double, which has fewer digits than a timestamp.
CREATE OR REPLACE FUNCTION snowflake_managed.us_in(duration interval) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (pg_catalog.date_part('day', duration)::pg_catalog.int8 OPERATOR(pg_catalog.*) 86400000000::pg_catalog.int8)
        OPERATOR(pg_catalog.+) (pg_catalog.date_part('hour', duration)::pg_catalog.int8 OPERATOR(pg_catalog.*) 3600000000::pg_catalog.int8)
        OPERATOR(pg_catalog.+) (pg_catalog.date_part('minute', duration)::pg_catalog.int8 OPERATOR(pg_catalog.*) 60000000::pg_catalog.int8)
        OPERATOR(pg_catalog.+) pg_catalog.date_part('microseconds', duration)::pg_catalog.int8
$$;
COMMENT ON FUNCTION snowflake_managed.us_in(interval) IS 'microseconds in the difference of two timestamps';

-- Errors.

CREATE OR REPLACE FUNCTION snowflake_managed.refuse(
    code pg_catalog.text, message pg_catalog.text, detail pg_catalog.text, hint pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail, HINT = hint;
END $$;
COMMENT ON FUNCTION snowflake_managed.refuse(pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text) IS 'raises an error';

CREATE OR REPLACE FUNCTION snowflake_managed.refuse_id(id bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bits int4 := snowflake_managed.id_bits();
BEGIN
    PERFORM snowflake_managed.refuse('22003',
        format('%s is not an ID of layout "%s"', id, snowflake_managed.layout()),
        format('The layout has IDs of %s bits, from 0 to %s.', bits, snowflake_managed.mask(bits)),
        'Pass an ID that was generated with this layout.');
    RETURN NULL;
END $$;
COMMENT ON FUNCTION snowflake_managed.refuse_id(bigint) IS 'raises the error for a value that is not an ID';

CREATE OR REPLACE FUNCTION snowflake_managed.refuse_sequence(
    seq pg_catalog.text, detail pg_catalog.text, option pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_managed.refuse('55000',
        format('sequence %s cannot be used to generate IDs', snowflake_managed.quoted(seq)),
        detail,
        format('Run: ALTER SEQUENCE %s %s;', seq, option));
END $$;
COMMENT ON FUNCTION snowflake_managed.refuse_sequence(pg_catalog.text, pg_catalog.text, pg_catalog.text) IS
'raises the error for an unfit sequence';

-- The callers pass names as text: a regclass is printed by the search_path of the function.
CREATE OR REPLACE FUNCTION snowflake_managed.quoted(name pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN pg_catalog.strpos(name, '"') OPERATOR(pg_catalog.>) 0 THEN name ELSE pg_catalog.format('"%s"', name) END
$$;
COMMENT ON FUNCTION snowflake_managed.quoted(pg_catalog.text) IS 'name of a sequence in quotes';

CREATE OR REPLACE FUNCTION snowflake_managed.duration(us bigint) RETURNS pg_catalog.text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN us < 1000 THEN format('%s us', us)
        WHEN us < 1000000 THEN format('%s ms', round(us / 1e3, 3))
        WHEN us < 60000000 THEN format('%s s', round(us / 1e6, 3))
        WHEN us < 3600000000 THEN format('%s minutes', round(us / 6e7, 3))
        WHEN us < 86400000000 THEN format('%s hours', round(us / 3.6e9, 3))
        ELSE format('%s days', round(us / 8.64e10, 3)) END
$$;
COMMENT ON FUNCTION snowflake_managed.duration(bigint) IS 'duration in the largest unit of which it has at least 1';

-- Decoding and encoding.

-- Not STRICT, nor are the functions that call it: the planner inlines a strict function only if all parts of it are strict, and CASE is
-- not. A null is returned as one.
CREATE OR REPLACE FUNCTION snowflake_managed.checked(id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN snowflake_managed.id_bits() OPERATOR(pg_catalog.<) 64
            AND (id OPERATOR(pg_catalog.>>) snowflake_managed.id_bits()) OPERATOR(pg_catalog.<>) 0::pg_catalog.int8
        THEN snowflake_managed.refuse_id(id)
        ELSE id END
$$;
COMMENT ON FUNCTION snowflake_managed.checked(bigint) IS 'the ID, if it is one of the layout';

CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_created_at(id bigint) RETURNS pg_catalog.timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT snowflake_managed.instant_of((snowflake_managed.checked(id) OPERATOR(pg_catalog.>>) snowflake_managed.low_bits())
        OPERATOR(pg_catalog.&) snowflake_managed.mask(snowflake_managed.time_bits()))
$$;
COMMENT ON FUNCTION snowflake_managed.snowflake_created_at(bigint) IS 'time at which an ID was generated';

CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_shard_id(id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (CASE WHEN snowflake_managed.shard_is_xored()
            THEN snowflake_managed.checked(id) OPERATOR(pg_catalog.#) (id OPERATOR(pg_catalog.>>) snowflake_managed.shard_bits())
            ELSE snowflake_managed.checked(id) OPERATOR(pg_catalog.>>) snowflake_managed.shard_shift() END
        OPERATOR(pg_catalog.&) snowflake_managed.mask(snowflake_managed.shard_bits()))::pg_catalog.int4
$$;
COMMENT ON FUNCTION snowflake_managed.snowflake_shard_id(bigint) IS 'shard that an ID was generated for';

CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_seq(id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ((snowflake_managed.checked(id) OPERATOR(pg_catalog.>>) snowflake_managed.seq_shift())
        OPERATOR(pg_catalog.&) snowflake_managed.mask(snowflake_managed.seq_bits()))::pg_catalog.int4
$$;
COMMENT ON FUNCTION snowflake_managed.snowflake_seq(bigint) IS 'counter bits of an ID';

CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_decode(
    id bigint, OUT created_at pg_catalog.timestamptz, OUT shard_id integer, OUT seq integer)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT snowflake_managed.snowflake_created_at(id), snowflake_managed.snowflake_shard_id(id),
        snowflake_managed.snowflake_seq(id)
$$;
COMMENT ON FUNCTION snowflake_managed.snowflake_decode(bigint) IS 'time, shard and counter bits of an ID';

-- Not STRICT: the planner would not inline it. With the shard lowest, an ID is the counter with the shard appended.
CREATE OR REPLACE FUNCTION snowflake_managed.compose(counter bigint, shard_id integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN snowflake_managed.shard_is_xored()
        THEN (counter OPERATOR(pg_catalog.<<) snowflake_managed.shard_bits())
            OPERATOR(pg_catalog.|) ((counter OPERATOR(pg_catalog.&) snowflake_managed.mask(snowflake_managed.shard_bits()))
                OPERATOR(pg_catalog.#) shard_id::pg_catalog.int8)
        WHEN snowflake_managed.shard_is_lowest()
        THEN (counter OPERATOR(pg_catalog.<<) snowflake_managed.shard_bits()) OPERATOR(pg_catalog.|) shard_id::pg_catalog.int8
        ELSE ((counter OPERATOR(pg_catalog.>>) snowflake_managed.seq_bits()) OPERATOR(pg_catalog.<<) snowflake_managed.low_bits())
            OPERATOR(pg_catalog.|) (shard_id::pg_catalog.int8 OPERATOR(pg_catalog.<<) snowflake_managed.seq_bits())
            OPERATOR(pg_catalog.|) (counter OPERATOR(pg_catalog.&) snowflake_managed.mask(snowflake_managed.seq_bits())) END
$$;
COMMENT ON FUNCTION snowflake_managed.compose(bigint, integer) IS 'ID of a counter and a shard that are in range';

CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_encode(created_at pg_catalog.timestamptz, shard_id integer, seq integer)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    begins timestamptz := snowflake_managed.instant_of(0);
    ends timestamptz := snowflake_managed.instant_of(snowflake_managed.max_tick() + 1);
    iso text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
    trailing_zeros text := '[.]?0+Z$';
    layout text := snowflake_managed.layout();
BEGIN
    IF created_at < begins OR created_at >= ends THEN
        PERFORM snowflake_managed.refuse('22003',
            format('timestamp is out of range for layout "%s"', layout),
            format('The layout has timestamps from %s until %s.',
                regexp_replace(to_char(timezone('UTC', begins), iso), trailing_zeros, 'Z'),
                regexp_replace(to_char(timezone('UTC', ends), iso), trailing_zeros, 'Z')),
            'Pass a timestamp in that range.');
    END IF;
    IF shard_id < 0 OR shard_id > snowflake_managed.mask(snowflake_managed.shard_bits()) THEN
        PERFORM snowflake_managed.refuse('22003',
            format('shard ID %s is out of range for layout "%s"', shard_id, layout),
            format('The layout has shard IDs from 0 to %s.', snowflake_managed.mask(snowflake_managed.shard_bits())),
            'Pass a shard ID in that range.');
    END IF;
    IF seq < 0 OR seq > snowflake_managed.mask(snowflake_managed.seq_bits()) THEN
        PERFORM snowflake_managed.refuse('22003',
            format('seq %s is out of range for layout "%s"', seq, layout),
            format('The layout has seqs from 0 to %s.', snowflake_managed.mask(snowflake_managed.seq_bits())),
            'Pass a seq in that range.');
    END IF;
    RETURN snowflake_managed.compose(
        (snowflake_managed.us_in(created_at - begins) / snowflake_managed.tick_us()) << snowflake_managed.seq_bits() | seq, shard_id);
END $$;
COMMENT ON FUNCTION snowflake_managed.snowflake_encode(pg_catalog.timestamptz, integer, integer) IS
'ID composed of a time, a shard and counter bits';

-- Rounds up: the time of an ID is the start of its tick.
CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_min_id(at pg_catalog.timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN at OPERATOR(pg_catalog.<=) snowflake_managed.instant_of(0) THEN 0::pg_catalog.int8
        WHEN at OPERATOR(pg_catalog.<=) snowflake_managed.instant_of(snowflake_managed.max_tick())
        THEN ((snowflake_managed.us_in(at OPERATOR(pg_catalog.-) snowflake_managed.instant_of(0))
                OPERATOR(pg_catalog.+) (snowflake_managed.tick_us() OPERATOR(pg_catalog.-) 1::pg_catalog.int8))
            OPERATOR(pg_catalog./) snowflake_managed.tick_us()) OPERATOR(pg_catalog.<<) snowflake_managed.low_bits()
        WHEN snowflake_managed.id_bits() OPERATOR(pg_catalog.<) 63
        THEN 1::pg_catalog.int8 OPERATOR(pg_catalog.<<) snowflake_managed.id_bits()
        ELSE 9223372036854775807::pg_catalog.int8 END
$$;
COMMENT ON FUNCTION snowflake_managed.snowflake_min_id(pg_catalog.timestamptz) IS 'smallest ID at or after a time';

-- Not STRICT, to be inlined.
CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_between(
    id bigint, since pg_catalog.timestamptz, until pg_catalog.timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) snowflake_managed.snowflake_min_id(since)
        AND id OPERATOR(pg_catalog.<) snowflake_managed.snowflake_min_id(until)
$$;
COMMENT ON FUNCTION snowflake_managed.snowflake_between(bigint, pg_catalog.timestamptz, pg_catalog.timestamptz) IS
'whether an ID was generated at or after one time and before another; can use an index on the ID';

-- Generating IDs.

-- Inlined into snowflake_nextval and snowflake_nextvals.

CREATE OR REPLACE FUNCTION snowflake_managed.clock_us() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
            OPERATOR(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8
        OPERATOR(pg_catalog.-) (snowflake_managed.epoch_ms() OPERATOR(pg_catalog.*) 1000::pg_catalog.int8)
$$;
COMMENT ON FUNCTION snowflake_managed.clock_us() IS 'microseconds since the epoch by the server clock';

CREATE OR REPLACE FUNCTION snowflake_managed.clock_tick() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT snowflake_managed.clock_us() OPERATOR(pg_catalog./) snowflake_managed.tick_us()
$$;
COMMENT ON FUNCTION snowflake_managed.clock_tick() IS 'tick of the server clock';

CREATE OR REPLACE FUNCTION snowflake_managed.counter_at(next_value bigint, now_tick bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN (next_value OPERATOR(pg_catalog.>>) snowflake_managed.seq_bits()) OPERATOR(pg_catalog.>=) now_tick
        THEN next_value
        ELSE (now_tick OPERATOR(pg_catalog.<<) snowflake_managed.seq_bits())
            OPERATOR(pg_catalog.|) (next_value OPERATOR(pg_catalog.&) snowflake_managed.mask(snowflake_managed.seq_bits())) END
$$;
COMMENT ON FUNCTION snowflake_managed.counter_at(bigint, bigint) IS 'next counter, raised to the tick of the clock';

CREATE OR REPLACE FUNCTION snowflake_managed.last_due(now_tick bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT (LEAST(
            snowflake_managed.max_tick(),
            now_tick OPERATOR(pg_catalog.+) (snowflake_managed.max_lead_us() OPERATOR(pg_catalog./) snowflake_managed.tick_us()))
        OPERATOR(pg_catalog.<<) snowflake_managed.seq_bits())
        OPERATOR(pg_catalog.|) snowflake_managed.mask(snowflake_managed.seq_bits())
$$;
COMMENT ON FUNCTION snowflake_managed.last_due(bigint) IS
'last counter that is within the layout and not too far ahead of the clock';

-- What snowflake_nextval calls in rare cases, and snowflake_nextvals for each run.

-- pg_sequence_last_value() returns null for a new or restarted sequence, whose last_value is its next value. Another session may have
-- called it meanwhile. With a search_path of its own, a regclass is printed with its schema, so that no other relation can be read.
CREATE OR REPLACE FUNCTION snowflake_managed.last_value_of(seq pg_catalog.regclass, shard_id integer, now_tick bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    state record;
    seq_mask int8 := snowflake_managed.mask(snowflake_managed.seq_bits());
BEGIN
    EXECUTE format('SELECT last_value, is_called FROM %s', seq) INTO STRICT state;
    IF state.is_called THEN
        RETURN state.last_value;
    ELSIF state.last_value >> snowflake_managed.seq_bits() >= now_tick THEN
        RETURN state.last_value - 1;
    END IF;
    -- The factor is the extension's. Shards that generate IDs at the same rate would otherwise have the same seqs in each tick.
    RETURN (now_tick << snowflake_managed.seq_bits() | ((state.last_value & seq_mask) + 617::int8 * shard_id & seq_mask)) - 1;
END $$;
COMMENT ON FUNCTION snowflake_managed.last_value_of(pg_catalog.regclass, integer, bigint) IS
'last value of a sequence, or the one before its first counter';

-- Raises the error of a call with a bad shard or a sequence that cannot hold a counter. It is called for the first ID of each tick.
CREATE OR REPLACE FUNCTION snowflake_managed.check_call(
    seq pg_catalog.regclass, name pg_catalog.text, shard_id integer, now_tick bigint) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    definition record := pg_sequence_parameters(seq);
    minimum int8 := definition.minimum_value;
    maximum int8 := definition.maximum_value;
    citus_group int8 := minimum / 281474976710656;
    counter int8;
BEGIN
    IF shard_id < 0 OR shard_id > snowflake_managed.mask(snowflake_managed.shard_bits()) THEN
        PERFORM snowflake_managed.refuse('22023',
            format('shard ID %s is out of range for layout "%s"', shard_id, snowflake_managed.layout()),
            format('The layout has shard IDs from 0 to %s.', snowflake_managed.mask(snowflake_managed.shard_bits())),
            'Pass a shard ID in that range.');
    ELSIF definition.data_type <> 'int8'::regtype::oid THEN
        PERFORM snowflake_managed.refuse_sequence(
            name, format('Its data type is %s, not bigint.', format_type(definition.data_type, NULL)), 'AS bigint');
    ELSIF definition.increment <> 1 THEN
        PERFORM snowflake_managed.refuse_sequence(
            name, format('Its increment is %s, not 1.', definition.increment), 'INCREMENT 1');
    ELSIF definition.cycle_option THEN
        PERFORM snowflake_managed.refuse_sequence(name, 'It is defined with CYCLE, which would repeat IDs.', 'NO CYCLE');
    ELSIF citus_group > 0 AND minimum % 281474976710656 = 1 AND maximum - minimum = 281474976710656 THEN
        PERFORM snowflake_managed.refuse('55000',
            format('sequence %s cannot be used to generate IDs', snowflake_managed.quoted(name)),
            format('Citus manages it, and has limited it to the numbers of node group %s, because the default of a distributed '
                'table refers to it.', citus_group),
            'Name the sequence in the default by text: snowflake_nextval(''ids''::text::regclass, ...).');
    ELSIF now_tick < 0 THEN
        PERFORM snowflake_managed.refuse('55000',
            format('server clock is before the epoch of layout "%s"', snowflake_managed.layout()),
            format('The clock is %s behind the epoch.', snowflake_managed.duration(- snowflake_managed.clock_us())),
            'Correct the server''s clock.');
    ELSIF now_tick > snowflake_managed.max_tick() THEN
        PERFORM snowflake_managed.refuse_end(name);
    END IF;
    counter := snowflake_managed.next_counter(seq, shard_id, now_tick);
    IF counter > maximum THEN
        PERFORM snowflake_managed.refuse_sequence(
            name, format('Its MAXVALUE is %s, below the next counter, %s.', maximum, counter), 'NO MAXVALUE');
    END IF;
END $$;
COMMENT ON FUNCTION snowflake_managed.check_call(pg_catalog.regclass, pg_catalog.text, integer, bigint) IS
'raises the error of a call that cannot return an ID';

CREATE OR REPLACE FUNCTION snowflake_managed.next_counter(seq pg_catalog.regclass, shard_id integer, now_tick bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    value int8 := COALESCE(pg_sequence_last_value(seq), snowflake_managed.last_value_of(seq, shard_id, now_tick));
BEGIN
    RETURN snowflake_managed.counter_at(value + (value < 9223372036854775807)::int4, now_tick);
END $$;
COMMENT ON FUNCTION snowflake_managed.next_counter(pg_catalog.regclass, integer, bigint) IS 'counter that a call would issue';

CREATE OR REPLACE FUNCTION snowflake_managed.refuse_end(name pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_managed.refuse('2200H',
        format('sequence %s has reached the end of layout "%s"', snowflake_managed.quoted(name), snowflake_managed.layout()),
        format('The last tick of the layout is %s. A later ID would be negative or would not fit.', snowflake_managed.max_tick()),
        'If the server''s clock is right, convert the column to a layout that ends later.');
END $$;
COMMENT ON FUNCTION snowflake_managed.refuse_end(pg_catalog.text) IS 'raises the error for a layout that is used up';

CREATE OR REPLACE FUNCTION snowflake_managed.refuse_unset_shard(function pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_managed.refuse('55000',
        'pg_snowflake.shard_id is not set',
        'The call names no shard, and this database has no shard ID.',
        format('Pass a shard ID to %s(), or run: CREATE OR REPLACE FUNCTION snowflake_managed.this_shard() RETURNS text '
            'LANGUAGE sql STABLE PARALLEL SAFE AS ''SELECT ''''5''''::pg_catalog.text'';', function));
END $$;
COMMENT ON FUNCTION snowflake_managed.refuse_unset_shard(pg_catalog.text) IS 'raises the error for a database without a shard';

CREATE OR REPLACE FUNCTION snowflake_managed.refuse_count(count integer) RETURNS pg_catalog.void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_managed.refuse('22023',
        'number of IDs must not be negative',
        format('The number requested is %s.', count),
        'Pass a count of 0 or more.');
END $$;
COMMENT ON FUNCTION snowflake_managed.refuse_count(integer) IS 'raises the error for a negative number of IDs';

-- Waits until the next counter may be issued; raises the error if it cannot be issued or the wait would be too long.
CREATE OR REPLACE FUNCTION snowflake_managed.wait(seq pg_catalog.regclass, name pg_catalog.text, shard_id integer)
RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tick_us int8 := snowflake_managed.tick_us();
    max_lead_us int8 := snowflake_managed.max_lead_us() / tick_us * tick_us;
    max_wait_us int8 := snowflake_managed.max_wait_us();
    now_us int8 := snowflake_managed.clock_us();
    now_tick int8 := now_us / tick_us;
    tick int8 := snowflake_managed.next_counter(seq, shard_id, now_tick) >> snowflake_managed.seq_bits();
    lead_us int8;
    wait_us int8;
    -- Read as an ID, as after setval(seq, max(id)), the time is in the past. No clock is 300 years ahead.
    is_id boolean := tick >> snowflake_managed.shard_bits() <= now_tick AND tick - now_tick > 9467280000000000 / tick_us;
BEGIN
    PERFORM snowflake_managed.check_call(seq, name, shard_id, now_tick);
    -- The product of the largest ticks would overflow.
    lead_us := LEAST(tick, 9223372036854775807 / tick_us - 1) * tick_us - now_us;
    wait_us := lead_us - max_lead_us;
    IF wait_us > max_wait_us THEN
        PERFORM snowflake_managed.refuse('55000',
            format('sequence %s is too far ahead of the server clock', snowflake_managed.quoted(name)),
            format('It is %s ahead%s. The next ID is due in %s, which is longer than snowflake_managed.max_wait_us().',
                snowflake_managed.duration(lead_us),
                CASE WHEN is_id THEN ': its last_value is an ID, not a counter' ELSE '' END,
                snowflake_managed.duration(wait_us)),
            CASE WHEN lead_us < 2147483000000
                -- A further second: the calls of other sessions go on.
                THEN format('If the clock is wrong, correct it; no other action is needed. If it is right, permit the lead. '
                    'Run: CREATE OR REPLACE FUNCTION snowflake_managed.max_lead_us() RETURNS bigint LANGUAGE sql STABLE '
                    'PARALLEL SAFE AS ''SELECT %s::pg_catalog.int8'';', (lead_us / 1000000 + 2) * 1000000)
                WHEN is_id THEN 'Create a new sequence, and name it in the column default. Do not set a sequence with setval() or RESTART.'
                ELSE 'Create a new sequence, and name it in the column default. Then renumber rows with IDs from the future.' END);
    ELSIF tick > snowflake_managed.max_tick() THEN
        PERFORM snowflake_managed.refuse_end(name);
    ELSIF wait_us > 0 THEN
        -- Without a shortest wait, callers that compete for the IDs of one tick wake up in each tick.
        PERFORM pg_sleep(GREATEST(wait_us, LEAST(5000, max_lead_us / 20, max_wait_us)) / 1e6::float8);
    END IF;
END $$;
COMMENT ON FUNCTION snowflake_managed.wait(pg_catalog.regclass, pg_catalog.text, integer) IS
'waits until the next counter may be issued';

-- Two sessions must not both read the sequence and then set it, so an advisory lock is held for that time. A session-level lock could be
-- left behind: a second cancel can arrive while the handler of the first runs, before it unlocks. A transaction-level lock is released
-- when its subtransaction aborts, whatever the reason. So the subtransaction is aborted on success, too. That does not undo setval().
--
-- The extension's nextval moves the sequence without that lock, and would be overwritten. A call that has waited for the sequence while
-- a column was converted must therefore fail: it resolves the inlined functions after it has locked the sequence, and
-- pg_snowflake_managed_uninstall.sql has dropped them by then.
--
-- Few and short statements: each costs about 50 ns, and each reading of the sequence 100 ns.
CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_nextval(seq pg_catalog.regclass, shard_id integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
DECLARE
    now_tick pg_catalog.int8;
    counter pg_catalog.int8;
BEGIN
    LOOP
        -- Reading the sequence takes its lock, which setval() needs, before the advisory lock. In the other order, a session that has
        -- altered the sequence in its open transaction could deadlock with this one.
        counter := pg_catalog.pg_sequence_last_value(seq);
        BEGIN
            -- Not before the locks, which may be waited for: whoever held them may have used the time since, and reset the sequence. The
            -- number in the key is arbitrary, and of this function alone.
            now_tick := CASE
                WHEN pg_catalog.pg_advisory_xact_lock(1936617319, seq::pg_catalog.oid::pg_catalog.int4) IS NOT NULL
                THEN snowflake_managed.clock_tick() END;
            counter := pg_catalog.pg_sequence_last_value(seq);
            IF (counter OPERATOR(pg_catalog.>=) (now_tick OPERATOR(pg_catalog.<<) snowflake_managed.seq_bits())) IS NOT TRUE
                OR (shard_id OPERATOR(pg_catalog.>>) snowflake_managed.shard_bits()) OPERATOR(pg_catalog.<>) 0
            THEN
                PERFORM snowflake_managed.check_call(seq, seq::pg_catalog.text, shard_id, now_tick);
                counter := COALESCE(counter, snowflake_managed.last_value_of(seq, shard_id, now_tick));
            END IF;
            counter := CASE
                WHEN counter OPERATOR(pg_catalog.<) snowflake_managed.last_due(now_tick)
                THEN pg_catalog.setval(seq,
                    snowflake_managed.counter_at(counter OPERATOR(pg_catalog.+) 1::pg_catalog.int8, now_tick)) END;
            RAISE SQLSTATE 'SNOWF';
        EXCEPTION
            WHEN SQLSTATE 'SNOWF' THEN
            WHEN numeric_value_out_of_range THEN
                PERFORM snowflake_managed.check_call(seq, seq::pg_catalog.text, shard_id, now_tick);
                RAISE;
        END;
        IF counter IS NOT NULL THEN
            RETURN snowflake_managed.compose(counter, shard_id);
        END IF;
        PERFORM snowflake_managed.wait(seq, seq::pg_catalog.text, shard_id);
    END LOOP;
END $$;
COMMENT ON FUNCTION snowflake_managed.snowflake_nextval(pg_catalog.regclass, integer) IS 'next ID of a shard from a sequence';

CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_nextval(seq pg_catalog.regclass) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
DECLARE
    shard_id pg_catalog.text := snowflake_managed.this_shard();
BEGIN
    IF shard_id IS NULL OR shard_id OPERATOR(pg_catalog.=) '' OR shard_id OPERATOR(pg_catalog.=) '-1' THEN
        PERFORM snowflake_managed.refuse_unset_shard('snowflake_nextval');
    END IF;
    RETURN snowflake_managed.snowflake_nextval(seq, shard_id::pg_catalog.int4);
END $$;
COMMENT ON FUNCTION snowflake_managed.snowflake_nextval(pg_catalog.regclass) IS 'next ID of this database''s shard from a sequence';

-- As snowflake_nextval, but the sequence is set to the last counter of a run. Near the limit of the lead, a run is shorter than the rest
-- of the batch. While the call holds the sequence, nobody can lower its MAXVALUE.
CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_nextvals(seq pg_catalog.regclass, shard_id integer, count integer)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
DECLARE
    remaining pg_catalog.int8 := count;
    now_tick pg_catalog.int8;
    due pg_catalog.int8;
    first pg_catalog.int8;
    last pg_catalog.int8;
BEGIN
    IF count OPERATOR(pg_catalog.<) 0 THEN
        PERFORM snowflake_managed.refuse_count(count);
    ELSIF (shard_id OPERATOR(pg_catalog.>>) snowflake_managed.shard_bits()) OPERATOR(pg_catalog.<>) 0 THEN
        PERFORM snowflake_managed.check_call(seq, seq::pg_catalog.text, shard_id, snowflake_managed.clock_tick());
    END IF;
    WHILE remaining OPERATOR(pg_catalog.>) 0 LOOP
        -- Takes the lock of the sequence before the advisory lock, too.
        first := pg_catalog.pg_sequence_last_value(seq);
        BEGIN
            now_tick := CASE
                WHEN pg_catalog.pg_advisory_xact_lock(1936617319, seq::pg_catalog.oid::pg_catalog.int4) IS NOT NULL
                THEN snowflake_managed.clock_tick() END;
            PERFORM snowflake_managed.check_call(seq, seq::pg_catalog.text, shard_id, now_tick);
            -- Once: a limit that is lowered between two statements would lower the sequence.
            due := snowflake_managed.last_due(now_tick);
            first := COALESCE(
                pg_catalog.pg_sequence_last_value(seq), snowflake_managed.last_value_of(seq, shard_id, now_tick));
            first := CASE
                WHEN first OPERATOR(pg_catalog.<) due
                THEN snowflake_managed.counter_at(first OPERATOR(pg_catalog.+) 1::pg_catalog.int8, now_tick) END;
            -- The differences cannot overflow, where sums could.
            last := CASE
                WHEN first OPERATOR(pg_catalog.<=) LEAST(due, (pg_catalog.pg_sequence_parameters(seq)).maximum_value)
                THEN pg_catalog.setval(seq, first OPERATOR(pg_catalog.+) LEAST(
                    remaining OPERATOR(pg_catalog.-) 1::pg_catalog.int8,
                    due OPERATOR(pg_catalog.-) first,
                    (pg_catalog.pg_sequence_parameters(seq)).maximum_value OPERATOR(pg_catalog.-) first)) END;
            RAISE SQLSTATE 'SNOWF';
        EXCEPTION
            WHEN SQLSTATE 'SNOWF' THEN
        END;
        IF last IS NULL THEN
            PERFORM snowflake_managed.wait(seq, seq::pg_catalog.text, shard_id);
        ELSE
            RETURN QUERY SELECT snowflake_managed.compose(run.counter, shard_id)
                FROM pg_catalog.generate_series(first, last) AS run (counter);
            remaining := remaining OPERATOR(pg_catalog.-) (last OPERATOR(pg_catalog.-) first OPERATOR(pg_catalog.+) 1::pg_catalog.int8);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION snowflake_managed.snowflake_nextvals(pg_catalog.regclass, integer, integer) IS
'next IDs of a shard from a sequence, in increasing order';

CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_nextvals(seq pg_catalog.regclass, count integer) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
DECLARE
    shard_id pg_catalog.text := snowflake_managed.this_shard();
BEGIN
    IF count OPERATOR(pg_catalog.<) 0 THEN
        PERFORM snowflake_managed.refuse_count(count);
    ELSIF shard_id IS NULL OR shard_id OPERATOR(pg_catalog.=) '' OR shard_id OPERATOR(pg_catalog.=) '-1' THEN
        PERFORM snowflake_managed.refuse_unset_shard('snowflake_nextvals');
    END IF;
    RETURN QUERY SELECT ids.id FROM snowflake_managed.snowflake_nextvals(seq, shard_id::pg_catalog.int4, count) AS ids (id);
END $$;
COMMENT ON FUNCTION snowflake_managed.snowflake_nextvals(pg_catalog.regclass, integer) IS
'next IDs of this database''s shard from a sequence, in increasing order';
