//! The reasons why this server has no lease, as the server log and `snowflake_lease_status()` report them.

use crate::postgres::report::Report;
use crate::postgres::timestamp::{now_us, printed};
use pg_snowflake_ids::excerpt::truncated;
use pg_snowflake_policies::holder::Slot;
use pg_snowflake_policies::registry::MAX_SHARDS_OF_A_NODE;
use pgrx::PgSqlErrorCode::{
    ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, ERRCODE_SUCCESSFUL_COMPLETION,
};
use std::fmt::Display;
use std::io;

/// The version of this library.
pub const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why leases are missing.
#[derive(Debug)]
pub enum Problem {
    /// `pg_snowflake.registry` cannot be parsed; the message of libpq.
    InvalidConninfo(String),
    /// Whether the request was executed is not known; the message of libpq.
    NoAnswer(String),
    /// An answer with this warning: what was granted may be lost.
    Warning(String),
    /// An ERROR of the registry: nothing was changed.
    Error {
        /// The SQLSTATE.
        sqlstate: String,
        /// The message.
        message: String,
        /// The detail.
        detail: Option<String>,
        /// The hint.
        hint: Option<String>,
    },
    /// An earlier request has waited for the registry's synchronous standby for that many seconds, and holds the rows of leases.
    StandbyDown(i64),
    /// The registry's database lacks the extension `pg_snowflake_registry`.
    NoExtension,
    /// The registry's extension, of this version, lacks a function that this version calls.
    IncompatibleVersion(String),
    /// The answer cannot be read.
    UnexpectedAnswer,
    /// The registry is on this server or a copy of it.
    OwnRegistry,
    /// The registry is not the one that this data directory has used.
    OtherRegistry {
        /// The one that it has used.
        known: String,
        /// The one that answered.
        found: String,
    },
    /// The file with the registry's identity cannot be read or written.
    File(io::Error),
    /// `pg_snowflake.allowed_hosts` does not have this server.
    ForeignHost,
    /// `pg_snowflake.owned_shards` has more shards than a server can have leases of.
    TooManyShards,
    /// The shards that the registry refused, each with a reason.
    Refused(Vec<(u32, Reason)>),
    /// As [`Problem::Refused`], but the server held one of these leases before.
    Lost(Vec<(u32, Reason)>),
    /// The shards that another server with the same data directory claims too. This server holds them.
    Copied(Vec<(u32, Reason)>),
}

/// What the registry says of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Why it is refused.
    pub text: String,
    /// Which other server is the cause.
    pub other_server: Option<String>,
}

impl Problem {
    /// Whether the registry gave up waiting for a lock.
    pub fn is_lock_timeout(&self) -> bool {
        matches!(self, Problem::Error { sqlstate, .. } if sqlstate == "55P03")
    }

    /// Whether the detail is libpq's. It names hosts and users, and is the same as long as the problem is. The figures of other
    /// details change from one claim to the next.
    fn is_of_libpq(&self) -> bool {
        matches!(self, Problem::InvalidConninfo(_) | Problem::NoAnswer(_))
    }

    /// In one line, for those who may monitor the server.
    pub fn in_full(&self) -> String {
        let (message, detail, _) = self.words();
        if detail.is_empty() { message } else { format!("{message}: {detail}") }
    }

    /// In one line, for everybody.
    pub fn in_public(&self) -> String {
        match self {
            Problem::Refused(shards) | Problem::Lost(shards) | Problem::Copied(shards) => {
                format!(
                    "{}: {}",
                    self.words().0,
                    reasons(shards, |reason| vec![reason.text.as_str()])
                )
            }
            _ if self.is_of_libpq() => self.words().0,
            _ => self.in_full(),
        }
    }

    /// What distinguishes it from another state that is worth a line in the server log.
    pub fn state(&self) -> String {
        if self.is_of_libpq() { self.in_full() } else { self.words().0 }
    }

    /// For the server log.
    pub fn report(&self) -> Report {
        let (message, detail, hint) = self.words();
        Report {
            code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message: format!("pg_snowflake: {message}"),
            detail: Some(detail).filter(|detail| !detail.is_empty()),
            hint: Some(hint),
        }
    }

