//! `_snowflake_replaced_default_error`: whether a column no longer gets IDs from a sequence that has generated some.
//!
//! Some tools take a default that calls `snowflake_nextval` for that of a serial, and replace it.

use super::columns::data_of;
use super::stored_expression::StoredExpression;
use crate::postgres::report::{quoted, relation_name};
use crate::sequence;
use pg_snowflake_ids::held::is_counter;
use pg_snowflake_policies::messages::sequence as messages;
use pgrx::prelude::*;

/// `_snowflake_replaced_default_error(sequence regclass, expression pg_node_tree, calls_nextval boolean) → text`
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
