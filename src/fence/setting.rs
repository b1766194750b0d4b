//! The settings behind the fences: checked and parsed when set, a load and a comparison for each id.
//!
//! PostgreSQL keeps with a setting's value what the check hook made of it, its `extra`, hands it to the assign hook
//! whenever the value comes into force again, and frees it when the value has gone. A null `extra` is a fence that
//! lets this server generate any id, so that the usual case is a null pointer.

use super::{Barred, Fence, InvalidSetting, hosts, shards};
use crate::report::text;
use crate::settings::Setting;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_guard, pg_sys};
use shards::Range;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

static OWNED_SHARDS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ALLOWED_HOSTS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));

/// The fences in force. A backend has one thread: the atomics are there because a static that changes has to be one to be
/// safe, and `Relaxed` they cost nothing.
static OWNED: AtomicPtr<Owned> = AtomicPtr::new(ptr::null_mut());
static FOREIGN_HOST: AtomicPtr<ForeignHost> = AtomicPtr::new(ptr::null_mut());

/// Whether the settings are being defined, and take the values that they were given before the library was there.
static IS_DEFINING: AtomicBool = AtomicBool::new(false);

/// The `extra` of `pg_snowflake.owned_shards`: the head of a block that goes on with the ranges. No ranges where the
/// setting cannot be read.
#[repr(C)]
struct Owned {
    ranges: usize,
}

/// The `extra` of `pg_snowflake.allowed_hosts` where this server is not among them, or the setting cannot be read.
#[repr(C)]
struct ForeignHost(u8);

impl Fence {
    /// The setting that it is.
    pub fn setting(self) -> Setting {
        match self {
            Fence::OwnedShards => Setting::OwnedShards,
            Fence::AllowedHosts => Setting::AllowedHosts,
        }
    }

    /// What the setting says, fit for a message.
    pub fn value(self) -> String {
        let value = match self {
            Fence::OwnedShards => OWNED_SHARDS.get(),
            Fence::AllowedHosts => ALLOWED_HOSTS.get(),
        };
        // SAFETY: a C string.
        value.map_or_else(String::new, |value| unsafe { text(value.as_ptr()) })
    }
}

/// Defines the settings. Called once, at library load.
pub fn define() {
    define_fence(Fence::OwnedShards, |name| {
        // SAFETY: the hooks are guarded.
        unsafe {
            GucRegistry::define_string_guc_with_hooks(
                name,
                c"Sets the shards that this server generates IDs for.",
                c"A list of shard IDs and ranges, such as 0-127, 300; an empty string allows any shard. It stops column defaults of another server that were restored from a dump.",
                &OWNED_SHARDS,
                GucContext::Suset,
                GucFlags::default(),
                Some(check_owned_shards),
                Some(assign_owned_shards),
                None,
            );
        }
    });
    define_fence(Fence::AllowedHosts, |name| {
        // SAFETY: the hooks are guarded.
        unsafe {
            GucRegistry::define_string_guc_with_hooks(
                name,
                c"Sets the host names of the servers that generate IDs.",
                c"A list of names, such as db-1, db-2; an empty string allows any host. It stops a copy of a server that was made from a snapshot or a base backup.",
                &ALLOWED_HOSTS,
                GucContext::Suset,
                GucFlags::default(),
                Some(check_allowed_hosts),
                Some(assign_allowed_hosts),
                None,
            );
        }
    });
}

