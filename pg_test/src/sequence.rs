//! Sequences: their state as core keeps it, taking IDs from them, a sequence that the clock does not affect, and the WAL that they write.

use crate::Cluster;
use crate::id::{first_counter_at, now_ms};
use postgres::Client;

const HOUR_MS: i64 = 3_600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The last value taken, or the next one if `is_called` is false.
    pub last_value: i64,
    /// How many more values the last WAL record covers.
    pub log_cnt: i64,
    pub is_called: bool,
}

/// Reads the state of the sequence of that name, quoted where it must be.
pub fn state(client: &mut Client, sequence: &str) -> State {
    let row = client
        .query_one(&format!("SELECT last_value, log_cnt, is_called FROM {sequence}"), &[])
        .unwrap_or_else(|error| panic!("{sequence} cannot be read: {error:?}"));
    State { last_value: row.get(0), log_cnt: row.get(1), is_called: row.get(2) }
}

/// Takes IDs with a query that returns one bigint per row.
pub fn take(client: &mut Client, query: &str) -> Vec<i64> {
    let rows = client.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows.iter().map(|row| row.get(0)).collect()
}

pub fn take_one(client: &mut Client, query: &str) -> i64 {
    let ids = take(client, query);
    assert_eq!(ids.len(), 1, "{query} returns one row");
    ids[0]
}

/// A sequence `s` that is an hour ahead of the clock, with permission. Only calls move its counter, one at a time, so
/// that every ID is known in advance, and the advancing clock cannot hide an error.
pub struct Ahead {
    /// The server, which permits so long a lead.
    pub cluster: Cluster,
    /// A session that has not used the sequence yet.
    pub client: Client,
    /// The sequence's START, and its first counter.
    pub start: i64,
}

impl Ahead {
    pub fn caching(counters: i64) -> Self {
        let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
        let mut client = cluster.connect();
        let start = counter_in_an_hour();
        client.batch_execute(&format!("CREATE SEQUENCE s CACHE {counters} START {start}")).expect("a sequence can be made");
        Ahead { cluster, client, start }
    }
}

/// The first counter of a tick an hour from now.
pub fn counter_in_an_hour() -> i64 {
    first_counter_at(now_ms() + HOUR_MS)
}

/// The LSN at which the next record is inserted.
pub fn insert_lsn(client: &mut Client) -> String {
    client.query_one("SELECT pg_current_wal_insert_lsn()::text", &[]).expect("a superuser on a primary").get(0)
}

/// How many records of sequences have been written since `start`, an LSN.
pub fn sequence_records_since(cluster: &Cluster, client: &mut Client, start: &str) -> usize {
    // A transactional message in the WAL is flushed, and with it everything before it.
    client.batch_execute("SELECT pg_logical_emit_message(true, 'pg_test', 'end')").expect("a superuser on a primary");
    let end = insert_lsn(client);
    cluster.count_wal_records("Sequence", start, &end)
}
