//! The function that pg_snowflake replaces.

/// Creates `copied_nextval(seq regclass, shard_id int)`, as Instagram published it.
pub const PLPGSQL: &str = include_str!("../../docs/benchmarks/original.sql");

/// Creates it in plain SQL, at the lowest cost that a call can have in SQL: it is inlined, and reads the clock without numeric arithmetic.
pub const SQL: &str = "
    CREATE FUNCTION copied_nextval(seq regclass, shard_id int) RETURNS bigint LANGUAGE sql AS $$
        SELECT ((date_part('epoch', clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
               | (shard_id << 10) | (nextval(seq) % 1024)
    $$";
