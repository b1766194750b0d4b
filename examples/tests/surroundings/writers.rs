//! Sessions that generate IDs on all members, whatever these are.

use pg_snowflake_harness::crew::{Crew, Place};
use pg_snowflake_harness::wait::comes_true;
use postgres::{Config, NoTls};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A shorter time without an ID is not counted: between two members, or on a busy machine.
const GAP: Duration = Duration::from_millis(500);

/// What the writers do: one inserts a row, the other generates IDs that no transaction needs, also from a primary that was replaced. It
/// generates many: without leases, two pauses of the primary then returned 343 duplicates in 1.6 million IDs.
const STATEMENTS: [&str; 2] =
    ["INSERT INTO posts DEFAULT VALUES RETURNING id", "SELECT snowflake_nextval('posts_id_seq') FROM generate_series(1, 200)"];

/// Two writers for each member. Each keeps its session for as long as the member does.
pub struct Writers {
    crew: Crew<Vec<i64>>,
    returned_at: Arc<Mutex<Vec<Instant>>>,
}

impl Writers {
    pub fn start(configs: Vec<Config>) -> Self {
        let returned_at = Arc::new(Mutex::new(Vec::new()));
        let configs = configs.into_iter().flat_map(|config| STATEMENTS.map(|statement| (config.clone(), statement)));
        let writer = |(config, statement)| {
            let returned_at = Arc::clone(&returned_at);
            move |place: &Place| write(&config, statement, &returned_at, place)
        };
        Writers { crew: Crew::start(configs.map(writer).collect()), returned_at: Arc::clone(&returned_at) }
    }

    /// Waits until an ID is returned, and returns when.
    pub fn wait_for_an_id(&self) -> Instant {
        let now = Instant::now();
        let last = || self.returned_at.lock().unwrap().last().copied();
        assert!(comes_true(|| last() > Some(now)), "no IDs any more");
        last().unwrap()
    }

    /// How long no IDs were returned between two instants.
    pub fn without_ids(&self, from: Instant, to: Instant) -> Duration {
        let mut times = self.returned_at.lock().unwrap().clone();
        times.sort_unstable();
        times.retain(|&time| from <= time && time <= to);
        times.windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap > GAP).sum()
    }

    /// All IDs that were returned.
    pub fn stop(self) -> Vec<i64> {
        self.crew.stop().concat()
    }
}

fn write(config: &Config, statement: &str, returned_at: &Mutex<Vec<Instant>>, place: &Place) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut session = None;
    while !place.must_stop() {
        session = session.or_else(|| config.connect(NoTls).ok());
        if let Some(client) = &mut session {
            match client.query(statement, &[]) {
                Ok(rows) => {
                    returned_at.lock().unwrap().push(Instant::now());
                    ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
                }
                Err(_) if client.is_closed() => session = None,
                // A standby, or a primary without a lease.
                Err(_) => {}
            }
        }
        sleep(Duration::from_millis(2));
    }
    ids
}
