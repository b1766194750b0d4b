//! Sessions that call the SQL edition, and connect again when they are terminated.

use crate::journal::{Journal, SHARD, Sequence};
use crate::load::{WORKER, is_too_far_ahead};
use fastrand::Rng;
use pg_snowflake_harness::crew::{Crew, Place};
use pg_snowflake_harness::id::counter;
use pg_snowflake_harness::wait::{comes_true, wait_for};
use pg_snowflake_harness::{Cluster, SUPERUSER};
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Config, Error, NoTls, Statement};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

const SESSIONS: i32 = 8;

/// Running workers.
pub struct Load {
    shared: Arc<Shared>,
    crew: Crew<Outcome>,
}

#[derive(Default)]
struct Shared {
    /// Whoever loses the server from now on is done.
    crashes: AtomicBool,
    /// The highest counter of each sequence that has reached any client.
    highest: [AtomicI64; Sequence::ALL.len()],
}

/// What a worker got.
pub struct Outcome {
    pub journal: Journal,
    /// The IDs of the copied function.
    pub copied: Vec<i64>,
    /// IDs that are not above one that had reached another client before they were asked for.
    pub overtaken: u64,
    /// The session, idle and still connected; `None` if the server is gone.
    session: Option<Session>,
}

impl Outcome {
    /// The process of the session.
    pub fn idle_backend(&self) -> Option<i32> {
        self.session.as_ref().map(|session| session.backend)
    }
}

impl Load {
    /// Starts the workers, and waits until all are connected. `first_worker` is the number of the first.
    pub fn start(cluster: &Cluster, rng: &mut Rng, first_worker: i32) -> Self {
        let shared = Arc::<Shared>::default();
        let workers = (first_worker..first_worker + SESSIONS)
            .map(|number| {
                let mut config = cluster.config(SUPERUSER, SUPERUSER);
                config.application_name(WORKER);
                let worker = Worker {
                    config,
                    rng: rng.fork(),
                    shared: Arc::clone(&shared),
                    is_first: number == first_worker,
                    outcome: Outcome { journal: Journal::new(number), copied: Vec::new(), overtaken: 0, session: None },
                };
                |place: &Place| worker.work(place)
            })
            .collect();
        let crew = Crew::start(workers);
        let query = format!("SELECT count(*) >= {SESSIONS} FROM pg_stat_activity WHERE application_name = '{WORKER}'");
        wait_for(&mut cluster.connect(), &query, "the workers are connected");
        Load { shared, crew }
    }

    /// Waits until the workers have got this many IDs.
    pub fn wait_until_returned(&self, ids: u64) {
        self.crew.wait_until_done(ids);
        assert!(!self.crew.have_all_ended(), "the server returns too few ids");
    }

    /// Lets the workers end, and cancels the calls that have not ended then: `pg_sleep` waits for a clock that has
    /// stepped back in the meantime.
    pub fn stop(self, client: &mut Client) -> Vec<Outcome> {
        self.crew.call_stop();
        let ends = comes_true(|| {
            workers(client).into_iter().for_each(|worker| cancel(client, worker));
            self.crew.have_all_ended()
        });
        assert!(ends, "a call cannot be cancelled");
        self.lost()
    }

    /// Lets each worker end when it loses the server.
    pub fn expect_a_crash(&self) {
        self.shared.crashes.store(true, SeqCst);
    }

    /// What the workers got until they lost the server.
    pub fn lost(self) -> Vec<Outcome> {
        self.crew.join()
    }
}

