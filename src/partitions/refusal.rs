//! The errors of partitions by time, and what their rows say.

use super::table::{Partition, Table};
use crate::postgres::report::{Report, relation_name};
use crate::postgres::timestamp::printed;
use crate::postgres::transaction::Failure;
use crate::wrong_layout;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::likely::Mismatch;
use pg_snowflake_policies::partitions::{Bound, Doubt, MAX_STEP_YEARS, Wanted};
use pgrx::prelude::*;

/// Partitions of that length cannot be aligned.
#[track_caller]
pub fn unsuitable_step() -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message: "partitions cannot be aligned to this step".into(),
        detail: Some(format!(
            "A step is 1, 2, 3, 4, 6, 8 or 12 hours, a number of days or weeks, 1, 2, 3, 4 or 6 months, or a number of years, up to \
             {MAX_STEP_YEARS} years. It has one unit."
        )),
        hint: Some("Pass such a step, for example interval '1 month'.".into()),
    }
    .raise()
}

/// Too many partitions, or a negative number.
#[track_caller]
pub fn ahead_out_of_range(ahead: i32, most: i32) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!("number of partitions ahead {ahead} is out of range"),
        detail: Some(format!("It must be between 0 and {most}.")),
        hint: Some("Pass a number in that range, or a longer step.".into()),
    }
    .raise()
}

/// Everything, or the future, would be older.
#[track_caller]
pub fn older_than_not_positive() -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message: "age of partitions to drop must be positive".into(),
        detail: Some("No part of the interval can be negative, and one must be above 0.".into()),
        hint: Some("Pass how long rows are kept, for example interval '24 months'.".into()),
    }
    .raise()
}

/// The age is beyond the calendar.
#[track_caller]
pub fn older_than_out_of_range() -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INTERVAL_FIELD_OVERFLOW,
        message: "age of partitions to drop is out of range".into(),
        detail: Some("Now minus the interval is before the year -9999.".into()),
        hint: Some("Pass how long rows are kept, for example interval '24 months'.".into()),
    }
    .raise()
}

/// The clock is outside of the layout's time range.
#[track_caller]
pub fn clock_out_of_range(layout: Layout) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("server clock is outside the time range of layout \"{layout}\""),
        detail: Some("The clock is before the layout's epoch or after its end. snowflake_layout_info() returns both.".into()),
        hint: Some("Correct the server's clock, or pass another layout.".into()),
    }
    .raise()
}

/// Citus manages the table.
#[track_caller]
pub fn managed_by_citus(relid: pg_sys::Oid) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("cannot manage partitions of table {}, which Citus manages", relation_name(relid)),
        detail: Some("Nothing has been changed.".into()),
        hint: Some("Create its partitions with CREATE TABLE ... PARTITION OF, and snowflake_min_id() as bounds.".into()),
    }
    .raise()
}

/// The table has no partitions.
#[track_caller]
pub fn not_partitioned(table: &Table) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message: format!("{} is not a partitioned table", table.name),
        detail: None,
        hint: Some(
            "Pass a table that was created with PARTITION BY RANGE (id). See docs/partitions.md."
                .into(),
        ),
    }
    .raise()
}

/// The partitions are not ranges of IDs.
#[track_caller]
pub fn partitioned_by_something_else(table: &Table) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message: format!("table {} is not partitioned by a range of IDs", table.name),
        detail: Some(format!("Its partition key is {}.", table.key())),
        hint: Some(
            "The key must be RANGE of a single column of type bigint or snowflake, with the default operator class; under HASH or \
             LIST, that of the partitions. See docs/partitions.md."
                .into(),
        ),
    }
    .raise()
}

/// The user does not own the table.
#[track_caller]
pub fn not_owner(table: &Table) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("must be owner of table {}", table.name),
        detail: None,
        hint: Some("Call the function as its owner, or as a superuser.".into()),
    }
    .raise()
}

/// The table's owner lacks a privilege.
#[track_caller]
pub fn lacks_privilege(privilege: &str, schema: &str, owner: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("role {owner} lacks {privilege} on schema {schema}"),
        detail: Some("Partitions are created with the privileges of the table's owner.".into()),
        hint: Some(format!("Run: GRANT {privilege} ON SCHEMA {schema} TO {owner};")),
    }
    .raise()
}

/// A partition has a part of the range.
#[track_caller]
pub fn overlaps(table: &Table, partition: &Partition, range: &Wanted) -> ! {
    let bounds = partition.bounds.map_or_else(String::new, |bounds| bounds.to_string());
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
        message: format!("partition {} of table {} overlaps a range to create", partition.name, table.name),
        detail: Some(format!(
            "The partition is {bounds}. The range from {} to {} is {}.",
            printed(range.span.start),
            printed(range.span.end),
            range.bounds
        )),
        hint: Some(
            "Pass the step and the layout of the existing partitions. To change the step, create the partitions up to the next \
             boundary of the new step by hand."
                .into(),
        ),
    }
    .raise()
}

