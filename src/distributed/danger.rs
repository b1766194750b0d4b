//! `_snowflake_citus_error`: the reason why a column default returns duplicates or fails on other nodes of Citus.

use super::table::{is_distributed_sequence, is_managed};
use crate::settings::{self, Setting};
use pg_snowflake_policies::messages::server as messages;
use pgrx::pg_sys::GucSource;
use pgrx::prelude::*;

/// `_snowflake_citus_error(table_name regclass, sequence regclass, shard_id int, uses_current_shard boolean) → text`
///
/// Null for a table that Citus does not manage.
#[pg_extern(sql = false)]
fn snowflake_citus_error(
    table_name: Option<pg_sys::Oid>,
    sequence: Option<pg_sys::Oid>,
    shard_id: Option<i32>,
    uses_current_shard: Option<bool>,
) -> Option<String> {
    if !is_managed(table_name?) {
        return None;
    }
    if uses_current_shard == Some(false) && shard_id.is_some() {
        return Some(messages::same_shard_in_citus().summary());
    }
    if uses_current_shard == Some(true) && is_propagated_setting() {
        return Some(messages::same_setting_in_citus().summary());
    }
    sequence.is_some_and(is_distributed_sequence).then(|| messages::distributed_sequence().summary())
}

/// Whether this session has `pg_snowflake.shard_id` from the database or the role.
fn is_propagated_setting() -> bool {
    let source = Setting::ShardId.source();
    settings::shard_id().is_some() && (GucSource::PGC_S_GLOBAL..=GucSource::PGC_S_DATABASE_USER).contains(&source)
}
