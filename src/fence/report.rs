//! The errors of the fences.

use super::refusal::{FenceError, Origin};
use super::setting::Fence;
use crate::citus;
use crate::postgres::host::host_name;
use crate::postgres::memory::with_room;
use crate::postgres::report::{Report, current_database_name, quoted, session_user_name};
use crate::settings::{Setting, set_for_this_database, set_for_this_server};
use pg_snowflake_policies::fence::hosts;
use pg_snowflake_policies::fence::list::{InvalidSetting, append, excerpt_of};
use pg_snowflake_policies::fence::shards::{self, Range};
use pg_snowflake_policies::homed::Class;
use pgrx::pg_sys::GucSource;
use pgrx::prelude::PgSqlErrorCode::{
    ERRCODE_INSUFFICIENT_PRIVILEGE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
};

const DUPLICATES: &str = "Two servers that generate IDs for the same shard return duplicates.";

impl FenceError {
    /// The error to raise.
    pub fn report(self) -> Report {
        match self {
            FenceError::HostNotAllowed => {
                match hosts::parse(&Fence::AllowedHosts.value(), with_room) {
                    Ok(_) => host_not_allowed(&host_name()),
                    Err(invalid) => invalid_value(Fence::AllowedHosts, invalid),
                }
            }
            FenceError::ShardNotOwned { shard, origin } => {
                match shards::parse(&Fence::OwnedShards.value(), with_room) {
                    Ok(owned) => shard_not_owned(shard, origin, &owned),
                    Err(invalid) => invalid_value(Fence::OwnedShards, invalid),
                }
            }
            FenceError::ClassNotOwned { shard, class } => class_not_owned(shard, class),
            FenceError::SettingMasked(setting) => setting_masked(setting),
        }
    }
}

fn host_not_allowed(host: &str) -> Report {
    let fence = Fence::AllowedHosts;
    let allowed = fence.value();
    let hint = match hosts::parse_host(host) {
        Ok(host) => format!(
            "If this server has replaced them, and they no longer generate IDs: {} If one of them still generates IDs, \
             assign this server its own shards first.",
            set_command(fence, &append(&allowed, host))
        ),
        Err(InvalidSetting { detail, .. }) => {
            format!("{detail} Give this server another name, and restart it.")
        }
    };
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("host {} is not allowed to generate IDs", quoted(host)),
        detail: Some(format!(
            "pg_snowflake.allowed_hosts is \"{}\". This server is likely a copy of one of these hosts, from a snapshot \
             or a base backup. {DUPLICATES}",
            excerpt_of(&allowed)
        )),
        hint: Some(hint),
    }
}

fn shard_not_owned(shard: u32, origin: Origin, ranges: &[Range]) -> Report {
    let fence = Fence::OwnedShards;
    let owned = fence.value();
    let if_moved = format!(
        "If shard {shard} has moved to this server, and its old server no longer generates IDs for it: {}",
        set_command(fence, &append(&owned, &shard.to_string()))
    );
    let hint = if origin == Origin::Argument && citus::is_installed() {
        format!(
            "If the call is a column default, Citus evaluates it on every node, so it must not name a shard. {} {if_moved}",
            citus::recipe("ALTER TABLE ... ALTER COLUMN ...")
        )
    } else if origin == Origin::Argument {
        format!(
            "If the call is a column default that was restored from a dump, change its shard: ALTER TABLE ... ALTER \
             COLUMN ... SET DEFAULT snowflake_nextval(..., {}); {if_moved}",
            example_shard(ranges)
        )
    } else {
        let right_shard = match of_whom(Setting::ShardId) {
            Some(whom) if citus::is_installed() => {
                format!("ALTER {whom} RESET pg_snowflake.shard_id; on the coordinator")
            }
            _ => set_for_this_database(Setting::ShardId, &example_shard(ranges)),
        };
        format!("{} If it is wrong: {right_shard} and reconnect. {if_moved}", where_from(origin))
    };
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("shard {shard} is not owned by this server"),
        detail: Some(format!(
            "pg_snowflake.owned_shards is \"{}\". {DUPLICATES}",
            excerpt_of(&owned)
        )),
        hint: Some(hint),
    }
}

