//! `snowflake_create_partitions` and `snowflake_drop_partitions`: the partitions by time of a table `PARTITION BY RANGE (id)`.
//!
//! `pg_snowflake_policies::partitions` decides which ranges there must be, how they meet the existing partitions, and which of these
//! are proved to be old. What can be refused is refused before the first change. Each partition is then created or dropped in a
//! subtransaction of its own, and a failure is a row of the result.

mod refusal;
mod table;

use crate::distributed;
use crate::layout_type::SqlLayout;
use crate::monitor::last_id_us;
use crate::postgres::arguments;
use crate::postgres::encoding::Text;
use crate::postgres::query::execute;
use crate::postgres::relation::{as_owner, lock};
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::timestamptz;
use crate::postgres::transaction::{
    Failure, attempt, attempt_and_roll_back, check_read_committed, check_writable,
    with_brief_lock_timeout, with_lock_timeout,
};
use crate::{sequence, settings};
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::likely::mismatch;
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::partitions::{
    Bound, Bounds, CLOCK_TOLERANCE_US, Coverage, Doubt, Step, Wanted, before, coverage, doubts,
    gaps, wanted,
};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use std::collections::HashSet;
use std::ops::Range;
use table::{Partition, Table, Tables};

type Rows = SetOfIterator<'static, NullableResultRow<6>>;

/// The most steps ahead: a larger number is a mistake, and each partition costs every query that plans with the table.
const MOST_AHEAD: i32 = 1_000;

