//! Why a lease is not granted, and why a quiet time does not end.

use crate::postgres::report::{Raise, duration, quoted};
use crate::postgres::timestamp::printed;
use pg_snowflake_policies::messages::registry as messages;
use pg_snowflake_policies::registry::{Claim, Moment, NotYet, Origin, Refusal};

/// Why the shard is not granted, or what is wrong although it is.
pub struct Reason {
    /// In a sentence, for any user.
    pub text: String,
    /// Which other server is the cause, in a sentence for those who may monitor the server.
    pub other_server: Option<String>,
    /// When another claim can be granted, in microseconds since 1970; `None` if that depends on a person, or the claim is granted.
    pub retry_at_us: Option<i64>,
}

/// Why the shard is not granted. A wrong clock is an error, since it applies to all shards, unless the transaction must commit: it has
/// begun a quiet time.
#[track_caller]
pub fn reason(refusal: Refusal, shard: i32, claim: Claim, moment: Moment, must_commit: bool) -> Reason {
    // `direction` is that of the server's clock.
    let wrong_clock = |direction, us| {
        let reading = printed(claim.until_us.saturating_sub(claim.length_us));
        let now = printed(moment.now_us);
        let report = messages::wrong_clock(quoted(claim.node), direction, reading, duration(us), now);
        if !must_commit {
            report.raise();
        }
        format!("The {}.", report.message)
    };
    let (mut other_server, retry_at_us) = (None, refusal.until_us());
    let text = match refusal {
        Refusal::HeldBy { is_copy: true, origin, .. } => {
            other_server = Some(server(&origin));
            messages::two_servers(shard)
        }
        Refusal::HeldBy { node, ends_us, origin, .. } if node == claim.node => {
            other_server = Some(server(&origin));
            messages::held_by_earlier_run(shard, quoted(&node), printed(ends_us))
        }
        Refusal::HeldBy { node, ends_us, .. } => messages::held_by(shard, quoted(&node), printed(ends_us)),
        Refusal::KeptFor { node, until_us } => messages::kept_for(shard, quoted(&node), printed(until_us)),
        Refusal::ReservedFor { node } => messages::reserved_for(shard, quoted(&node)),
        Refusal::EndsLater { ends_us } => messages::ends_later(shard, printed(ends_us)),
        Refusal::Barred => messages::taken_over(shard),
        Refusal::Superseded => messages::superseded(shard),
        Refusal::ClockAhead { us } => wrong_clock("ahead of", us),
        Refusal::ClockBehind { us } => wrong_clock("behind", us),
    };
    Reason { text, other_server, retry_at_us }
}

/// For the holder.
pub fn copy_is_running(shard: i32, other: &Origin) -> Reason {
    Reason { text: messages::copy_is_running(shard), other_server: Some(server(other)), retry_at_us: None }
}

fn server(origin: &Origin) -> String {
    let connection = match origin.address.as_str() {
        "" => "connects by a Unix-domain socket".into(),
        address => format!("has the address {address}"),
    };
    match origin.started_at_us {
        Some(us) => messages::other_server_started(connection, printed(us)),
        None => messages::other_server(connection),
    }
}

/// The quiet time does not end earlier.
#[track_caller]
pub fn quiet_time_goes_on(reason: NotYet, quiet_until_us: i64, now_us: i64) -> ! {
    let until = printed(quiet_until_us);
    match reason {
        NotYet::AsSoonAsPossible if quiet_until_us <= now_us => messages::no_quiet_time(until),
        NotYet::AsSoonAsPossible => messages::quiet_time_goes_on(until),
        NotYet::GrantedAt(at_us) => {
            let [granted, now, end] = [at_us, now_us, at_us.min(quiet_until_us)].map(printed);
            messages::quiet_time_after_wrong_clock(granted, now, end)
        }
    }
    .raise()
}
