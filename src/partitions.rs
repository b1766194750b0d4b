//! `snowflake_create_partitions` and `snowflake_drop_partitions`: the partitions by time of a table `PARTITION BY RANGE (id)`.
//!
//! Which ranges there must be, and how they meet those that exist, is decided in `pg_snowflake_core::partitions`. What can be
//! refused is refused before the first change. Each partition is then created or dropped in a subtransaction of its own, and a
//! failure is a row of the result.

mod refusal;
mod table;

use crate::citus;
use crate::encoding::Text;
use crate::layout_type::SqlLayout;
use crate::query::execute;
use crate::relation::{as_owner, lock};
use crate::result_row::NullableResultRow;
use crate::timestamp::timestamptz;
use crate::transaction::{Failure, attempt, check_writable, with_lock_timeout};
use crate::{sequence, settings};
use pg_snowflake_core::Layout;
use pg_snowflake_core::partitions::{
    Bounds, CLOCK_TOLERANCE_US, Coverage, Step, Wanted, before, coverage, gaps, wanted,
};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use std::collections::HashSet;
use std::ops::Range;
use table::{Partition, Table, Tables};

type Rows = SetOfIterator<'static, NullableResultRow<6>>;

/// The most steps ahead: a larger number is a mistake, and each partition costs every query that plans with the table.
const MOST_AHEAD: i32 = 1_000;

/// `snowflake_create_partitions(parent regclass, step interval, ahead int, layout)
/// → setof (table_name regclass, partition text, starts timestamptz, ends timestamptz, action text, message text)`
#[pg_extern(sql = false)]
fn snowflake_create_partitions(
    parent: Option<pg_sys::Oid>,
    step: Option<Interval>,
    ahead: Option<i32>,
    layout: Option<SqlLayout>,
) -> Rows {
    let parent = required("parent", parent);
    let interval = required("step", step);
    let ahead = required("ahead", ahead);
    let SqlLayout(layout) = required("layout", layout);
    check_transaction("snowflake_create_partitions");
    let step = Step::of_interval(interval.months(), interval.days(), interval.micros())
        .unwrap_or_else(|| refusal::unsuitable_step());
    if !(0..=MOST_AHEAD).contains(&ahead) {
        refusal::ahead_out_of_range(ahead, MOST_AHEAD);
    }
    let now_us = now_us(layout);
    // An ID can be ahead of the clock by the lead, and the clock wrong by the tolerance.
    let tolerance_us = CLOCK_TOLERANCE_US.max(settings::policy().max_lead_us);
    let wanted = wanted(&layout, step, now_us, tolerance_us, ahead as u32);

    let rows = with_lock_timeout(|| {
        let Tables { by_range, others } = Tables::read(parent);
        let mut names = HashSet::new();
        for table in &by_range {
            table.check_schema();
            check_ranges(table, &wanted.ranges, step, &mut names);
        }
        let mut rows: Vec<Report> = others.into_iter().map(Report::skipped).collect();
        for table in &by_range {
            rows.extend(as_owner(table.owner, || create(table, &wanted.ranges, step, &layout)));
            if let Some(starts_us) = wanted.beyond_layout {
                rows.push(Report {
                    span: Some((Some(starts_us), None)),
                    message: Some(refusal::beyond_layout(layout)),
                    ..table.report(Action::Failed)
                });
            }
        }
        rows
    });
    SetOfIterator::new(rows.into_iter().map(Report::row))
}

/// `snowflake_drop_partitions(parent regclass, older_than interval, detach_only boolean, layout)
/// → setof (table_name regclass, partition text, starts timestamptz, ends timestamptz, action text, message text)`
#[pg_extern(sql = false)]
fn snowflake_drop_partitions(
    parent: Option<pg_sys::Oid>,
    older_than: Option<Interval>,
    detach_only: Option<bool>,
    layout: Option<SqlLayout>,
) -> Rows {
    let parent = required("parent", parent);
    let older_than = required("older_than", older_than);
    let detach_only = required("detach_only", detach_only);
    let SqlLayout(layout) = required("layout", layout);
    check_transaction("snowflake_drop_partitions");
    let (months, days, us) = (older_than.months(), older_than.days(), older_than.micros());
    let parts = [months.into(), days.into(), us];
    if parts.iter().any(|&part| part < 0) || parts == [0; 3] {
        refusal::older_than_not_positive();
    }
    // What an error of the clock could still make current is kept.
    let before_us = before(now_us(layout), months, days, us)
        .unwrap_or_else(|| refusal::older_than_out_of_range())
        - CLOCK_TOLERANCE_US;

    let rows = with_lock_timeout(|| {
        let Tables { by_range, others } = Tables::read(parent);
        let mut rows: Vec<Report> = others.into_iter().map(Report::skipped).collect();
        for table in &by_range {
            let dropped =
                as_owner(table.owner, || drop_older(table, before_us, detach_only, &layout));
            rows.extend(dropped);
        }
        rows
    });
    SetOfIterator::new(rows.into_iter().map(Report::row))
}

