-- The function that pg_snowflake replaces, as Instagram published it.
CREATE FUNCTION copied_nextval(seq regclass, shard_id int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
BEGIN
    SELECT nextval(seq) % 1024 INTO seq_id;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO now_millis;
    RETURN (now_millis - our_epoch) << 23 | (shard_id << 10) | seq_id;
END $$;