/// The most partitions that a call removes. Each removal adds locks to those that block the table, and to the server's lock table.
const MOST_REMOVALS: usize = 50;

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
    check_transaction("snowflake_create_partitions");
    let step = Step::of_interval(interval.months(), interval.days(), interval.micros())
        .unwrap_or_else(|| refusal::unsuitable_step());
    if !(0..=MOST_AHEAD).contains(&ahead) {
        refusal::ahead_out_of_range(ahead, MOST_AHEAD);
    }
    let now_us = sequence::read_clock().reading_us;
    // An ID can be ahead of the clock by the lead, and the clock wrong by the tolerance.
    let tolerance_us = CLOCK_TOLERANCE_US.max(settings::policy().max_lead_us);

    let rows = with_lock_timeout(|| {
        let Tables { by_range, others } = Tables::read(parent);
        let mut names = HashSet::new();
        let planned: Vec<_> = by_range
            .into_iter()
            .map(|table| {
                table.check_schema();
                let is_explicit = layout.is_some();
                let layout = layout_of(&table, parent, layout, now_us);
                check_layout(&table, parent, layout, is_explicit, now_us);
                let wanted = wanted(&layout, step, now_us, tolerance_us, ahead as u32);
                check_ranges(&table, &wanted.ranges, step, &mut names);
                (table, layout, wanted)
            })
            .collect();
        let mut rows: Vec<Report> = others.into_iter().map(Report::skipped).collect();
        let mut patience = Patience::default();
        for (table, layout, wanted) in planned {
            let created = || create(&table, &wanted.ranges, step, &layout, &mut patience);
            rows.extend(as_owner(table.owner, created));
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
    check_transaction("snowflake_drop_partitions");
    let (months, days, us) = (older_than.months(), older_than.days(), older_than.micros());
    let parts = [months.into(), days.into(), us];
    if parts.iter().any(|&part| part < 0) || parts == [0; 3] {
        refusal::older_than_not_positive();
    }
    let now_us = sequence::read_clock().reading_us;
    // What an error of the clock could still make current is kept.
    let before_us = |newest_us| {
        before(newest_us, months, days, us).unwrap_or_else(|| refusal::older_than_out_of_range())
            - CLOCK_TOLERANCE_US
    };

    let rows = with_lock_timeout(|| {
        let Tables { by_range, others } = Tables::read(parent);
        let planned: Vec<_> = by_range
            .into_iter()
            .map(|table| {
                let layout = layout_of(&table, parent, layout, now_us);
                let generated = table.generated_layouts(parent);
                if let Some(other) = generated.iter().flatten().find(|other| **other != layout) {
                    refusal::several_layouts(&table, layout, *other);
                }
                let age =
                    Age { layout, generated, top: parent, now_us, before_us: before_us(now_us) };
                let older = older_partitions(&table, &age);
                (table, age, older)
            })
            .collect();
        let mut rows: Vec<Report> = others.into_iter().map(Report::skipped).collect();
        let mut patience = Patience::default();
        for (table, mut age, older) in planned {
            rows.extend(as_owner(table.owner, || {
                let older = count_from_newest_id(&table, &mut age, before_us, older);
                drop_older(&table, &age, older, detach_only, &mut patience)
            }));
        }
        rows
    });
    SetOfIterator::new(rows.into_iter().map(Report::row))
}

fn required<T>(name: &str, argument: Option<T>) -> T {
    arguments::required(name, argument, "Pass a value, or omit an argument that has a default.")
}

/// A snapshot that is older than a lock could miss partitions.
fn check_transaction(function: &str) {
    check_writable(function, "Only the primary generates IDs.");
    check_read_committed(
        function,
        "The function must see every partition that is committed before it locks the table.",
    );
}

/// The layout of the table's IDs: that which the default of its column generates, or if it generates none, the one that was
/// passed, or else the default. Refuses another layout than that of the default, and one that has no IDs of now.
fn layout_of(table: &Table, top: pg_sys::Oid, passed: Option<SqlLayout>, now_us: i64) -> Layout {
    let generated = table.generated_layouts(top);
    let layout = match (passed, generated.as_slice()) {
        (Some(SqlLayout(passed)), [Some(first), ..])
            if generated.iter().all(|layout| layout.is_some_and(|layout| layout != passed)) =>
        {
            refusal::layout_differs(table, passed, *first)
        }
        (Some(SqlLayout(passed)), _) => passed,
        (None, []) => DEFAULT,
        (None, [Some(generated)]) => *generated,
        (None, _) => refusal::layout_not_known(table),
    };
    if !(0..=layout.max_tick()).contains(&layout.tick_at(now_us)) {
        refusal::clock_out_of_range(layout);
    }
    layout
}

/// Refuses if the newest ID of the table is probably of another layout, which the caller has not passed. Warns if the caller has passed
/// this one.
fn check_layout(table: &Table, top: pg_sys::Oid, layout: Layout, is_explicit: bool, now_us: i64) {
    let Some(newest) = table.newest_id() else { return };
    // The time of the sequence is needed only if there is a doubt.
    if mismatch(newest, &layout, None, now_us).is_none() {
        return;
    }
    let calls = table.generator_calls(top);
    let generates = !calls.is_empty();
    let generated_us = calls
        .into_iter()
        .filter_map(|call| call.filter(|call| call.layout == Some(layout))?.sequence.oid())
        .filter_map(|sequence| last_id_us(sequence, layout))
        .max();
    if let Some(mismatch) = mismatch(newest, &layout, generated_us, now_us) {
        refusal::other_layout(table, &mismatch, is_explicit, generates);
    }
}

/// How long a call waits for locks.
///
/// A session that inserts locks a table before its partition, and a table that has a foreign key before the table that it references.
/// A call that locks in another order, while it blocks such a session, could deadlock with it. So only the first lock of a call that
/// blocks inserts is waited for as long as `lock_timeout`. Each further one is waited for briefly, compared with `deadlock_timeout`.
struct Patience {
    /// Whether the call holds the locks of a partition that it has created or removed.
    has_changed: bool,
    /// How long it waits for a further lock.
    further_ms: i32,
    /// How many partitions it may still remove.
    removals: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { has_changed: false, further_ms: 50, removals: MOST_REMOVALS }
    }
}

impl Patience {
    fn lock(&self, relid: pg_sys::Oid, mode: u32) {
        if self.has_changed {
            with_brief_lock_timeout(self.further_ms, || lock(relid, mode));
        } else {
            lock(relid, mode);
        }
    }

    /// Takes locks that block inserts, in that order, and then calls `run`.
    fn with_locks<T>(&self, locks: &[(pg_sys::Oid, u32)], run: impl FnOnce() -> T) -> T {
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
    fn note_timeout(&mut self) {
        self.further_ms = 1;
    }
}

/// What was done with a partition, or found.
#[derive(Clone, Copy, Debug)]
enum Action {
    Created,
    Exists,
    Dropped,
    Detached,
    Kept,
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
            Action::Kept => "kept",
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
                let is_taken =
                    table.is_name_taken(&name) || !names.insert((table.namespace, name.clone()));
                // Another call may have created the partition since this one read them.
                if is_taken && !has_whole(table, range) {
                    let qualified = table.qualified(&name);
                    let own = partitions.iter().find(|partition| partition.name == qualified);
                    refusal::name_taken(table, &name, range, own);
                }
            }
            Coverage::Whole(_) => {}
            Coverage::Part(index) => refusal::overlaps(table, existing[index], range),
        }
    }
}

