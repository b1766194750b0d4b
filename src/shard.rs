//! Which shards this server may generate ids for.

use crate::error::Error;
use crate::fence::{self, Barred};
use crate::settings::{self, Setting};
use pg_snowflake_core::Layout;

/// The shard of this database, from `pg_snowflake.shard_id`.
pub fn of_this_database() -> Result<i32, Error> {
    settings::shard_id().ok_or_else(unset)
}

#[cold]
fn unset() -> Error {
    if Setting::ShardId.is_masked() {
        return Error::Barred(Barred::Masked(Setting::ShardId));
    }
    Error::ShardUnset
}

/// The shard to generate ids for: the one given, else this database's, if the layout has it and no fence stands in the way.
/// Every function that generates ids asks here.
pub fn permitted(given: Option<i32>, layout: Layout) -> Result<u32, Error> {
    let shard = match given {
        Some(shard) => shard,
        None => of_this_database()?,
    };
    let shard = layout.shard(shard).ok_or(Error::ShardOutOfRange { shard, layout })?;
    fence::permit(shard, given.is_some()).map_err(Error::Barred)?;
    Ok(shard)
}
