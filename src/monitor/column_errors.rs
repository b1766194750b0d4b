//! What the view `snowflake_columns` reports of a column beside the error of an INSERT.

use super::columns::data_of;
use super::stored_expression::StoredExpression;
use crate::layout_type::SqlLayout;
use crate::newest_id::Newest;
use crate::postgres::report::{quoted, relation_name};
use crate::postgres::timestamp::{statement_start_us, unix_us_of};
use crate::sequence;
use pg_snowflake_ids::held::is_counter;
use pg_snowflake_ids::likely::{Verdict, judge};
use pg_snowflake_policies::messages::sequence as messages;
use pgrx::prelude::*;
use std::ffi::CStr;

/// `_snowflake_layout_error(table_name regclass, column_name name, layout snowflake_layout, last_id_at timestamptz) → text`
///
/// Whether the newest IDs of a column are of the layout of its default. `last_id_at` is the time of the last ID of the column's sequence.
/// Null if the newest ID is not known, if it can be of the layout, or if the other IDs do not confirm that it is of another.
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

/// `_snowflake_replaced_default_error(sequence regclass, expression pg_node_tree, calls_nextval boolean) → text`
///
/// Whether a column no longer gets IDs from a sequence that has generated some: some tools take a default that calls
/// `snowflake_nextval` for that of a serial, and replace it.
///
/// Null if the sequence does not hold a counter of IDs, or cannot be read at once; or if the default `expression` is not a call of core's
/// `nextval`. Without an expression, `calls_nextval` says whether the column gets the sequence's values: it is an identity column.
#[pg_extern(sql = false)]
fn snowflake_replaced_default_error(
    sequence: Option<pg_sys::Oid>,
    expression: Option<StoredExpression>,
    calls_nextval: Option<bool>,
) -> Option<String> {
    let sequence = sequence?;
    if !expression.is_none_or(|expression| expression.is_nextval_of(sequence)) {
        return None;
    }
    let data = data_of(sequence)?.ok()?;
    data.definition.check().ok()?;
    let now_us = sequence::read_clock().reading_us;
    let (last_value, start) = (data.state?.last_value, data.definition.start());
    if !is_counter(last_value, start, data.marked, now_us) {
        return None;
    }
    let name = quoted(&relation_name(sequence));
    let detail = match calls_nextval? {
        true => messages::gives_counters(name),
        false => messages::gives_nothing(name),
    };
    Some(messages::replaced_default(detail).summary())
}
