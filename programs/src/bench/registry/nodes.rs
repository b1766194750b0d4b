//! Simulated servers that hold leases. Each has a connection, and requests what the lease worker requests.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use pg_snowflake_policies::pacing::{pause_after_failure, third, time_to_connect, until_renewal};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, Row};

/// Has the statements that the worker executes.
const WORKER: &str = include_str!("../../../../src/lease/session.rs");

/// A statement of the worker, by the name of its constant.
fn statement(name: &str) -> &'static str {
    let begin = format!("const {name}: &CStr = c\"");
    let (_, rest) = WORKER.split_once(&begin).unwrap_or_else(|| panic!("{name} is in session.rs"));
    rest.split_once("\";").expect("the constant ends").0
}

/// Lets this process open as many sockets as the kernel allows it, and returns their number.
pub fn raise_limit_of_sockets() -> usize {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit can be read");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("a limit can be raised to the hard one");
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// What the nodes have counted since the last reset.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The nodes that have had an answer.
    pub nodes: usize,
    /// When the last of them had its first answer.
    pub last: Option<Instant>,
    /// Answered renewals.
    pub renewals: usize,
    /// Those that were answered within a third of the lease after they were due.
    pub in_time: usize,
    /// The longest time from when a renewal was due to its answer.
    pub worst_delay: Duration,
    /// Spans that were over before they were renewed, and shards that were refused.
    pub spans_ended: usize,
    /// What went wrong, and how often.
    pub problems: BTreeMap<String, usize>,
    /// The resets so far.
    resets: usize,
}

/// The nodes, which run in a thread until this is dropped.
pub struct Fleet {
    pub nodes: usize,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    tally: Mutex<Tally>,
    is_over: AtomicBool,
    socket: PathBuf,
    lease: Duration,
    /// When all nodes started.
    started_at: jiff::Timestamp,
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("no node panics")
    }
}

impl Fleet {
    /// Nodes of that many shards each, which all start now.
    pub fn start(socket: &Path, nodes: usize, shards: usize, lease: Duration) -> Self {
        let shared = Arc::new(Shared {
            tally: Mutex::default(),
            is_over: AtomicBool::new(false),
            socket: socket.to_owned(),
            lease,
            started_at: jiff::Timestamp::now(),
        });
        let theirs = shared.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let all = LocalSet::new();
            for number in 0..nodes {
                all.spawn_local(Node::new(number, shards, theirs.clone()).run());
            }
            runtime.expect("a runtime can be made").block_on(async {
                all.run_until(async {
                    while !theirs.is_over.load(Ordering::Relaxed) {
                        sleep(Duration::from_millis(50)).await;
                    }
                })
                .await;
            });
        });
        Fleet { nodes, shared, thread: Some(thread) }
    }

    /// What has been counted since the last reset.
    pub fn tally(&self) -> Tally {
        self.shared.tally().clone()
    }

    /// Counts from zero.
    pub fn reset(&self) {
        let mut tally = self.shared.tally();
        *tally = Tally { resets: tally.resets + 1, ..Tally::default() };
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the nodes have failed");
    }
}

/// A lease that a node holds.
#[derive(Clone, Copy)]
struct Held {
    serial: i64,
    starts: SystemTime,
    ends: SystemTime,
}

struct Node {
    name: String,
    incarnation: u128,
    nonce: u128,
    first_shard: usize,
    held: Vec<Option<Held>>,
    session: Option<Session>,
    shared: Arc<Shared>,
    /// The resets of the tally that it has been counted for.
    counted: Option<usize>,
}

/// A connection, and the task that drives it.
struct Session {
    client: Client,
    task: AbortHandle,
}

impl Drop for Session {
    /// Closes the socket at once, as libpq does, and not after the answers that are due.
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What went wrong, without what differs from node to node.
struct Failure {
    words: String,
    /// Whether the registry has answered, and the connection remains.
    is_answer: bool,
}

impl<T: Into<Box<dyn Error>>> From<T> for Failure {
    fn from(error: T) -> Self {
        let error = error.into();
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        let words = words.split(|c: char| c.is_ascii_digit()).collect::<Vec<_>>().join("");
        Failure { words, is_answer: false }
    }
}

impl Node {
    fn new(number: usize, shards: usize, shared: Arc<Shared>) -> Self {
        Node {
            name: format!("db-{number}"),
            incarnation: fastrand::u128(..),
            nonce: fastrand::u128(..),
            first_shard: number * shards,
            held: vec![None; shards],
            session: None,
            shared,
            counted: None,
        }
    }

    async fn run(mut self) {
        let lease = self.shared.lease;
        let mut due = Instant::now();
        let mut is_first = true;
        loop {
            sleep(due.saturating_duration_since(Instant::now())).await;
            let mut failing_since: Option<Instant> = None;
            loop {
                let began = Instant::now();
                let failing_for = failing_since.map_or(Duration::ZERO, |since| since.elapsed());
                let Err(failure) = self.renew(failing_for).await else { break };
                *self.shared.tally().problems.entry(failure.words).or_default() += 1;
                failing_since =
                    if failure.is_answer { None } else { Some(failing_since.unwrap_or(began)) };
                sleep(pause_after_failure(failing_for, lease, fastrand::u32(..))).await;
            }
            self.count(due.elapsed(), !is_first);
            is_first = false;
            let ends = self.held.iter().flatten().map(|held| held.ends).min();
            let left = ends.and_then(|ends| ends.duration_since(SystemTime::now()).ok());
            due =
                Instant::now() + until_renewal(left.unwrap_or_default(), lease, fastrand::u32(..));
        }
    }

