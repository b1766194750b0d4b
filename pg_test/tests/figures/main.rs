//! Rates and delays, which need the machine to themselves.

mod columns;
mod leases;
mod rates;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by each test, so that no other one disturbs its measurement.
fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
