//! `snowflake_create_partitions` and `snowflake_drop_partitions`: the partitions by time of a table `PARTITION BY RANGE (id)`.
//!
//! `pg_snowflake_policies::partitions` decides which ranges there must be, how they meet the existing partitions, and which of these
//! are proved to be old. What can be refused is refused before the first change. Each partition is then created or dropped in a
//! subtransaction of its own, and a failure is a row of the result.

mod creation;
mod outcome;
mod removal;
mod table;
mod tables;

use crate::layout_type::SqlLayout;
use crate::monitor::last_id_us;
use crate::newest_id::other_layout;
use crate::postgres::arguments;
use crate::postgres::relation::as_owner;
use crate::postgres::report::Raise;
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::printed;
use crate::postgres::transaction::{check_read_committed, check_writable, with_lock_timeout};
use crate::{sequence, settings};
use creation::{check_ranges, create};
use outcome::Outcome;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::likely::{Verdict, judge};
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::messages::arguments::{clock_out_of_range, odd_id};
use pg_snowflake_policies::messages::partitions as messages;
use pg_snowflake_policies::partitions::{CLOCK_TOLERANCE_US, MAX_STEP_YEARS, Step, before, wanted};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use removal::{Age, count_from_newest_id, drop_older, older_partitions};
use std::collections::HashSet;
use table::Table;
use tables::{Patience, tables_under};

type Rows = SetOfIterator<'static, NullableResultRow<6>>;

/// The most steps ahead: a larger number is a mistake, and each partition costs every query that plans with the table.
const MAX_AHEAD: i32 = 1_000;

/// `snowflake_create_partitions(parent regclass, step interval, ahead int, layout)
/// → setof (table_name regclass, partition text, starts timestamptz, ends timestamptz, action text, message text)`
#[pg_extern(sql = false)]
fn snowflake_create_partitions(parent: Option<pg_sys::Oid>, step: Option<Interval>, ahead: Option<i32>, layout: Option<SqlLayout>) -> Rows {
    let parent = required("parent", parent);
    let interval = required("step", step);
    let ahead = required("ahead", ahead);
    check_transaction("snowflake_create_partitions");
    let step = Step::of_interval(interval.months(), interval.days(), interval.micros())
        .unwrap_or_else(|| messages::unsuitable_step(MAX_STEP_YEARS).raise());
    if !(0..=MAX_AHEAD).contains(&ahead) {
        messages::ahead_out_of_range(ahead, MAX_AHEAD).raise();
    }
    let now_us = sequence::read_clock().reading_us;
    // An ID can be ahead of the clock by the lead, and the clock wrong by the tolerance.
    let tolerance_us = CLOCK_TOLERANCE_US.max(settings::policy().max_lead_us);

    let mut names = HashSet::new();
    let plan = |table: &Table| {
        table.check_schema();
        let is_explicit = layout.is_some();
        let layout = layout_of(table, parent, layout, now_us);
        let warning = check_layout(table, parent, layout, is_explicit, now_us);
        let wanted = wanted(&layout, step, now_us, tolerance_us, ahead as u32);
        check_ranges(table, &wanted.ranges, step, &mut names);
        (layout, wanted, warning)
    };
    plan_then_change(parent, plan, |table, (layout, wanted, warning), patience| {
        let mut rows = as_owner(table.owner, || create(table, &wanted.ranges, step, &layout, patience));
        if warning.is_some() {
            rows.push(Outcome { message: warning, ..Outcome::of(table, "warning") });
        }
        if let Some(starts_us) = wanted.beyond_layout {
            let message = Some(format!("layout \"{layout}\" has no IDs after {}", printed(layout.end_us())));
            rows.push(Outcome { span: (Some(starts_us), None), message, ..Outcome::of(table, "failed") });
        }
        rows
    })
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
        messages::older_than_not_positive().raise();
    }
    let now_us = sequence::read_clock().reading_us;
    // What an error of the clock could still make current is kept.
    let before_us =
        |newest_us| before(newest_us, months, days, us).unwrap_or_else(|| messages::older_than_out_of_range().raise()) - CLOCK_TOLERANCE_US;

    let plan = |table: &Table| {
        let layout = layout_of(table, parent, layout, now_us);
        let generated = table.generated_layouts(parent);
        if let Some(other) = generated.iter().flatten().find(|other| **other != layout) {
            messages::several_layouts(&table.name, layout, other).raise();
        }
        let age = Age { layout, generated, top: parent, now_us, before_us: before_us(now_us) };
        let older = older_partitions(table, &age);
        (age, older)
    };
    plan_then_change(parent, plan, |table, (mut age, older), patience| {
        as_owner(table.owner, || {
            let older = count_from_newest_id(table, &mut age, before_us, older);
            drop_older(table, &age, older, detach_only, patience)
        })
    })
}

