//! The removal of old partitions.

use super::outcome::{self, Outcome, span_of};
use super::table::{Partition, Table};
use super::tables::{Patience, is_lock_timeout};
use crate::postgres::query::{execute, rows};
use crate::postgres::relation::lock_tree;
use crate::postgres::report::Raise;
use crate::postgres::timestamp::printed;
use crate::postgres::transaction::{attempt, attempt_and_roll_back};
use crate::postgres::user_table::check_owner_of_expressions;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::messages::partitions as messages;
use pg_snowflake_policies::partitions::{Bound, Bounds, CLOCK_TOLERANCE_US, Doubt, doubts};
use pgrx::prelude::*;

/// What decides whether a partition of a table is old.
pub struct Age {
    /// The layout of the table's IDs.
    pub layout: Layout,
    /// The layouts of the defaults from which that was concluded, and the topmost table that can have one.
    pub generated: Vec<Option<Layout>>,
    pub top: pg_sys::Oid,
    /// The clock, in microseconds since 1970.
    pub now_us: i64,
    /// The IDs before are old.
    pub before_us: i64,
}

/// A partition whose bounds read as old times.
pub struct Older {
    partition: Partition,
    /// What the row says instead if it is not removed, and why.
    obstacle: Option<(&'static str, String)>,
}

/// The partitions of a table whose bounds read as old times, from the oldest, with the reason why that is in doubt. Refuses if no other
/// partition has the IDs of now: either the bounds are of another layout, or inserts already fail.
pub fn older_partitions(table: &Table, age: &Age) -> Vec<Older> {
    let partitions = table.partitions_by_bounds();
    let is_older = |bounds: Option<Bounds>| bounds.is_some_and(|bounds| bounds.ends_before(&age.layout, age.before_us));
    let has_ids_of_now = |partition: &Partition| {
        !partition.is_detach_pending
            && partition.bounds.is_some_and(|bounds| bounds.has_ids_of(&age.layout, age.now_us, CLOCK_TOLERANCE_US))
    };
    let remains = |partition: &Partition| !is_older(partition.bounds) && has_ids_of_now(partition);
    if let Some(newest) = partitions.last()
        && !partitions.iter().any(remains)
    {
        let layout = age.layout;
        let time = |bound: Bound| bound.instant(&layout).map_or("no time".into(), printed);
        let bounds = newest
            .bounds
            .map_or_else(String::new, |Bounds { from, to }| format!("from {} to {} in layout \"{layout}\"", time(from), time(to)));
        messages::no_current_partition(&table.name, &newest.name, bounds).raise();
    }
    let named: Vec<_> = partitions.iter().filter_map(|partition| Some((partition.relname.as_str(), partition.bounds?))).collect();
    let doubts = doubts(&age.layout, &named, age.before_us, age.now_us);
    let reason_of = |index: usize| {
        doubts[index].map(|doubt| {
            let reason = match doubt {
                Doubt::Later(later) => outcome::later_doubt(&partitions[later], doubts[later], &age.layout),
                doubt => outcome::doubt(&partitions[index], doubt, &age.layout),
            };
            ("kept", outcome::kept(table, &partitions[index], &reason))
        })
    };
    let reasons: Vec<_> = (0..partitions.len()).map(reason_of).collect();
    let older = partitions.into_iter().zip(reasons).filter(|(partition, _)| is_older(partition.bounds));
    older.map(|(partition, obstacle)| Older { partition, obstacle }).collect()
}

/// Counts the age from the newest ID of the table instead, if that is older than now: to a clock that is ahead, every ID looks old.
pub fn count_from_newest_id(table: &Table, age: &mut Age, before_us: impl Fn(i64) -> i64, mut older: Vec<Older>) -> Vec<Older> {
    if older.iter().all(|older| older.obstacle.is_some() || older.partition.foreign_table.is_some()) {
        return older;
    }
    let end = age.layout.min_id(age.now_us + CLOCK_TOLERANCE_US);
    // A lock on a partition, held while the call waits for that of the table, could cause a deadlock.
    let newest = match attempt_and_roll_back(|| table.newest_id_before(end)) {
        Ok(newest) => newest,
        Err(error) => {
            let message = outcome::newest_id_not_read(&error, table);
            for Older { obstacle, .. } in &mut older {
                obstacle.get_or_insert_with(|| ("failed", message.clone()));
            }
            return older;
        }
    };
    let instant = newest.and_then(|newest| Bound::At(newest).instant(&age.layout));
    let Some(newest_us) = instant.filter(|&newest_us| newest_us < age.now_us) else { return older };
    age.before_us = before_us(newest_us);
    let is_older = |bounds: Bounds| bounds.ends_before(&age.layout, age.before_us);
    let mut newer: Vec<_> = older.into_iter().filter(|older| older.partition.bounds.is_some_and(|bounds| !is_older(bounds))).collect();
    for Older { partition, obstacle } in &mut newer {
        let reason = format!("is not old compared with the newest ID of the table, of {}", printed(newest_us));
        obstacle.get_or_insert_with(|| ("kept", outcome::kept(table, partition, &reason)));
    }
    let mut older = older_partitions(table, age);
    older.append(&mut newer);
    older
}

/// Drops or detaches these partitions of a table, as its owner.
pub fn drop_older(table: &Table, age: &Age, older: Vec<Older>, detach_only: bool, patience: &mut Patience) -> Vec<Outcome> {
    let mut rows = Vec::new();
    let mut busy = None;
    let mut left = 0;
    for Older { partition, obstacle } in older {
        let partition = &partition;
        let mut name = partition.name.clone();
        let (action, message) = if let Some(foreign_table) = &partition.foreign_table {
            ("skipped", Some(outcome::foreign_partition(partition, foreign_table)))
        } else if let Some(finalize) = &partition.finalize {
            ("failed", Some(outcome::detach_pending(partition, finalize)))
        } else if let Some((action, message)) = obstacle {
            (action, Some(message))
        } else if patience.removals == 0 {
            left += 1;
            continue;
        } else if busy.is_some() {
            ("failed", busy.clone())
        } else {
            let mut is_locked = false;
            match attempt(|| drop_partition(table, age, partition, detach_only, patience, &mut is_locked)) {
                Ok((action, name_now)) => {
                    patience.has_changed = true;
                    patience.removals -= 1;
                    name = name_now;
                    (action, None)
                }
                Err(error) => {
                    let is_timeout = is_lock_timeout(&error);
                    if is_timeout {
                        patience.note_timeout();
                    }
                    let message = Some(outcome::of_removal(error, table));
                    // While this one waits for the table, all that come later wait behind it.
                    busy = if is_timeout && !is_locked { message.clone() } else { None };
                    ("failed", message)
                }
            }
        };
        rows.push(Outcome {
            partition: Some(name),
            span: partition.bounds.map_or((None, None), |bounds| span_of(bounds, &age.layout)),
            message,
            ..Outcome::of(table, action)
        });
    }
    if left > 0 {
        let message = format!("{left} more partitions are older; call the function again");
        rows.push(Outcome { message: Some(message), ..Outcome::of(table, "skipped") });
    }
    rows
}

/// Removes one partition, and returns its name. A foreign key that references the table depends on its partitions, so a partition that is dropped is
/// detached first, which checks that no row is referenced.
fn drop_partition(
    table: &Table,
    age: &Age,
    partition: &Partition,
    detach_only: bool,
    patience: &Patience,
    is_locked: &mut bool,
) -> (&'static str, String) {
    // DETACH would lock the tables with a foreign key to this one after it, and inserts into them lock them before it.
    let referencing = table.referencing().into_iter().filter(|&relid| relid != table.relid);
    let locks: Vec<_> = referencing.chain([table.relid]).map(|relid| (relid, pg_sys::AccessExclusiveLock)).collect();
    patience.with_locks(&locks, || {
        *is_locked = true;
        // Nothing is attached to a partition below meanwhile, either.
        if lock_tree(partition.relid, pg_sys::AccessExclusiveLock).is_empty() {
            messages::changed_meanwhile("partition", &partition.name).raise();
        }
        // DETACH PARTITION evaluates expressions of these tables.
        for relid in table.referencing().into_iter().chain([partition.relid]) {
            check_owner_of_expressions(relid, table.owner);
        }
        // Another session may have changed the names, the bounds or the default while this one waited. Nothing changes from here on.
        let table = table.again();
        let has_same_layout = table.generated_layouts(age.top).iter().all(|layout| age.generated.contains(layout));
        let now = older_partitions(&table, age).into_iter().find(|older| {
            older.partition.relid == partition.relid
                && older.partition.bounds == partition.bounds
                && older.partition.foreign_table.is_none()
                && older.partition.finalize.is_none()
                && older.obstacle.is_none()
        });
        let Some(Older { partition: now, .. }) = now.filter(|_| has_same_layout) else {
            messages::changed_meanwhile("partition", &partition.name).raise()
        };
        // The statements name the partition, and a schema can be renamed without a lock on it. If another table had the name, the
        // subtransaction rolls the statement back.
        let remove = |statement: String, remaining: &str| {
            execute(&statement, &[]);
            if !rows(remaining, &[now.relid.into()], |_| ()).is_empty() {
                messages::changed_meanwhile("partition", &now.name).raise();
            }
        };
        remove(format!("ALTER TABLE {} DETACH PARTITION {}", table.name, now.name), "SELECT FROM pg_inherits WHERE inhrelid = $1");
        if detach_only {
            return ("detached", now.name);
        }
        remove(format!("DROP TABLE {}", now.name), "SELECT FROM pg_class WHERE oid = $1");
        ("dropped", now.name)
    })
}
