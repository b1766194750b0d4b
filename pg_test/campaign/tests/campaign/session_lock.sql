-- Unlocks in a handler. A cancel between the lock and the block with the handler, or a second one in the handler, leaves the lock.
CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_nextval(seq regclass, shard_id integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
    now_tick bigint;
BEGIN
    PERFORM pg_advisory_lock(1936617319, seq::oid::integer);
    BEGIN
        now_tick := floor(extract(epoch FROM clock_timestamp()) * 1000) - snowflake_managed.epoch_ms();
        counter := coalesce(pg_sequence_last_value(seq), 0) + 1;
        IF counter >> 10 < now_tick THEN
            counter := now_tick << 10 | (counter & 1023);
        END IF;
        counter := setval(seq, counter);
    EXCEPTION WHEN query_canceled OR OTHERS THEN
        PERFORM pg_advisory_unlock(1936617319, seq::oid::integer);
        RAISE;
    END;
    PERFORM pg_advisory_unlock(1936617319, seq::oid::integer);
    RETURN snowflake_managed.compose(counter, shard_id);
END $$;
