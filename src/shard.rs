//! The shards that this server may generate IDs for.

use crate::citus;
use crate::error::Error;
use crate::fence::{self, FenceError};
use crate::lease::{self, Unleased};
use crate::settings::{self, Setting};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::homed::Class;

/// The shard of this database: `pg_snowflake.shard_id`; else that which the registry of leases has assigned to this server; else,
/// without a registry, the server's group in Citus.
pub fn of_this_database() -> Result<i32, Error> {
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
fn unset() -> Error {
    if Setting::ShardId.is_masked() {
        return Error::Fence(FenceError::SettingMasked(Setting::ShardId));
    }
    if lease::is_required() {
        return Error::Lease(Unleased::NotAssigned);
    }
    Error::ShardUnset
}

/// The shard to generate IDs for: `shard_id`, else that of this database. Fails if the layout does not have it or
/// a fence refuses it. Every function that generates IDs calls this.
#[inline(always)]
pub fn permitted(shard_id: Option<i32>, layout: Layout) -> Result<u32, Error> {
    let shard = match shard_id {
        Some(shard) => shard,
        None => of_this_database()?,
    };
    let shard = layout.checked_shard(shard).ok_or(Error::ShardOutOfRange { shard, layout })?;
    fence::check_shard(shard, shard_id.is_some()).map_err(Error::Fence)?;
    Ok(shard)
}

/// Fails if a fence refuses a shard of the class, which are in the layout. Every function that generates homed IDs calls this.
#[inline(always)]
pub fn permit_class(class: Class) -> Result<(), Error> {
    fence::check_class(class).map_err(Error::Fence)
}