/// Whether a partition has the range now.
fn has_whole(table: &Table, range: &Wanted) -> bool {
    let partitions = table.partitions();
    matches!(coverage(&with_bounds(&partitions).1, range.bounds), Coverage::Whole(_))
}

/// Creates the partitions of a table that it lacks, as its owner, and reports its state.
fn create(
    table: &Table,
    ranges: &[Wanted],
    step: Step,
    layout: &Layout,
    patience: &mut Patience,
) -> Vec<Report> {
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
                let created =
                    attempt(|| create_partition(table, range, step, patience, &mut is_locked));
                patience.has_changed |= created.is_ok();
                created.unwrap_or_else(|error| {
                    // Whoever holds the table would let the others wait in vain, too.
                    let is_busy = !is_locked && is_lock_timeout(&error);
                    let message = refusal::of_creation(error, table);
                    busy = is_busy.then(|| message.clone());
                    Report { message: Some(message), ..table.report(Action::Failed) }
                })
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
fn create_partition(
    table: &Table,
    range: &Wanted,
    step: Step,
    patience: &Patience,
    is_locked: &mut bool,
) -> Report {
    patience.lock(table.relid, pg_sys::ShareUpdateExclusiveLock);
    // Another session may have renamed the table meanwhile, or created the partition.
    let table = &table.again();
    let partitions = table.partitions();
    let (existing, bounds) = with_bounds(&partitions);
    match coverage(&bounds, range.bounds) {
        Coverage::None => {}
        Coverage::Whole(index) => return existing_partition(table, existing[index]),
        Coverage::Part(index) => refusal::overlaps(table, existing[index], range),
    }
    // What ATTACH PARTITION will lock.
    let default = partitions.iter().filter(|partition| partition.is_default);
    let default = default.map(|partition| (partition.relid, pg_sys::AccessExclusiveLock));
    let referenced = table.referenced().into_iter();
    let referenced = referenced.map(|relid| (relid, pg_sys::ShareRowExclusiveLock));
    let locks: Vec<_> = default.chain(referenced).collect();
    let name = table.qualified(&table.partition_name(&step.name_suffix(range.span.start)));
    patience.with_locks(&locks, || {
        *is_locked = true;
        for statement in table.create_statements(&name, range.bounds) {
            execute(&statement, &[]);
        }
        table.copy_replica_identity(&name);
        // The statements name the table, and a schema can be renamed without a lock on it.
        if !has_whole(table, range) {
            refusal::changed_meanwhile("table", &table.name);
        }
    });
    Report { partition: Some(name), ..table.report(Action::Created) }
}

/// What decides whether a partition of a table is old.
struct Age {
    /// The layout of the table's IDs.
    layout: Layout,
    /// The layouts of the defaults from which that was concluded, and the topmost table that can have one.
    generated: Vec<Option<Layout>>,
    top: pg_sys::Oid,
    now_us: i64,
    /// The IDs before are old.
    before_us: i64,
}

/// A partition whose bounds read as old times.
struct Older {
    partition: Partition,
    /// Why it is not removed.
    obstacle: Option<(Action, String)>,
}

/// The partitions of a table whose bounds read as old times, from the oldest, with the reason why that is in doubt. Refuses if no other
/// partition has the IDs of now: either the bounds are of another layout, or inserts already fail.
fn older_partitions(table: &Table, age: &Age) -> Vec<Older> {
    let partitions = table.partitions_by_bounds();
    let is_older = |bounds: Option<Bounds>| {
        bounds.is_some_and(|bounds| bounds.ends_before(&age.layout, age.before_us))
    };
    let has_ids_of_now = |partition: &Partition| {
        !partition.is_detach_pending
            && partition.bounds.is_some_and(|bounds| {
                bounds.has_ids_of(&age.layout, age.now_us, CLOCK_TOLERANCE_US)
            })
    };
    let remains = |partition: &Partition| !is_older(partition.bounds) && has_ids_of_now(partition);
    if let Some(newest) = partitions.last()
        && !partitions.iter().any(remains)
    {
        refusal::no_current_partition(table, newest, age.layout);
    }
    let named: Vec<_> = partitions
        .iter()
        .filter_map(|partition| Some((partition.relname.as_str(), partition.bounds?)))
        .collect();
    let doubts = doubts(&age.layout, &named, age.before_us, age.now_us);
    let reason_of = |index: usize| {
        doubts[index].map(|doubt| {
            let reason = match doubt {
                Doubt::Later(later) => {
                    refusal::later_doubt(&partitions[later], doubts[later], &age.layout)
                }
                doubt => refusal::doubt(&partitions[index], doubt, &age.layout),
            };
            (Action::Kept, refusal::kept(table, &partitions[index], &reason))
        })
    };
    let reasons: Vec<_> = (0..partitions.len()).map(reason_of).collect();
    let older = partitions.into_iter().zip(reasons);
    let older = older.filter(|(partition, _)| is_older(partition.bounds));
    older.map(|(partition, obstacle)| Older { partition, obstacle }).collect()
}

/// Counts the age from the newest ID of the table instead, if that is older than now: to a clock that is ahead, every ID looks old.
fn count_from_newest_id(
    table: &Table,
    age: &mut Age,
    before_us: impl Fn(i64) -> i64,
    mut older: Vec<Older>,
) -> Vec<Older> {
    if older.iter().all(|older| older.obstacle.is_some() || older.partition.is_foreign) {
        return older;
    }
    let end = age.layout.min_id(age.now_us + CLOCK_TOLERANCE_US);
    // A lock on a partition, held while the call waits for that of the table, could cause a deadlock.
    let newest = match attempt_and_roll_back(|| table.newest_id_before(end)) {
        Ok(newest) => newest,
        Err(error) => {
            let message = refusal::newest_id_not_read(&error, table);
            for Older { obstacle, .. } in &mut older {
                obstacle.get_or_insert_with(|| (Action::Failed, message.clone()));
            }
            return older;
        }
    };
    let instant = newest.and_then(|newest| Bound::At(newest).instant(&age.layout));
    let Some(newest_us) = instant.filter(|&newest_us| newest_us < age.now_us) else { return older };
    age.before_us = before_us(newest_us);
    let is_older = |bounds: Bounds| bounds.ends_before(&age.layout, age.before_us);
    let mut newer: Vec<_> = older
        .into_iter()
        .filter(|older| older.partition.bounds.is_some_and(|bounds| !is_older(bounds)))
        .collect();
    for Older { partition, obstacle } in &mut newer {
        let reason = refusal::newest_id(newest_us);
        obstacle.get_or_insert_with(|| (Action::Kept, refusal::kept(table, partition, &reason)));
    }
    let mut older = older_partitions(table, age);
    older.append(&mut newer);
    older
}

/// Drops or detaches these partitions of a table, as its owner.
fn drop_older(
    table: &Table,
    age: &Age,
    older: Vec<Older>,
    detach_only: bool,
    patience: &mut Patience,
) -> Vec<Report> {
    let mut rows = Vec::new();
    let mut busy = None;
    let mut left = 0;
    for Older { partition, obstacle } in older {
        let partition = &partition;
        let mut name = partition.name.clone();
        let result = if partition.is_foreign {
            Ok((Action::Skipped, Some(refusal::FOREIGN_PARTITION.to_owned())))
        } else if partition.is_detach_pending {
            Ok((Action::Failed, Some(refusal::detach_pending(table, partition))))
        } else if let Some((action, message)) = obstacle {
            Ok((action, Some(message)))
        } else if patience.removals == 0 {
            left += 1;
            continue;
        } else if let Some(message) = &busy {
            Ok((Action::Failed, Some(String::clone(message))))
        } else {
            let mut is_locked = false;
            attempt(|| drop_partition(table, age, partition, detach_only, patience, &mut is_locked))
                .map(|(action, name_now)| {
                    patience.has_changed = true;
                    patience.removals -= 1;
                    name = name_now;
                    (action, None)
                })
                .map_err(|error| {
                    // While this one waits for the table, all that come later wait behind it.
                    let is_busy = !is_locked && is_lock_timeout(&error);
                    if is_lock_timeout(&error) {
                        patience.note_timeout();
                    }
                    let message = refusal::of_removal(error, table);
                    busy = is_busy.then(|| message.clone());
                    message
                })
        };
        let (action, message) = result.unwrap_or_else(|message| (Action::Failed, Some(message)));
        rows.push(Report {
            partition: Some(name),
            span: partition.bounds.and_then(|bounds| span_of(bounds, &age.layout)),
            message,
            ..table.report(action)
        });
    }
    if left > 0 {
        let message = refusal::left_for_next_call(left);
        rows.push(Report { message: Some(message), ..table.report(Action::Skipped) });
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
) -> (Action, String) {
    // DETACH would lock the tables with a foreign key to this one after it, and inserts into them lock them before it.
    let mut locks = table.referencing();
    locks.retain(|&relid| relid != table.relid);
    locks.push(table.relid);
    let locks: Vec<_> =
        locks.into_iter().map(|relid| (relid, pg_sys::AccessExclusiveLock)).collect();
    patience.with_locks(&locks, || {
        *is_locked = true;
        lock(partition.relid, pg_sys::AccessExclusiveLock);
        // Another session may have changed the names, the bounds or the default while this one waited. Nothing changes from here on.
        let table = table.again();
        let has_same_layout =
            table.generated_layouts(age.top).iter().all(|layout| age.generated.contains(layout));
        let now = older_partitions(&table, age).into_iter().find(|older| {
            older.partition.relid == partition.relid
                && older.partition.bounds == partition.bounds
                && older.obstacle.is_none()
        });
        let Some(Older { partition: now, .. }) = now.filter(|_| has_same_layout) else {
            refusal::changed_meanwhile("partition", &partition.name)
        };
        // The statements name the partition, and a schema can be renamed without a lock on it. If another table had the name, the
        // subtransaction rolls the statement back.
        execute(&format!("ALTER TABLE {} DETACH PARTITION {}", table.name, now.name), &[]);
        if now.is_attached() {
            refusal::changed_meanwhile("partition", &now.name);
        }
        if detach_only {
            return (Action::Detached, now.name);
        }
        execute(&format!("DROP TABLE {}", now.name), &[]);
        if now.exists() {
            refusal::changed_meanwhile("partition", &now.name);
        }
        (Action::Dropped, now.name)
    })
}

fn is_lock_timeout(error: &Failure) -> bool {
    error.code == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE
}

/// Refuses a table of Citus, which propagates each command by itself.
fn check_citus(relid: pg_sys::Oid) {
    if distributed::is_managed_now(relid) {
        refusal::managed_by_citus(relid);
    }
}
