SELECT subname, pid IS NOT NULL AS runs, latest_end_time, apply_error_count
FROM pg_stat_subscription JOIN pg_stat_subscription_stats USING (subid, subname)
WHERE relid IS NULL AND leader_pid IS NULL;

SELECT slot_name, active, pg_size_pretty(pg_current_wal_lsn() - confirmed_flush_lsn) AS behind FROM pg_replication_slots;

SELECT table_name, column_name, shard_id, error FROM snowflake_columns;
