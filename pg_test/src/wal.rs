//! What sequences write to the WAL.

use crate::Cluster;
use postgres::Client;

/// Where the next record goes.
pub fn insert_lsn(client: &mut Client) -> String {
    let lsn = "SELECT pg_current_wal_insert_lsn()::text";
    client.query_one(lsn, &[]).expect("a superuser on a primary").get(0)
}

/// How many records of sequences have been written since `start`, an LSN.
pub fn sequence_records_since(cluster: &Cluster, client: &mut Client, start: &str) -> usize {
    // A message in the WAL, flushed because it is transactional, brings everything before it to disk.
    let message = "SELECT pg_logical_emit_message(true, 'pg_test', 'end')";
    client.batch_execute(message).expect("a superuser on a primary");
    let end = insert_lsn(client);
    cluster.count_wal_records("Sequence", start, &end)
}
