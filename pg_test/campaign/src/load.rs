//! Workers that take IDs in every possible way, over real connections, until they are stopped or lose the server.

use crate::journal::{Journal, MODULUS, SHARD, Sequence};
use fastrand::Rng;
use pg_snowflake_harness::crew::{Crew, Place};
use pg_snowflake_harness::prelude::*;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Config, Error, NoTls, Statement};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

/// The application name of a worker's session.
pub const WORKER: &str = "worker";

/// Whether the clock can hide a counter that falls back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// The sequences follow the clock, as they do in use.
    None,
    /// The sequences are an hour ahead of the clock, so that it has no effect.
    AnHour,
}

/// Creates the sequences, and the table in which workers record how many IDs they have got.
pub fn prepare(cluster: &Cluster, lead: Lead) {
    let mut client = cluster.connect();
    let sql = "CREATE SEQUENCE shared;
        CREATE SEQUENCE cached CACHE 64;
        CREATE SEQUENCE lone;
        CREATE SEQUENCE reset;
        CREATE TABLE marks (worker int, returned bigint)";
    run(&mut client, sql);
    permit(cluster, lead);
    if lead == Lead::AnHour {
        let counter = counter_in_an_hour();
        for sequence in Sequence::ALL {
            client.execute("SELECT setval($1::text::regclass, $2)", &[&sequence.name(), &counter]).expect("the sequence can be set");
        }
    }
}

/// Permits that lead for future sessions.
pub fn permit(cluster: &Cluster, lead: Lead) {
    if lead == Lead::AnHour {
        cluster.connect().batch_execute("ALTER DATABASE postgres SET pg_snowflake.max_lead = '2h'").expect("a superuser");
    }
}

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes IDs from the sequences that all share, in transactions that commit or abort.
    Sharing,
    /// Takes IDs from a sequence that nobody else uses, each time in a transaction of its own.
    Lone,
    /// The same, and resets its sequence now and then.
    Resetting,
    /// Shares by the SQL edition, whose calls may be cancelled, and takes IDs of the function that it replaces. One alone uses the
    /// sequence `lone`, too. It connects again if its session is terminated, but not after a crash.
    OfEdition { has_lone: bool, reconnects: bool },
}

impl Role {
    fn is_of_edition(self) -> bool {
        matches!(self, Role::OfEdition { .. })
    }
}

/// The roles for most faults.
pub const CREW: [Role; 5] = [Role::Sharing, Role::Sharing, Role::Sharing, Role::Sharing, Role::Lone];

/// Running workers.
pub type Load = Crew<Journal>;

/// Starts a worker for each of these roles. `first_worker` is the number of the first; no two workers of a server's history may
/// have the same.
pub fn start(cluster: &Cluster, rng: &mut Rng, first_worker: i32, crew: &[Role]) -> Load {
    let highest = Arc::<Highest>::default();
    let worker = |(number, &role): (i32, &Role)| {
        let config = cluster.config(SUPERUSER, SUPERUSER);
        let session = Session::new(&config, role).expect("the server is up");
        let (rng, highest) = (rng.fork(), Arc::clone(&highest));
        let worker = Worker { session, config, rng, role, highest, journal: Journal::new(number) };
        |place: &Place| worker.work(place)
    };
    Crew::start((first_worker..).zip(crew).map(worker).collect())
}

/// A session that has just got its first ID, and takes no more.
pub fn start_with_one_id(cluster: &Cluster, worker: i32) -> Load {
    let mut session = Session::new(&cluster.config(SUPERUSER, SUPERUSER), Role::Lone).expect("the server is up");
    let mut journal = Journal::new(worker);
    session.take(&mut journal, &Highest::default(), Sequence::Lone, Way::OneByOne, 1).expect("the sequence is not too far ahead");
    journal.committed = journal.returned.len();
    let worker = move |_: &Place| {
        // Until the server is gone, so that there is a backend to kill.
        while session.client.is_valid(PATIENCE).is_ok() {
            sleep(Duration::from_millis(1));
        }
        journal
    };
    Crew::start(vec![worker])
}

/// The session is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lost;

/// Ways to take IDs from a sequence: `$1` is its name, `$2` how many.
#[derive(Clone, Copy)]
enum Way {
    OneByOne,
    Batch,
    /// Homed IDs, whose shard is one of a class.
    Homed,
    HomedBatch,
    /// Core's function returns the counter itself.
    Core,
}

impl Way {
    const ALL: [Way; 5] = [Way::OneByOne, Way::Batch, Way::Homed, Way::HomedBatch, Way::Core];

