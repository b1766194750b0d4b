//! One setting as the server stores it, and whether this session masks the server's value.
//!
//! Until the library is loaded, the server stores values of a setting without knowing who may set it, and where. One of the
//! session, from `PGOPTIONS`, the database or the role, replaces that of the configuration file. When the setting is defined,
//! the server drops the session's value if it may not be set there or is invalid; the replaced values are lost.
//!
//! During a parallel operation, `set_config_option()` would drop every value. So a setting has the flag that allows it then, but only
//! while it is defined: afterwards, a parallel operation may change it no more than another setting.

use crate::postgres::report::quoted;
use pgrx::{GucFlags, pg_sys};
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// One bit per masked setting. It is atomic because a mutable static must be, to be safe; a backend has one
/// thread, and `Relaxed` access costs nothing.
static MASKED: AtomicU16 = AtomicU16::new(0);

/// One bit per masked setting whose value PostgreSQL has dropped for lack of memory.
static LOST: AtomicU16 = AtomicU16::new(0);

/// The unknown parameter with which the server was started. Its processes inherit it.
static UNKNOWN_AT_START: OnceLock<Unknown> = OnceLock::new();

/// A setting of the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `pg_snowflake.shard_id`
    ShardId,
    /// `pg_snowflake.max_lead`
    MaxLead,
    /// `pg_snowflake.max_wait`
    MaxWait,
    /// `pg_snowflake.owned_shards`
    OwnedShards,
    /// `pg_snowflake.allowed_hosts`
    AllowedHosts,
    /// `pg_snowflake.registry`
    Registry,
    /// `pg_snowflake.lease`
    Lease,
    /// `pg_snowflake.node`
    Node,
}

impl Setting {
    /// All, in the order in which a message names them.
    pub const ALL: [Setting; 8] = [
        Setting::OwnedShards,
        Setting::AllowedHosts,
        Setting::ShardId,
        Setting::MaxLead,
        Setting::MaxWait,
        Setting::Registry,
        Setting::Lease,
        Setting::Node,
    ];

    /// The name.
    pub const fn name(self) -> &'static CStr {
        match self {
            Setting::ShardId => c"pg_snowflake.shard_id",
            Setting::MaxLead => c"pg_snowflake.max_lead",
            Setting::MaxWait => c"pg_snowflake.max_wait",
            Setting::OwnedShards => c"pg_snowflake.owned_shards",
            Setting::AllowedHosts => c"pg_snowflake.allowed_hosts",
            Setting::Registry => c"pg_snowflake.registry",
            Setting::Lease => c"pg_snowflake.lease",
            Setting::Node => c"pg_snowflake.node",
        }
    }

    /// The name, as text.
    pub fn text(self) -> &'static str {
        self.name().to_str().unwrap_or_default()
    }

    /// Defines the setting by calling `define` with its name and the flags that it needs besides its own, and records whether this
    /// session masks the server's value. Every setting of the extension is defined by this function.
    pub fn define(self, define: impl FnOnce(&'static CStr, GucFlags)) {
        let source = self.reset_source();
        define(self.name(), GucFlags::from_bits_retain(GUC_ALLOW_IN_PARALLEL));
        if let Some(variable) = variable(self.name()) {
            // SAFETY: a variable of the server, which lives as long as the backend.
            unsafe { (*variable).flags &= !GUC_ALLOW_IN_PARALLEL };
        }
        let is_of_session = (pg_sys::GucSource::PGC_S_GLOBAL..=pg_sys::GucSource::PGC_S_CLIENT).contains(&source);
        let is_dropped = self.reset_source() != source;
        if is_of_session && is_dropped {
            MASKED.fetch_or(self.bit(), Relaxed);
        } else if is_dropped && self.forbids_ids() {
            MASKED.fetch_or(self.bit(), Relaxed);
            LOST.fetch_or(self.bit(), Relaxed);
        }
    }

    /// Whether this session masks the server's value.
    pub fn is_masked(self) -> bool {
        MASKED.load(Relaxed) & self.bit() != 0
    }

    /// Whether the setting can forbid IDs. The server accepts any value of it, so a value is dropped only for lack of memory.
    fn forbids_ids(self) -> bool {
        matches!(self, Setting::OwnedShards | Setting::AllowedHosts | Setting::Registry)
    }

    /// Whether PostgreSQL has dropped the server's value for lack of memory.
    pub fn is_lost(self) -> bool {
        LOST.load(Relaxed) & self.bit() != 0
    }

    /// The first setting that this session masks.
    pub fn masked() -> Option<Setting> {
        Setting::ALL.into_iter().find(|setting| setting.is_masked())
    }

    const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// The source of the current value.
    pub fn source(self) -> pg_sys::GucSource::Type {
        // SAFETY: a variable of the server, which lives as long as the backend.
        variable(self.name()).map_or(pg_sys::GucSource::PGC_S_DEFAULT, |found| unsafe { (*found).source })
    }

    /// Whether the configuration has another value, which the server uses once it is restarted.
    pub fn is_pending_restart(self) -> bool {
        // SAFETY: as for source().
        variable(self.name()).is_some_and(|found| unsafe { (*found).status } & pg_sys::GUC_PENDING_RESTART as c_int != 0)
    }

    /// The source of the value that the session began with.
    pub fn reset_source(self) -> pg_sys::GucSource::Type {
        let default = pg_sys::GucSource::PGC_S_DEFAULT;
        // SAFETY: as for source().
        variable(self.name()).map_or(default, |found| unsafe { (*found).reset_source })
    }
}

