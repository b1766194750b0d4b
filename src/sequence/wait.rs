//! Waiting for the clock.

use pgrx::{check_for_interrupts, pg_sys};
use std::ffi::{c_int, c_long};

/// The longest single sleep, so that a clock that is corrected meanwhile is noticed.
const MAX_SLEEP_US: i64 = 1_000_000;

/// Sleeps for about `us` microseconds, rounded up to whole milliseconds, without the page. A cancel or a
/// terminate ends the sleep.
pub fn wait(us: i64) {
    let timeout_ms = (us.clamp(0, MAX_SLEEP_US) as u64).div_ceil(1000);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is this backend's own latch.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, timeout_ms as c_long, wait_event());
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}

/// The wait event in `pg_stat_activity`: `Extension` / `SnowflakeClock`. Before PostgreSQL 17, an extension has
/// no wait event of its own, and it is `Extension` / `Extension`.
fn wait_event() -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return pg_sys::PG_WAIT_EXTENSION;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        static EVENT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        // SAFETY: a C string; the server gives the same number to the same name in every backend.
        *EVENT.get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(c"SnowflakeClock".as_ptr()) })
    }
}
