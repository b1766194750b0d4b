//! Leases: the spans of ID time in which this server generates the IDs of its shards. Off unless `pg_snowflake.registry` is set.
//!
//! A background worker claims the leases from the registry, and writes them into shared memory. Sessions read them there for each
//! ID. The policy of the registry, a function of a row and a clock, is `pg_snowflake_policies::registry`.

mod activity;
mod connection;
mod known;
mod libpq;
mod problem;
mod refusal;
mod session;
mod settings;
mod shared;
mod worker;

pub use refusal::refused;
pub use settings::{define as define_settings, is_preloaded, node};
pub use shared::{Leases, Place, is_required, place};

use crate::fence::{self, Fence};
use crate::postgres::backend_local::BackendLocal;
use crate::postgres::report::{Report, duration};
use crate::sequence::Authority;
use crate::settings as parameters;
use crate::settings::is_preloading;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::counter::{Policy, Run};
use pg_snowflake_policies::homed::Class;
use pg_snowflake_policies::lease::Ticks;
use pgrx::prelude::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
use shared::Shared;

/// Why this server has no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unleased {
    /// A registry is set, but the server was started without it, or without the library in `shared_preload_libraries`.
    NotStarted,
    /// The server does not hold the lease of the shard.
    NoLease {
        /// The shard.
        shard: u32,
        /// The shards whose leases are needed, that one among them.
        class: Class,
    },
    /// No shard is set, and the registry has not assigned one.
    NotAssigned,
    /// A lease is shorter than two ticks of the layout, so a span may end before a tick begins in it.
    TooShort {
        /// A tick of the layout, in microseconds.
        tick_us: i64,
    },
}

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
    const NONE: Recent = Recent {
        version: u64::MAX,
        class: Class::one(0),
        layout: DEFAULT,
        ticks: Ticks::NONE,
        marked: i64::MIN,
    };

    /// That of one shard, or of a class: a session that generates IDs of several in turn would look up thousands of leases each time.
    #[inline(always)]
    fn of(class: Class) -> &'static BackendLocal<Recent> {
        static OF_ONE: BackendLocal<Recent> = BackendLocal::new(Recent::NONE);
        static OF_CLASSES: [BackendLocal<Recent>; 4] =
            [const { BackendLocal::new(Recent::NONE) }; 4];
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
        self.class.first == class.first
            && (class.is_one() || self.class == class)
            && self.layout.has_same_ticks(layout)
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
    type Denied = Unleased;

    #[inline(always)]
    fn policy(self) -> Policy {
        parameters::policy()
    }

    #[inline(always)]
    fn ticks_of(self, class: Class, layout: &Layout) -> Result<Ticks, Unleased> {
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
fn look_up(class: Class, layout: &Layout) -> Result<Ticks, Unleased> {
    let shared = shared::get().ok_or(Unleased::NotStarted)?;
    let tick_us = layout.tick_us();
    if tick_us > settings::lease().as_micros() as i64 / 2 {
        return Err(Unleased::TooShort { tick_us });
    }
    let (version, span) = shared.span_of(class);
    let ticks = span.map_err(|shard| Unleased::NoLease { shard, class })?.ticks(layout);
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

/// The cause of an error, and what the worker reports.
pub fn with_last_answer(cause: String) -> String {
    let Some(leases) = shared::get().map(Shared::leases) else { return cause };
    match (leases.answer.as_str(), leases.answered_at_us) {
        ("", Some(_)) => cause,
        ("", None) => format!("{cause} The registry has not answered yet."),
        (answer, _) => format!("{cause} The lease worker reports: {answer}"),
    }
}

impl Unleased {
    /// The error to raise.
    pub fn report(self) -> Report {
        let (message, detail, hint) = match self {
            Unleased::NotAssigned if shared::get().is_none() => {
                return Unleased::NotStarted.report();
            }
            Unleased::NotStarted if settings::is_preloaded() => (
                "cannot generate IDs because pg_snowflake.registry was set after the server started".into(),
                "Each shard needs a lease. Leases begin when the server starts.".into(),
                "Restart the server. If it is to have no leases, remove pg_snowflake.registry and reload.".into(),
            ),
            Unleased::NotStarted => (
                "cannot generate IDs because pg_snowflake is not in shared_preload_libraries".into(),
                "pg_snowflake.registry is set, so each shard needs a lease. Leases need the library from the start of \
                 the server."
                    .into(),
                "Add pg_snowflake to shared_preload_libraries, and restart the server.".into(),
            ),
            Unleased::NotAssigned => (
                "registry has not assigned a shard to this server".into(),
                with_last_answer(
                    "Neither pg_snowflake.owned_shards nor pg_snowflake.shard_id is set.".into(),
                ),
                SEE_LOG.into(),
            ),
            Unleased::NoLease { shard, class } => no_lease(shard, class),
            Unleased::TooShort { tick_us } => (
                "lease is too short for the layout".into(),
                format!(
                    "A lease lasts {}, a tick of the layout {}.",
                    duration(settings::lease().as_micros() as i64),
                    duration(tick_us)
                ),
                "Set pg_snowflake.lease to at least two ticks on this server.".into(),
            ),
        };
        Report {
            code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
            detail: Some(detail),
            hint: Some(hint),
        }
    }
}

const SEE_LOG: &str = "Try again in a moment. If the error persists, see the server log and snowflake_lease_status().";

fn no_lease(shard: u32, class: Class) -> (String, String, String) {
    let message = format!("server has no lease for shard {shard}");
    let leases = shared::get().map(Shared::leases).unwrap_or_default();
    let shards: Vec<u32> = leases.holder.slots.iter().map(|slot| slot.shard).collect();
    let cause = if shards.contains(&shard) {
        Some("The registry has not granted it, or this server has released it.")
    } else if shards.is_empty() && leases.answered_at_us.is_none() {
        Some("The server has just started, or its lease worker is not running.")
    } else {
        None
    };
    if let Some(cause) = cause {
        return (message, with_last_answer(cause.into()), SEE_LOG.into());
    }
    if !class.is_one() {
        return (
            message,
            format!(
                "{} The server needs the lease of each. Its configuration does not name shard {shard}. Settings of a database or \
                 a role do not count.",
                fence::homed_shards(class)
            ),
            format!(
                "If no other server generates IDs for these shards, set pg_snowflake.owned_shards of this server to a list with \
                 them: {}",
                fence::homed_shards_query(class)
            ),
        );
    }
    let mut owned = match Fence::OwnedShards.value() {
        value if value.trim().is_empty() => shards.iter().map(u32::to_string).collect(),
        value => vec![value],
    };
    owned.push(shard.to_string());
    (
        message,
        "The server's configuration does not name the shard, so the server does not claim its lease. Settings of a database or \
         a role do not count."
            .into(),
        format!(
            "If no other server generates IDs for it: ALTER SYSTEM SET pg_snowflake.owned_shards = '{}'; SELECT \
             pg_reload_conf();",
            owned.join(", ")
        ),
    )
}
