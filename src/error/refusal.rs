//! The errors for counters that the policy refuses.

use crate::citus;
use crate::lease;
use crate::postgres::report::{Report, duration, quoted, relation_name};
use crate::sequence::{after_another_layout, not_its_counter, unusable};
use crate::settings::{MAX_LEAD_US, Setting, set_for_this_database};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::{Ahead, Refusal};
use pgrx::prelude::*;

/// The error to raise.
pub fn refused(refusal: Refusal, layout: Layout, shard: u32, relid: pg_sys::Oid) -> Report {
    match refusal {
        Refusal::ClockBeforeEpoch { us } => Report {
            code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message: format!(
                "server clock is before the epoch of layout {}",
                quoted(&layout.to_string())
            ),
            detail: Some(format!("The clock is {} behind the epoch.", duration(us))),
            hint: Some("Correct the server's clock.".into()),
        },
        Refusal::TooFarAhead { lead_us, wait_us, ahead } => {
            too_far_ahead(relid, layout, lead_us, wait_us, ahead)
        }
        Refusal::NotHome { counters } => Report {
            code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message: format!("could not find a homed ID of shard {shard}"),
            detail: Some(format!("None of the next {counters} counters yields one.")),
            hint: Some("Pass a lower modulus, fewer generators or larger hash ranges.".into()),
        },
        Refusal::Lease(refusal) => lease::refused(refusal, layout, shard, relid),
        Refusal::AboveMaxValue { counter, max_value } => unusable(
            format!("Its MAXVALUE is {max_value}, below the next counter, {counter}."),
            "NO MAXVALUE",
            relid,
        ),
        Refusal::LayoutUsedUp => Report {
            code: PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            message: format!(
                "sequence {} has reached the end of layout {}",
                quoted(&relation_name(relid)),
                quoted(&layout.to_string())
            ),
            detail: Some(format!(
                "The last tick of the layout is {}. A later ID would be negative or would not fit.",
                layout.max_tick()
            )),
            hint: Some(
                "If the server's clock is right, convert the column to a layout that ends later."
                    .into(),
            ),
        },
    }
}

fn too_far_ahead(
    relid: pg_sys::Oid,
    layout: Layout,
    lead_us: i64,
    wait_us: i64,
    ahead: Ahead,
) -> Report {
    let needed_lead_s = lead_us / 1_000_000 + 1;
    let is_within_max_lead = needed_lead_s <= MAX_LEAD_US / 1_000_000;
    let raise_max_lead = || {
        format!(
            "If the clock is wrong, correct it; no other action is needed. If it is right, have a superuser let new \
             sessions run ahead of it, with IDs still unique: {}",
            set_for_this_database(Setting::MaxLead, &format!("'{needed_lead_s}s'"))
        )
    };
    let (message, cause, hint) = match ahead {
        Ahead::Sequence { last_value } => {
            let (cause, hint) = if let Some((cause, hint)) = not_its_counter(last_value, layout) {
                (cause, hint)
            } else if is_within_max_lead {
                let cause = "its last IDs were generated before the clock stepped back, or faster than the layout allows";
                (cause.into(), raise_max_lead())
            } else {
                let cause = "it was used with another layout, was set to a number that is not its counter, or was used while the \
                             clock was wrong by that much";
                (cause.into(), after_another_layout())
            };
            (
                format!(
                    "sequence {} is too far ahead of the server clock",
                    quoted(&relation_name(relid))
                ),
                format!("It is {} ahead: {cause}.", duration(lead_us)),
                // Not setval(): the sequence would repeat an ID that a table contains.
                if !is_within_max_lead && citus::is_installed() {
                    citus::recipe_with_another_sequence()
                } else {
                    hint
                },
            )
        }
        Ahead::HighWater { step_us } => (
            "server clock stepped back too far".to_owned(),
            format!(
                "It is {} behind its reading at the last ID of this session, which generates no IDs below that reading.",
                duration(step_us)
            ),
            if is_within_max_lead {
                raise_max_lead()
            } else {
                "If the clock is wrong, correct it; no other action is needed. If it is right, reconnect.".into()
            },
        ),
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message,
        detail: Some(format!(
            "{cause} The next ID is due in {}, which is longer than pg_snowflake.max_wait.",
            duration(wait_us)
        )),
        hint: Some(hint),
    }
}
