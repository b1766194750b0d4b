//! The shards that this server may generate IDs for.

use crate::denied::{Denied, Origin};
use crate::distributed;
use crate::fence;
use crate::lease;
use crate::settings::{self, Setting};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::homed::Class;

/// The shard of this database: `pg_snowflake.shard_id`; else that which the registry of leases has assigned to this server; else,
/// without a registry, the server's group among the nodes of distributed tables.
pub fn of_this_database() -> Result<i32, Denied> {
    known().or_else(|| if is_group_of_node() { distributed::group() } else { None }).ok_or_else(unset)
}

/// [`of_this_database`], as far as it is known without reading a table.
#[inline(always)]
pub fn known() -> Option<i32> {
    settings::shard_id().or_else(lease::assigned_shard).or_else(|| if is_group_of_node() { distributed::known_group() } else { None })
}

/// Whether the group is the shard, if nothing else is set.
fn is_group_of_node() -> bool {
    !Setting::ShardId.is_masked() && !lease::is_required()
}

#[cold]
fn unset() -> Denied {
    if Setting::ShardId.is_masked() {
        return Denied::SettingMasked(Setting::ShardId);
    }
    if lease::is_required() {
        return Denied::ShardNotAssigned;
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
    fence::check_shard(shard, || origin(shard_id))?;
    Ok(shard)
}

/// Fails if a fence refuses a shard of the class, which are in the layout. Every function that generates homed IDs calls this.
#[inline(always)]
pub fn permit_class(class: Class) -> Result<(), Denied> {
    fence::check_class(class)
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
        Origin::Group
    }
}
