//! The two fences: which shards this server may generate IDs for, and which servers may generate IDs at all.
//!
//! Two servers that generate IDs for the same shard return duplicates, and nothing reports it. A column default
//! with a literal shard is copied with a dump, a setting with a snapshot or a base backup.
//! `pg_snowflake.owned_shards` guards against the first, `pg_snowflake.allowed_hosts` against the second. A
//! fence with an invalid value refuses everything, and so does any setting whose server value the session has
//! masked. Only an unset fence allows everything.

mod hosts;
mod report;
mod setting;
mod shards;

pub use report::{homed_shards, homed_shards_query};
pub use setting::{
    check_any_shard, check_class, check_shard, define, host_name, is_foreign_host, owned_shards,
    version,
};

use crate::memory;
use crate::settings::Setting;
use pg_snowflake_ids::excerpt::truncated;
use pg_snowflake_policies::homed::Class;
use std::borrow::Cow;

/// One of the two settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `pg_snowflake.owned_shards`
    OwnedShards,
    /// `pg_snowflake.allowed_hosts`
    AllowedHosts,
}

/// Why this server may not generate an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceError {
    /// The server's host name is not in `pg_snowflake.allowed_hosts`, or the setting is invalid.
    HostNotAllowed,
    /// The shard is not in `pg_snowflake.owned_shards`, or the setting is invalid.
    ShardNotOwned {
        /// The shard.
        shard: u32,
        /// Whether the call passed it; otherwise it is `pg_snowflake.shard_id`.
        is_explicit: bool,
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

/// What is wrong with the value of a fence, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    /// What is wrong, as a sentence.
    pub detail: String,
    /// What is allowed, as a sentence.
    pub hint: &'static str,
}

/// The trimmed elements of a list; none if the text is blank.
fn elements(text: &str) -> impl Iterator<Item = &str> {
    let is_blank = text.trim().is_empty();
    text.split(',').map(str::trim).skip(usize::from(is_blank))
}

/// The maximum length of a fence's value, in bytes: enough for every shard of the largest preset, or for tens
/// of thousands of host names.
const LONGEST: usize = 1_000_000;

/// Refuses a text that is too long.
fn check_length(text: &str, hint: &'static str) -> Result<(), InvalidSetting> {
    match text.len() {
        0..=LONGEST => Ok(()),
        length => Err(InvalidSetting {
            detail: format!("The value has {length} bytes; the limit is {LONGEST}."),
            hint,
        }),
    }
}

/// An empty vector with room for each element of a list. The postmaster checks settings too, and an error would end it.
fn with_room<T>(text: &str, hint: &'static str) -> Result<Vec<T>, InvalidSetting> {
    let no_room =
        |_| InvalidSetting { detail: "Memory is too short to read the value.".into(), hint };
    memory::with_capacity(elements(text).count()).map_err(no_room)
}

/// The maximum number of characters of a fence's value that a message repeats: more than of other texts, since
/// lists are longer.
const LONGEST_LIST_EXCERPT: usize = 500;

/// An excerpt of the value, for a message.
fn list_excerpt(text: &str) -> Cow<'_, str> {
    truncated(text, LONGEST_LIST_EXCERPT)
}

/// The list with one more element. A list that is too long to repeat is replaced by a placeholder that cannot
/// be set.
fn append(text: &str, element: &str) -> String {
    if text.len() > LONGEST_LIST_EXCERPT {
        return format!("<the current list>, {element}");
    }
    elements(text).chain([element]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{InvalidSetting, LONGEST, LONGEST_LIST_EXCERPT, append, elements, hosts, shards};

    #[test]
    fn a_blank_list_has_no_elements() {
        for blank in ["", " ", " \t\n"] {
            assert_eq!(elements(blank).count(), 0, "{blank:?}");
        }
    }

    #[test]
    fn a_stray_comma_makes_an_empty_element() {
        assert_eq!(elements("a,, b,").collect::<Vec<_>>(), ["a", "", "b", ""]);
        assert_eq!(elements(",").collect::<Vec<_>>(), ["", ""]);
    }

    #[test]
    fn an_element_is_appended() {
        assert_eq!(append("db-1,db-2", "db-7"), "db-1, db-2, db-7");
        assert_eq!(append("", "db-7"), "db-7");
        assert_eq!(
            append(&"db-1,".repeat(LONGEST_LIST_EXCERPT), "db-7"),
            "<the current list>, db-7"
        );
    }

    #[test]
    fn a_long_text_is_refused_and_repeated_only_in_part() {
        let parse = |text: &str| (shards::parse(text).err(), hosts::parse(text).err());
        assert_eq!(parse("5,".repeat(LONGEST / 2).trim_end_matches(',')), (None, None));
        let long = "5,".repeat(LONGEST);
        let elements = ["5", "-", "5-", "5 "].map(|part| part.repeat(1000) + "!");
        for text in elements.iter().chain([&long]) {
            let (shards, hosts) = parse(text);
            for InvalidSetting { detail, .. } in [shards, hosts].into_iter().flatten() {
                assert!(detail.len() < 200, "{detail}");
            }
        }
        assert!(shards::parse(&long).is_err() && hosts::parse(&long).is_err());
    }
}
