ALTER SUBSCRIPTION sequences REFRESH PUBLICATION;
ALTER SUBSCRIPTION sequences REFRESH SEQUENCES;
SET default_transaction_isolation = 'read committed';
DO $$
DECLARE
    missing text;
BEGIN
    FOR second IN 1..600 LOOP
        SELECT string_agg(srrelid::regclass::text, ', ') INTO missing
        FROM pg_subscription_rel JOIN pg_subscription AS subscription ON subscription.oid = srsubid
        WHERE subname = 'sequences' AND srsubstate <> 'r';
        IF missing IS NULL THEN
            RETURN;
        END IF;
        PERFORM pg_sleep(1);
    END LOOP;
    RAISE EXCEPTION 'sequences have not been copied: %', missing
        USING HINT = 'The server log of the subscriber has the reason, such as a different definition.';
END $$;
