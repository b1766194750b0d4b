//! The two fences: which shards this server may generate IDs for, and which servers may generate IDs at all.
//!
//! Two servers that generate IDs for the same shard return duplicates, and nothing reports it. A column default with a literal shard is
//! copied with a dump, a setting with a snapshot or a base backup. `pg_snowflake.owned_shards` guards against the first,
//! `pg_snowflake.allowed_hosts` against the second. A fence with an invalid value refuses everything, and so does any setting whose server
//! value the session has masked. Only an unset fence allows everything.
//!
//! The settings are checked and parsed when they are set. Each change raises the version of what is permitted.
//!
//! With a setting's value, PostgreSQL stores what the check hook made of it, its `extra`. It passes the `extra`
//! to the assign hook whenever the value takes effect, and frees it with the value. A null `extra` stands for a
//! fence that allows everything, so that the usual check is for a null pointer.

use crate::denied::{Denied, Origin};
use crate::postgres::memory::with_room;
use crate::postgres::report::{ascii_unless_utf8, c_text, host_name};
use crate::settings::{self, Setting, unknown_at_start};
use pg_snowflake_policies::fence::hosts;
use pg_snowflake_policies::fence::list::{InvalidSetting, MAX_BYTES};
use pg_snowflake_policies::fence::shards::{self, Range};
use pg_snowflake_policies::homed::Class;
use pgrx::{GucContext, GucRegistry, GucSetting, pg_guard, pg_sys};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

static OWNED_SHARDS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ALLOWED_HOSTS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));

/// The fences in effect. They are atomic because a mutable static must be, to be safe; a backend has one
/// thread, and `Relaxed` access costs nothing.
static OWNED_RANGES: AtomicPtr<OwnedRanges> = AtomicPtr::new(ptr::null_mut());
static FOREIGN_HOST: AtomicPtr<ForeignHost> = AtomicPtr::new(ptr::null_mut());

/// Whether the settings are being defined, and take over values that were set before the library was loaded.
static IS_DEFINING: AtomicBool = AtomicBool::new(false);

/// The `extra` of `pg_snowflake.owned_shards`: the header of a block, followed by the ranges. There are no
/// ranges if the setting is invalid.
#[repr(C)]
struct OwnedRanges {
    count: usize,
}

/// The `extra` of `pg_snowflake.allowed_hosts` if this server is not in the list, or the setting is invalid.
#[repr(C)]
struct ForeignHost(u8);

/// One of the two settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `pg_snowflake.owned_shards`
    OwnedShards,
    /// `pg_snowflake.allowed_hosts`
    AllowedHosts,
}

impl Fence {
    /// The setting of this fence.
    pub fn setting(self) -> Setting {
        match self {
            Fence::OwnedShards => Setting::OwnedShards,
            Fence::AllowedHosts => Setting::AllowedHosts,
        }
    }

    /// The value of the setting, safe for a message.
    pub fn value(self) -> String {
        let value = match self {
            Fence::OwnedShards => OWNED_SHARDS.get(),
            Fence::AllowedHosts => ALLOWED_HOSTS.get(),
        };
        // SAFETY: a C string.
        value.map_or_else(String::new, |value| unsafe { c_text(value.as_ptr()) })
    }
}

/// Defines the settings. Called once, at library load.
pub fn define_settings() {
    define_fence(
        Fence::OwnedShards,
        c"Sets the shards that this server generates IDs for.",
        c"A list of shard IDs and ranges, such as 0-127, 300; an empty string allows any shard. The list rejects column defaults that were restored from a dump of another server.",
        &OWNED_SHARDS,
        (check_owned_shards, assign_owned_shards),
    );
    define_fence(
        Fence::AllowedHosts,
        c"Sets the host names of the servers that generate IDs.",
        c"A list of names, such as db-1, db-2; an empty string allows any host. The list keeps a copy of a server, made from a snapshot or a base backup, from generating IDs.",
        &ALLOWED_HOSTS,
        (check_allowed_hosts, assign_allowed_hosts),
    );
}

/// The check hook and the assign hook of a setting.
type Hooks = (
    unsafe extern "C-unwind" fn(*mut *mut c_char, *mut *mut c_void, pg_sys::GucSource::Type) -> bool,
    unsafe extern "C-unwind" fn(*const c_char, *mut c_void),
);

