ALTER SUBSCRIPTION node_2_to_1 SKIP (lsn = :'finished_at');
