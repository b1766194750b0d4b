//! The tables that a call is about, what is refused of them, and how long their locks are waited for.

use super::outcome::{self, Outcome};
use super::table::{Key, Table};
use crate::distributed;
use crate::postgres::query::rows;
use crate::postgres::relation::lock;
use crate::postgres::report::{Raise, no_such_table, relation_name};
use crate::postgres::transaction::{Failure, with_brief_lock_timeout};
use pg_snowflake_policies::messages::partitions as messages;
use pgrx::prelude::*;

/// The tables that a call is about: the table itself, or those of its partitions that are partitioned by a range of IDs. Also the rows of
/// the other partitions, each with the reason why it has no ranges. Refuses a table that is not partitioned by a range of IDs, nor its
/// partitions by hash or list, and one whose owner the caller is not.
pub fn tables_under(relid: pg_sys::Oid) -> (Vec<Table>, Vec<Outcome>) {
    let parent = Table::read(relid).unwrap_or_else(|| no_such_table(relid));
    // Each command is propagated by itself.
    if distributed::is_managed_now(relid) {
        messages::distributed(relation_name(relid)).raise();
    }
    match &parent.key {
        Key::None => messages::not_partitioned(&parent.name).raise(),
        Key::OfIds => {
            parent.check_owner();
            return (vec![parent], Vec::new());
        }
        Key::OtherRange => messages::partitioned_by_something_else(&parent.name, parent.key()).raise(),
        Key::Descend => parent.check_owner(),
    }
    let (mut by_range, mut others) = (Vec::new(), Vec::new());
    let mut to_visit = parent.partitions();
    to_visit.reverse();
    while let Some(partition) = to_visit.pop() {
        pgrx::check_for_interrupts!();
        // Its rows are no longer the table's.
        if let Some(finalize) = partition.finalize.as_ref().filter(|_| partition.is_detach_pending) {
            others.push(Outcome::skipped(&partition, outcome::detach_pending(&partition, finalize)));
            continue;
        }
        // It was dropped meanwhile.
        let Some(table) = Table::read(partition.relid) else { continue };
        match &table.key {
            Key::None => others.push(Outcome::skipped(&partition, outcome::without_ranges(partition.foreign_table.is_some()))),
            Key::OtherRange => others.push(Outcome::skipped(&partition, format!("is partitioned by {}", table.key()))),
            Key::OfIds => {
                table.check_owner();
                by_range.push(table);
            }
            Key::Descend => to_visit.extend(table.partitions().into_iter().rev()),
        }
    }
    if by_range.is_empty() {
        messages::partitioned_by_something_else(&parent.name, parent.key()).raise();
    }
    (by_range, others)
}

impl Table {
    /// The table as of now, after a lock was waited for. Refuses if it is another one, or has another owner.
    pub fn again(&self) -> Self {
        let again = Table::read(self.relid).filter(|again| again.owner == self.owner);
        again.unwrap_or_else(|| messages::changed_meanwhile("table", &self.name).raise())
    }

    fn check_owner(&self) {
        if !self.is_owned {
            messages::not_owner(&self.name).raise();
        }
    }

    /// Refuses if the owner may not create a table in the schema.
    pub fn check_schema(&self) {
        let sql = "SELECT w.privilege, quote_ident(r.rolname)
            FROM (VALUES ('USAGE'), ('CREATE')) AS w (privilege)
            JOIN pg_roles AS r ON r.oid = $2
            WHERE NOT has_schema_privilege(r.oid, $1, w.privilege)";
        let lacking = rows(sql, &[self.namespace.into(), self.owner.into()], |row| (row.get::<String>(1), row.get::<String>(2)));
        if let Some((privilege, owner)) = lacking.first() {
            messages::lacks_privilege(privilege, &self.schema, owner).raise();
        }
    }
}

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