/// The processes of the workers' sessions.
pub fn workers(client: &mut Client) -> Vec<i32> {
    let query = "SELECT pid FROM pg_stat_activity WHERE application_name = $1";
    let rows = client.query(query, &[&WORKER]).expect("the sessions can be listed");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Cancels what that session does, if anything.
pub fn cancel(client: &mut Client, worker: i32) {
    client.execute("SELECT pg_cancel_backend($1)", &[&worker]).expect("a superuser");
}

/// The session is gone.
struct Lost;

struct Session {
    client: Client,
    backend: i32,
    take: Statement,
    take_batch: Statement,
    copied: Statement,
    mark: Statement,
}

impl Session {
    fn new(config: &Config) -> Result<Self, Error> {
        let mut client = config.connect(NoTls)?;
        let backend = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let take = client.prepare(&format!(
            "SELECT snowflake_managed.snowflake_nextval($1::text::regclass, {SHARD}) FROM generate_series(1, $2::int)"
        ))?;
        let take_batch = client.prepare(&format!("SELECT snowflake_managed.snowflake_nextvals($1::text::regclass, {SHARD}, $2::int)"))?;
        let copied = client.prepare(&format!("SELECT copied_nextval('copied', {SHARD}) FROM generate_series(1, $1::int)"))?;
        let mark = client.prepare("INSERT INTO marks VALUES ($1, $2)")?;
        Ok(Session { client, backend, take, take_batch, copied, mark })
    }

    /// A cancel that was meant for the call before can end the rollback, too.
    fn roll_back(&mut self) -> Result<(), Lost> {
        loop {
            match self.client.batch_execute("ROLLBACK") {
                Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {}
                outcome => return outcome.map_err(|_| Lost),
            }
        }
    }
}

struct Worker {
    config: Config,
    rng: Rng,
    shared: Arc<Shared>,
    /// Whether it alone uses the sequence `lone`.
    is_first: bool,
    outcome: Outcome,
}

impl Worker {
    fn work(mut self, place: &Place) -> Outcome {
        while !place.must_stop() {
            let session = Session::new(&self.config);
            // After this check, a session is one from before the crash.
            if self.shared.crashes.load(SeqCst) {
                break;
            }
            if let Ok(mut session) = session
                && self.use_session(&mut session, place).is_ok()
            {
                self.outcome.session = Some(session);
                break;
            }
            sleep(Duration::from_millis(5));
        }
        self.outcome
    }

    /// Takes IDs until it must stop.
    fn use_session(&mut self, session: &mut Session, place: &Place) -> Result<(), Lost> {
        while !place.must_stop() {
            let before = self.outcome.journal.returned.len();
            let outcome = if self.is_first && self.rng.bool() { self.take_alone(session) } else { self.transaction(session) };
            place.has_done((self.outcome.journal.returned.len() - before) as u64);
            let Err(error) = outcome else { continue };
            match error.code() {
                Some(&SqlState::QUERY_CANCELED) => {}
                Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE) if is_too_far_ahead(&error) => {
                    self.outcome.journal.refused += 1;
                    sleep(Duration::from_millis(1));
                }
                Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN | &SqlState::CANNOT_CONNECT_NOW) | None => return Err(Lost),
                _ => panic!("{error:?}"),
            }
            session.roll_back()?;
        }
        Ok(())
    }

    /// Takes some IDs in a transaction, part of them in a subtransaction that aborts. The transaction commits with a mark,
    /// commits without a write, or aborts.
    fn transaction(&mut self, session: &mut Session) -> Result<(), Error> {
        session.client.batch_execute("BEGIN")?;
        for _ in 0..self.rng.u8(1..=3) {
            let sequence = if self.rng.bool() { Sequence::Shared } else { Sequence::Cached };
            let is_in_subtransaction = self.rng.u8(0..4) == 0;
            if is_in_subtransaction {
                session.client.batch_execute("SAVEPOINT s")?;
            }
            self.take(session, sequence)?;
            if is_in_subtransaction {
                session.client.batch_execute("ROLLBACK TO s")?;
            }
        }
        self.take_copied(session)?;
        let journal = &mut self.outcome.journal;
        match self.rng.u8(0..10) {
            0..6 => {
                let returned = i64::try_from(journal.returned.len()).expect("a number of ids");
                session.client.execute(&session.mark, &[&journal.worker, &returned])?;
                session.client.batch_execute("COMMIT")?;
                journal.committed = journal.returned.len();
                journal.marked = journal.committed;
                Ok(())
            }
            6..8 => session.client.batch_execute("COMMIT"),
            _ => session.client.batch_execute("ROLLBACK"),
        }
    }

    /// Takes IDs of a sequence that nobody else uses, in a transaction of their own that writes no row.
    fn take_alone(&mut self, session: &mut Session) -> Result<(), Error> {
        self.take(session, Sequence::Lone)?;
        self.outcome.journal.committed = self.outcome.journal.returned.len();
        Ok(())
    }

    /// Takes IDs one by one or as a batch. Enters every ID as it arrives, even if the statement then fails.
    fn take(&mut self, session: &mut Session, sequence: Sequence) -> Result<(), Error> {
        let Worker { rng, shared, outcome, .. } = self;
        let highest = &shared.highest[sequence as usize];
        let before = highest.load(SeqCst);
        let count = if rng.u8(0..5) == 0 { rng.i32(100..=500) } else { rng.i32(1..=20) };
        let parameters: [&(dyn ToSql + Sync); 2] = [&sequence.name(), &count];
        let parameters = parameters.map(|parameter| parameter as &dyn ToSql);
        let take = if rng.bool() { &session.take } else { &session.take_batch };
        let mut rows = session.client.query_raw(take, parameters)?;
        while let Some(row) = rows.next()? {
            let id = row.get(0);
            outcome.journal.enter_id(sequence, id);
            outcome.overtaken += u64::from(counter(id) <= before);
            highest.fetch_max(counter(id), SeqCst);
        }
        Ok(())
    }

    fn take_copied(&mut self, session: &mut Session) -> Result<(), Error> {
        let count = self.rng.i32(1..=400);
        let parameters: [&dyn ToSql; 1] = [&count];
        let mut rows = session.client.query_raw(&session.copied, parameters)?;
        while let Some(row) = rows.next()? {
            self.outcome.copied.push(row.get(0));
        }
        Ok(())
    }
}