/// Defines one fence. Its check hook receives the value that was set before.
fn define_fence(
    fence: Fence,
    short: &'static CStr,
    long: &'static CStr,
    value: &'static GucSetting<Option<CString>>,
    (check, assign): Hooks,
) {
    fence.setting().define(|name, flags| {
        IS_DEFINING.store(true, Relaxed);
        // SAFETY: the hooks are guarded.
        unsafe {
            GucRegistry::define_string_guc_with_hooks(name, short, long, value, GucContext::Suset, flags, Some(check), Some(assign), None);
        }
        IS_DEFINING.store(false, Relaxed);
    });
}

/// Whether this server, in this session, may generate IDs for each shard of the class. Called without a guard, so it raises no error and
/// holds nothing with a destructor. `origin` says where the shard comes from, for an error.
pub fn check(class: Class, origin: impl FnOnce() -> Origin) -> Result<(), Denied> {
    let (ranges, is_foreign_host) = in_effect();
    check_fences(ranges, is_foreign_host, class.first, origin).map_err(|error| match error {
        Denied::ShardNotOwned { shard, .. } if !class.is_one() => Denied::ClassNotOwned { shard, class },
        error => error,
    })?;
    let missing = ranges.filter(|_| !class.is_one()).and_then(|ranges| shards::first_missing(ranges, class));
    missing.map_or(Ok(()), |shard| Err(Denied::ClassNotOwned { shard, class }))
}

/// The ranges of `pg_snowflake.owned_shards`, to be used up before the setting can change, and whether `pg_snowflake.allowed_hosts` refuses
/// this server.
fn in_effect<'a>() -> (Option<&'a [Range]>, bool) {
    let owned = OWNED_RANGES.load(Relaxed);
    // SAFETY: not null, so it is the `extra` of check_owned_shards(), which lives as long as it is assigned.
    let ranges = (!owned.is_null()).then(|| unsafe { owned_ranges(owned) });
    (ranges, is_foreign_host())
}

/// Whether this server, in this session, may generate IDs for at least one shard.
pub fn check_any_shard() -> Result<(), Denied> {
    let (ranges, is_foreign_host) = in_effect();
    // An invalid setting has no ranges, and refuses every shard.
    let shard = ranges.and_then(<[Range]>::first).map_or(0, |range| range.first);
    check_fences(ranges, is_foreign_host, shard, || Origin::Argument)
}

fn check_fences(ranges: Option<&[Range]>, is_foreign_host: bool, shard: u32, origin: impl FnOnce() -> Origin) -> Result<(), Denied> {
    if unknown_at_start().is_some() {
        return Err(Denied::SettingUnknown);
    }
    if let Some(setting) = Setting::masked() {
        return Err(Denied::SettingMasked(setting));
    }
    if is_foreign_host {
        return Err(Denied::HostNotAllowed);
    }
    match ranges {
        Some(ranges) if !shards::contains(ranges, shard) => Err(Denied::ShardNotOwned { shard, origin: origin() }),
        _ => Ok(()),
    }
}

/// Whether `pg_snowflake.allowed_hosts` refuses this server.
pub fn is_foreign_host() -> bool {
    !FOREIGN_HOST.load(Relaxed).is_null()
}

/// The shards in `pg_snowflake.owned_shards`, in ascending order; `None` if it is not set. An invalid value has none. To be
/// used up before the setting can change.
pub fn owned_shards() -> Option<impl Iterator<Item = u32>> {
    Some(in_effect().0?.iter().flat_map(|range| range.first..=range.last))
}

