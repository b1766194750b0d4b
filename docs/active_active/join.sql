\c "host=node-4 dbname=app user=postgres"
ALTER SUBSCRIPTION node_1_to_4 DISABLE;
DO $$ BEGIN
    WHILE EXISTS (SELECT FROM pg_stat_subscription WHERE subname = 'node_1_to_4' AND pid IS NOT NULL) LOOP
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
ALTER SUBSCRIPTION node_1_to_4 SET (origin = none);
ALTER SUBSCRIPTION node_1_to_4 ENABLE;
CREATE SUBSCRIPTION node_2_to_4 CONNECTION 'host=node-2 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);
CREATE SUBSCRIPTION node_3_to_4 CONNECTION 'host=node-3 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);

\c "host=node-1 dbname=app user=postgres"
CREATE SUBSCRIPTION node_4_to_1 CONNECTION 'host=node-4 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);

\c "host=node-2 dbname=app user=postgres"
CREATE SUBSCRIPTION node_4_to_2 CONNECTION 'host=node-4 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);

\c "host=node-3 dbname=app user=postgres"
CREATE SUBSCRIPTION node_4_to_3 CONNECTION 'host=node-4 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);
