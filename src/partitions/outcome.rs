//! The rows of the results.

use super::table::{Partition, Table};
use crate::postgres::encoding::Text;
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::timestamptz;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::partitions::Bounds;
use pgrx::prelude::*;
use std::ops::Range;

/// What was done with a partition, or found.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Created,
    Exists,
    Dropped,
    Detached,
    Kept,
    Failed,
    Skipped,
    Gap,
    Default,
    Warning,
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
            Action::Warning => "warning",
        }
    }
}

/// A row of the result.
pub struct Outcome {
    /// The partitioned table.
    pub table: pg_sys::Oid,
    /// The quoted name with its schema.
    pub partition: Option<String>,
    /// In microseconds since 1970.
    pub span: Option<(Option<i64>, Option<i64>)>,
    /// What was done.
    pub action: Action,
    /// Why, or what is to be done.
    pub message: Option<String>,
}

impl Outcome {
    /// The row of a partition that is not partitioned by a range of IDs.
    pub fn skipped((partition, reason): (Partition, String)) -> Self {
        Outcome { table: partition.parent, partition: Some(partition.name), span: None, action: Action::Skipped, message: Some(reason) }
    }

    /// The row of a table, without a partition.
    pub fn of(table: &Table, action: Action) -> Self {
        Outcome { table: table.relid, partition: None, span: None, action, message: None }
    }

    /// As SQL has it.
    pub fn row(self) -> NullableResultRow<6> {
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

/// The span of the bounds, in microseconds since 1970; `None` for an end that is open.
pub fn span_of(bounds: Bounds, layout: &Layout) -> Option<(Option<i64>, Option<i64>)> {
    Some((bounds.from.instant(layout), bounds.to.instant(layout)))
}

/// A whole span.
pub fn whole(span: &Range<i64>) -> Option<(Option<i64>, Option<i64>)> {
    Some((Some(span.start), Some(span.end)))
}
