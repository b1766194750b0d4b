//! Why this server may not generate an ID.

use crate::settings::Setting;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::homed::{Class, Invalid};

/// Why this server may not generate an ID. It is `Copy` because it crosses frames that an ERROR may jump over, which hold nothing with a
/// destructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The layout does not have the shard.
    ShardOutOfRange {
        /// The shard ID.
        shard: i32,
        /// The layout.
        layout: Layout,
    },
    /// There are no homed IDs with these arguments.
    NotHomed {
        /// The reason.
        invalid: Invalid,
        /// The layout.
        layout: Layout,
    },
    /// `pg_snowflake.shard_id` is unset.
    ShardUnset,
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
    /// The server was started with an unknown parameter of ours, which may be meant to forbid IDs.
    SettingUnknown,
    /// A registry of leases is set, but the server was started without the library in `shared_preload_libraries`.
    NotPreloaded,
    /// The server does not hold the lease of the shard.
    NoLease {
        /// The shard.
        shard: u32,
        /// The shards whose leases are needed, that one among them.
        class: Class,
    },
    /// No shard is set, and the registry has not assigned one.
    ShardNotAssigned,
    /// A lease is shorter than two ticks of the layout, so a span may end before a tick begins in it.
    LeaseTooShort {
        /// A tick of the layout, in microseconds.
        tick_us: i64,
    },
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
    /// It is the server's group among the nodes of distributed tables.
    Group,
}
