//! The errors for counters outside of a lease.

use super::with_last_answer;
use crate::postgres::report::{Report, duration, quoted, relation_name};
use crate::sequence::not_its_counter;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::LeaseRefusal;
use pgrx::pg_sys;
use pgrx::prelude::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;

/// The error to raise.
pub fn refused(refusal: LeaseRefusal, layout: Layout, shard: u32, relid: pg_sys::Oid) -> Report {
    let (message, cause, hint) = match refusal {
        LeaseRefusal::Ended { us } => (
            format!("lease of shard {shard} has ended"),
            format!("It ended {} ago.", duration(us)),
            "Make the registry reachable; the server then renews its lease automatically. See the server log and \
             snowflake_lease_status()."
                .to_owned(),
        ),
        LeaseRefusal::BeginsLater { us } => (
            format!("lease of shard {shard} has not begun"),
            format!(
                "It begins in {}, when the shard's former span or the registry's quiet time has ended.",
                duration(us)
            ),
            "Try again then. If the time is long, compare the clocks of this server and the registry."
                .to_owned(),
        ),
        LeaseRefusal::SequencePastEnd { lead_us, last_value } => {
            let (cause, hint) = match not_its_counter(last_value, layout) {
                Some((cause, hint)) => (format!(": {cause}"), hint),
                None => {
                    let hint = "Try again when the clock has caught up with the sequence.";
                    (String::new(), hint.to_owned())
                }
            };
            (
                format!(
                    "sequence {} is past the end of the lease of shard {shard}",
                    quoted(&relation_name(relid))
                ),
                format!("It is {} ahead of the clock{cause}.", duration(lead_us)),
                hint,
            )
        }
        LeaseRefusal::HighWaterPastEnd { step_us } => (
            "server clock stepped back too far".to_owned(),
            format!(
                "It is {} behind its reading at the last ID of this session, which generates no IDs below that reading. The lease of \
                 shard {shard} ends before.",
                duration(step_us)
            ),
            "If the clock is wrong, correct it; no other action is needed. If it is right, reconnect."
                .to_owned(),
        ),
    };
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message,
        detail: Some(with_last_answer(cause)),
        hint: Some(hint),
    }
}
