//! Clients that take IDs of one shard in every way, whatever happens to their server.

use crate::journal::SHARD;
use fastrand::Rng;
use pg_snowflake_harness::crew::{Crew, Place};
use pg_snowflake_harness::leases::is_refusal;
use pg_snowflake_harness::prelude::*;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Config, Error, NoTls};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// How many sessions a server has at a time.
const CLIENTS: usize = 4;

/// The sequences that all sessions share. Each session has a temporary one besides.
const SHARED: [&str; 3] = ["shared", "cached", "unlogged"];

/// Creates the shared sequences.
pub fn prepare(cluster: &Cluster) {
    run(&mut cluster.connect(), "CREATE SEQUENCE shared; CREATE SEQUENCE cached CACHE 64; CREATE UNLOGGED SEQUENCE unlogged");
}

/// An ID that reached a client.
pub struct Returned {
    pub id: i64,
    /// The number of its sequence, among the sequences of its server.
    pub sequence: u32,
}

/// What a client got.
#[derive(Default)]
pub struct Taken {
    pub returned: Vec<Returned>,
    pub refused: u64,
}

/// Starts the clients of one server, with the sequences of [`prepare`]. They connect again when they lose it.
pub fn start(cluster: &Cluster, rng: &mut Rng) -> Crew<Taken> {
    let sessions = Arc::<AtomicU32>::default();
    let worker = |_| {
        let config = cluster.config("postgres", "postgres");
        let worker = Worker { config, rng: rng.fork(), sessions: Arc::clone(&sessions), taken: Taken::default() };
        |place: &Place| worker.work(place)
    };
    Crew::start((0..CLIENTS).map(worker).collect())
}

struct Worker {
    config: Config,
    rng: Rng,
    /// How many the server has had.
    sessions: Arc<AtomicU32>,
    taken: Taken,
}

impl Worker {
    fn work(mut self, place: &Place) -> Taken {
        while !place.must_stop() {
            if let Ok(client) = self.config.connect(NoTls)
                && let Err(error) = self.use_session(client, place)
            {
                match error.code().map(SqlState::code) {
                    // The server is a standby.
                    Some("25006") => self.taken.refused += 1,
                    _ if is_refusal(&error) => self.taken.refused += 1,
                    // It is gone, or going.
                    Some("57P01" | "57P02" | "57P03") | None => {}
                    _ => panic!("{error:?}"),
                }
            }
            sleep(Duration::from_millis(20));
        }
        self.taken
    }

    /// Takes IDs until the session is lost. Few refusals end it, so that it keeps the counters that it has cached.
    fn use_session(&mut self, mut client: Client, place: &Place) -> Result<(), Error> {
        // Temporary sequences of two sessions are two sequences.
        let own = SHARED.len() as u32 + self.sessions.fetch_add(1, Ordering::Relaxed);
        client.batch_execute("CREATE TEMPORARY SEQUENCE own")?;
        while !place.must_stop() {
            let before = self.taken.returned.len();
            let outcome = self.take_some(&mut client, own);
            place.has_done((self.taken.returned.len() - before) as u64);
            match outcome {
                Err(error) if is_refusal(&error) && self.rng.u8(0..8) > 0 => {
                    self.taken.refused += 1;
                    client.batch_execute("ROLLBACK")?;
                    sleep(Duration::from_millis(20));
                }
                outcome => outcome?,
            }
            sleep(Duration::from_millis(self.rng.u64(0..3)));
        }
        Ok(())
    }

    /// Takes some IDs: usually a few, sometimes those of several ticks.
    fn take_some(&mut self, client: &mut Client, own: u32) -> Result<(), Error> {
        let number = self.rng.usize(0..=SHARED.len());
        let (name, sequence) = SHARED.get(number).map_or(("own", own), |&name| (name, number as u32));
        let count = match self.rng.u8(0..100) {
            0..80 => self.rng.i32(1..=20),
            80..98 => self.rng.i32(100..=500),
            _ => self.rng.i32(2_000..=5_000),
        };
        let series = format!("FROM generate_series(1, {count})");
        let batch = format!("SELECT snowflake_nextvals('{name}', {SHARD}, {count})");
        match self.rng.u8(0..4) {
            0 => self.take(client, sequence, &format!("SELECT snowflake_nextval('{name}', {SHARD}) {series}")),
            1 => self.take(client, sequence, &format!("SELECT snowflake_nextval('{name}') {series}")),
            2 => self.take(client, sequence, &batch),
            _ => {
                client.batch_execute(&format!("BEGIN; DECLARE ids CURSOR FOR {batch}"))?;
                self.take(client, sequence, "FETCH 10 FROM ids")?;
                sleep(Duration::from_millis(self.rng.u64(0..30)));
                self.take(client, sequence, "FETCH ALL FROM ids")?;
                client.batch_execute("COMMIT")
            }
        }
    }

    /// Enters every ID as it arrives, even if the statement then fails.
    fn take(&mut self, client: &mut Client, sequence: u32, query: &str) -> Result<(), Error> {
        let parameters: [&dyn ToSql; 0] = [];
        let mut rows = client.query_raw(query, parameters)?;
        while let Some(row) = rows.next()? {
            self.taken.returned.push(Returned { id: row.get(0), sequence });
        }
        Ok(())
    }
}
