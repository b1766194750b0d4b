//! The messages of IDs that this server may not generate.

use super::set_for_this_database;
use crate::denied::{Denied, Origin};
use crate::distributed;
use crate::fence::Fence;
use crate::lease;
use crate::postgres::memory::with_room;
use crate::postgres::report::{Report, current_database_name, duration, host_name, quoted, session_user_name};
use crate::settings::{self, Setting};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::fence::hosts;
use pg_snowflake_policies::fence::list::{InvalidSetting, append, excerpt_of};
use pg_snowflake_policies::fence::shards::{self, Range};
use pg_snowflake_policies::homed::{Class, Invalid};
use pg_snowflake_policies::messages::{arguments, leases, server as messages};
use pgrx::pg_sys::GucSource;

/// The error to raise. `function` is the SQL function called.
pub fn report(denied: Denied, function: &str) -> Report {
    match denied {
        Denied::ShardOutOfRange { shard, layout } => {
            let hint = match settings::shard_id() {
                Some(set) if set == shard => messages::set_shard_in_range(),
                None if distributed::known_group() == Some(shard) => {
                    messages::group_not_in_range(set_for_this_database(Setting::ShardId, "5"))
                }
                _ => messages::pass_shard_in_range(),
            };
            messages::shard_out_of_range(shard, layout, layout.shards() - 1, hint)
        }
        Denied::NotHomed { invalid, layout } => not_homed(invalid, layout),
        Denied::ShardUnset if distributed::is_installed() => messages::shard_unset_on_node(function),
        Denied::ShardUnset => messages::shard_unset(function, set_for_this_database(Setting::ShardId, "5")),
        Denied::HostNotAllowed => match hosts::parse(&Fence::AllowedHosts.value(), with_room) {
            Ok(_) => host_not_allowed(&host_name()),
            Err(invalid) => invalid_value(Fence::AllowedHosts, invalid),
        },
        Denied::ShardNotOwned { shard, origin } => match shards::parse(&Fence::OwnedShards.value(), with_room) {
            Ok(owned) => shard_not_owned(shard, origin, &owned),
            Err(invalid) => invalid_value(Fence::OwnedShards, invalid),
        },
        Denied::ClassNotOwned { shard, class } => {
            let owned = Fence::OwnedShards.value();
            let (shards, query) = homed_shards(class);
            messages::class_not_owned(shard, shards, excerpt_of(&owned), query)
        }
        Denied::SettingUnknown => settings::no_ids_with_unknown(),
        Denied::SettingMasked(setting) if setting.is_lost() => messages::value_lost(setting.text()),
        Denied::SettingMasked(setting) => messages::setting_masked(setting.text()),
        Denied::ShardNotAssigned if lease::known().is_some() => with_last_answer(leases::no_shard_assigned()),
        Denied::NotPreloaded | Denied::ShardNotAssigned => leases::not_preloaded(),
        Denied::NoLease { shard, class } => no_lease(shard, class),
        Denied::LeaseTooShort { tick_us } => leases::too_short(duration(lease::length_us()), duration(tick_us)),
    }
}

fn not_homed(invalid: Invalid, layout: Layout) -> Report {
    let shards = layout.shards();
    match invalid {
        Invalid::Modulus { modulus, highest } => arguments::modulus_out_of_range(modulus, layout, shards, highest),
        Invalid::Generators { generators, highest } => arguments::generators_out_of_range(generators, layout, shards, highest),
        Invalid::Shard { shard, highest } => arguments::shard_beyond_modulus(shard, highest),
        Invalid::NoRange => arguments::no_hash_range(),
        Invalid::RangeBeyondHashes => arguments::range_beyond_hashes(),
        Invalid::TooFewHashes { hashes, needed } => arguments::too_few_hashes(hashes, needed),
    }
}

fn host_not_allowed(host: &str) -> Report {
    let fence = Fence::AllowedHosts;
    let allowed = fence.value();
    let hint = match hosts::parse_host(host) {
        Ok(host) => messages::if_host_replaced(set_command(fence, &append(&allowed, host))),
        Err(InvalidSetting { detail, .. }) => messages::rename_host(detail),
    };
    messages::host_not_allowed(quoted(host), excerpt_of(&allowed), hint)
}