/// A relation or a type has the name of a partition. `own` is the partition of the table with that name.
#[track_caller]
pub fn name_taken(table: &Table, name: &str, range: &Wanted, own: Option<&Partition>) -> ! {
    let name = table.qualified(name);
    let span = (printed(range.span.start), printed(range.span.end));
    let (detail, hint) = match own.and_then(|own| own.bounds) {
        Some(bounds) => (
            format!(
                "The partition with that name is {bounds}. The range from {} to {} is {}.",
                span.0, span.1, range.bounds
            ),
            "Pass the layout and the step of the existing partitions.".to_owned(),
        ),
        None => (
            format!(
                "The partition is for the range from {} to {}. A name is truncated to 63 bytes.",
                span.0, span.1
            ),
            format!(
                "If the existing partitions have another layout, pass it. Otherwise rename what has the name; or if it is a table with \
                 the rows of the range, attach it: ALTER TABLE {} ATTACH PARTITION {name} {};",
                table.name, range.bounds
            ),
        ),
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
        message: format!(
            "name {name} of a new partition of table {} is already in use",
            table.name
        ),
        detail: Some(detail),
        hint: Some(hint),
    }
    .raise()
}

/// The layout is not that of the IDs.
#[track_caller]
pub fn layout_differs(table: &Table, passed: Layout, generated: &[Option<Layout>]) -> ! {
    let names: Vec<String> =
        generated.iter().flatten().map(|layout| format!("\"{layout}\"")).collect();
    let (layouts, hint) = match names.as_slice() {
        [name] => (format!("layout {name}"), "Omit the layout."),
        _ => (format!("layouts {}", names.join(" and ")), "Pass one of these layouts."),
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!(
            "layout \"{passed}\" is not the layout of the IDs of table {}",
            table.name
        ),
        detail: Some(format!(
            "The default of the partition key's column generates IDs of {layouts}."
        )),
        hint: Some(hint.into()),
    }
    .raise()
}

/// The newest ID is probably of another layout. If the caller has passed the layout, returns what a row says about it.
#[track_caller]
pub fn other_layout(
    table: &Table,
    mismatch: &Mismatch,
    is_explicit: bool,
    generates: bool,
) -> String {
    let newest = format!("newest ID of table {}", table.name);
    wrong_layout::other_layout(newest, mismatch, is_explicit, |likely| {
        if generates {
            format!("Change the default of the partition key's column to layout '{likely}'.")
        } else {
            format!("Pass layout => '{likely}'.")
        }
    })
    .line()
}

/// What a row says if one ID of the table is odd.
pub fn odd_id(table: &Table, mismatch: &Mismatch) -> String {
    let newest = format!("newest ID of table {}", table.name);
    wrong_layout::odd_id(newest, mismatch, table.row_of(mismatch.id)).line()
}

/// Some rows of the table get IDs of one layout, and others of another: what is old in one is new in the other.
#[track_caller]
pub fn several_layouts(table: &Table, layout: Layout, other: Layout) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("table {} has IDs of several layouts", table.name),
        detail: Some(format!(
            "The defaults of the partition key's column generate IDs of layouts \"{layout}\" and \"{other}\"."
        )),
        hint: Some(format!(
            "Look at the rows, and detach a partition by hand: ALTER TABLE {} DETACH PARTITION ...;",
            table.name
        )),
    }
    .raise()
}

/// The default generates IDs of several layouts, or of one that is not a constant.
#[track_caller]
pub fn layout_not_known(table: &Table) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("could not determine the layout of the IDs of table {}", table.name),
        detail: Some(
            "The defaults of the partition key's column have several layouts, or one that is not a constant."
                .into(),
        ),
        hint: Some("Pass the layout of the IDs.".into()),
    }
    .raise()
}

/// No partition that would remain can have the IDs of now: the layout is that of other IDs, or partitions were not created.
#[track_caller]
pub fn no_current_partition(table: &Table, newest: &Partition, layout: Layout) -> ! {
    let bounds = newest.bounds.map(|bounds| {
        let time = |bound: Bound| bound.instant(&layout).map_or("no time".into(), printed);
        format!("from {} to {} in layout \"{layout}\"", time(bounds.from), time(bounds.to))
    });
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!(
            "no remaining partition of table {} would have the IDs of now",
            table.name
        ),
        detail: Some(format!(
            "The newest partition is {}, {}. Nothing has been changed.",
            newest.name,
            bounds.unwrap_or_default()
        )),
        hint: Some("Pass the layout of the IDs, or create the current partitions first.".into()),
    }
    .raise()
}

/// What a row says about partitions that are left for the next call.
pub fn left_for_next_call(count: usize) -> String {
    format!("{count} more partitions are older; call the function again")
}

