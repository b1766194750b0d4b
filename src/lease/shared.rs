//! Where the leases of this server are: in shared memory, if a registry is set. The lease worker writes them, and every session reads them.

use crate::postgres::call::guarded;
use crate::postgres::report::Raise;
use pg_snowflake_policies::holder::Holder;
use pg_snowflake_policies::messages::server as messages;
use pg_snowflake_policies::registry::Uuid;
use pg_snowflake_policies::shared_leases::{Leases, Shared};
use pgrx::{pg_guard, pg_sys};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr};

/// Null if the server was started without leases. It is atomic because a mutable static must be, to be safe.
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// Whether a registry is set, but the library was not preloaded.
static IS_MISSING: AtomicBool = AtomicBool::new(false);

/// Where the leases of this server are.
pub enum Place {
    /// No registry is set: none are needed.
    NotNeeded,
    /// A registry is set, but the library was not preloaded.
    Missing,
    /// In shared memory.
    Memory(&'static Shared),
}

/// Where the leases of this server are.
pub fn place() -> Place {
    match get() {
        Some(shared) => Place::Memory(shared),
        None if IS_MISSING.load(Relaxed) => Place::Missing,
        None => Place::NotNeeded,
    }
}

/// Whether a registry is set.
pub fn is_required() -> bool {
    !matches!(place(), Place::NotNeeded)
}

/// The shared memory; `None` if no registry is set, or the library was not preloaded.
#[inline(always)]
pub fn get() -> Option<&'static Shared> {
    // SAFETY: null, or what initialize() stored, which lives as long as the process.
    unsafe { SHARED.load(Relaxed).as_ref() }
}

/// Records whether a registry is set, in a server that was started without leases.
pub fn set_missing(is_missing: bool) {
    IS_MISSING.store(is_missing, Relaxed);
}

/// A new UUID, of version 4 (RFC 9562).
pub fn new_uuid() -> Uuid {
    let mut bytes = [0_u8; 16];
    // SAFETY: a buffer of that length.
    if !unsafe { call!(pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len())) } {
        messages::no_random_values().raise();
    }
    Uuid::from_be_bytes(bytes) & !(0xf << 76 | 0b11 << 62) | 4 << 76 | 0b10 << 62
}

/// The hooks that were installed before ours.
static PREVIOUS_REQUEST: OnceLock<pg_sys::shmem_request_hook_type> = OnceLock::new();
static PREVIOUS_STARTUP: OnceLock<pg_sys::shmem_startup_hook_type> = OnceLock::new();

/// The incarnation of this run of the server: made by the postmaster, so that a crash of a backend does not change it.
static INCARNATION: OnceLock<Uuid> = OnceLock::new();

/// Whether the postmaster has made the memory before.
static IS_INHERITED: AtomicBool = AtomicBool::new(false);

/// Has the server reserve and initialize the memory. Called once, when the postmaster preloads the library.
pub fn reserve() {
    INCARNATION.get_or_init(new_uuid);
    // SAFETY: hooks are chained at library load, on the postmaster's only thread.
    unsafe {
        PREVIOUS_REQUEST.get_or_init(|| pg_sys::shmem_request_hook);
        pg_sys::shmem_request_hook = Some(request);
        PREVIOUS_STARTUP.get_or_init(|| pg_sys::shmem_startup_hook);
        pg_sys::shmem_startup_hook = Some(initialize);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called by the server as a hook, as the previous one expects it.
    unsafe {
        call(&PREVIOUS_REQUEST);
        call!(RequestAddinShmemSpace(size_of::<Shared>()));
    }
}

/// Called by the postmaster at its start, and again after a crash of a backend. Only the postmaster calls it, so it needs no lock.
#[pg_guard]
unsafe extern "C-unwind" fn initialize() {
    // SAFETY: as for request(). Nobody else uses the memory yet.
    unsafe {
        call(&PREVIOUS_STARTUP);
        let mut is_found = false;
        let name = c"pg_snowflake leases".as_ptr();
        let shared = call!(ShmemInitStruct(name, size_of::<Shared>(), &raw mut is_found));
        let shared = shared.cast::<Shared>();
        shared.write(Shared::empty());
        let holder = Holder {
            incarnation: INCARNATION.get().copied().unwrap_or_default(),
            is_inherited: IS_INHERITED.swap(true, Relaxed),
            nonce: new_uuid(),
            ..Holder::default()
        };
        (*shared).publish(&Leases { holder, ..Leases::default() });
        SHARED.store(shared, Relaxed);
    }
}

/// # Safety
/// Called where the hook expects it.
unsafe fn call(previous: &OnceLock<Option<unsafe extern "C-unwind" fn()>>) {
    if let Some(hook) = previous.get().copied().flatten() {
        // SAFETY: as the caller promises.
        unsafe { guarded(|| hook()) }
    }
}