/// `GUC_ALLOW_IN_PARALLEL` (utils/guc.h). Minor releases before November 2024 lack it.
#[cfg(feature = "pg15")]
const GUC_ALLOW_IN_PARALLEL: c_int = 0x40_0000;
#[cfg(not(feature = "pg15"))]
const GUC_ALLOW_IN_PARALLEL: c_int = 0x8000;

/// Whether a setting that is defined now keeps the value that the server has stored for it.
pub fn can_be_defined_now() -> bool {
    // SAFETY: a plain function of the server; a variable of the server. `is_superuser` has the flag wherever the server knows it.
    unsafe {
        !call!(IsInParallelMode()) || variable(c"is_superuser").is_some_and(|variable| (*variable).flags & GUC_ALLOW_IN_PARALLEL != 0)
    }
}

/// A parameter of our prefix that has a value, and that this version does not have.
pub struct Unknown {
    /// The name, as it was set.
    pub name: String,
    /// The setting with a similar name.
    pub nearest: Option<Setting>,
    /// Where the value is from.
    pub source: pg_sys::GucSource::Type,
    /// The file and the line, if it is from a file.
    pub place: Option<String>,
}

/// Forbids IDs in all processes of the server. Called by the postmaster.
pub fn forbid_ids(unknown: Unknown) {
    let _ = UNKNOWN_AT_START.set(unknown);
}

/// The unknown parameter with which the server was started.
pub fn unknown_at_start() -> Option<&'static Unknown> {
    UNKNOWN_AT_START.get()
}

/// What the name of each setting begins with.
const PREFIX: &[u8] = b"pg_snowflake.";

/// The first unknown parameter. Before the settings are defined, each that has a value has a placeholder. A parallel worker has no say:
/// its leader has loaded the library, and a value that was stored for the database or the role since is not the leader's.
pub fn unknown() -> Option<Unknown> {
    // SAFETY: a plain global of the backend.
    if unsafe { pg_sys::ParallelWorkerNumber } >= 0 || !may_be_unknown() {
        return None;
    }
    let variables = variables();
    let first = variables.partition_point(|&variable| in_order(name_of(variable).to_bytes(), PREFIX).is_lt());
    let ours = variables[first..].iter().take_while(|&&variable| has_prefix(name_of(variable).to_bytes()));
    ours.copied().find_map(|variable| {
        // SAFETY: a variable of the server.
        let (name, variable) = (name_of(variable), unsafe { &*variable });
        // After RESET, a placeholder without a value remains.
        let has_value = variable.source != pg_sys::GucSource::PGC_S_DEFAULT;
        (has_value && !is_known(name.to_bytes())).then(|| Unknown {
            name: name.to_string_lossy().into_owned(),
            nearest: nearest(name, PREFIX.len()),
            source: variable.source,
            // SAFETY: null or a C string of the server.
            place: (!variable.sourcefile.is_null()).then(|| unsafe {
                let file = CStr::from_ptr(variable.sourcefile).to_string_lossy();
                format!("file {}, line {}", quoted(&file), variable.sourceline)
            }),
        })
    })
}

