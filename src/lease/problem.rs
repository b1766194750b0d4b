//! The reasons why this server has no lease, as the server log and `snowflake_lease_status()` report them.

use super::known::Unusable;
use crate::postgres::report::Report;
use crate::postgres::timestamp::{now_us, printed};
use pg_snowflake_ids::excerpt::truncated;
use pg_snowflake_policies::holder::Slot;
use pg_snowflake_policies::messages::worker as messages;
use pg_snowflake_policies::registry::MAX_SHARDS_OF_A_NODE;
use std::fmt::Display;
use std::time::Duration;

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
    /// What the data directory knows of the registry cannot be read or written; the server's error.
    Known(String),
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

impl From<Unusable> for Problem {
    fn from(Unusable(error): Unusable) -> Self {
        Problem::Known(error)
    }
}

/// What the registry says of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Why it is refused.
    pub text: String,
    /// Which other server is the cause.
    pub other_server: Option<String>,
    /// After which time the registry can grant the shard.
    pub retry_in: Option<Duration>,
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
        self.words().summary()
    }

    /// In one line, for everybody.
    pub fn in_public(&self) -> String {
        match self {
            Problem::Refused(shards) | Problem::Lost(shards) | Problem::Copied(shards) => {
                let reasons = reasons(shards, |reason| vec![reason.text.as_str()]);
                format!("{}: {reasons}", self.words().message)
            }
            _ if self.is_of_libpq() => self.words().message,
            _ => self.in_full(),
        }
    }

    /// What distinguishes it from another state that is worth a line in the server log.
    pub fn state(&self) -> String {
        if self.is_of_libpq() { self.in_full() } else { self.words().message }
    }

    /// For the server log.
    pub fn report(&self) -> Report {
        let report = self.words();
        Report { message: format!("pg_snowflake: {}", report.message), ..report }
    }

    fn words(&self) -> Report {
        let of_shards = |refused: &[(u32, Reason)]| shard_list(refused.iter().map(|&(shard, _)| shard));
        match self {
            Problem::InvalidConninfo(error) => messages::invalid_conninfo(error),
            Problem::NoAnswer(error) => messages::no_answer(error),
            Problem::Warning(warning) => messages::warning(warning),
            Problem::Error { message, detail, hint, .. } => {
                let detail = detail.as_deref().unwrap_or_default();
                match hint {
                    Some(hint) => messages::error(message, detail, hint),
                    None => messages::error_without_hint(message, detail),
                }
            }
            Problem::StandbyDown(seconds) => messages::standby_down(seconds),
            Problem::NoExtension => messages::no_extension(),
            Problem::IncompatibleVersion(version) => messages::incompatible_version(version, OWN_VERSION),
            Problem::UnexpectedAnswer => messages::unexpected_answer(),
            Problem::OwnRegistry => messages::own_registry(),
            Problem::OtherRegistry { known, found } => messages::other_registry(found, known),
            Problem::Known(error) => messages::unusable(error),
            Problem::ForeignHost => messages::foreign_host(),
            Problem::TooManyShards => messages::too_many_shards(MAX_SHARDS_OF_A_NODE),
            Problem::Refused(refused) => messages::refused(of_shards(refused), reasons(refused, Reason::in_full)),
            Problem::Lost(lost) => messages::lost(of_shards(lost), reasons(lost, Reason::in_full)),
            Problem::Copied(copied) => messages::copied(reasons(copied, Reason::in_full)),
        }
    }
}

/// For the server log, once all leases are granted.
pub fn granted(slots: &[Slot]) -> Report {
    let later = slots.iter().map(|slot| slot.span.starts_us).max().filter(|&us| us > now_us());
    let begin = later.map_or_else(String::new, |us| messages::spans_begin(printed(us)));
    messages::granted(shard_list(slots.iter().map(|slot| slot.shard)), begin)
}

/// For the server log: the registry has this version, and all functions that this version calls.
pub fn other_version(version: &str) -> Report {
    messages::other_version(version, OWN_VERSION)
}

/// For the server log, once leases have ended because they were not renewed.
pub fn ended(shards: &[u32], error: &str) -> Report {
    messages::ended(shard_list(shards.iter()), error)
}

/// The shards in words.
pub fn shard_list(shards: impl Iterator<Item = impl Display>) -> String {
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
        [Some(&self.text), self.other_server.as_ref()].into_iter().flatten().map(String::as_str).collect()
    }
}
