//! How long a call waits for locks.

use crate::postgres::relation::lock;
use crate::postgres::transaction::{Failure, with_brief_lock_timeout};
use pgrx::prelude::*;

/// The most partitions that a call removes. Each removal adds locks to those that block the table, and to the server's lock table.
const MAX_REMOVALS: usize = 50;

/// How long a call waits for locks.
///
/// A session that inserts locks a table before its partition, and a table that has a foreign key before the table that it references.
/// A call that locks in another order, while it blocks such a session, could deadlock with it. So only the first lock of a call that
/// blocks inserts is waited for as long as `lock_timeout`. Each further one is waited for briefly, compared with `deadlock_timeout`.
pub struct Patience {
    /// Whether the call holds the locks of a partition that it has created or removed.
    pub has_changed: bool,
    /// How long it waits for a further lock.
    further_ms: i32,
    /// How many partitions it may still remove.
    pub removals: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { has_changed: false, further_ms: 50, removals: MAX_REMOVALS }
    }
}

impl Patience {
    /// Takes a lock that blocks no inserts.
    pub fn lock(&self, relid: pg_sys::Oid, mode: u32) {
        if self.has_changed {
            with_brief_lock_timeout(self.further_ms, || lock(relid, mode));
        } else {
            lock(relid, mode);
        }
    }

    /// Takes locks that block inserts, in that order, and then calls `run`.
    pub fn with_locks<T>(&self, locks: &[(pg_sys::Oid, u32)], run: impl FnOnce() -> T) -> T {
        let further = locks.split_first().map_or(locks, |(&(relid, mode), further)| {
            self.lock(relid, mode);
            further
        });
        with_brief_lock_timeout(self.further_ms, || {
            for &(relid, mode) in further {
                lock(relid, mode);
            }
            run()
        })
    }

    /// Others wait meanwhile: one lock that is not available is enough.
    pub fn note_timeout(&mut self) {
        self.further_ms = 1;
    }
}

/// Whether a lock was not available in time.
pub fn is_lock_timeout(error: &Failure) -> bool {
    error.code == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE
}
