//! Workers that take IDs in every possible way, over real connections, until they are stopped or lose the server.

use crate::journal::{Journal, MODULUS, SHARD, Sequence};
use fastrand::Rng;
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::crew::{Crew, Place};
use pg_snowflake_harness::sequence::counter_in_an_hour;
use pg_snowflake_harness::wait::PATIENCE;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Error, Statement};
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
    client
        .batch_execute(
            "CREATE SEQUENCE shared;
             CREATE SEQUENCE cached CACHE 64;
             CREATE SEQUENCE lone;
             CREATE SEQUENCE reset;
             CREATE TABLE marks (worker int, returned bigint)",
        )
        .expect("a new database");
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
}

/// The roles for most faults.
pub const CREW: [Role; 5] = [Role::Sharing, Role::Sharing, Role::Sharing, Role::Sharing, Role::Lone];

/// Running workers.
pub type Load = Crew<Journal>;

/// Starts a worker for each of these roles. `first_worker` is the number of the first; no two workers of a server's history may
/// have the same.
pub fn start(cluster: &Cluster, rng: &mut Rng, first_worker: i32, crew: &[Role]) -> Load {
    let worker = |(number, &role)| {
        let session = Session::new(cluster.connect());
        let worker = Worker { session, rng: rng.fork(), role, journal: Journal::new(number) };
        |place: &Place| worker.work(place)
    };
    Crew::start((first_worker..).zip(crew).map(worker).collect())
}

/// A session that has just got its first ID, and takes no more.
pub fn start_with_one_id(cluster: &Cluster, worker: i32) -> Load {
    let mut session = Session::new(cluster.connect());
    let mut journal = Journal::new(worker);
    session.take(&mut journal, Sequence::Lone, Way::OneByOne, 1).expect("the sequence is not too far ahead");
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

/// The server is gone.
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

    fn query(self) -> String {
        let series = "FROM generate_series(1, $2::int)";
        match self {
            Way::OneByOne => {
                format!("SELECT snowflake_nextval($1::text::regclass, {SHARD}) {series}")
            }
            Way::Batch => {
                format!("SELECT snowflake_nextvals($1::text::regclass, {SHARD}, $2::int)")
            }
            Way::Homed => format!("SELECT snowflake_nextval_homed($1::text::regclass, {SHARD}, {MODULUS}) {series}"),
            Way::HomedBatch => format!("SELECT snowflake_nextvals_homed($1::text::regclass, {SHARD}, {MODULUS}, $2::int)"),
            Way::Core => format!("SELECT nextval($1::text::regclass) {series}"),
        }
    }
}

/// A connection with its statements.
struct Session {
    client: Client,
    ways: [Statement; 5],
    mark: Statement,
}

impl Session {
    fn new(mut client: Client) -> Self {
        let name = format!("SET application_name = '{WORKER}'");
        client.batch_execute(&name).expect("anybody may");
        let ways = Way::ALL.map(|way| client.prepare(&way.query()).expect("a sound query"));
        let mark = client.prepare("INSERT INTO marks VALUES ($1, $2)").expect("a sound statement");
        Session { client, ways, mark }
    }

    /// Enters every ID as it arrives, even if the statement then fails.
    fn take(&mut self, journal: &mut Journal, sequence: Sequence, way: Way, count: i32) -> Result<(), Error> {
        let parameters: [&(dyn ToSql + Sync); 2] = [&sequence.name(), &count];
        let parameters = parameters.map(|parameter| parameter as &dyn ToSql);
        let mut rows = self.client.query_raw(&self.ways[way as usize], parameters)?;
        while let Some(row) = rows.next()? {
            match way {
                Way::Core => journal.enter_counter(sequence, row.get(0)),
                Way::OneByOne | Way::Batch => journal.enter_id(sequence, row.get(0)),
                Way::Homed | Way::HomedBatch => journal.enter_homed_id(sequence, row.get(0)),
            }
        }
        Ok(())
    }

    /// Records how many IDs the worker has got, in the current transaction or one of its own.
    fn mark(&mut self, journal: &Journal) -> Result<(), Error> {
        let returned = i64::try_from(journal.returned.len()).expect("a number of IDs");
        self.client.execute(&self.mark, &[&journal.worker, &returned]).map(drop)
    }
}

struct Worker {
    session: Session,
    rng: Rng,
    role: Role,
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
            };
            place.has_done((self.journal.returned.len() - before) as u64);
            if outcome.or_else(|error| self.go_on_after(&error)) == Err(Lost) {
                break;
            }
        }
        self.journal
    }

    /// Takes some IDs in a transaction, which then commits with a mark, commits without a write, or aborts.
    fn transaction(&mut self) -> Result<(), Error> {
        let Worker { session, rng, journal, .. } = self;
        session.client.batch_execute("BEGIN")?;
        for _ in 0..rng.u8(1..=3) {
            let sequence = if rng.bool() { Sequence::Shared } else { Sequence::Cached };
            let (way, count) = random_take(rng);
            session.take(journal, sequence, way, count)?;
        }
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

    /// Takes some IDs in a separate statement, from a sequence that nobody else uses. The record that covers them was
    /// logged by this statement or an earlier one, and is flushed in both cases.
    fn take_alone(&mut self, sequence: Sequence) -> Result<(), Error> {
        let Worker { session, rng, journal, .. } = self;
        let (way, count) = random_take(rng);
        session.take(journal, sequence, way, count)?;
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
        let (_, count) = random_take(&mut self.rng);
        self.session.take(&mut self.journal, Sequence::Reset, Way::Batch, count)
    }

    /// Continues after a refusal because of the clock, and ends when the server is gone.
    fn go_on_after(&mut self, error: &Error) -> Result<(), Lost> {
        match error.code().map(|code| code.code()) {
            Some("55000") if is_too_far_ahead(error) => {
                self.journal.refused += 1;
                sleep(Duration::from_millis(1));
                self.session.client.batch_execute("ROLLBACK").map_err(|_| Lost)
            }
            // Its postmaster or a neighbour was killed, or it is shutting down.
            Some("57P01" | "57P02" | "57P03") | None => Err(Lost),
            _ => panic!("{error:?}"),
        }
    }
}

/// Whether a call was refused because IDs would run too far ahead of the clock.
pub fn is_too_far_ahead(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| {
        ["is too far ahead of the server clock", "server clock stepped back too far"].iter().any(|text| error.message().contains(text))
    })
}

/// Usually a few IDs; sometimes so many that the sequence runs ahead of the clock, or past what a WAL record covers.
fn random_take(rng: &mut Rng) -> (Way, i32) {
    let way = Way::ALL[rng.usize(0..Way::ALL.len())];
    let count = match rng.u16(0..1000) {
        0..800 => rng.i32(1..=20),
        800..980 => rng.i32(100..=500),
        980..996 => rng.i32(5_000..=20_000),
        _ => rng.i32(110_000..=130_000),
    };
    (way, count)
}