fn class_not_owned(shard: u32, class: Class) -> Report {
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("shard {shard} is not owned by this server"),
        detail: Some(format!(
            "{} pg_snowflake.owned_shards is \"{}\". {DUPLICATES}",
            homed_shards(class),
            excerpt_of(&Fence::OwnedShards.value())
        )),
        hint: Some(format!(
            "If the call is a column default that was restored from a dump, change its shard. If no other server generates IDs \
             for these shards, set pg_snowflake.owned_shards to a list with them: {}",
            homed_shards_query(class)
        )),
    }
}

/// Which shards homed IDs of the class have, as a sentence.
pub fn homed_shards(class: Class) -> String {
    let Class { first, step, last } = class;
    format!("These homed IDs have any shard from {first} to {last} in steps of {step}.")
}

/// The query for the list of the class.
pub fn homed_shards_query(class: Class) -> String {
    let Class { first, step, last } = class;
    format!("SELECT string_agg(n::text, ', ') FROM generate_series({first}, {last}, {step}) AS n;")
}

/// Where the shard of a call that names none comes from, as a sentence.
fn where_from(origin: Origin) -> &'static str {
    match origin {
        Origin::Argument => "The call passes the shard.",
        Origin::Setting => "The shard is the value of pg_snowflake.shard_id.",
        Origin::Registry => "The registry of leases has assigned the shard.",
        Origin::Citus => {
            "The shard is this node's group in Citus, because pg_snowflake.shard_id is not set."
        }
    }
}

/// One of the owned shards.
fn example_shard(ranges: &[Range]) -> String {
    ranges.first().map_or_else(String::new, |range| range.first.to_string())
}

fn invalid_value(fence: Fence, InvalidSetting { detail, hint }: InvalidSetting) -> Report {
    let (name, value) = (name(fence), fence.value());
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("cannot generate IDs because {name} has an invalid value"),
        detail: Some(format!("The value is \"{}\". {detail}", excerpt_of(&value))),
        hint: Some(format!("{hint} {}", set_command(fence, "..."))),
    }
}

fn setting_masked(setting: Setting) -> Report {
    let name = setting.text();
    if setting.is_lost() {
        return Report {
            code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message: format!("cannot generate IDs because the value of {name} was lost"),
            detail: Some(
                "When this session loaded the library, PostgreSQL had too little memory for the value."
                    .into(),
            ),
            hint: Some("Reconnect, or add pg_snowflake to shared_preload_libraries.".into()),
        };
    }
    Report {
        code: ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("cannot generate IDs because connection options set {name}"),
        detail: Some(
            "The role lacks permission to set this parameter, it cannot be set there, or the value is invalid. The attempt \
             masks the server's value in this session."
                .into(),
        ),
        hint: Some(
            "Remove the setting from the client's connection options (PGOPTIONS, \"options\"), the database or the role, \
             and reconnect."
                .into(),
        ),
    }
}

/// The command that sets the fence to this value in the place where it is set now, and puts it into effect.
fn set_command(fence: Fence, value: &str) -> String {
    let name = name(fence);
    let Some(whom) = of_whom(fence.setting()) else {
        return match fence.setting().source() {
            GucSource::PGC_S_ARGV => {
                format!("restart the server with {name} = '{value}' on its command line.")
            }
            GucSource::PGC_S_CLIENT | GucSource::PGC_S_INTERACTIVE | GucSource::PGC_S_SESSION => {
                format!("SET {name} = '{value}';")
            }
            _ => set_for_this_server(name, &format!("'{value}'")),
        };
    };
    if citus::is_installed() {
        // Citus has copied the value to every node, where it hides the node's own.
        let set = set_for_this_server(name, &format!("'{value}'"));
        return format!(
            "{set} Do so on each node, and then on the coordinator: ALTER {whom} RESET {name};"
        );
    }
    format!("ALTER {whom} SET {name} = '{value}'; and reconnect.")
}

/// The database or the role that a setting of this session is from, as in the commands that change it.
fn of_whom(setting: Setting) -> Option<String> {
    let (database, user) = (current_database_name(), session_user_name());
    match setting.source() {
        GucSource::PGC_S_DATABASE => Some(format!("DATABASE {database}")),
        GucSource::PGC_S_GLOBAL => Some("ROLE ALL".to_owned()),
        GucSource::PGC_S_USER => Some(format!("ROLE {user}")),
        GucSource::PGC_S_DATABASE_USER => Some(format!("ROLE {user} IN DATABASE {database}")),
        _ => None,
    }
}

fn name(fence: Fence) -> &'static str {
    fence.setting().text()
}
