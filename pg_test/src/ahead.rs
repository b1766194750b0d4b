//! A sequence that the clock does not touch.

use crate::Cluster;
use crate::id::{first_counter_at, now_ms};
use postgres::Client;

const HOUR_MS: i64 = 3_600_000;

/// A sequence `s` that is an hour ahead of the clock, and may be: only calls move its counter, one at a time,
/// so that every id is known beforehand, and nothing that went wrong is fixed by the clock's going on.
pub struct Ahead {
    /// The server, which permits so long a lead.
    pub cluster: Cluster,
    /// A session that has not used the sequence yet.
    pub client: Client,
    /// The sequence's START, and its first counter.
    pub start: i64,
}

impl Ahead {
    /// With this `CACHE`.
    pub fn caching(counters: i64) -> Self {
        let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
        let mut client = cluster.connect();
        let start = counter_in_an_hour();
        client
            .batch_execute(&format!("CREATE SEQUENCE s CACHE {counters} START {start}"))
            .expect("a sequence can be made");
        Ahead { cluster, client, start }
    }
}

/// The first counter of a tick an hour from now.
pub fn counter_in_an_hour() -> i64 {
    first_counter_at(now_ms() + HOUR_MS)
}
