//! The shards that this server may generate ids for.

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

/// The shard to generate ids for: the given one, else this database's. Fails if the layout does not have it or
/// a fence bars it. Every function that generates ids calls this.
pub fn permitted(given: Option<i32>, layout: Layout) -> Result<u32, Error> {
    let shard = match given {
        Some(shard) => shard,
        None => of_this_database()?,
    };
    let shard = layout.shard(shard).ok_or(Error::ShardOutOfRange { shard, layout })?;
    fence::permit(shard, given.is_some()).map_err(Error::Barred)?;
    Ok(shard)
}
