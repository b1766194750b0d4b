//! The settings of leases.

use super::shared;
use crate::postgres::report::host_name;
use crate::settings::{self, Setting, is_preloading};
use pg_snowflake_policies::registry::{MAX_LEASE_US, MIN_LEASE_US};
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_guard, pg_sys};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;
use std::time::Duration;

static REGISTRY: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static LEASE: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static NODE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));

const MIN_LEASE_MS: i32 = (MIN_LEASE_US / 1000) as i32;
const MAX_LEASE_MS: i32 = (MAX_LEASE_US / 1000) as i32;

/// Defines the settings. Called once, at library load.
pub fn define() {
    // Leases begin and end with the postmaster. A server that has a registry, but not the library in it, generates no IDs.
    let context = || if is_preloading() { GucContext::Postmaster } else { GucContext::Sighup };
    let assign_hook: pg_sys::GucStringAssignHook = (!is_preloading()).then_some(assign_registry);
    Setting::Registry.define(|name, flags| {
        // SAFETY: the hook is guarded.
        unsafe {
            GucRegistry::define_string_guc_with_hooks(
                name,
                c"Sets the database that grants this server leases on its shards.",
                c"A connection string; an empty string disables leases. Without a lease on a shard, the server generates no IDs for it. pg_snowflake must be in shared_preload_libraries.",
                &REGISTRY,
                context(),
                flags | GucFlags::SUPERUSER_ONLY,
                None,
                assign_hook,
                None,
            );
        }
    });
    settings::define_number(
        Setting::Lease,
        c"Sets the length of a lease.",
        c"The server renews its leases after a third of it. After a crash, it generates no IDs for up to this long.",
        &LEASE,
        MIN_LEASE_MS..=MAX_LEASE_MS,
        GucContext::Sighup,
        GucFlags::UNIT_MS,
    );
    // A running server keeps its name: the registry would hand its leases over to another one.
    Setting::Node.define(|name, flags| {
        GucRegistry::define_string_guc(
            name,
            c"Sets the name of this server in the registry.",
            c"An empty string means the host name, followed by cluster_name if that is set.",
            &NODE,
            context(),
            flags,
        );
    });
}

/// `pg_snowflake.registry`; `None` if it is empty. Blanks are a connection string that consists of defaults, as in `primary_conninfo`.
pub fn registry() -> Option<CString> {
    REGISTRY.get().filter(|conninfo| !conninfo.is_empty())
}

/// `pg_snowflake.lease`
pub fn lease() -> Duration {
    Duration::from_millis(LEASE.get().unsigned_abs().into())
}

/// The name of this server in the registry. It stays the same even if the host is renamed, provided that the postmaster has called this.
pub fn node() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(configured_node)
}

fn configured_node() -> String {
    let name = NODE.get().unwrap_or_default();
    // Two servers with blanks as their names would take over each other's leases.
    if !name.to_bytes().trim_ascii().is_empty() {
        return name.to_string_lossy().into_owned();
    }
    // SAFETY: a setting of the server, which is never null.
    let cluster_name = unsafe { CStr::from_ptr(pg_sys::cluster_name) };
    // Not cluster_name alone: Debian sets it to the same value on every machine.
    match cluster_name.to_string_lossy().trim() {
        "" => host_name(),
        cluster_name => format!("{}/{cluster_name}", host_name()),
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn assign_registry(value: *const c_char, _extra: *mut c_void) {
    // SAFETY: the server passes a C string or null.
    shared::set_missing(!value.is_null() && !unsafe { CStr::from_ptr(value) }.is_empty());
    settings::note_change();
}
