//! `_snowflake_layout_error`: whether the newest ID of a column is of the layout of its default.

use crate::layout_type::SqlLayout;
use crate::newest_id;
use crate::postgres::timestamp::{statement_start_us, unix_us_of};
use pg_snowflake_ids::likely::mismatch;
use pgrx::prelude::*;
use std::ffi::CStr;

/// `_snowflake_layout_error(table_name regclass, column_name name, layout snowflake_layout, last_id_at timestamptz) → text`
///
/// `last_id_at` is the time of the last ID of the column's sequence. Null if the newest ID is not known, or if it can be of the
/// layout.
#[pg_extern(sql = false)]
fn snowflake_layout_error(
    table_name: Option<pg_sys::Oid>,
    column_name: Option<&CStr>,
    layout: Option<SqlLayout>,
    last_id_at: Option<pg_sys::TimestampTz>,
) -> Option<String> {
    let SqlLayout(layout) = layout?;
    let newest = newest_id::of_table(table_name?, column_name?)?;
    let generated_us = last_id_at.map(unix_us_of);
    let mismatch = mismatch(newest, &layout, generated_us, statement_start_us())?;
    Some(format!("newest ID is probably of layout \"{}\": {mismatch}.", mismatch.likely.name))
}
