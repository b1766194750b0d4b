-- Takes a value, and sets the sequence only if the value is behind the clock. Between the two, another session can set it.
CREATE OR REPLACE FUNCTION snowflake_managed.snowflake_nextval(seq regclass, shard_id integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    counter bigint := nextval(seq);
    now_tick bigint := floor(extract(epoch FROM clock_timestamp()) * 1000) - snowflake_managed.epoch_ms();
BEGIN
    IF counter >> 10 < now_tick THEN
        counter := setval(seq, now_tick << 10 | (counter & 1023));
    END IF;
    RETURN snowflake_managed.compose(counter, shard_id);
END $$;
