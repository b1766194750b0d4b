//! A session on the registry: the statements of the lease worker, and their answers.

use super::activity::Activity;
use super::connection::{Connection, Deadline, Rows};
use super::libpq::Libpq;
use super::problem::{Problem, Reason};
use super::settings;
use crate::postgres::timestamp::unix_us_of;
use pg_snowflake_policies::holder::{Slot, Verdict};
use pg_snowflake_policies::lease::Span;
use std::ffi::{CStr, CString};
use std::time::Duration;

/// A request of the worker.
#[derive(Clone, Copy)]
pub enum Request {
    Claim,
    Release,
}

/// A connection to the registry that is ready for claims.
pub struct Session<'a> {
    connection: Connection<'a>,
    /// The version of the registry's extension.
    pub version: String,
    /// The registry's identity; `None` before the first call of its functions.
    pub registry: Option<String>,
}

/// Finds the extension, and whether it has the functions that this version calls, with the newest column. A role without USAGE on the
/// schema gets an error.
const FIND: &CStr = c"
SELECT e.extversion,
    pg_catalog.to_regprocedure('snowflake_registry.id()') IS NOT NULL
    AND EXISTS (
        SELECT FROM pg_catalog.pg_proc AS p
        WHERE p.oid OPERATOR(pg_catalog.=) pg_catalog.to_regprocedure('snowflake_registry.claim(pg_catalog.int4[],pg_catalog.text,pg_catalog.uuid,pg_catalog.int8[],pg_catalog.uuid,pg_catalog.timestamptz,pg_catalog.interval,pg_catalog.int4[],pg_catalog.int8[],pg_catalog.timestamptz)')
            AND 'retry_at' OPERATOR(pg_catalog.=) ANY (p.proargnames))
    AND pg_catalog.to_regprocedure('snowflake_registry.release(pg_catalog.uuid,pg_catalog.int4[],pg_catalog.int8[],pg_catalog.timestamptz,pg_catalog.bool)') IS NOT NULL
FROM pg_catalog.pg_extension AS e
WHERE e.extname OPERATOR(pg_catalog.=) 'pg_snowflake_registry'";

const IDENTITY: &CStr = c"SELECT snowflake_registry.id()::pg_catalog.text";

const CLAIM: &CStr = c"
SELECT shard_id, granted, starts, ends, serial, reason, other_server, registry::pg_catalog.text, server,
    read_at, retry_at
FROM snowflake_registry.claim($1::pg_catalog.int4[], $2::pg_catalog.text, $3::pg_catalog.uuid, $4::pg_catalog.int8[],
    $5::pg_catalog.uuid, $6::pg_catalog.timestamptz, $7::pg_catalog.interval, $8::pg_catalog.int4[], $9::pg_catalog.int8[],
    $10::pg_catalog.timestamptz)";

const RELEASE: &CStr = c"
SELECT snowflake_registry.release($1::pg_catalog.uuid, $2::pg_catalog.int4[], $3::pg_catalog.int8[],
    $4::pg_catalog.timestamptz, $5::pg_catalog.bool)";

/// How long a request has been waiting for a synchronous standby, in seconds; null if none has for as long as a request waits for a
/// lock. The requests of this role are those that it sees: an earlier one of this server is among them.
const WAITS_FOR_STANDBY: &CStr = c"
SELECT pg_catalog.date_part('epoch', pg_catalog.max(pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) query_start))::pg_catalog.int8
FROM pg_catalog.pg_stat_activity
WHERE wait_event OPERATOR(pg_catalog.=) 'SyncRep' AND datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
    AND usename OPERATOR(pg_catalog.=) session_user AND query OPERATOR(pg_catalog.~~) '%snowflake_registry.%'
    AND query_start OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp()
        OPERATOR(pg_catalog.-) pg_catalog.current_setting('lock_timeout')::pg_catalog.interval)";

/// Prepares the session. Warnings would mean that an answer does not count; notices mean nothing. A request
/// that waits for a lock ends by itself: the registry does not notice that nobody waits for its answer.
const PREPARE: &CStr = c"
SELECT pg_catalog.set_config('synchronous_commit', 'on', false),
    pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
    pg_catalog.set_config('lock_timeout', $1, false),
    pg_catalog.set_config('client_min_messages', 'warning', false)";

