//! Leases: the spans of ID time in which this server generates the IDs of its shards. Off unless `pg_snowflake.registry` is set.
//!
//! A background worker claims the leases from the registry, and writes them into shared memory. Sessions read them there for each
//! ID. The policy of the registry, a function of a row and a clock, is `pg_snowflake_policies::registry`.

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
use crate::sequence::Authority;
use crate::settings as parameters;
use crate::settings::is_preloading;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::counter::{Policy, Run};
use pg_snowflake_policies::homed::Class;
use pg_snowflake_policies::lease::Ticks;
use pg_snowflake_policies::shared_leases::{Leases, Shared};

/// The lease that this session used last.
struct Recent {
    /// The version of the leases that it is from.
    version: u64,
    /// The shards. The ticks are in the leases of all of them.
    class: Class,
    layout: Layout,
    ticks: Ticks,
    /// The highest tick that the mark is known to contain.
    marked: i64,
}

impl Recent {
    const NONE: Recent = Recent { version: u64::MAX, class: Class::one(0), layout: DEFAULT, ticks: Ticks::NONE, marked: i64::MIN };

    /// That of one shard, or of a class: a session that generates IDs of several in turn would look up thousands of leases each time.
    #[inline(always)]
    fn of(class: Class) -> &'static BackendLocal<Recent> {
        static OF_ONE: BackendLocal<Recent> = BackendLocal::new(Recent::NONE);
        static OF_CLASSES: [BackendLocal<Recent>; 4] = [const { BackendLocal::new(Recent::NONE) }; 4];
        if class.is_one() { &OF_ONE } else { &OF_CLASSES[class.first as usize % OF_CLASSES.len()] }
    }

    /// Not inlined, unlike what calls it for each ID: most IDs are of a tick that is marked.
    #[cold]
    fn raise_mark(&mut self, shared: &Shared, layout: &Layout, tick: i64) {
        shared.raise_mark(layout.instant_of(tick));
        self.marked = tick;
    }

    #[inline(always)]
    fn is_of(&self, class: Class, layout: &Layout) -> bool {
        self.class.first == class.first && (class.is_one() || self.class == class) && self.layout.has_same_ticks(layout)
    }
}

/// Has the postmaster start the worker, if the library is preloaded and a registry is set. Called once, at library load.
pub fn start() {
    if is_preloading() && settings::registry().is_some() {
        shared::reserve();
        worker::register();
    }
}

/// Who may generate on this server: those who hold leases, where leases are needed.
#[derive(Clone, Copy)]
pub struct ThisServer;

impl Authority for ThisServer {
    type Denied = Denied;

    #[inline(always)]
    fn policy(self) -> Policy {
        parameters::policy()
    }

    #[inline(always)]
    fn ticks_of(self, class: Class, layout: &Layout) -> Result<Ticks, Denied> {
        // Decided first, so that the compiler leaves out what a batch compares with all ticks.
        if let Place::NotNeeded = shared::place() {
            return Ok(Ticks::ALL);
        }
        match self.recent_ticks(class, layout) {
            Some(ticks) if self.is_current(class) => Ok(ticks),
            _ => look_up(class, layout),
        }
    }

    #[inline(always)]
    fn recent_ticks(self, class: Class, layout: &Layout) -> Option<Ticks> {
        if let Place::NotNeeded = shared::place() {
            return Some(Ticks::ALL);
        }
        let known = |recent: &mut Recent| recent.is_of(class, layout).then_some(recent.ticks);
        // SAFETY: the closure calls nothing.
        unsafe { Recent::of(class).with(known) }.or_else(|| look_up(class, layout).ok())
    }

    #[inline(always)]
    fn is_current(self, class: Class) -> bool {
        let shared = match shared::place() {
            Place::NotNeeded => return true,
            Place::Missing => return false,
            Place::Memory(shared) => shared,
        };
        // SAFETY: the closure reads shared memory.
        unsafe { Recent::of(class).with(|recent| recent.version == shared.version()) }
    }

    #[inline(always)]
    fn confirm(self, class: Class, layout: &Layout, run: Run) -> bool {
        let shared = match shared::place() {
            Place::NotNeeded => return true,
            Place::Missing => return false,
            Place::Memory(shared) => shared,
        };
        let last = layout.tick_of(run.last);
        // SAFETY: one thread, and nothing below accesses the variable in another way. Not a closure, which would not be inlined.
        let recent = unsafe { &mut *Recent::of(class).as_ptr() };
        if recent.marked < last {
            recent.raise_mark(shared, layout, last);
        }
        // After the mark: either this session sees that the lease was closed, or the worker sees the mark.
        debug_assert!(recent.is_of(class, layout));
        recent.version == shared.version()
    }
}

/// Learns the ticks anew.
#[cold]
fn look_up(class: Class, layout: &Layout) -> Result<Ticks, Denied> {
    let shared = shared::get().ok_or(Denied::NotPreloaded)?;
    let tick_us = layout.tick_us();
    if tick_us > length_us() / 2 {
        return Err(Denied::LeaseTooShort { tick_us });
    }
    let (version, span) = shared.span_of(class);
    let ticks = span.map_err(|shard| Denied::NoLease { shard, class })?.ticks(layout);
    // SAFETY: the closure calls nothing.
    unsafe {
        Recent::of(class).with(|recent| {
            *recent = Recent { version, class, layout: *layout, ticks, marked: i64::MIN };
        });
    }
    Ok(ticks)
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
