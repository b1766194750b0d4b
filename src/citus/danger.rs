//! `snowflake_citus_error`: why the default of a column of Citus returns duplicates, or fails on other nodes.

use super::Table;
use super::table::is_distributed_sequence;
use pgrx::prelude::*;

/// `snowflake_citus_error(table_name regclass, sequence regclass, is_constant_shard boolean) → text`
///
/// Null for a table that Citus does not manage.
#[pg_extern(sql = false)]
fn snowflake_citus_error(
    table_name: Option<pg_sys::Oid>,
    sequence: Option<pg_sys::Oid>,
    is_constant_shard: Option<bool>,
) -> Option<&'static str> {
    Table::read(table_name?)?;
    if is_constant_shard == Some(true) {
        return Some(
            "shard is the same on every node of Citus: Several nodes evaluate the default, and two nodes that generate IDs for the \
             same shard return duplicates.",
        );
    }
    sequence.is_some_and(is_distributed_sequence).then_some(
        "sequence is distributed by Citus: On the workers, Citus gives it a range of its own, which is not one of IDs.",
    )
}