    /// The SQL edition has the first two.
    fn of(role: Role) -> &'static [Way] {
        if role.is_of_edition() { &Way::ALL[..2] } else { &Way::ALL }
    }

    fn query(self, role: Role) -> String {
        let schema = if role.is_of_edition() { "snowflake_managed." } else { "" };
        let series = "FROM generate_series(1, $2::int)";
        match self {
            Way::OneByOne => {
                format!("SELECT {schema}snowflake_nextval($1::text::regclass, {SHARD}) {series}")
            }
            Way::Batch => {
                format!("SELECT {schema}snowflake_nextvals($1::text::regclass, {SHARD}, $2::int)")
            }
            Way::Homed => format!("SELECT snowflake_nextval_homed($1::text::regclass, {SHARD}, {MODULUS}) {series}"),
            Way::HomedBatch => format!("SELECT snowflake_nextvals_homed($1::text::regclass, {SHARD}, {MODULUS}, $2::int)"),
            Way::Core => format!("SELECT nextval($1::text::regclass) {series}"),
        }
    }
}

/// The highest counter of each sequence that has reached any client.
type Highest = [AtomicI64; Sequence::ALL.len()];

/// A connection with its statements.
struct Session {
    client: Client,
    backend: i32,
    ways: Vec<Statement>,
    mark: Statement,
}

impl Session {
    fn new(config: &Config, role: Role) -> Result<Self, Error> {
        let mut client = config.clone().application_name(WORKER).connect(NoTls)?;
        let backend = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let ways = Way::of(role).iter().map(|way| client.prepare(&way.query(role))).collect::<Result<_, _>>()?;
        let mark = client.prepare("INSERT INTO marks VALUES ($1, $2)")?;
        Ok(Session { client, backend, ways, mark })
    }

    /// Enters every ID as it arrives, even if the statement then fails.
    fn take(&mut self, journal: &mut Journal, highest: &Highest, sequence: Sequence, way: Way, count: i32) -> Result<(), Error> {
        let highest = &highest[sequence as usize];
        let before = highest.load(SeqCst);
        let parameters: [&(dyn ToSql + Sync); 2] = [&sequence.name(), &count];
        let parameters = parameters.map(|parameter| parameter as &dyn ToSql);
        let mut rows = self.client.query_raw(&self.ways[way as usize], parameters)?;
        while let Some(row) = rows.next()? {
            match way {
                Way::Core => journal.enter_counter(sequence, row.get(0)),
                Way::OneByOne | Way::Batch => journal.enter_id(sequence, row.get(0)),
                Way::Homed | Way::HomedBatch => journal.enter_homed_id(sequence, row.get(0)),
            }
            let counter = journal.returned.last().expect("it was entered").counter;
            journal.overtaken += u64::from(counter <= before);
            highest.fetch_max(counter, SeqCst);
        }
        Ok(())
    }

    /// Records how many IDs the worker has got, in the current transaction or one of its own.
    fn mark(&mut self, journal: &Journal) -> Result<(), Error> {
        let returned = i64::try_from(journal.returned.len()).expect("a number of IDs");
        self.client.execute(&self.mark, &[&journal.worker, &returned]).map(drop)
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
    session: Session,
    config: Config,
    rng: Rng,
    role: Role,
    highest: Arc<Highest>,
    journal: Journal,
}

impl Worker {
    fn work(mut self, place: &Place) -> Journal {
        while !place.must_stop() {
            let before = self.journal.returned.len();
            let outcome = match self.role {
                Role::Sharing => self.transaction(),
                Role::Lone => self.take_alone(Sequence::Lone),
                Role::Resetting => self.reset_and_take(),
                Role::OfEdition { has_lone: true, .. } if self.rng.bool() => self.take_alone(Sequence::Lone),
                Role::OfEdition { .. } => self.transaction(),
            };
            place.has_done((self.journal.returned.len() - before) as u64);
            if outcome.or_else(|error| self.go_on_after(&error)) == Err(Lost) && !self.connects_again(place) {
                return self.journal;
            }
        }
        if self.role.is_of_edition() {
            self.journal.idle = Some((self.session.client, self.session.backend));
        }
        self.journal
    }

    /// Whether the worker has another session.
    fn connects_again(&mut self, place: &Place) -> bool {
        while matches!(self.role, Role::OfEdition { reconnects: true, .. }) && !place.must_stop() {
            if let Ok(session) = Session::new(&self.config, self.role) {
                self.session = session;
                return true;
            }
            sleep(Duration::from_millis(5));
        }
        false
    }

    fn take(&mut self, sequence: Sequence) -> Result<(), Error> {
        let (way, count) = self.random_take();
        self.session.take(&mut self.journal, &self.highest, sequence, way, count)
    }

