//! The rows of the results.

use super::table::{Partition, Table};
use crate::postgres::encoding::Text;
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::timestamptz;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::partitions::Bounds;
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
    pub fn skipped((partition, reason): (Partition, String)) -> Self {
        Outcome { table: partition.parent, partition: Some(partition.name), span: (None, None), action: "skipped", message: Some(reason) }
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