/// Defines one fence, whose check hook takes what stood there before.
fn define_fence(fence: Fence, define: impl FnOnce(&'static CStr)) {
    fence.setting().define(|name| {
        IS_DEFINING.store(true, Relaxed);
        define(name);
        IS_DEFINING.store(false, Relaxed);
    });
}

/// Whether this server, in this session, may generate ids for the shard. Raises nothing, and holds nothing with a destructor:
/// it is asked for each id, where no guard is set.
#[inline]
pub fn permit(shard: u32, is_given: bool) -> Result<(), Barred> {
    let (owned, foreign) = (OWNED.load(Relaxed), FOREIGN_HOST.load(Relaxed));
    if owned.is_null() && foreign.is_null() && !Setting::is_any_masked() {
        return Ok(());
    }
    // SAFETY: not null, so an extra of check_owned_shards(), which lives as long as it is assigned.
    let ranges = (!owned.is_null()).then(|| unsafe { owned_ranges(owned) });
    examine(ranges, !foreign.is_null(), shard, is_given)
}

/// Whether this server, in this session, may generate ids for any shard at all.
pub fn permit_any() -> Result<(), Barred> {
    let (owned, foreign) = (OWNED.load(Relaxed), FOREIGN_HOST.load(Relaxed));
    // SAFETY: as in permit().
    let ranges = (!owned.is_null()).then(|| unsafe { owned_ranges(owned) });
    // A setting that cannot be read has no ranges, and permits no shard, this or another.
    let shard = ranges.and_then(<[Range]>::first).map_or(0, |range| range.first);
    examine(ranges, !foreign.is_null(), shard, true)
}

fn examine(
    ranges: Option<&[Range]>,
    is_foreign: bool,
    shard: u32,
    is_given: bool,
) -> Result<(), Barred> {
    if let Some(setting) = Setting::masked() {
        return Err(Barred::Masked(setting));
    }
    if is_foreign {
        return Err(Barred::Host);
    }
    match ranges {
        Some(ranges) if !shards::contains(ranges, shard) => Err(Barred::Shard { shard, is_given }),
        _ => Ok(()),
    }
}

/// # Safety
/// `owned` is an extra of [`check_owned_shards`].
unsafe fn owned_ranges<'a>(owned: *const Owned) -> &'a [Range] {
    // SAFETY: so many ranges follow the head, as check_owned_shards() wrote them.
    unsafe { std::slice::from_raw_parts(owned.add(1).cast(), (*owned).ranges) }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_owned_shards(
    value: *mut *mut c_char,
    extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the server passes a place for the value, a C string or null, and one for the extra.
    unsafe {
        let ranges = match shards::parse(&given(*value)) {
            Ok(ranges) if ranges.is_empty() => return true,
            Ok(ranges) => ranges,
            Err(_) if is_in_force_already(source) => Vec::new(),
            Err(invalid) => return reject(&invalid),
        };
        let owned = allocate(size_of::<Owned>() + size_of_val(&*ranges)).cast::<Owned>();
        if owned.is_null() {
            return false;
        }
        owned.write(Owned { ranges: ranges.len() });
        ptr::copy_nonoverlapping(ranges.as_ptr(), owned.add(1).cast(), ranges.len());
        *extra = owned.cast();
        true
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_allowed_hosts(
    value: *mut *mut c_char,
    extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: as for check_owned_shards().
    unsafe {
        match hosts::parse(&given(*value)) {
            Ok(hosts) if hosts.is_empty() || hosts::contains(&hosts, &host_name()) => return true,
            Err(invalid) if !is_in_force_already(source) => return reject(&invalid),
            _ => {}
        }
        let foreign = allocate(size_of::<ForeignHost>()).cast::<ForeignHost>();
        if foreign.is_null() {
            return false;
        }
        foreign.write(ForeignHost(0));
        *extra = foreign.cast();
        true
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn assign_owned_shards(_value: *const c_char, extra: *mut c_void) {
    OWNED.store(extra.cast(), Relaxed);
}

#[pg_guard]
unsafe extern "C-unwind" fn assign_allowed_hosts(_value: *const c_char, extra: *mut c_void) {
    FOREIGN_HOST.store(extra.cast(), Relaxed);
}

/// Whether the value was set where nobody could check it, so that the server would say so in a warning and go on
/// without a fence. It is taken, and stops everything until it is fixed.
///
/// That is so of what stood there before the library was loaded; of what `ALTER DATABASE` and `ALTER ROLE` set
/// then, which a connection finds; and of a parallel worker, which takes what its leader has.
fn is_in_force_already(source: pg_sys::GucSource::Type) -> bool {
    use pg_sys::GucSource::{PGC_S_DATABASE_USER, PGC_S_GLOBAL};
    // SAFETY: a plain global of the backend.
    let is_parallel_worker = unsafe { pg_sys::ParallelWorkerNumber >= 0 };
    IS_DEFINING.load(Relaxed)
        || (PGC_S_GLOBAL..=PGC_S_DATABASE_USER).contains(&source)
        || is_parallel_worker
}

/// # Safety
/// `value` is null or a C string.
unsafe fn given(value: *const c_char) -> String {
    // SAFETY: as the caller promises.
    if value.is_null() { String::new() } else { unsafe { text(value) } }
}

/// `GUC_check_errdetail()` and `GUC_check_errhint()` (utils/guc.h), and the answer of a check hook that says no.
fn reject(invalid: &InvalidSetting) -> bool {
    // SAFETY: the server reads the strings right after the hook, and clears the context with the error.
    unsafe {
        pg_sys::GUC_check_errdetail_string = in_error_context(&invalid.wrong);
        pg_sys::GUC_check_errhint_string = in_error_context(invalid.allowed);
    }
    false
}

fn in_error_context(message: &str) -> *mut c_char {
    let message = CString::new(message).unwrap_or_default();
    // SAFETY: the context is there as long as the process.
    unsafe { pg_sys::MemoryContextStrdup(pg_sys::ErrorContext, message.as_ptr()) }
}

/// A block that the server can free as a setting's `extra`; null where there is no memory left.
///
/// # Safety
/// As `malloc()`.
unsafe fn allocate(size: usize) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe {
        #[cfg(feature = "pg15")]
        return libc::malloc(size);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::guc_malloc(pgrx::PgLogLevel::LOG as std::ffi::c_int, size);
    }
}

/// The server's host name, as the command `hostname` prints it.
pub fn host_name() -> String {
    // Linux has at most 64 bytes, POSIX at least 255.
    let mut buffer: [c_char; 256] = [0; 256];
    // SAFETY: the last byte is not offered, and stays the end of the string.
    let failed = unsafe { libc::gethostname(buffer.as_mut_ptr(), buffer.len() - 1) } != 0;
    if failed {
        // No list can hold it.
        return String::new();
    }
    // SAFETY: a C string.
    unsafe { text(buffer.as_ptr()) }
}
