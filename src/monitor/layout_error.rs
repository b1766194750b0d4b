//! `_snowflake_layout_error`: whether the newest IDs of a column are of the layout of its default.

use crate::layout_type::SqlLayout;
use crate::newest_id::Newest;
use crate::postgres::timestamp::{statement_start_us, unix_us_of};
use pg_snowflake_ids::likely::{Verdict, judge};
use pgrx::prelude::*;
use std::ffi::CStr;

/// `_snowflake_layout_error(table_name regclass, column_name name, layout snowflake_layout, last_id_at timestamptz) → text`
///
/// `last_id_at` is the time of the last ID of the column's sequence. Null if the newest ID is not known, if it can be of the layout, or
/// if the other IDs do not confirm that it is of another.
#[pg_extern(sql = false)]
fn snowflake_layout_error(
    table_name: Option<pg_sys::Oid>,
    column_name: Option<&CStr>,
    layout: Option<SqlLayout>,
    last_id_at: Option<pg_sys::TimestampTz>,
) -> Option<String> {
    let SqlLayout(layout) = layout?;
    let (table, column) = (table_name?, column_name?);
    let newest = |count, at_most| Newest { column, count, at_most }.of_table(table);
    let generated_us = || last_id_at.map(unix_us_of);
    match judge(&layout, statement_start_us(), generated_us, newest)? {
        Verdict::OtherLayout(mismatch) => Some(format!("newest ID is probably of layout \"{}\": {mismatch}.", mismatch.likely.name)),
        Verdict::OddId(_) => None,
    }
}