fn required<T>(name: &str, argument: Option<T>) -> T {
    argument.unwrap_or_else(|| refusal::null_argument(name))
}

/// A snapshot that is older than a lock could miss partitions.
fn check_transaction(function: &str) {
    if check_writable(function) >= pg_sys::XACT_REPEATABLE_READ {
        refusal::unsupported_isolation_level(function);
    }
}

/// The clock. Refuses if the layout has no IDs of now.
fn now_us(layout: Layout) -> i64 {
    let now_us = sequence::read_clock().reading_us;
    if !(0..=layout.max_tick()).contains(&layout.tick_at(now_us)) {
        refusal::clock_out_of_range(layout);
    }
    now_us
}

/// What was done with a partition, or found.
#[derive(Clone, Copy, Debug)]
enum Action {
    Created,
    Exists,
    Dropped,
    Detached,
    Failed,
    Skipped,
    Gap,
    Default,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Created => "created",
            Action::Exists => "exists",
            Action::Dropped => "dropped",
            Action::Detached => "detached",
            Action::Failed => "failed",
            Action::Skipped => "skipped",
            Action::Gap => "gap",
            Action::Default => "default",
        }
    }
}

/// A row of the result.
struct Report {
    table: pg_sys::Oid,
    /// The quoted name with its schema.
    partition: Option<String>,
    /// In microseconds since 1970.
    span: Option<(Option<i64>, Option<i64>)>,
    action: Action,
    message: Option<String>,
}

impl Report {
    /// The row of a partition that is not partitioned by a range of IDs.
    fn skipped((partition, reason): (Partition, String)) -> Self {
        Report {
            table: partition.parent,
            partition: Some(partition.name),
            span: None,
            action: Action::Skipped,
            message: Some(reason),
        }
    }

    fn row(self) -> NullableResultRow<6> {
        let text = |text: Option<String>| text.and_then(|text| Text(text).into_datum());
        let (starts, ends) = self.span.unwrap_or_default();
        NullableResultRow([
            Some(self.table.into()),
            text(self.partition),
            starts.map(timestamptz),
            ends.map(timestamptz),
            text(Some(self.action.name().to_owned())),
            text(self.message),
        ])
    }
}

impl Table {
    fn report(&self, action: Action) -> Report {
        Report { table: self.relid, partition: None, span: None, action, message: None }
    }
}

fn span_of(bounds: Bounds, layout: &Layout) -> Option<(Option<i64>, Option<i64>)> {
    Some((bounds.from.instant(layout), bounds.to.instant(layout)))
}

fn whole(span: &Range<i64>) -> Option<(Option<i64>, Option<i64>)> {
    Some((Some(span.start), Some(span.end)))
}

/// The existing partitions that have bounds, and these.
fn with_bounds(partitions: &[Partition]) -> (Vec<&Partition>, Vec<Bounds>) {
    partitions.iter().filter_map(|partition| Some((partition, partition.bounds?))).unzip()
}

/// Refuses if a partition has a part of a range, or if a name is taken. `names` are those of the tables before this one.
fn check_ranges(
    table: &Table,
    ranges: &[Wanted],
    step: Step,
    names: &mut HashSet<(pg_sys::Oid, String)>,
) {
    let partitions = table.partitions();
    let (existing, bounds) = with_bounds(&partitions);
    for range in ranges {
        match coverage(&bounds, range.bounds) {
            Coverage::None => {
                let name = table.partition_name(&step.name_suffix(range.span.start));
                if table.is_name_taken(&name) || !names.insert((table.namespace, name.clone())) {
                    refusal::name_taken(table, &name, range);
                }
            }
            Coverage::Whole(_) => {}
            Coverage::Part(index) => refusal::overlaps(table, existing[index], range),
        }
    }
}

/// Creates the partitions of a table that it lacks, as its owner, and reports its state.
fn create(table: &Table, ranges: &[Wanted], step: Step, layout: &Layout) -> Vec<Report> {
    let mut rows = Vec::new();
    let mut busy = None;
    let partitions = table.partitions();
    let (existing, bounds) = with_bounds(&partitions);
    for range in ranges {
        let mut report = match (coverage(&bounds, range.bounds), &busy) {
            (Coverage::Whole(index), _) => existing_partition(table, existing[index]),
            (_, Some(message)) => {
                Report { message: Some(String::clone(message)), ..table.report(Action::Failed) }
            }
            (_, None) => {
                let mut is_locked = false;
                attempt(|| create_partition(table, range, step, &mut is_locked)).unwrap_or_else(
                    |error| {
                        // Whoever holds the table would let the others wait in vain, too.
                        let is_busy = !is_locked && is_lock_timeout(&error);
                        let message = refusal::of_creation(error, table);
                        busy = is_busy.then(|| message.clone());
                        Report { message: Some(message), ..table.report(Action::Failed) }
                    },
                )
            }
        };
        report.span = whole(&range.span);
        rows.push(report);
    }
    let partitions = table.partitions();
    let (_, bounds) = with_bounds(&partitions);
    rows.extend(gaps(bounds).into_iter().map(|gap| Report {
        span: span_of(gap, layout),
        message: Some(format!("no partition has the values FROM ({}) TO ({})", gap.from, gap.to)),
        ..table.report(Action::Gap)
    }));
    rows.extend(partitions.iter().filter(|partition| partition.is_default).map(|partition| {
        let has_rows = attempt(|| partition.has_rows());
        Report {
            partition: Some(partition.name.clone()),
            message: Some(refusal::default_partition(has_rows)),
            ..table.report(Action::Default)
        }
    }));
    rows
}

