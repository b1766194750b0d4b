//! The sentences that say why a lease is not granted.

use super::refusal::clock_report;
use crate::postgres::report::quoted;
use crate::postgres::timestamp::printed;
use pg_snowflake_policies::registry::{Claim, Moment, Origin, Refusal};

/// Why the shard is not granted, or what is wrong although it is.
pub struct Reason {
    /// In a sentence, for any user.
    pub text: String,
    /// Which other server is the cause, in a sentence for those who may monitor the server.
    pub other_server: Option<String>,
}

/// Why the shard is not granted. A wrong clock is an error, since it applies to all shards, unless the transaction must commit: it has
/// begun a quiet time.
#[track_caller]
pub fn reason(
    refusal: Refusal,
    shard: i32,
    claim: Claim,
    moment: Moment,
    must_commit: bool,
) -> Reason {
    let wrong_clock = |direction, us| {
        let report = clock_report(direction, us, claim, moment);
        if !must_commit {
            report.raise();
        }
        format!("The {}.", report.message)
    };
    let text = match refusal {
        Refusal::HeldBy { is_copy: true, origin, .. } => return two_servers(shard, &origin),
        Refusal::HeldBy { node, ends_us, origin, .. } if node == claim.node => {
            return Reason {
                text: format!(
                    "Shard {shard} is held by an earlier run or a copy of this server, node {}, until {}.",
                    quoted(&node),
                    printed(ends_us)
                ),
                other_server: Some(server(&origin)),
            };
        }
        Refusal::HeldBy { node, ends_us, .. } => {
            format!("Shard {shard} is held by node {} until {}.", quoted(&node), printed(ends_us))
        }
        Refusal::KeptFor { node, until_us } => format!(
            "Shard {shard} is kept for the server that held it last, node {}, until {}.",
            quoted(&node),
            printed(until_us)
        ),
        Refusal::ReservedFor { node } => {
            format!("Shard {shard} is reserved for node {}.", quoted(&node))
        }
        Refusal::EndsLater { ends_us } => {
            format!("The span of the last holder of shard {shard} ends at {}.", printed(ends_us))
        }
        Refusal::Barred => format!("Shard {shard} was taken over from this server."),
        Refusal::Superseded => {
            format!("The lease of shard {shard} has changed since this server last renewed it.")
        }
        Refusal::ClockAhead { us } => wrong_clock("ahead of", us),
        Refusal::ClockBehind { us } => wrong_clock("behind", us),
    };
    Reason { text, other_server: None }
}

/// For the holder.
pub fn copy_is_running(shard: i32, other: &Origin) -> Reason {
    Reason {
        text: format!("Another server with the name of this one claims shard {shard}, too."),
        other_server: Some(server(other)),
    }
}

/// For the server that is refused.
fn two_servers(shard: i32, other: &Origin) -> Reason {
    Reason {
        text: format!(
            "Two servers with the same data directory claim shard {shard}. The registry cannot know which one is the copy."
        ),
        other_server: Some(server(other)),
    }
}

fn server(origin: &Origin) -> String {
    let address = match origin.address.as_str() {
        "" => "connects by a Unix-domain socket".into(),
        address => format!("has the address {address}"),
    };
    match origin.started_at_us {
        Some(us) => format!("The other server {address}, and was started at {}.", printed(us)),
        None => format!("The other server {address}."),
    }
}
