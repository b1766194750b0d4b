//! The creation of partitions.

use super::outcome::{self, Outcome, span_of};
use super::table::{Partition, Table};
use super::tables::{Patience, is_lock_timeout};
use crate::postgres::query::execute;
use crate::postgres::report::Raise;
use crate::postgres::timestamp::printed;
use crate::postgres::transaction::attempt;
use crate::postgres::user_table::check_owner_of_expressions;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::messages::partitions as messages;
use pg_snowflake_policies::partitions::{Bounds, Coverage, Step, Wanted, coverage, gaps};
use pgrx::prelude::*;
use std::collections::HashSet;

/// The existing partitions that have bounds, and these.
fn with_bounds(partitions: &[Partition]) -> (Vec<&Partition>, Vec<Bounds>) {
    partitions.iter().filter_map(|partition| Some((partition, partition.bounds?))).unzip()
}

/// Refuses if a partition has a part of a range, or if a name is taken. `names` are those of the tables before this one.
pub fn check_ranges(table: &Table, ranges: &[Wanted], step: Step, names: &mut HashSet<(pg_sys::Oid, String)>) {
    let partitions = table.partitions();
    let (existing, bounds) = with_bounds(&partitions);
    for range in ranges {
        match coverage(&bounds, range.bounds) {
            Coverage::None => {
                let name = table.partition_name(&step.name_suffix(range.span.start));
                let is_taken = table.is_name_taken(&name) || !names.insert((table.namespace, name.clone()));
                // Another call may have created the partition since this one read them.
                if is_taken && !has_whole(table, range) {
                    let qualified = table.qualified(&name);
                    let own = partitions.iter().find(|partition| partition.name == qualified);
                    name_taken(table, qualified, range, own);
                }
            }
            Coverage::Whole(_) => {}
            Coverage::Part(index) => overlaps(table, existing[index], range),
        }
    }
}

/// A partition has a part of the range.
#[track_caller]
fn overlaps(table: &Table, partition: &Partition, Wanted { span, bounds }: &Wanted) -> ! {
    let existing = partition.bounds.map_or_else(String::new, |bounds| bounds.to_string());
    let [start, end] = [span.start, span.end].map(printed);
    messages::overlaps(&partition.name, &table.name, existing, start, end, bounds).raise()
}

/// A relation or a type has the name of a partition. `own` is the partition of the table with that name.
#[track_caller]
fn name_taken(table: &Table, name: String, range: &Wanted, own: Option<&Partition>) -> ! {
    let Wanted { span, bounds } = range;
    let [start, end] = [span.start, span.end].map(printed);
    match own.and_then(|own| own.bounds) {
        Some(own) => messages::name_of_partition(name, &table.name, own, start, end, bounds),
        None => messages::name_taken(name, &table.name, start, end, bounds),
    }
    .raise()
}

/// Whether a partition has the range now.
fn has_whole(table: &Table, range: &Wanted) -> bool {
    let partitions = table.partitions();
    matches!(coverage(&with_bounds(&partitions).1, range.bounds), Coverage::Whole(_))
}

/// Creates the partitions of a table that it lacks, as its owner, and reports its state.
pub fn create(table: &Table, ranges: &[Wanted], step: Step, layout: &Layout, patience: &mut Patience) -> Vec<Outcome> {
    let mut rows = Vec::new();
    let mut busy = None;
    let partitions = table.partitions();
    let (existing, bounds) = with_bounds(&partitions);
    for range in ranges {
        let mut row = match (coverage(&bounds, range.bounds), &busy) {
            (Coverage::Whole(index), _) => existing_partition(table, existing[index]),
            (_, Some(message)) => Outcome { message: Some(String::clone(message)), ..Outcome::of(table, "failed") },
            (_, None) => {
                let mut is_locked = false;
                let created = attempt(|| create_partition(table, range, step, patience, &mut is_locked));
                patience.has_changed |= created.is_ok();
                created.unwrap_or_else(|error| {
                    // Whoever holds the table would let the others wait in vain, too.
                    let is_busy = !is_locked && is_lock_timeout(&error);
                    let message = outcome::of_creation(error, table);
                    busy = is_busy.then(|| message.clone());
                    Outcome { message: Some(message), ..Outcome::of(table, "failed") }
                })
            }
        };
        row.span = (Some(range.span.start), Some(range.span.end));
        rows.push(row);
    }
    let partitions = table.partitions();
    let (_, bounds) = with_bounds(&partitions);
    rows.extend(gaps(bounds).into_iter().map(|gap| Outcome {
        span: span_of(gap, layout),
        message: Some(format!("no partition has the values FROM ({}) TO ({})", gap.from, gap.to)),
        ..Outcome::of(table, "gap")
    }));
    rows.extend(partitions.iter().filter(|partition| partition.is_default).map(|partition| {
        let has_rows = attempt(|| partition.has_rows(table.owner));
        Outcome {
            partition: Some(partition.name.clone()),
            message: Some(outcome::default_partition(has_rows)),
            ..Outcome::of(table, "default")
        }
    }));
    rows
}

fn existing_partition(table: &Table, partition: &Partition) -> Outcome {
    let finalize = partition.finalize.as_deref();
    Outcome {
        partition: Some(partition.name.clone()),
        message: finalize.map(|finalize| outcome::detach_pending(partition, finalize)),
        ..Outcome::of(table, if finalize.is_some() { "failed" } else { "exists" })
    }
}

/// Creates one partition. `CREATE TABLE … PARTITION OF` would lock the table against all that use it; a table that is
/// attached locks it only against others that change its definition.
fn create_partition(table: &Table, range: &Wanted, step: Step, patience: &Patience, is_locked: &mut bool) -> Outcome {
    patience.lock(table.relid, pg_sys::ShareUpdateExclusiveLock);
    // Another session may have renamed the table meanwhile, or created the partition.
    let table = &table.again();
    let partitions = table.partitions();
    let (existing, bounds) = with_bounds(&partitions);
    match coverage(&bounds, range.bounds) {
        Coverage::None => {}
        Coverage::Whole(index) => return existing_partition(table, existing[index]),
        Coverage::Part(index) => overlaps(table, existing[index], range),
    }
    // What ATTACH PARTITION will lock.
    let default = partitions.iter().filter(|partition| partition.is_default);
    let default = default.map(|partition| (partition.relid, pg_sys::AccessExclusiveLock));
    let referenced = table.referenced().into_iter().map(|relid| (relid, pg_sys::ShareRowExclusiveLock));
    let locks: Vec<_> = default.chain(referenced).collect();
    let name = table.qualified(&table.partition_name(&step.name_suffix(range.span.start)));
    patience.with_locks(&locks, || {
        *is_locked = true;
        // ATTACH PARTITION evaluates expressions of these tables.
        for &(relid, _) in &locks {
            check_owner_of_expressions(relid, table.owner);
        }
        for statement in table.create_statements(&name, range.bounds) {
            execute(&statement, &[]);
        }
        table.copy_replica_identity(&name);
        // The statements name the table, and a schema can be renamed without a lock on it.
        if !has_whole(table, range) {
            messages::changed_meanwhile("table", &table.name).raise();
        }
    });
    Outcome { partition: Some(name), ..Outcome::of(table, "created") }
}
