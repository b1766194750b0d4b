ALTER SUBSCRIPTION sequences REFRESH SEQUENCES;
DO $$ BEGIN
    WHILE EXISTS (SELECT FROM pg_subscription_rel JOIN pg_subscription AS subscription ON subscription.oid = srsubid
                  WHERE subname = 'sequences' AND srsubstate <> 'r') LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
