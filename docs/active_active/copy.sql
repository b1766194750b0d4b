\c "host=node-4 dbname=app user=postgres"
CREATE SUBSCRIPTION node_1_to_4 CONNECTION 'host=node-1 dbname=app user=replicator' PUBLICATION app WITH (origin = any);
DO $$ BEGIN
    WHILE EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r') LOOP
        COMMIT;
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
