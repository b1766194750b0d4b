//! The settings. Those of leases are the server's, all others are PGC_SUSET: which IDs a session may generate is the operator's decision.

mod setting;

use pg_snowflake_policies::messages::server as messages;
use setting::Unknown;
pub use setting::{Setting, is_preloading, unknown_at_start};

use crate::postgres::report::{Raise, Report, quoted};
use pg_snowflake_policies::counter::Policy;
use pgrx::pg_sys::GucSource;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgLogLevel, pg_sys};
use std::ffi::{CStr, c_int, c_void};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static SHARD_ID: GucSetting<i32> = GucSetting::<i32>::new(-1);
static MAX_LEAD: GucSetting<i32> = GucSetting::<i32>::new(100);
static MAX_WAIT: GucSetting<i32> = GucSetting::<i32>::new(1000);

/// The maximum of `pg_snowflake.max_lead`, for any role or session: almost 25 days.
pub const MAX_LEAD_US: i64 = MAX_LEAD_MS as i64 * 1000;
const MAX_LEAD_MS: i32 = i32::MAX;

/// Defines the settings and reserves their prefix, so that a misspelt setting is an error.
///
/// One that has a value already keeps a session from loading the library, and a server that preloads it from generating IDs: PostgreSQL
/// itself would only drop the value with a WARNING, and the setting may be meant to forbid IDs. A server that did not start would take
/// a whole cluster down, as its managers set a parameter on all members.
///
/// `define_others` defines the settings that are declared elsewhere: those of the fences and of leases.
pub fn define(define_others: impl FnOnce()) {
    match setting::unknown() {
        Some(unknown) if is_preloading() => {
            no_ids_with(&unknown, true).log(PgLogLevel::WARNING);
            setting::forbid_ids(unknown);
        }
        Some(unknown) => {
            let (name, place, hint) = unrecognized(&unknown, false);
            messages::unrecognized_parameter(name, place, hint).raise();
        }
        None => {}
    }
    if !setting::can_be_defined_now() {
        // Without the values of its settings, the library would generate IDs that they forbid.
        messages::loaded_in_parallel().raise();
    }
    define_number(
        Setting::ShardId,
        c"Sets the shard that this database generates IDs for.",
        c"It applies to calls of snowflake_nextval() that do not pass a shard. Set it with ALTER DATABASE, or under Citus with ALTER SYSTEM on each node. -1 means unset.",
        &SHARD_ID,
        -1..=i32::MAX,
        GucContext::Suset,
        GucFlags::empty(),
    );
    define_number(
        Setting::MaxLead,
        c"Sets how far IDs can run ahead of the clock before a call waits.",
        c"IDs run ahead of the clock on a busy sequence, and after the clock has stepped back.",
        &MAX_LEAD,
        0..=MAX_LEAD_MS,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    define_number(
        Setting::MaxWait,
        c"Sets the maximum time that a call waits for the clock.",
        c"A call that would have to wait longer fails at once. 0 disables waiting.",
        &MAX_WAIT,
        0..=i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    define_others();
    // SAFETY: a C string, at library load.
    unsafe { call!(MarkGUCPrefixReserved(c"pg_snowflake".as_ptr())) };
}

/// Defines a setting that is a number, and whose changes are counted.
pub fn define_number(
    setting: Setting,
    short: &'static CStr,
    long: &'static CStr,
    value: &'static GucSetting<i32>,
    range: RangeInclusive<i32>,
    context: GucContext,
    unit: GucFlags,
) {
    let (min, max) = range.into_inner();
    setting.define(|name, flags| {
        let (flags, assign) = (flags | unit, Some(assign_number as _));
        // SAFETY: the hook only counts.
        unsafe { GucRegistry::define_int_guc_with_hooks(name, short, long, value, min, max, context, flags, None, assign, None) };
    });
}

unsafe extern "C-unwind" fn assign_number(_value: c_int, _extra: *mut c_void) {
    note_change();
}

/// The changes of whatever decides which IDs this session may generate, except for leases. It is atomic because a mutable static must be,
/// to be safe.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Counts a change. Called where a setting is assigned, and where the group of this node is forgotten.
pub fn note_change() {
    CHANGES.fetch_add(1, Relaxed);
}

/// The number of changes so far. As long as it is the same, this session may generate the same IDs, as far as its leases allow.
#[inline(always)]
pub fn changes() -> u64 {
    CHANGES.load(Relaxed)
}

/// Why the server, which was started with a parameter that is misspelt or of another version, generates no IDs.
pub fn no_ids_with_unknown() -> Report {
    // SAFETY: the user of a session, and a role that initdb creates.
    let may_see_files = unsafe { call!(has_privs_of_role(call!(GetUserId()), pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_SETTINGS))) };
    no_ids_with(setting::unknown_at_start().expect("the check has found it"), may_see_files)
}

fn no_ids_with(unknown: &Unknown, may_see_files: bool) -> Report {
    let (name, place, hint) = unrecognized(unknown, may_see_files);
    messages::unrecognized_at_start(name, place, format_args!("{hint} Then restart the server."))
}

/// The name of the parameter, where it is set, and what is meant. The names of files are not for every role.
fn unrecognized(Unknown { name, nearest, source, place }: &Unknown, may_see_files: bool) -> (String, String, String) {
    let meant = nearest.map_or_else(
        || {
            let known = Setting::ALL.map(Setting::text);
            messages::parameters_are(known.join(", "))
        },
        |setting| messages::parameter_meant(quoted(setting.text())),
    );
    let (whose, remove) = match *source {
        GucSource::PGC_S_DATABASE => ("of the database", "ALTER DATABASE ... RESET"),
        GucSource::PGC_S_GLOBAL => ("of all roles", "ALTER ROLE ALL RESET"),
        GucSource::PGC_S_USER => ("of the role", "ALTER ROLE ... RESET"),
        GucSource::PGC_S_DATABASE_USER => ("of the role in the database", "ALTER ROLE ... IN DATABASE ... RESET"),
        GucSource::PGC_S_CLIENT => ("in the client's connection options", ""),
        GucSource::PGC_S_INTERACTIVE | GucSource::PGC_S_SESSION => ("of this session", "RESET"),
        _ => ("in the server's configuration", ""),
    };
    let place = place.as_ref().filter(|_| may_see_files).map_or_else(String::new, |place| format!(", in {place}"));
    let hint = match remove {
        "" => format!("{meant} Correct the name there."),
        _ => format!("{meant} To remove the wrong one: {remove} {name};"),
    };
    (quoted(name), format!("{whose}{place}"), hint)
}

/// `pg_snowflake.shard_id`; `None` if it is unset.
pub fn shard_id() -> Option<i32> {
    Some(SHARD_ID.get()).filter(|&shard| shard >= 0)
}

/// `pg_snowflake.max_lead` and `pg_snowflake.max_wait`.
pub fn policy() -> Policy {
    Policy { max_lead_us: microseconds(&MAX_LEAD), max_wait_us: microseconds(&MAX_WAIT) }
}

/// Reads a setting in milliseconds from the server's variable: `get()` would first check the thread, for every permit.
fn microseconds(setting: &GucSetting<i32>) -> i64 {
    // SAFETY: called on the backend's only thread.
    i64::from(unsafe { *setting.as_ptr() }) * 1000
}
