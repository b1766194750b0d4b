//! C symbols that only the SQL of released versions uses. A database keeps that SQL until someone runs `ALTER
//! EXTENSION pg_snowflake UPDATE`, and this library must serve it until then.

use crate::layout_type::{SqlLayout, figures};
use crate::result_row::ResultRow;
use crate::{convert, generate};
use pgrx::prelude::*;
use std::ffi::CStr;

/// `snowflake_adopt` of 0.1.0.
#[pg_extern(sql = false)]
fn snowflake_adopt(
    tab: Option<pg_sys::Oid>,
    col: Option<&CStr>,
    shard_id: Option<i32>,
    layout: Option<SqlLayout>,
    check_shard: Option<bool>,
) -> pg_sys::Oid {
    convert::snowflake_convert_column(tab, col, shard_id, layout, check_shard)
}

/// `snowflake_shard_id()` of 0.1.0.
#[pg_extern(sql = false)]
fn snowflake_shard_id_of_this_database() -> i32 {
    generate::snowflake_current_shard()
}

/// `snowflake_layout_info` of 0.1.0, without `distinct_folds`.
#[pg_extern(sql = false)]
fn snowflake_layout_info(layout: SqlLayout) -> ResultRow<9> {
    ResultRow(figures(&layout.0))
}
