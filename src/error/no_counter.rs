//! The messages of sequences that return no counter.

use super::denied::with_last_answer;
use super::set_for_this_database;
use crate::distributed;
use crate::postgres::report::{Report, current_user_name, duration, quoted, relation_name, type_name};
use crate::sequence::{NoCounter, read_clock};
use crate::settings::{MAX_LEAD_US, Setting};
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::held::{Held, instead_of_counter};
use pg_snowflake_policies::counter::Refusal;
use pg_snowflake_policies::messages::{leases, sequence as messages, server};
use pgrx::pg_sys;

/// The error to raise. `function` is the SQL function called, and `relid` the sequence passed to it.
pub fn report(reason: NoCounter, function: &str, relid: pg_sys::Oid) -> Report {
    let name = relation_name(relid);
    let quoted = quoted(&name);
    match reason {
        NoCounter::NoSuchRelation => messages::no_such_sequence(relid.to_u32()),
        NoCounter::NotASequence => messages::not_a_sequence(quoted, function),
        NoCounter::PermissionDenied { either: [other, grant] } => {
            messages::permission_denied(name, function, grant, other, current_user_name())
        }
        NoCounter::ReadOnlyTransaction => server::read_only(function),
        NoCounter::DuringRecovery => server::during_recovery(function, "Only the primary generates IDs."),
        NoCounter::ParallelMode => server::parallel_mode(function),
        NoCounter::BadMagic(magic) => messages::bad_magic(quoted, format_args!("{magic:08X}")),
        NoCounter::UnsupportedType(typid) => messages::unusable_type(quoted, name, type_name(typid)),
        NoCounter::UnsupportedIncrement(increment) => messages::unusable_increment(quoted, name, increment),
        NoCounter::UnsupportedCycle => messages::unusable_cycle(quoted, name),
        NoCounter::RangeOfNode { group } => messages::unusable_range_of_node(quoted, group, distributed::recipe_with_another_sequence()),
        NoCounter::CurrvalUndefined => messages::currval_undefined(function, quoted),
        NoCounter::Refused { refusal, layout, shard, is_set_back } => refused(refusal, layout, shard, is_set_back, name, quoted),
    }
}

/// The policy refuses to issue a counter.
fn refused(refusal: Refusal, layout: Layout, shard: u32, is_set_back: bool, name: String, sequence: String) -> Report {
    let number = if is_set_back { "the counter of its last ID" } else { "its last_value" };
    match refusal {
        Refusal::ClockBeforeEpoch { us } => messages::before_epoch(layout, duration(us)),
        Refusal::TooFarAhead { lead_us, wait_us, last_value } => too_far_ahead(sequence, layout, lead_us, wait_us, number, last_value),
        Refusal::SteppedBack { lead_us, wait_us, step_us } => {
            let [step, wait] = [step_us, wait_us].map(duration);
            match raise_max_lead(lead_us) {
                Some(hint) => messages::stepped_back_a_little(step, wait, hint),
                None => messages::stepped_back_far(step, wait),
            }
        }
        Refusal::AboveMaxValue { counter, max_value } => messages::unusable_max_value(sequence, name, max_value, counter),
        Refusal::LayoutUsedUp => messages::layout_used_up(sequence, layout, layout.max_tick()),
        Refusal::NotHome { counters } => messages::not_home(shard, counters),
        Refusal::LeaseEnded { us } => with_last_answer(leases::ended(shard, duration(us))),
        Refusal::LeaseBeginsLater { us } => with_last_answer(leases::begins_later(shard, duration(us))),
        Refusal::PastLease { lead_us, last_value } => {
            let lead = duration(lead_us);
            with_last_answer(match not_its_counter(number, last_value, layout) {
                Some((held, hint)) => leases::past_end_by_another_number(sequence, shard, lead, held, hint),
                None => leases::past_end(sequence, shard, lead),
            })
        }
        Refusal::SteppedBackToLease { step_us } => with_last_answer(leases::stepped_back(duration(step_us), shard)),
    }
}

fn too_far_ahead(sequence: String, layout: Layout, lead_us: i64, wait_us: i64, number: &str, last_value: i64) -> Report {
    let [lead, wait] = [lead_us, wait_us].map(duration);
    let may_raise = raise_max_lead(lead_us);
    // Not setval(): the sequence would repeat an ID that a table contains.
    let restart = (may_raise.is_none() && distributed::is_installed()).then(distributed::recipe_with_another_sequence);
    match (not_its_counter(number, last_value, layout), may_raise) {
        (Some((held, hint)), _) => messages::too_far_ahead_by_another_number(sequence, lead, held, wait, restart.unwrap_or(hint)),
        (None, Some(hint)) => messages::too_far_ahead_by_little(sequence, lead, wait, hint),
        (None, None) => {
            let hint = restart.unwrap_or_else(messages::restart_after_another_layout);
            messages::too_far_ahead_by_much(sequence, lead, wait, hint)
        }
    }
}

/// The hint for a lead that a session may have; `None` if it is above the maximum of `max_lead`.
fn raise_max_lead(lead_us: i64) -> Option<String> {
    let needed_s = lead_us / 1_000_000 + 1;
    let command = || set_for_this_database(Setting::MaxLead, &format!("'{needed_s}s'"));
    (needed_s <= MAX_LEAD_US / 1_000_000).then(|| messages::raise_max_lead(command()))
}

/// What a sequence that is far ahead of the clock holds as this `number` instead of its counter, as the end of a detail, and the hint;
/// `None` if it is not recognized.
fn not_its_counter(number: &str, last_value: i64, layout: Layout) -> Option<(String, String)> {
    let held = instead_of_counter(last_value, &layout, read_clock().reading_us)?;
    let holds = format!("{number}, {last_value}, is {held}");
    Some(match held {
        Held::OtherCounter { .. } => (holds, messages::restart_after_another_layout()),
        Held::Id { .. } | Held::UnixTime(_) => (format!("{holds}, not a counter"), messages::restart_after_setval()),
    })
}
