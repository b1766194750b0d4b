//! Why a fence refuses an ID.

use crate::settings::Setting;
use pg_snowflake_policies::homed::Class;

/// Why this server may not generate an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceError {
    /// The server's host name is not in `pg_snowflake.allowed_hosts`, or the setting is invalid.
    HostNotAllowed,
    /// The shard is not in `pg_snowflake.owned_shards`, or the setting is invalid.
    ShardNotOwned {
        /// The shard.
        shard: u32,
        /// Where it comes from.
        origin: Origin,
    },
    /// A shard number of a homed ID is not in `pg_snowflake.owned_shards`.
    ClassNotOwned {
        /// The first one that is not.
        shard: u32,
        /// The numbers.
        class: Class,
    },
    /// The session's connection options mask the server's value of the setting, a fence or another.
    SettingMasked(Setting),
}

/// Where the shard of a call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The call passes it.
    Argument,
    /// `pg_snowflake.shard_id`
    Setting,
    /// The registry of leases has assigned it.
    Registry,
    /// It is the server's group in Citus.
    Citus,
}