fn has_prefix(name: &[u8]) -> bool {
    name.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

fn is_known(name: &[u8]) -> bool {
    Setting::ALL.iter().any(|known| known.name().to_bytes().eq_ignore_ascii_case(name))
}

/// Whether a parameter of our prefix may have a value and not be one of the settings.
fn may_be_unknown() -> bool {
    #[cfg(feature = "pg15")]
    return true;
    // The server sorts its table for each caller, which takes longer than all else at library load. What it passes to a parallel worker
    // has the name of each parameter that has a value, and a zero byte after it.
    #[cfg(not(feature = "pg15"))]
    {
        // SAFETY: as many bytes as the server asks for, all of them initialized.
        let state = unsafe {
            let size = call!(EstimateGUCStateSpace());
            let state = call!(palloc0(size));
            call!(SerializeGUCState(size, state.cast()));
            std::slice::from_raw_parts(state.cast::<u8>(), size)
        };
        let dots = (PREFIX.len() - 1..state.len()).filter(|&at| state[at] == b'.');
        let texts = dots.map(|dot| &state[dot + 1 - PREFIX.len()..]).filter(|text| has_prefix(text));
        texts.map(|text| text.split(|&byte| byte == 0).next().unwrap_or_default()).any(|name| !is_known(name))
    }
}

/// Whether the postmaster is preloading the library.
pub fn is_preloading() -> bool {
    // SAFETY: a plain global of the server.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// The setting whose name differs the least, unless it differs in more than half of the characters after the prefix.
fn nearest(name: &CStr, prefix: usize) -> Option<Setting> {
    let most = ((name.count_bytes() - prefix) as c_int / 2).max(3);
    let name = CString::new(name.to_bytes().to_ascii_lowercase()).unwrap_or_default();
    let distances = Setting::ALL.map(|setting| (distance(&name, setting.name()), setting));
    let least = distances.into_iter().min_by_key(|&(distance, _)| distance);
    least.filter(|&(distance, _)| distance <= most).map(|(_, setting)| setting)
}

/// How many bytes are inserted, deleted or replaced to make one name of the other.
fn distance(one: &CStr, other: &CStr) -> c_int {
    // SAFETY: as long as is passed.
    unsafe {
        call!(varstr_levenshtein(one.as_ptr(), one.count_bytes() as c_int, other.as_ptr(), other.count_bytes() as c_int, 1, 1, 1, true))
    }
}

/// The server's table of its settings, sorted by name. On 16 and later, a copy in the current memory context.
fn variables() -> &'static [*mut pg_sys::config_generic] {
    // SAFETY: an array of that many pointers.
    unsafe {
        #[cfg(feature = "pg15")]
        let (all, count) = (call!(get_guc_variables()), call!(GetNumConfigOptions()));
        #[cfg(not(feature = "pg15"))]
        let (all, count) = {
            let mut count = 0;
            (call!(get_guc_variables(&raw mut count)), count)
        };
        std::slice::from_raw_parts(all, count as usize)
    }
}

/// The name of a variable; that of a placeholder as it was spelt when it was set.
fn name_of(variable: *mut pg_sys::config_generic) -> &'static CStr {
    // SAFETY: a variable of the server, whose name is a C string.
    unsafe { CStr::from_ptr((*variable).name) }
}

/// `guc_name_compare()`
fn in_order(one: &[u8], other: &[u8]) -> std::cmp::Ordering {
    let folded = |byte: &u8| byte.to_ascii_lowercase() as c_char;
    one.iter().map(folded).cmp(other.iter().map(folded))
}

/// The variable of a setting; before the setting is defined, the placeholder that stores a value for it.
fn variable(name: &CStr) -> Option<*mut pg_sys::config_generic> {
    #[cfg(feature = "pg15")]
    {
        let variables = variables();
        let found = variables.binary_search_by(|&variable| in_order(name_of(variable).to_bytes(), name.to_bytes()));
        found.ok().map(|at| variables[at])
    }
    // SAFETY: a C string; nothing is created, and no error is raised if there is no such setting.
    #[cfg(not(feature = "pg15"))]
    unsafe {
        let level = pgrx::PgLogLevel::ERROR as c_int;
        let found = call!(find_option(name.as_ptr(), false, true, level));
        (!found.is_null()).then_some(found)
    }
}