impl<'a> Session<'a> {
    /// Connects, and finds the extension.
    pub fn open(libpq: &'a Libpq, conninfo: &CStr, deadline: Deadline) -> Result<Self, Problem> {
        let mut connection = Connection::open(libpq, conninfo, deadline)?;
        // Less than the worker waits, so that it gets the error, and than a claim may be late without looking like a wrong clock.
        let limit = (settings::lease() / 4).min(Duration::from_millis(900));
        let limit = CString::new(limit.as_millis().to_string()).unwrap_or_default();
        connection.query(PREPARE, &[limit], deadline)?;
        let version = version_of(&mut connection, deadline)?;
        let rows = connection.query(IDENTITY, &[], deadline)?;
        let registry = rows.text(0, 0);
        Ok(Session { connection, version, registry })
    }

    /// Executes a request.
    pub fn ask(&mut self, request: Request, parameters: &[CString], deadline: Deadline) -> Result<Rows<'a>, Problem> {
        let (sql, activity) = match request {
            Request::Claim => (CLAIM, Activity::Claiming),
            Request::Release => (RELEASE, Activity::Releasing),
        };
        activity.report();
        self.connection.query(sql, parameters, deadline)
    }

    /// Why a request failed, if not by what the registry answered: the extension may have been dropped or updated since the session was
    /// opened, or the registry waits for its synchronous standby.
    pub fn explain(&mut self, error: Problem, deadline: Deadline) -> Result<Problem, Problem> {
        version_of(&mut self.connection, deadline)?;
        if error.is_lock_timeout() {
            let waits = self.connection.query(WAITS_FOR_STANDBY, &[], deadline)?;
            if let Some(seconds) = waits.number(0, 0) {
                return Ok(Problem::StandbyDown(seconds));
            }
        }
        Ok(error)
    }
}

/// The version of the registry's extension, if that has all functions that this version calls.
fn version_of(connection: &mut Connection, deadline: Deadline) -> Result<String, Problem> {
    let rows = connection.query(FIND, &[], deadline)?;
    let version = (rows.count() == 1).then(|| rows.text(0, 0)).flatten();
    let version = version.ok_or(Problem::NoExtension)?;
    if rows.number(0, 1) != Some(1) {
        return Err(Problem::IncompatibleVersion(version));
    }
    Ok(version)
}

/// The registry's answer for a shard.
pub struct Answer {
    /// The shard.
    pub shard: u32,
    /// The span and the serial, or why there are none.
    pub verdict: Verdict<Reason>,
    /// Another server with the same data directory claims it.
    pub copied: Option<Reason>,
    /// The registry's identity.
    pub registry: String,
    /// The system identifier of its server.
    pub server: String,
}

impl Answer {
    /// A row of the answer; `None` if it cannot be read.
    pub fn read(rows: &Rows, row: usize) -> Option<Self> {
        let [read_at, retry_at] = [9, 10].map(|column| rows.number(row, column));
        let retry_in =
            retry_at.zip(read_at).map(|(retry_at, read_at)| Duration::from_micros(retry_at.saturating_sub(read_at).max(0) as u64));
        let reason = rows.text(row, 5).map(|text| Reason { text, other_server: rows.text(row, 6), retry_in });
        let (verdict, copied) = if rows.number(row, 1)? == 1 {
            let [starts_us, ends_us] = [rows.number(row, 2)?, rows.number(row, 3)?].map(unix_us_of);
            (Ok((Span { starts_us, ends_us }, rows.number(row, 4)?)), reason)
        } else {
            (Err(reason?), None)
        };
        Some(Answer {
            shard: u32::try_from(rows.number(row, 0)?).ok()?,
            verdict,
            copied,
            registry: rows.text(row, 7)?,
            server: rows.text(row, 8)?,
        })
    }
}

/// What the answers say of a copy of this server, although they grant the lease.
pub fn copied(answers: &[Answer]) -> Vec<(u32, Reason)> {
    let reason = |answer: &Answer| Some((answer.shard, answer.copied.clone()?));
    answers.iter().filter_map(reason).collect()
}

/// A literal of a UUID.
pub fn uuid(uuid: u128) -> String {
    format!("{uuid:032x}")
}

/// A literal of a serial in an array.
pub fn serial(slot: &Slot) -> String {
    slot.serial.map_or_else(|| "NULL".into(), |serial| serial.to_string())
}

/// A literal of an array of numbers.
pub fn array(elements: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", elements.collect::<Vec<_>>().join(","))
}
