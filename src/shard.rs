//! Which shards this server may mint.

use crate::error::Error;
use crate::layout::Layout;
use crate::settings;

/// The shard of this database, from `pg_snowflake.shard_id`.
pub fn of_this_database() -> Result<i32, Error> {
    settings::shard_id().ok_or(Error::ShardUnset)
}

/// The shard to mint for: the one given, else this database's, if the layout has it.
pub fn mintable(given: Option<i32>, layout: Layout) -> Result<u32, Error> {
    let shard = match given {
        Some(shard) => shard,
        None => of_this_database()?,
    };
    let shards = layout.shards();
    u32::try_from(shard)
        .ok()
        .filter(|&shard| i64::from(shard) < shards)
        .ok_or(Error::ShardOutOfRange { shard, shards })
}