    fn count(&mut self, delay: Duration, is_renewal: bool) {
        let mut tally = self.shared.tally();
        if self.counted != Some(tally.resets) {
            self.counted = Some(tally.resets);
            tally.nodes += 1;
            tally.last = Some(Instant::now());
        }
        if is_renewal {
            tally.renewals += 1;
            tally.in_time += usize::from(delay <= third(self.shared.lease));
            tally.worst_delay = tally.worst_delay.max(delay);
        }
    }

    /// A request, over the connection that it has, or else a new one.
    async fn renew(&mut self, failing_for: Duration) -> Result<(), Failure> {
        let lease = self.shared.lease;
        if let Some(session) = self.session.take() {
            match timeout(third(lease), self.ask(&session)).await? {
                Ok(rows) => {
                    self.session = Some(session);
                    return self.apply(&rows);
                }
                Err(error) if error.code().is_some() && !session.client.is_closed() => {
                    self.session = Some(session);
                    return Err(Failure { is_answer: true, ..error.into() });
                }
                // The registry has restarted.
                Err(_) => {}
            }
        }
        let session = timeout(time_to_connect(failing_for, lease), self.open()).await??;
        match timeout(third(lease), self.ask(&session)).await? {
            Ok(rows) => {
                self.session = Some(session);
                self.apply(&rows)
            }
            Err(error) if error.code().is_some() => {
                self.session = Some(session);
                Err(Failure { is_answer: true, ..error.into() })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn open(&self) -> Result<Session, Failure> {
        let Shared { socket, lease, .. } = &*self.shared;
        let mut config = Config::new();
        config
            .host_path(socket)
            .user("node")
            .dbname("postgres")
            .ssl_mode(tokio_postgres::config::SslMode::Disable);
        config.application_name("pg_snowflake lease worker");
        let (client, connection) = loop {
            match config.connect(NoTls).await {
                // The queue of the socket is full. In a network, the kernel would repeat the request after a second.
                Err(error) if is_queue_full(&error) => sleep(Duration::from_secs(1)).await,
                outcome => break outcome?,
            }
        };
        let task = spawn_local(async {
            // The client gets its error.
            let _ = connection.await;
        });
        let session = Session { client, task: task.abort_handle() };
        let limit = (*lease / 4).min(Duration::from_millis(900)).as_millis().to_string();
        session
            .client
            .query_typed(statement("PREPARE"), &[(&AsText(limit), Type::UNKNOWN)])
            .await?;
        session.client.query_typed(statement("FIND"), &[]).await?;
        session.client.query_typed(statement("IDENTITY"), &[]).await?;
        Ok(session)
    }

    async fn ask(&self, session: &Session) -> Result<Vec<Row>, tokio_postgres::Error> {
        let lease = self.shared.lease;
        let until = jiff::Timestamp::try_from(SystemTime::now() + lease).expect("in range");
        let shards = self.first_shard..self.first_shard + self.held.len();
        let serial = |held: &Option<Held>| {
            held.map_or_else(|| "NULL".to_owned(), |held| held.serial.to_string())
        };
        // What a server has in its data directory: the newest serials of its shards.
        let known = shards.clone().zip(&self.held);
        let known: Vec<_> =
            known.filter_map(|(shard, held)| Some((shard, held.as_ref()?.serial))).collect();
        let parameters = [
            array(shards.map(|shard| shard.to_string())),
            self.name.clone(),
            format!("{:032x}", self.incarnation),
            array(self.held.iter().map(serial)),
            format!("{:032x}", self.nonce),
            until.to_string(),
            format!("{} ms", lease.as_millis()),
            array(known.iter().map(|(shard, _)| shard.to_string())),
            array(known.iter().map(|(_, serial)| serial.to_string())),
            self.shared.started_at.to_string(),
        ]
        .map(AsText);
        let parameters =
            parameters.each_ref().map(|text| (text as &(dyn ToSql + Sync), Type::UNKNOWN));
        session.client.query_typed(statement("CLAIM"), &parameters).await
    }

    /// Takes over what was granted, and checks each answer.
    fn apply(&mut self, rows: &[Row]) -> Result<(), Failure> {
        self.nonce = fastrand::u128(..);
        if rows.len() != self.held.len() {
            return Err(format!("{} rows for {} shards", rows.len(), self.held.len()).into());
        }
        for row in rows {
            let place = row.get::<_, i32>(0) as usize - self.first_shard;
            let last = self.held[place].take();
            if !row.get::<_, bool>(1) {
                self.shared.tally().spans_ended += usize::from(last.is_some());
                return Err(format!("refused: {}", row.get::<_, String>(5)).into());
            }
            let held = Held { starts: row.get(2), ends: row.get(3), serial: row.get(4) };
            if let Some(last) = last {
                assert!(held.ends > last.ends, "{} has a renewal that does not extend", self.name);
                self.shared.tally().spans_ended += usize::from(held.starts != last.starts);
            }
            self.held[place] = Some(held);
        }
        Ok(())
    }
}

fn is_queue_full(error: &tokio_postgres::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::WouldBlock)
}

fn array(elements: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", elements.collect::<Vec<_>>().join(","))
}

/// A parameter in the format that libpq sends.
#[derive(Debug)]
struct AsText(String);

impl ToSql for AsText {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}