fn existing_partition(table: &Table, partition: &Partition) -> Report {
    let is_detached = partition.is_detach_pending;
    Report {
        partition: Some(partition.name.clone()),
        message: is_detached.then(|| refusal::detach_pending(table, partition)),
        ..table.report(if is_detached { Action::Failed } else { Action::Exists })
    }
}

/// Creates one partition. `CREATE TABLE … PARTITION OF` would lock the table against all that use it; a table that is
/// attached locks it only against others that change its definition.
fn create_partition(table: &Table, range: &Wanted, step: Step, is_locked: &mut bool) -> Report {
    lock(table.relid, pg_sys::ShareUpdateExclusiveLock);
    *is_locked = true;
    // Another session may have created it meanwhile.
    let partitions = table.partitions();
    let (existing, bounds) = with_bounds(&partitions);
    match coverage(&bounds, range.bounds) {
        Coverage::None => {}
        Coverage::Whole(index) => return existing_partition(table, existing[index]),
        Coverage::Part(index) => refusal::overlaps(table, existing[index], range),
    }
    let name = table.qualified(&table.partition_name(&step.name_suffix(range.span.start)));
    for statement in table.create_statements(&name, range.bounds) {
        execute(&statement, &[]);
    }
    table.copy_replica_identity(&name);
    Report { partition: Some(name), ..table.report(Action::Created) }
}

/// Drops or detaches the partitions of a table that end before an instant, as its owner.
fn drop_older(table: &Table, before_us: i64, detach_only: bool, layout: &Layout) -> Vec<Report> {
    let mut partitions = table.partitions();
    let is_older = |bounds: Bounds| bounds.ends_before(layout, before_us);
    partitions.retain(|partition| partition.bounds.is_some_and(is_older));
    partitions.sort_unstable_by_key(|partition| partition.bounds);
    let mut rows = Vec::new();
    let mut busy = None;
    for partition in &partitions {
        let result = if partition.is_foreign {
            Ok((Action::Skipped, Some(refusal::FOREIGN_PARTITION.to_owned())))
        } else if partition.is_detach_pending {
            Ok((Action::Failed, Some(refusal::detach_pending(table, partition))))
        } else if let Some(message) = &busy {
            Ok((Action::Failed, Some(String::clone(message))))
        } else {
            let mut is_locked = false;
            attempt(|| drop_partition(table, partition, detach_only, &mut is_locked))
                .map(|action| (action, None))
                .map_err(|error| {
                    // While this one waits for the table, all that come later wait behind it.
                    let is_busy = !is_locked && is_lock_timeout(&error);
                    let message = refusal::of_removal(error, table);
                    busy = is_busy.then(|| message.clone());
                    message
                })
        };
        let (action, message) = result.unwrap_or_else(|message| (Action::Failed, Some(message)));
        rows.push(Report {
            partition: Some(partition.name.clone()),
            span: partition.bounds.and_then(|bounds| span_of(bounds, layout)),
            message,
            ..table.report(action)
        });
    }
    rows
}

/// Removes one partition. A foreign key that references the table depends on its partitions, so a partition that is dropped is
/// detached first, which checks that no row is referenced.
fn drop_partition(
    table: &Table,
    partition: &Partition,
    detach_only: bool,
    is_locked: &mut bool,
) -> Action {
    lock(table.relid, pg_sys::AccessExclusiveLock);
    *is_locked = true;
    let is_same = |now: &Partition| now.relid == partition.relid && now.bounds == partition.bounds;
    if !table.partitions().iter().any(is_same) {
        refusal::changed_meanwhile(partition);
    }
    let name = &partition.name;
    execute(&format!("ALTER TABLE {} DETACH PARTITION {name}", table.name), &[]);
    if detach_only {
        return Action::Detached;
    }
    execute(&format!("DROP TABLE {name}"), &[]);
    Action::Dropped
}

fn is_lock_timeout(error: &Failure) -> bool {
    error.code == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE
}

/// Refuses a table of Citus, which propagates each command by itself.
fn check_citus(relid: pg_sys::Oid) {
    if citus::is_managed_now(relid) {
        refusal::managed_by_citus(relid);
    }
}