    /// The message, the detail, which may be empty, and the hint.
    fn words(&self) -> (String, String, String) {
        let words = |message: &str, detail: &str, hint: &str| {
            (message.to_owned(), detail.to_owned(), hint.to_owned())
        };
        match self {
            Problem::InvalidConninfo(error) => words(
                "pg_snowflake.registry is not a connection string",
                error,
                "Correct it in the server's configuration, and restart the server.",
            ),
            Problem::NoAnswer(error) => words(
                "no answer from the registry",
                error,
                "Check that the registry is running and accepts connections of this server. See pg_snowflake.registry and \
                 the password file here, and pg_hba.conf there.",
            ),
            Problem::Warning(warning) => words(
                "registry's answer is ignored because of a warning",
                warning,
                "Fix the cause in the registry, such as a synchronous standby that is down.",
            ),
            Problem::Error { message, detail, hint, .. } => words(
                &format!("registry reported an error: {message}"),
                detail.as_deref().unwrap_or_default(),
                hint.as_deref().unwrap_or(
                    "If a privilege is missing, run in the registry's database, for the role of pg_snowflake.registry: GRANT \
                     USAGE ON SCHEMA snowflake_registry TO role; GRANT EXECUTE ON FUNCTION snowflake_registry.id, \
                     snowflake_registry.claim, snowflake_registry.release TO role;",
                ),
            ),
            Problem::StandbyDown(seconds) => words(
                "registry waits for its synchronous standby",
                &format!(
                    "An earlier request has waited for synchronous_standby_names for {seconds} s, and keeps the rows of its leases locked."
                ),
                "Start the standby. If that takes longer, remove it from synchronous_standby_names on the registry's server, and reload there.",
            ),
            Problem::NoExtension => words(
                "registry does not have the extension pg_snowflake_registry",
                "",
                "In a new registry, run as a superuser, in the database that pg_snowflake.registry names: CREATE EXTENSION \
                 pg_snowflake_registry; If somebody has dropped the extension, restore the registry.",
            ),
            Problem::IncompatibleVersion(version) => words(
                "registry has an incompatible version of pg_snowflake_registry",
                &format!(
                    "The registry has {version}, this server {OWN_VERSION}. The registry lacks a function that this server \
                     calls."
                ),
                "Install this server's version on the registry's server, and run in the registry's database: ALTER \
                 EXTENSION pg_snowflake_registry UPDATE;",
            ),
            Problem::UnexpectedAnswer => words(
                "cannot read the registry's answer",
                "",
                "Install the same version of pg_snowflake on the registry and on this server.",
            ),
            Problem::OwnRegistry => words(
                "registry is on this server or on a copy of it",
                "The system identifiers are equal. A copy of this server would also be a copy of the registry.",
                "Use a database of another server, and restart this server.",
            ),
            Problem::OtherRegistry { known, found } => words(
                "registry is not the one that this server has used",
                &format!(
                    "Its identity is {found}; the file pg_snowflake_registry in the data directory has {known}. \
                     Another registry may grant spans that have been used."
                ),
                "Correct pg_snowflake.registry. If all servers change to this registry, stop them, wait until their \
                 leases have ended, and remove the file from each data directory.",
            ),
            Problem::File(error) => words(
                "cannot read or write the file pg_snowflake_registry in the data directory",
                &error.to_string(),
                "Correct the permissions of the file and the directory, or free space on the disk.",
            ),
            Problem::ForeignHost => words(
                "pg_snowflake.allowed_hosts does not allow this server to generate IDs",
                "",
                "If this server is a copy, leave the list as it is. Otherwise, add the host name to pg_snowflake.allowed_hosts.",
            ),
            Problem::TooManyShards => words(
                "pg_snowflake.owned_shards lists too many shards for leases",
                &format!("The limit is {MAX_SHARDS_OF_A_NODE}."),
                "List only the shards that this server generates IDs for.",
            ),
            Problem::Refused(refused) => words(
                &format!("registry refused the lease of {}", list(refused.iter().map(|&(shard, _)| shard))),
                &reasons(refused, Reason::in_full),
                "If this server is meant to have the shard, stop the holder, or call snowflake_registry.take_over() in the \
                 registry. Otherwise, remove the shard from the configuration of this server. A server whose shard is assigned needs a \
                 pg_snowflake.node of its own.",
            ),
            Problem::Lost(lost) => words(
                &format!("lost the lease of {}", list(lost.iter().map(|&(shard, _)| shard))),
                &reasons(lost, Reason::in_full),
                "Find the cause: snowflake_registry.take_over() was called, the registry was restored from a backup, or a clone \
                 of this server's virtual machine is running. A clone with this server's memory may have repeated IDs.",
            ),
            Problem::Copied(copied) => words(
                "a copy of this server is running",
                &reasons(copied, Reason::in_full),
                "Stop the copy, or list other shards in its pg_snowflake.owned_shards. This server holds the leases.",
            ),
        }
    }
}

/// For the server log, once all leases are granted.
pub fn granted(slots: &[Slot]) -> Report {
    let later = slots.iter().map(|slot| slot.span.starts_us).max().filter(|&us| us > now_us());
    Report {
        code: ERRCODE_SUCCESSFUL_COMPLETION,
        message: format!(
            "pg_snowflake: holding the lease of {}",
            list(slots.iter().map(|slot| slot.shard))
        ),
        detail: later.map(|us| {
            format!(
                "The spans begin at {} at the latest, when the former ones or the registry's quiet time have ended.",
                printed(us)
            )
        }),
        hint: None,
    }
}

/// For the server log: the registry has this version, and all functions that this version calls.
pub fn other_version(version: &str) -> Report {
    Report {
        code: ERRCODE_SUCCESSFUL_COMPLETION,
        message: "pg_snowflake: registry has another version of pg_snowflake_registry".into(),
        detail: Some(format!("The registry has {version}, this server {OWN_VERSION}. Leases work.")),
        hint: Some(
            "Once the same version is installed everywhere, run in the registry's database: ALTER EXTENSION \
             pg_snowflake_registry UPDATE;"
                .into(),
        ),
    }
}

/// For the server log, once leases have ended because they were not renewed.
pub fn ended(shards: &[u32], error: &str) -> Report {
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("pg_snowflake: the lease of {} has ended", list(shards.iter())),
        detail: Some(error.to_owned()).filter(|error| !error.is_empty()),
        hint: Some("The server generates no IDs for it until the lease is renewed.".into()),
    }
}

/// The shards in words.
fn list(shards: impl Iterator<Item = impl Display>) -> String {
    let shards: Vec<String> = shards.map(|shard| shard.to_string()).collect();
    match shards.as_slice() {
        [] => "no shard".into(),
        [shard] => format!("shard {shard}"),
        _ => format!("shards {}", truncated(&shards.join(", "), 200)),
    }
}

fn reasons(refused: &[(u32, Reason)], sentences: impl Fn(&Reason) -> Vec<&str>) -> String {
    let reasons: Vec<&str> = refused.iter().flat_map(|(_, reason)| sentences(reason)).collect();
    truncated(&reasons.join(" "), 500).into_owned()
}

impl Reason {
    fn in_full(&self) -> Vec<&str> {
        [Some(&self.text), self.other_server.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect()
    }
}