/// # Safety
/// `owned` is an `extra` of [`check_owned_shards`].
unsafe fn owned_ranges<'a>(owned: *const OwnedRanges) -> &'a [Range] {
    // SAFETY: this many ranges follow the header, as check_owned_shards() wrote them.
    unsafe { std::slice::from_raw_parts(owned.add(1).cast(), (*owned).count) }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_owned_shards(value: *mut *mut c_char, extra: *mut *mut c_void, source: pg_sys::GucSource::Type) -> bool {
    // SAFETY: the server passes pointers to the value, a C string or null, and to the `extra`.
    unsafe {
        let ranges = match shards::parse(&text_or_empty(*value), with_room) {
            Ok(ranges) if ranges.is_empty() => return true,
            Ok(ranges) => ranges,
            Err(_) if cannot_be_rejected(source) => Vec::new(),
            Err(invalid) => return reject(&invalid),
        };
        let owned = guc_malloc(size_of::<OwnedRanges>() + size_of_val(&*ranges)).cast::<OwnedRanges>();
        if owned.is_null() {
            return false;
        }
        owned.write(OwnedRanges { count: ranges.len() });
        ptr::copy_nonoverlapping(ranges.as_ptr(), owned.add(1).cast(), ranges.len());
        *extra = owned.cast();
        true
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_allowed_hosts(value: *mut *mut c_char, extra: *mut *mut c_void, source: pg_sys::GucSource::Type) -> bool {
    // SAFETY: as for check_owned_shards().
    unsafe {
        match hosts::parse(&text_or_empty(*value), with_room) {
            Ok(hosts) if hosts.is_empty() || hosts::contains(&hosts, &host_name()) => return true,
            Err(invalid) if !cannot_be_rejected(source) => return reject(&invalid),
            _ => {}
        }
        let foreign = guc_malloc(size_of::<ForeignHost>()).cast::<ForeignHost>();
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
    OWNED_RANGES.store(extra.cast(), Relaxed);
    settings::note_change();
}

#[pg_guard]
unsafe extern "C-unwind" fn assign_allowed_hosts(_value: *const c_char, extra: *mut c_void) {
    FOREIGN_HOST.store(extra.cast(), Relaxed);
    settings::note_change();
}

/// Whether the value was set where it could not be checked, so that rejecting it would only log a warning and
/// leave the server without a fence. Such a value is accepted, and refuses everything until it is corrected.
///
/// This holds for a value set before the library was loaded; for one that `ALTER DATABASE` or `ALTER ROLE` set
/// while it was not loaded, which a new connection reads; and for a parallel worker, which copies its leader's.
fn cannot_be_rejected(source: pg_sys::GucSource::Type) -> bool {
    use pg_sys::GucSource::{PGC_S_DATABASE_USER, PGC_S_GLOBAL};
    // SAFETY: a plain global of the backend.
    let is_parallel_worker = unsafe { pg_sys::ParallelWorkerNumber >= 0 };
    IS_DEFINING.load(Relaxed) || (PGC_S_GLOBAL..=PGC_S_DATABASE_USER).contains(&source) || is_parallel_worker
}

/// The value, in a copy only if it contains characters that a message cannot repeat.
///
/// # Safety
/// `value` is null or a C string, for as long as the result is used.
unsafe fn text_or_empty<'a>(value: *const c_char) -> Cow<'a, str> {
    if value.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: a C string, as the caller promises.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes();
    match str::from_utf8(value) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        // Only as much as shows that the value is too long.
        _ => {
            let value = &value[..value.len().min(MAX_BYTES + 1)];
            Cow::Owned(ascii_unless_utf8(String::from_utf8_lossy(value).into_owned()))
        }
    }
}

/// `GUC_check_errdetail()` and `GUC_check_errhint()` (utils/guc.h), and the result of a check hook that rejects the value.
fn reject(invalid: &InvalidSetting) -> bool {
    // SAFETY: the server reads the strings right after the hook, and clears the context with the error.
    unsafe {
        pg_sys::GUC_check_errdetail_string = copy_to_error_context(&invalid.detail);
        pg_sys::GUC_check_errhint_string = copy_to_error_context(invalid.hint);
    }
    false
}

fn copy_to_error_context(message: &str) -> *mut c_char {
    let message = CString::new(message).unwrap_or_default();
    // SAFETY: the context lives as long as the process.
    unsafe { call!(MemoryContextStrdup(pg_sys::ErrorContext, message.as_ptr())) }
}

/// A block that the server can free as a setting's `extra`; null if there is no memory left.
///
/// # Safety
/// As `malloc()`.
unsafe fn guc_malloc(size: usize) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe {
        #[cfg(feature = "pg15")]
        return libc::malloc(size);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::guc_malloc(pgrx::PgLogLevel::LOG as std::ffi::c_int, size);
    }
}
