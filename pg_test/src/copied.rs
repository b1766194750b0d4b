//! The function that pg_snowflake replaces.

/// Creates `copied_nextval(seq regclass, shard_id int)`, as Instagram published it.
pub const PLPGSQL: &str = "
    CREATE FUNCTION copied_nextval(seq regclass, shard_id int) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        our_epoch bigint := 1314220021721;
        seq_id bigint;
        now_millis bigint;
    BEGIN
        SELECT nextval(seq) % 1024 INTO seq_id;
        SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO now_millis;
        RETURN (now_millis - our_epoch) << 23 | (shard_id << 10) | seq_id;
    END $$";

/// Creates it in plain SQL, at the lowest cost that a call can have in SQL: it is inlined,
/// and reads the clock without numeric arithmetic.
pub const SQL: &str = "
    CREATE FUNCTION copied_nextval(seq regclass, shard_id int) RETURNS bigint LANGUAGE sql AS $$
        SELECT ((date_part('epoch', clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
               | (shard_id << 10) | (nextval(seq) % 1024)
    $$";