    /// Takes some IDs in a transaction, of the SQL edition partly in a subtransaction that aborts. The transaction then commits with a
    /// mark, commits without a write, or aborts.
    fn transaction(&mut self) -> Result<(), Error> {
        let is_of_edition = self.role.is_of_edition();
        self.session.client.batch_execute("BEGIN")?;
        for _ in 0..self.rng.u8(1..=3) {
            let sequence = if self.rng.bool() { Sequence::Shared } else { Sequence::Cached };
            let is_in_subtransaction = is_of_edition && self.rng.u8(0..4) == 0;
            if is_in_subtransaction {
                self.session.client.batch_execute("SAVEPOINT s")?;
            }
            self.take(sequence)?;
            if is_in_subtransaction {
                self.session.client.batch_execute("ROLLBACK TO s")?;
            }
        }
        if is_of_edition {
            self.take_copied()?;
        }
        let Worker { session, rng, journal, .. } = self;
        match rng.u8(0..10) {
            0..6 => {
                session.mark(journal)?;
                session.client.batch_execute("COMMIT")?;
                journal.committed = journal.returned.len();
                journal.marked = journal.committed;
                Ok(())
            }
            6..8 => session.client.batch_execute("COMMIT"),
            _ => session.client.batch_execute("ROLLBACK"),
        }
    }

    /// Takes IDs of the function that the SQL edition replaces.
    fn take_copied(&mut self) -> Result<(), Error> {
        let query = format!("SELECT copied_nextval('copied', {SHARD}) FROM generate_series(1, $1::int)");
        let count = self.rng.i32(1..=400);
        let parameters: [&dyn ToSql; 1] = [&count];
        let mut rows = self.session.client.query_raw(&query, parameters)?;
        while let Some(row) = rows.next()? {
            self.journal.copied.push(row.get(0));
        }
        Ok(())
    }

    /// Takes some IDs in a separate statement, from a sequence that nobody else uses. The record that covers them was
    /// logged by this statement or an earlier one, and is flushed in both cases.
    fn take_alone(&mut self, sequence: Sequence) -> Result<(), Error> {
        self.take(sequence)?;
        let Worker { session, rng, journal, .. } = self;
        journal.committed = journal.returned.len();
        // Rarely: the commit of a row flushes WAL, and this worker is here to show that none is needed.
        if rng.u8(0..20) == 0 {
            session.mark(journal)?;
            journal.marked = journal.committed;
        }
        Ok(())
    }

    fn reset_and_take(&mut self) -> Result<(), Error> {
        match self.rng.u8(0..8) {
            0 => self.session.client.batch_execute("ALTER SEQUENCE reset RESTART")?,
            1 => self.session.client.batch_execute("SELECT setval('reset', 1)")?,
            _ => {}
        }
        // Core's nextval has no guard: it counts on from 1.
        let (_, count) = self.random_take();
        self.session.take(&mut self.journal, &self.highest, Sequence::Reset, Way::Batch, count)
    }

    /// Continues after a cancel and after a refusal because of the clock, and ends when the session is gone.
    fn go_on_after(&mut self, error: &Error) -> Result<(), Lost> {
        match error.code() {
            Some(&SqlState::QUERY_CANCELED) if self.role.is_of_edition() => {}
            Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE) if is_too_far_ahead(error) => {
                self.journal.refused += 1;
                sleep(Duration::from_millis(1));
            }
            // Its postmaster or a neighbour was killed, or it is shutting down.
            Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN | &SqlState::CANNOT_CONNECT_NOW) | None => return Err(Lost),
            _ => panic!("{error:?}"),
        }
        self.session.roll_back()
    }

    /// Usually a few IDs; sometimes so many that the sequence runs ahead of the clock, or past what a WAL record covers. The SQL edition
    /// would take seconds for that.
    fn random_take(&mut self) -> (Way, i32) {
        let Worker { rng, role, .. } = self;
        let way = rng.choice(Way::of(*role)).expect("there are ways");
        let count = match rng.u16(0..1000) {
            0..800 => rng.i32(1..=20),
            800..980 => rng.i32(100..=500),
            _ if role.is_of_edition() => rng.i32(100..=500),
            980..996 => rng.i32(5_000..=20_000),
            _ => rng.i32(110_000..=130_000),
        };
        (*way, count)
    }
}

/// Whether a call was refused because IDs would run too far ahead of the clock.
pub fn is_too_far_ahead(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| {
        ["is too far ahead of the server clock", "server clock stepped back too far"].iter().any(|text| error.message().contains(text))
    })
}
