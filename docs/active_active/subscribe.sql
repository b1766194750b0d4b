\c "host=node-1 dbname=app user=postgres"
CREATE SUBSCRIPTION node_2_to_1 CONNECTION 'host=node-2 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);
CREATE SUBSCRIPTION node_3_to_1 CONNECTION 'host=node-3 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);

\c "host=node-2 dbname=app user=postgres"
CREATE SUBSCRIPTION node_1_to_2 CONNECTION 'host=node-1 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);
CREATE SUBSCRIPTION node_3_to_2 CONNECTION 'host=node-3 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);

\c "host=node-3 dbname=app user=postgres"
CREATE SUBSCRIPTION node_1_to_3 CONNECTION 'host=node-1 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);
CREATE SUBSCRIPTION node_2_to_3 CONNECTION 'host=node-2 dbname=app user=replicator' PUBLICATION app
    WITH (origin = none, copy_data = false);