/// Another session has renamed, detached or attached a table or partition, or changed its owner or bounds.
#[track_caller]
pub fn changed_meanwhile(kind: &str, name: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("another session has changed {kind} {name}"),
        detail: None,
        hint: Some("Call the function again.".into()),
    }
    .raise()
}

/// What a row says about ranges after the layout's end.
pub fn beyond_layout(layout: Layout) -> String {
    format!("layout \"{layout}\" has no IDs after {}", printed(layout.end_us()))
}

/// What a row says about a partition if its detachment, or that of a partition below it, is not complete.
pub fn detach_pending(partition: &Partition, finalize: &str) -> String {
    let what = if partition.is_detach_pending { "is" } else { "has a partition that is" };
    format!("{what} being detached. If no session does so, run: {finalize}")
}

/// What a row says about a partition whose bounds are old, but not proved to be.
pub fn kept(table: &Table, partition: &Partition, reason: &str) -> String {
    format!(
        "{reason}. To remove it by hand, run: ALTER TABLE {} DETACH PARTITION {};",
        table.name, partition.name
    )
}

/// Why the bounds do not prove it.
pub fn doubt(partition: &Partition, doubt: Doubt, layout: &Layout) -> String {
    let bounds = partition.bounds;
    let time = |bound: Bound| bound.instant(layout).map_or_else(|| bound.to_string(), printed);
    match doubt {
        Doubt::Start if bounds.is_some_and(|bounds| bounds.from == Bound::Min) => {
            "has no lower bound".into()
        }
        Doubt::Start => format!("does not begin at a whole hour of layout \"{layout}\""),
        Doubt::End => format!("does not end at a whole hour of layout \"{layout}\""),
        Doubt::FirstDays => {
            format!("begins in the first days of layout \"{layout}\", as serial numbers do")
        }
        Doubt::Name => {
            let start = bounds.map_or_else(String::new, |bounds| time(bounds.from));
            format!("is not named after the start of its range, {start}")
        }
        Doubt::Gap(gap) => format!(
            "is before a gap: no partition has the IDs from {} to {}",
            time(gap.from),
            time(gap.to)
        ),
        Doubt::Later(_) => "is before a partition that is not proved to be old".into(),
    }
}

/// Why the bounds of an earlier partition do not prove it, either.
pub fn later_doubt(later: &Partition, its_doubt: Option<Doubt>, layout: &Layout) -> String {
    let reason = its_doubt.map_or_else(String::new, |its| doubt(later, its, layout));
    format!("is before partition {}, which {reason}", later.name)
}

/// Why a partition that ended long before the clock's time is not old.
pub fn newest_id(newest_us: i64) -> String {
    format!("is not old compared with the newest ID of the table, of {}", printed(newest_us))
}

/// What a row says if the newest ID of the table could not be read.
pub fn newest_id_not_read(error: &Failure, table: &Table) -> String {
    match error.code {
        PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE => lock_not_available(table),
        _ => format!("the newest ID of the table could not be read: {}", error.message),
    }
}

/// What a row says about a partition that is old, and is or contains a foreign table.
pub fn foreign_partition(partition: &Partition, foreign_table: &str) -> String {
    if partition.name == foreign_table {
        "is a foreign table. Its rows are on another server; detach and drop it by hand".into()
    } else {
        format!(
            "contains foreign table {foreign_table}, whose rows are on another server; detach and drop it by hand"
        )
    }
}

/// What a row says about a partition that has no ranges.
pub fn without_ranges(is_foreign: bool) -> String {
    if is_foreign {
        "is a foreign table; call the function on the server that has its rows".into()
    } else {
        "is not partitioned".into()
    }
}

/// What a row says about the default partition.
pub fn default_partition(has_rows: Result<bool, Failure>) -> String {
    match has_rows {
        Ok(false) => "has no rows".into(),
        Ok(true) => {
            "has rows. A range to which one belongs cannot be created; see docs/partitions.md"
                .into()
        }
        Err(error) => format!("could not be read: {}", error.message),
    }
}

/// What a row says about a partition that could not be created.
pub fn of_creation(error: Failure, table: &Table) -> String {
    match error.code {
        PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE => lock_not_available(table),
        PgSqlErrorCode::ERRCODE_CHECK_VIOLATION => format!(
            "{}. Move these rows out of the default partition, and call the function again; see docs/partitions.md",
            error.message
        ),
        _ => error.message,
    }
}

/// What a row says about a partition that could not be dropped.
pub fn of_removal(error: Failure, table: &Table) -> String {
    match error.code {
        PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE => lock_not_available(table),
        _ => error.message,
    }
}

fn lock_not_available(table: &Table) -> String {
    format!(
        "lock on table {} or a table that is locked with it was not available in time; call the function again",
        table.name
    )
}
