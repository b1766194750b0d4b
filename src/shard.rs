//! The shards that this server may generate IDs for.

use crate::citus;
use crate::fence::{self, FenceError, Origin};
use crate::lease::{self, Unleased};
use crate::postgres::report::{Report, quoted};
use crate::settings::{self, Setting, set_for_this_database};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::homed::Class;
use pgrx::prelude::*;

/// Why this server may not generate an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The layout does not have the shard.
    ShardOutOfRange {
        /// The shard ID.
        shard: i32,
        /// The layout.
        layout: Layout,
    },
    /// `pg_snowflake.shard_id` is unset.
    ShardUnset,
    /// A fence refuses the shard or this server.
    Fence(FenceError),
    /// This server has no lease for the shard.
    Lease(Unleased),
}

impl Denied {
    /// The error to raise. `function` is the SQL function called.
    pub fn report(self, function: &str) -> Report {
        match self {
            Denied::ShardOutOfRange { shard, layout } => Report {
                code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                message: format!(
                    "shard ID {shard} is out of range for layout {}",
                    quoted(&layout.to_string())
                ),
                detail: Some(format!(
                    "The layout has shard IDs from 0 to {}.",
                    layout.shards() - 1
                )),
                hint: Some(match settings::shard_id() {
                    Some(set) if set == shard => {
                        "Set pg_snowflake.shard_id to a shard ID in that range.".into()
                    }
                    None if citus::known_group() == Some(shard) => format!(
                        "This server's group in Citus is not in that range. On each node, have a superuser run this command with a \
                         different number: {}",
                        set_for_this_database(Setting::ShardId, "5")
                    ),
                    _ => "Pass a shard ID in that range.".into(),
                }),
            },
            Denied::ShardUnset => {
                let (detail, hint) = if citus::is_installed() {
                    (
                        "The call names no shard, this database has no shard ID, and this server is not a node of Citus. \
                         citus_set_coordinator_host() makes it the coordinator, and citus_add_node() a worker.",
                        format!(
                            "Make this server a node of Citus first. If it is not meant to be a node, pass a shard ID that no \
                             node has to {function}()."
                        ),
                    )
                } else {
                    (
                        "The call names no shard, and this database has no shard ID.",
                        format!(
                            "Pass a shard ID to {function}(), or have a superuser run this command with a number that no other \
                             server uses, and reconnect: {}",
                            set_for_this_database(Setting::ShardId, "5")
                        ),
                    )
                };
                Report {
                    code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    message: "pg_snowflake.shard_id is not set".into(),
                    detail: Some(detail.into()),
                    hint: Some(hint),
                }
            }
            Denied::Fence(error) => error.report(),
            Denied::Lease(unleased) => unleased.report(),
        }
    }
}

/// The shard of this database: `pg_snowflake.shard_id`; else that which the registry of leases has assigned to this server; else,
/// without a registry, the server's group in Citus.
pub fn of_this_database() -> Result<i32, Denied> {
    known().or_else(|| if is_group_of_citus() { citus::group() } else { None }).ok_or_else(unset)
}

/// [`of_this_database`], as far as it is known without reading a table.
#[inline(always)]
pub fn known() -> Option<i32> {
    settings::shard_id()
        .or_else(lease::assigned_shard)
        .or_else(|| if is_group_of_citus() { citus::known_group() } else { None })
}

/// Whether the group in Citus is the shard, if nothing else is set.
fn is_group_of_citus() -> bool {
    !Setting::ShardId.is_masked() && !lease::is_required()
}

#[cold]
fn unset() -> Denied {
    if Setting::ShardId.is_masked() {
        return Denied::Fence(FenceError::SettingMasked(Setting::ShardId));
    }
    if lease::is_required() {
        return Denied::Lease(Unleased::NotAssigned);
    }
    Denied::ShardUnset
}

/// The shard to generate IDs for: `shard_id`, else that of this database. Fails if the layout does not have it or
/// a fence refuses it. Every function that generates IDs calls this.
#[inline(always)]
pub fn permitted(shard_id: Option<i32>, layout: Layout) -> Result<u32, Denied> {
    let shard = match shard_id {
        Some(shard) => shard,
        None => of_this_database()?,
    };
    let shard = layout.checked_shard(shard).ok_or(Denied::ShardOutOfRange { shard, layout })?;
    fence::check_shard(shard, || origin(shard_id)).map_err(Denied::Fence)?;
    Ok(shard)
}

/// Fails if a fence refuses a shard of the class, which are in the layout. Every function that generates homed IDs calls this.
#[inline(always)]
pub fn permit_class(class: Class) -> Result<(), Denied> {
    fence::check_class(class).map_err(Denied::Fence)
}

/// Where the shard of a call comes from.
#[cold]
fn origin(shard_id: Option<i32>) -> Origin {
    if shard_id.is_some() {
        Origin::Argument
    } else if settings::shard_id().is_some() {
        Origin::Setting
    } else if lease::assigned_shard().is_some() {
        Origin::Registry
    } else {
        Origin::Citus
    }
}
