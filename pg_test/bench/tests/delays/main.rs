//! Rates and delays, which need the machine to themselves.

mod columns;
mod leases;
mod rates;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// Held by a test of a rate or of milliseconds, so that no other one disturbs its measurement.
fn machine() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test of a delay of seconds, which hardly uses a processor: it runs beside others that do not either.
fn part_of_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}
