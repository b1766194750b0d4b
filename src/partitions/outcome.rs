//! The rows of the results, and what they say.

use super::table::{Partition, Table};
use crate::postgres::encoding::Text;
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::{printed, timestamptz};
use crate::postgres::transaction::Failure;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::partitions::{Bound, Bounds, Doubt};
use pgrx::prelude::*;

/// A row of the result.
pub struct Outcome {
    /// The partitioned table.
    pub table: pg_sys::Oid,
    /// The quoted name with its schema.
    pub partition: Option<String>,
    /// In microseconds since 1970; `None` for an end that is open, or if there is no range.
    pub span: (Option<i64>, Option<i64>),
    /// What was done, or what was found.
    pub action: &'static str,
    /// Why, or what is to be done.
    pub message: Option<String>,
}

impl Outcome {
    /// The row of a partition that is not partitioned by a range of IDs.
    pub fn skipped(partition: &Partition, reason: String) -> Self {
        let name = partition.name.clone();
        Outcome { table: partition.parent, partition: Some(name), span: (None, None), action: "skipped", message: Some(reason) }
    }

    /// The row of a table, without a partition.
    pub fn of(table: &Table, action: &'static str) -> Self {
        Outcome { table: table.relid, partition: None, span: (None, None), action, message: None }
    }

    /// As SQL has it.
    pub fn row(self) -> NullableResultRow<6> {
        let text = |text: Option<String>| text.and_then(|text| Text(text).into_datum());
        let (starts, ends) = self.span;
        NullableResultRow([
            Some(self.table.into()),
            text(self.partition),
            starts.map(timestamptz),
            ends.map(timestamptz),
            text(Some(self.action.to_owned())),
            text(self.message),
        ])
    }
}

/// The span of the bounds, in microseconds since 1970; `None` for an end that is open.
pub fn span_of(bounds: Bounds, layout: &Layout) -> (Option<i64>, Option<i64>) {
    (bounds.from.instant(layout), bounds.to.instant(layout))
}

/// What a row says about a partition if its detachment, or that of a partition below it, is not complete.
pub fn detach_pending(partition: &Partition, finalize: &str) -> String {
    let what = if partition.is_detach_pending { "is" } else { "has a partition that is" };
    format!("{what} being detached. If no session does so, run: {finalize}")
}

/// What a row says about a partition whose bounds are old, but not proved to be.
pub fn kept(table: &Table, partition: &Partition, reason: &str) -> String {
    format!("{reason}. To remove it by hand, run: ALTER TABLE {} DETACH PARTITION {};", table.name, partition.name)
}

/// Why the bounds do not prove it.
pub fn doubt(partition: &Partition, doubt: Doubt, layout: &Layout) -> String {
    let bounds = partition.bounds;
    let time = |bound: Bound| bound.instant(layout).map_or_else(|| bound.to_string(), printed);
    match doubt {
        Doubt::Start if bounds.is_some_and(|bounds| bounds.from == Bound::Min) => "has no lower bound".into(),
        Doubt::Start => format!("does not begin at a whole hour of layout \"{layout}\""),
        Doubt::End => format!("does not end at a whole hour of layout \"{layout}\""),
        Doubt::FirstDays => format!("begins in the first days of layout \"{layout}\", as serial numbers do"),
        Doubt::Name => {
            let start = bounds.map_or_else(String::new, |bounds| time(bounds.from));
            format!("is not named after the start of its range, {start}")
        }
        Doubt::Gap(gap) => format!("is before a gap: no partition has the IDs from {} to {}", time(gap.from), time(gap.to)),
        Doubt::Later(_) => "is before a partition that is not proved to be old".into(),
    }
}

/// Why the bounds of an earlier partition do not prove it, either.
pub fn later_doubt(later: &Partition, its_doubt: Option<Doubt>, layout: &Layout) -> String {
    let reason = its_doubt.map_or_else(String::new, |its| doubt(later, its, layout));
    format!("is before partition {}, which {reason}", later.name)
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
        format!("contains foreign table {foreign_table}, whose rows are on another server; detach and drop it by hand")
    }
}

/// What a row says about a partition that has no ranges.
pub fn without_ranges(is_foreign: bool) -> String {
    if is_foreign { "is a foreign table; call the function on the server that has its rows".into() } else { "is not partitioned".into() }
}

/// What a row says about the default partition.
pub fn default_partition(has_rows: Result<bool, Failure>) -> String {
    match has_rows {
        Ok(false) => "has no rows".into(),
        Ok(true) => "has rows. A range to which one belongs cannot be created; see docs/partitions.md".into(),
        Err(error) => format!("could not be read: {}", error.message),
    }
}

/// What a row says about a partition that could not be created.
pub fn of_creation(error: Failure, table: &Table) -> String {
    match error.code {
        PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE => lock_not_available(table),
        PgSqlErrorCode::ERRCODE_CHECK_VIOLATION => {
            format!("{}. Move these rows out of the default partition, and call the function again; see docs/partitions.md", error.message)
        }
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
    format!("lock on table {} or a table that is locked with it was not available in time; call the function again", table.name)
}
