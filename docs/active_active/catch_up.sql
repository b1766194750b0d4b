DO $$
DECLARE
    here pg_lsn := pg_logical_emit_message(true, 'active-active', 'all before this has been applied');
BEGIN
    COMMIT;
    WHILE EXISTS (SELECT FROM pg_replication_slots WHERE database = current_database() AND confirmed_flush_lsn < here) LOOP
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