fn shard_not_owned(shard: u32, origin: Origin, ranges: &[Range]) -> Report {
    let fence = Fence::OwnedShards;
    let owned = fence.value();
    let example = ranges.first().map_or_else(String::new, |range| range.first.to_string());
    let command = set_command(fence, &append(&owned, &shard.to_string()));
    let if_moved = messages::if_shard_moved(shard, command);
    let where_from = match origin {
        Origin::Argument => None,
        Origin::Setting => Some(messages::of_setting()),
        Origin::Registry => Some(messages::of_registry()),
        Origin::Group => Some(messages::of_group()),
    };
    let hint = match (where_from, of_whom(Setting::ShardId)) {
        (None, _) if distributed::is_installed() => {
            let recipe = distributed::recipe("ALTER TABLE ... ALTER COLUMN ...");
            messages::shard_of_argument_on_node(recipe, if_moved)
        }
        (None, _) => messages::shard_of_argument(example, if_moved),
        (Some(origin), Some(whom)) if distributed::is_installed() => {
            let command = format!("on the coordinator, ALTER {whom} RESET pg_snowflake.shard_id;");
            messages::shard_of(origin, command, if_moved)
        }
        (Some(origin), _) => {
            let command = set_for_this_database(Setting::ShardId, &example);
            messages::shard_of(origin, command, if_moved)
        }
    };
    messages::shard_not_owned(shard, excerpt_of(&owned), hint)
}

fn invalid_value(fence: Fence, InvalidSetting { detail, hint }: InvalidSetting) -> Report {
    let (name, value) = (fence.setting().text(), fence.value());
    messages::invalid_value(name, excerpt_of(&value), detail, hint, set_command(fence, "..."))
}

fn no_lease(shard: u32, class: Class) -> Report {
    let known = lease::known().unwrap_or_default();
    let shards: Vec<u32> = known.holder.slots.iter().map(|slot| slot.shard).collect();
    if shards.contains(&shard) {
        with_last_answer(leases::not_granted(shard))
    } else if shards.is_empty() && known.answered_at_us.is_none() {
        with_last_answer(leases::not_claimed_yet(shard))
    } else if class.is_one() {
        let mut owned = match Fence::OwnedShards.value() {
            value if value.trim().is_empty() => shards.iter().map(u32::to_string).collect(),
            value => vec![value],
        };
        owned.push(shard.to_string());
        let command = messages::set_on_this_server(Setting::OwnedShards.text(), format_args!("'{}'", owned.join(", ")));
        leases::not_claimed(shard, command)
    } else {
        let (shards, query) = homed_shards(class);
        leases::class_not_claimed(shard, shards, query)
    }
}

/// With what the lease worker reports.
pub fn with_last_answer(report: Report) -> Report {
    let Some(known) = lease::known() else { return report };
    match (known.answer.as_str(), known.answered_at_us) {
        ("", Some(_)) => report,
        ("", None) => report.adding(&leases::no_answer_yet()),
        (answer, _) => report.adding(&leases::last_answer(answer)),
    }
}

/// Which shards homed IDs of the class have, as a sentence, and the query for their list.
fn homed_shards(Class { first, step, last }: Class) -> (String, String) {
    let query = format!("SELECT string_agg(n::text, ', ') FROM generate_series({first}, {last}, {step}) AS n;");
    (messages::homed_shards(first, last, step), query)
}

/// The command that sets the fence to this value in the place where it is set now, and puts it into effect.
fn set_command(fence: Fence, value: &str) -> String {
    let name = fence.setting().text();
    let on_this_server = messages::set_on_this_server(name, format_args!("'{value}'"));
    match (of_whom(fence.setting()), fence.setting().source()) {
        // The value has been copied to every node, where it hides the node's own.
        (Some(whom), _) if distributed::is_installed() => {
            format!("{on_this_server} Do so on each node, and then on the coordinator: ALTER {whom} RESET {name};")
        }
        (Some(whom), _) => format!("ALTER {whom} SET {name} = '{value}'; and reconnect."),
        (None, GucSource::PGC_S_ARGV) => format!("restart the server with {name} = '{value}' on its command line."),
        (None, GucSource::PGC_S_CLIENT | GucSource::PGC_S_INTERACTIVE | GucSource::PGC_S_SESSION) => format!("SET {name} = '{value}';"),
        (None, _) => on_this_server,
    }
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
