//! The lease worker as other processes see it: its row in `pg_stat_activity`, and the interrupts that they send it.
//!
//! Only a process that is connected, if to no database, has a row. It also has to answer: DROP DATABASE, for example, waits until every
//! connected process has closed its files.

use pgrx::pg_sys;
use std::ffi::{CStr, c_int, c_long};
use std::time::Duration;

/// What the worker does, or waits for.
#[derive(Clone, Copy)]
pub enum Activity {
    /// It connects to the registry.
    Connecting,
    /// It waits for the answer to a claim.
    Claiming,
    /// It waits for the answer to a release.
    Releasing,
    /// Nothing is due.
    Idle,
}

/// Connects to no database, so that `pg_stat_activity` has a row. Called once, when the worker starts.
pub fn connect() {
    // SAFETY: called by a background worker that may connect to databases, which has not yet.
    unsafe { call!(BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0)) }
}

impl Activity {
    /// Shows it as the state and the query in `pg_stat_activity`.
    pub fn report(self) {
        let (state, query): (_, &CStr) = match self {
            Activity::Connecting => (pg_sys::BackendState::STATE_RUNNING, c"connecting to the registry"),
            Activity::Claiming => (pg_sys::BackendState::STATE_RUNNING, c"claiming leases from the registry"),
            Activity::Releasing => (pg_sys::BackendState::STATE_RUNNING, c"releasing leases to the registry"),
            Activity::Idle => (pg_sys::BackendState::STATE_IDLE, c"waiting until the next claim is due"),
        };
        // SAFETY: a C string, which the server copies.
        unsafe { call!(pgstat_report_activity(state, query.as_ptr())) }
    }
}

/// The wait event in `pg_stat_activity`: `Extension` / `SnowflakeLeaseMain` while nothing is due, or `SnowflakeRegistry`. Before
/// PostgreSQL 17, an extension has no wait event of its own, and it is `Extension` / `Extension`.
fn wait_event(is_for_registry: bool) -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        let _ = is_for_registry;
        pg_sys::PG_WAIT_EXTENSION
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        static EVENTS: std::sync::OnceLock<[u32; 2]> = std::sync::OnceLock::new();
        let names = [c"SnowflakeLeaseMain", c"SnowflakeRegistry"];
        // SAFETY: C strings; the server gives the same number to the same name in every process.
        let events = EVENTS.get_or_init(|| names.map(|name| unsafe { call!(WaitEventExtensionNew(name.as_ptr())) }));
        events[usize::from(is_for_registry)]
    }
}

/// Does what other processes have asked this one to do, after each wait. No request ends the worker, so that no answer of the registry
/// is lost: a cancel only wakes it, and the signal to end is for the loop to see.
fn process_interrupts() {
    // SAFETY: flags that signal handlers set, and what every process of the server does then. No transaction is open.
    unsafe {
        if (&raw const pg_sys::ProcSignalBarrierPending).read_volatile() != 0 {
            call!(ProcessProcSignalBarrier());
        }
        if (&raw const pg_sys::catchupInterruptPending).read_volatile() != 0 {
            call!(ProcessCatchupInterrupt());
        }
        if (&raw const pg_sys::LogMemoryContextPending).read_volatile() != 0 {
            call!(ProcessLogMemoryContextInterrupt());
        }
    }
}

/// Whether the server has asked this process to end.
pub fn is_stopping() -> bool {
    // SAFETY: a flag that a signal handler sets.
    unsafe { (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0 }
}

/// Waits for the process's latch, one of the events of the socket, or the end of the time. Returns whether the socket is ready.
/// Ends the process if the postmaster is dead.
pub fn wait_latch(events: u32, socket: c_int, timeout: Duration) -> bool {
    let timeout_ms = timeout.as_micros().div_ceil(1000).min(c_int::MAX as u128) as c_long;
    let always = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: this process's own latch; the socket, if there are events of one, is open.
    let woken = unsafe {
        let woken = call!(WaitLatchOrSocket(pg_sys::MyLatch, (events | always) as c_int, socket, timeout_ms, wait_event(events != 0)));
        call!(ResetLatch(pg_sys::MyLatch));
        woken
    };
    process_interrupts();
    woken as u32 & events != 0
}
