//! Leases: the spans of ID time in which this server generates the IDs of its shards. Off unless `pg_snowflake.registry` is set.
//!
//! A background worker claims the leases from the registry, and writes them into shared memory. For each ID, a session checks there
//! whether the leases have changed. The policy of the registry, a function of a row and a clock, is `pg_snowflake_policies::registry`.

mod activity;
mod connection;
mod known;
mod libpq;
mod problem;
mod session;
mod settings;
mod shared;
mod worker;

pub use known::{Unusable, forget};
pub use problem::shard_list;
pub use settings::{define as define_settings, node};
pub use shared::{Place, is_required, place};

use crate::denied::Denied;
use crate::postgres::backend_local::BackendLocal;
use crate::settings::is_preloading;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::homed::Class;
use pg_snowflake_policies::lease::Ticks;
use pg_snowflake_policies::shared_leases::{Leases, Shared};

/// Has the postmaster start the worker, if the library is preloaded and a registry is set. Called once, at library load.
pub fn start() {
    if is_preloading() && settings::registry().is_some() {
        shared::reserve();
        worker::register();
    }
}

/// The number of changes of the leases; always the same on a server that needs none.
#[inline(always)]
pub fn version() -> u64 {
    shared::get().map_or(0, Shared::version)
}

/// The ticks in which IDs of each shard of the class may be generated: all, on a server that needs no leases.
pub fn ticks_of(class: Class, layout: &Layout) -> Result<Ticks, Denied> {
    let shared = match shared::place() {
        Place::NotNeeded => return Ok(Ticks::ALL),
        Place::Missing => return Err(Denied::NotPreloaded),
        Place::Memory(shared) => shared,
    };
    let tick_us = layout.tick_us();
    if tick_us > length_us() / 2 {
        return Err(Denied::LeaseTooShort { tick_us });
    }
    Ok(shared.span_of(class).map_err(|shard| Denied::NoLease { shard, class })?.ticks(layout))
}

/// Makes known that counters up to this one are used, unless no leases are needed, and returns the [`version`] of afterwards: either this
/// session sees that the lease was closed, or the worker sees the mark. Called under the lock of a page.
#[inline(always)]
pub fn mark(layout: &Layout, counter: i64) -> u64 {
    /// A tick whose beginning the mark is known to have reached, and its layout.
    static MARKED: BackendLocal<(i64, Layout)> = BackendLocal::new((i64::MIN, DEFAULT));
    let Some(shared) = shared::get() else { return 0 };
    let tick = layout.tick_of(counter);
    // SAFETY: nothing below accesses the variable in another way.
    let marked = unsafe { MARKED.get() };
    if marked.0 < tick || !marked.1.has_same_ticks(layout) {
        raise_mark(shared, layout, tick);
        *marked = (tick, *layout);
    }
    shared.version()
}

/// Not inlined, unlike what calls it for each ID: most IDs are of a tick that is marked.
#[cold]
fn raise_mark(shared: &Shared, layout: &Layout, tick: i64) {
    shared.raise_mark(layout.instant_of(tick));
}

/// The shard that the registry has assigned to this server.
pub fn assigned_shard() -> Option<i32> {
    shared::get()?.assigned_shard().map(|shard| shard as i32)
}

/// The leases that this server knows of; `None` if it has none, because no registry is set, or the library was not preloaded.
pub fn known() -> Option<Leases> {
    shared::get().map(Shared::leases)
}

/// How long a lease lasts, in microseconds.
pub fn length_us() -> i64 {
    settings::lease().as_micros() as i64
}
