//! The two fences: which shards this server may generate IDs for, and which servers may generate IDs at all.
//!
//! Two servers that generate IDs for the same shard return duplicates, and nothing reports it. A column default
//! with a literal shard is copied with a dump, a setting with a snapshot or a base backup.
//! `pg_snowflake.owned_shards` guards against the first, `pg_snowflake.allowed_hosts` against the second. A
//! fence with an invalid value refuses everything, and so does any setting whose server value the session has
//! masked. Only an unset fence allows everything.

mod setting;

pub use setting::{Fence, check_any_shard, check_class, check_shard, define as define_settings, is_foreign_host, owned_shards, version};