/// Plans what is to be done with each table, which may refuse the call, and only then does it.
fn plan_then_change<P>(
    parent: pg_sys::Oid,
    mut plan: impl FnMut(&Table) -> P,
    change: impl Fn(&Table, P, &mut Patience) -> Vec<Outcome>,
) -> Rows {
    let rows = with_lock_timeout(|| {
        let (tables, mut rows) = tables_under(parent);
        let planned: Vec<_> = tables.iter().map(|table| (table, plan(table))).collect();
        let mut patience = Patience::default();
        for (table, plan) in planned {
            rows.extend(change(table, plan, &mut patience));
        }
        rows
    });
    SetOfIterator::new(rows.into_iter().map(Outcome::row))
}

#[track_caller]
fn required<T>(name: &str, argument: Option<T>) -> T {
    arguments::required(name, argument, "Pass a value, or omit an argument that has a default.")
}

/// A snapshot that is older than a lock could miss partitions.
#[track_caller]
fn check_transaction(function: &str) {
    check_writable(function, "Only the primary generates IDs.");
    check_read_committed(function, "The function must see every partition that is committed before it locks the table.");
}

/// The layout of the table's IDs: that which the default of its column generates, or if it generates none, the one that was
/// passed, or else the default. Refuses another layout than that of the default, and one that has no IDs of now.
fn layout_of(table: &Table, top: pg_sys::Oid, passed: Option<SqlLayout>, now_us: i64) -> Layout {
    let generated = table.generated_layouts(top);
    let layout = match (passed, generated.as_slice()) {
        (Some(SqlLayout(passed)), [_, ..]) if generated.iter().all(|layout| layout.is_some_and(|layout| layout != passed)) => {
            let names: Vec<String> = generated.iter().flatten().map(|layout| format!("\"{layout}\"")).collect();
            match names.as_slice() {
                [name] => messages::layout_differs(passed, &table.name, name),
                _ => messages::layouts_differ(passed, &table.name, names.join(" and ")),
            }
            .raise()
        }
        (Some(SqlLayout(passed)), _) => passed,
        (None, []) => DEFAULT,
        (None, [Some(generated)]) => *generated,
        (None, _) => messages::layout_not_known(&table.name).raise(),
    };
    if !(0..=layout.max_tick()).contains(&layout.tick_at(now_us)) {
        clock_out_of_range(layout).raise();
    }
    layout
}

/// Refuses if the newest IDs of the table are probably of another layout, which the caller has not passed. Returns a warning if the caller
/// has passed this one, or if only one ID is odd.
fn check_layout(table: &Table, top: pg_sys::Oid, layout: Layout, is_explicit: bool, now_us: i64) -> Option<String> {
    let generated_us = || {
        let calls = table.generator_calls(top).into_iter();
        calls
            .filter_map(|call| call.filter(|call| call.layout == Some(layout))?.sequence.oid())
            .filter_map(|sequence| last_id_us(sequence, layout))
            .max()
    };
    let newest = |count, at_most| table.newest_ids(count, at_most);
    let ids = format!("newest ID of table {}", table.name);
    let report = match judge(&layout, now_us, generated_us, newest)? {
        Verdict::OtherLayout(mismatch) => {
            let hint = |likely: &str| match table.generator_calls(top).is_empty() {
                true => messages::pass_layout(likely),
                false => messages::change_default(likely),
            };
            other_layout(ids, &mismatch, is_explicit, "drop the partitions that this call has created", hint)
        }
        Verdict::OddId(mismatch) => odd_id(ids, mismatch, table.row_of(mismatch.id)),
    };
    Some(report.line())
}
