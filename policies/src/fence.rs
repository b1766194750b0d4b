//! The lists of the fences: the shards that a server owns, and the names of the hosts that may generate IDs.

pub mod hosts;
pub mod list;
pub mod shards;
