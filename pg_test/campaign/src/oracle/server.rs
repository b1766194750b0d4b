//! One of the two servers: with core's functions, or with ours.

use super::steps::{Crash, OBJECTS, SESSIONS};
use crate::standby::wait_for_standby;
use pg_snowflake_harness::prelude::*;
use postgres::SimpleQueryMessage;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// A call in a step, core's functions for it, and ours.
const CALLS: [(&str, &str, &str); 6] = [
    ("next", "nextval(@)", "snowflake_nextval(@)"),
    ("next_of", "nextval(@)", "snowflake_nextval(@, 5)"),
    // With this modulus, every counter makes a homed ID.
    ("next_homed", "nextval(@)", "snowflake_nextval_homed(@, 1, 4)"),
    ("next_three", THREE, "snowflake_nextvals(@, 5, 3)"),
    ("next_three_homed", THREE, "snowflake_nextvals_homed(@, 1, 4, 3)"),
    ("current", "currval(@)", "snowflake_currval(@)"),
];

const THREE: &str = "unnest(ARRAY[nextval(@), nextval(@), nextval(@)])";

/// Whose functions are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Core,
    Ours,
}

impl Side {
    /// The statement with the functions of this side.
    pub fn restate(self, sql: &str) -> String {
        CALLS.iter().fold(sql.to_owned(), |sql, (call, core, ours)| {
            let function = if self == Side::Core { core } else { ours };
            let call = format!("{call}('");
            let mut parts = sql.split(&call);
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |restated, part| {
                let (sequence, rest) = part.split_once("')").expect("a call has one argument");
                restated + &function.replace('@', &format!("'{sequence}'")) + rest
            })
        })
    }
}

/// How a statement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub sqlstate: String,
    pub rows: Vec<Vec<String>>,
}

impl Outcome {
    pub fn is_success(&self) -> bool {
        self.sqlstate == "00000"
    }
}

/// A session, and the process that serves it.
type Session = (Client, i32);

pub struct Server {
    side: Side,
    cluster: Cluster,
    sessions: Vec<Session>,
    beside: Session,
    standby: Option<Cluster>,
}

impl Server {
    /// Starts it, with the sequences at that counter.
    pub fn start(side: Side, counter: i64) -> Self {
        let cluster = Cluster::builder()
            .setting("pg_snowflake.shard_id", "5")
            // The longest.
            .setting("pg_snowflake.max_lead", "2147483647")
            .setting("max_prepared_transactions", "2")
            // One statement runs at a time, so a lock that another session holds is not released meanwhile.
            .setting("lock_timeout", "3ms")
            .start();
        let mut beside = with_pid(cluster.connect());
        let objects = side.restate(&OBJECTS.replace('@', &counter.to_string()));
        beside.0.batch_execute(&objects).unwrap_or_else(|error| panic!("{objects}: {error:?}"));
        let mut server = Server { side, cluster, sessions: Vec::new(), beside, standby: None };
        server.connect();
        server
    }

    fn connect(&mut self) {
        self.beside = with_pid(self.cluster.connect());
        self.sessions = (0..SESSIONS.len()).map(|session| self.session(session)).collect();
    }

    fn session(&self, session: usize) -> Session {
        with_pid(self.cluster.connect_to(SESSIONS[session], "postgres"))
    }

    pub fn execute(&mut self, session: usize, sql: &str) -> Outcome {
        outcome(&mut self.sessions[session], &self.side.restate(sql))
    }

    /// Has a superuser execute a statement beside the sessions.
    pub fn beside(&mut self, sql: &str) -> Outcome {
        outcome(&mut self.beside, &self.side.restate(sql))
    }

    pub fn reconnect(&mut self, session: usize) {
        let new = self.session(session);
        let (_, pid) = std::mem::replace(&mut self.sessions[session], new);
        wait_for(&mut self.beside.0, &format!("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid})"), "a session has ended");
    }

    /// Prepares for what [`Server::crash`] will do.
    pub fn expect(&mut self, crash: Crash) {
        if crash == Crash::Promote && self.side == Side::Ours {
            self.standby = Some(self.cluster.standby());
            wait_for_standby(&self.cluster);
        }
    }

    /// Crashes, and comes back with new sessions.
    pub fn crash(&mut self, crash: Crash) {
        match crash {
            Crash::Kill | Crash::Promote => self.cluster.kill_9(),
            Crash::KillPostmaster => self.cluster.kill_postmaster(),
            Crash::Immediate => self.cluster.stop(Shutdown::Immediate),
            Crash::KillBackend { session } => self.cluster.kill_backend(self.sessions[session].1),
        }
        if let Some(standby) = self.standby.take() {
            standby.promote();
            self.cluster = standby;
        } else if !matches!(crash, Crash::KillBackend { .. }) {
            self.cluster.start();
        }
        self.connect();
    }
}

fn with_pid(mut client: Client) -> Session {
    let pid = backend_pid(&mut client);
    (client, pid)
}

/// Executes a statement. If it does not end within a minute, its process is killed, and the test fails: a wait of PostgreSQL 15.20 once
/// did not end after `lock_timeout`, for a reason that is not known.
fn outcome((client, pid): &mut Session, sql: &str) -> Outcome {
    let (ended, end) = channel::<()>();
    let mut kill = Command::new("kill");
    kill.args(["-KILL", &pid.to_string()]);
    thread::spawn(move || {
        if end.recv_timeout(Duration::from_mins(1)) == Err(RecvTimeoutError::Timeout) {
            kill.status().expect("kill is a program");
        }
    });
    let executed = client.simple_query(sql);
    drop(ended);
    let messages = match executed {
        Ok(messages) => messages,
        Err(error) => {
            // The error arrives before the session has released its locks, the answer to this after.
            client.batch_execute("").expect("the session goes on");
            let sqlstate = error.code().unwrap_or_else(|| panic!("{sql}: {error:?}")).code();
            return Outcome { sqlstate: sqlstate.to_owned(), rows: Vec::new() };
        }
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|i| row.get(i).unwrap_or_default().to_owned()).collect()),
        _ => None,
    });
    Outcome { sqlstate: "00000".to_owned(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::Side;

    #[test]
    fn a_statement_is_restated_for_each_side() {
        let sql = "SELECT next('a'), next_three_homed('b'), 'a'::regclass, current('c')";
        let core = "SELECT nextval('a'), unnest(ARRAY[nextval('b'), nextval('b'), nextval('b')]), 'a'::regclass, currval('c')";
        let ours = "SELECT snowflake_nextval('a'), snowflake_nextvals_homed('b', 1, 4, 3), 'a'::regclass, snowflake_currval('c')";
        assert_eq!(Side::Core.restate(sql), core);
        assert_eq!(Side::Ours.restate(sql), ours);
    }
}
