//! `snowflake_lease_mode()`: whether this server needs leases. `snowflake_lease_status()`: its leases. `snowflake_forget_registry()`.

use crate::denied::Denied;
use crate::error;
use crate::lease::{self, Place, Unusable, shard_list};
use crate::postgres::report::{Raise, ascii_unless_utf8};
use crate::postgres::result_row::{Nullable, NullableResultRow};
use crate::postgres::timestamp::{interval, now_us, timestamptz};
use crate::settings::Setting;
use pg_snowflake_policies::holder::Slot;
use pg_snowflake_policies::messages::{leases as messages, worker};
use pg_snowflake_policies::shared_leases::Leases;
use pgrx::prelude::*;

/// `snowflake_lease_mode() → text`
///
/// Also on a standby, which needs leases once it is promoted.
#[pg_extern(sql = false)]
fn snowflake_lease_mode() -> &'static str {
    match lease::place() {
        Place::Memory(_) => "on",
        Place::Missing => "not_preloaded",
        Place::NotNeeded if Setting::Registry.is_pending_restart() => "pending_restart",
        Place::NotNeeded => "off",
    }
}

/// `snowflake_lease_status() → setof (shard_id int, node text, starts timestamptz, ends timestamptz, remaining interval, state
/// text, incarnation uuid, last_answer_at timestamptz, registry_error text)`
///
/// One row for each shard. If a registry is set, and there is no shard yet, one row that has none. No row on a standby.
#[pg_extern(sql = false)]
fn snowflake_lease_status() -> SetOfIterator<'static, NullableResultRow<9>> {
    // SAFETY: only reads the server's state.
    if unsafe { call!(RecoveryInProgress()) } {
        return SetOfIterator::empty();
    }
    let leases = match lease::place() {
        Place::Memory(shared) => shared.leases(),
        Place::Missing => Leases { error: error::denied(Denied::NotPreloaded, "").message, ..Leases::default() },
        Place::NotNeeded => return SetOfIterator::empty(),
    };
    let mut slots: Vec<Option<Slot>> = leases.holder.slots.iter().copied().map(Some).collect();
    if slots.is_empty() {
        slots.push(None);
    }
    SetOfIterator::new(slots.into_iter().map(move |slot| row(&leases, slot)))
}

fn row(leases: &Leases, slot: Option<Slot>) -> NullableResultRow<9> {
    let now_us = now_us();
    let span = slot.filter(|slot| slot.serial.is_some()).map(|slot| slot.span);
    let state = match span {
        None => "none",
        Some(span) if span.ends_us <= now_us => "ended",
        Some(_) => "held",
    };
    let incarnation = (leases.holder.incarnation != 0)
        .then(|| pgrx::Uuid::from_bytes(leases.holder.incarnation.to_be_bytes()))
        .and_then(IntoDatum::into_datum);
    NullableResultRow([
        slot.and_then(|slot| (slot.shard as i32).into_datum()),
        nullable(lease::node().into()),
        span.map(|span| timestamptz(span.starts_us)),
        span.map(|span| timestamptz(span.ends_us)),
        span.map(|span| interval(span.ends_us - now_us)),
        nullable(state.into()),
        incarnation,
        leases.answered_at_us.map(timestamptz),
        Some(leases.error.clone()).filter(|error| !error.is_empty()).and_then(nullable),
    ])
}

fn nullable(text: String) -> Nullable {
    ascii_unless_utf8(text).into_datum()
}

/// `snowflake_forget_registry() → boolean`
///
/// Lets this server use another registry than the one that it has used. Returns whether it has used one.
#[pg_extern(sql = false)]
fn snowflake_forget_registry() -> bool {
    let function = c"snowflake_forget_registry()".as_ptr();
    // SAFETY: a C string. It raises the error of core's commands that write.
    unsafe {
        call!(PreventCommandIfReadOnly(function));
        call!(PreventCommandDuringRecovery(function));
    }
    if let Place::Memory(shared) = lease::place() {
        let holder = shared.leases().holder;
        if holder.held() > 0 {
            let held = holder.slots.iter().filter(|slot| slot.serial.is_some());
            messages::holds_leases(shard_list(held.map(|slot| slot.shard))).raise();
        }
    }
    lease::forget().unwrap_or_else(|Unusable(error)| worker::unusable(error).raise())
}
