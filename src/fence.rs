//! The two fences: which shards this server may generate ids for, and which servers may generate ids at all.
//!
//! Two servers that generate ids for one shard repeat ids, and nothing says so. A literal shard in a default travels with a
//! dump; a setting travels with a snapshot or a base backup. `pg_snowflake.owned_shards` stops the first,
//! `pg_snowflake.allowed_hosts` the second. A fence that cannot be read stops everything, and so does any setting whose value
//! the session has masked: only an absent fence lets all pass.

mod hosts;
mod report;
mod setting;
mod shards;

pub use setting::{define, permit, permit_any};

use crate::settings::Setting;
use pg_snowflake_core::excerpt::clipped;
use std::borrow::Cow;

/// One of the two settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `pg_snowflake.owned_shards`
    OwnedShards,
    /// `pg_snowflake.allowed_hosts`
    AllowedHosts,
}

/// Why an id may not be generated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barred {
    /// The server's host name is not among `pg_snowflake.allowed_hosts`, or that cannot be read.
    Host,
    /// The shard is not among `pg_snowflake.owned_shards`, or that cannot be read.
    Shard {
        /// The shard.
        shard: u32,
        /// Whether the call named it; else it is `pg_snowflake.shard_id`.
        is_given: bool,
    },
    /// The session's connection options have masked the server's value of the setting, a fence or another.
    Masked(Setting),
}

/// What is wrong with the text of a fence, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    /// What is wrong: a sentence.
    pub wrong: String,
    /// What is allowed: a sentence.
    pub allowed: &'static str,
}

/// The elements of a list, without the spaces around them; none where the text is blank.
fn elements(text: &str) -> impl Iterator<Item = &str> {
    let is_blank = text.trim().is_empty();
    text.split(',').map(str::trim).skip(usize::from(is_blank))
}

/// The longest text of a fence, in bytes: single shards of the largest preset, or host names, by the tens of thousands.
const LONGEST: usize = 1_000_000;

/// Refuses a text that is longer.
fn refuse_length(text: &str, allowed: &'static str) -> Result<(), InvalidSetting> {
    match text.len() {
        0..=LONGEST => Ok(()),
        length => Err(InvalidSetting {
            wrong: format!("The value has {length} bytes; the limit is {LONGEST}."),
            allowed,
        }),
    }
}

/// How many characters of a fence a message repeats. Lists are longer than what a user mistypes.
const SHOWN: usize = 500;

/// The fence as a message repeats it.
fn shown(text: &str) -> Cow<'_, str> {
    clipped(text, SHOWN)
}

/// The same setting with one more element. A list that is too long to repeat is replaced by words that cannot be set.
fn with(text: &str, element: &str) -> String {
    if text.len() > SHOWN {
        return format!("<the current list>, {element}");
    }
    elements(text).chain([element]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{InvalidSetting, LONGEST, SHOWN, elements, hosts, shards, with};

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
    fn an_element_is_added_at_the_end() {
        assert_eq!(with("db-1,db-2", "db-7"), "db-1, db-2, db-7");
        assert_eq!(with("", "db-7"), "db-7");
        assert_eq!(with(&"db-1,".repeat(SHOWN), "db-7"), "<the current list>, db-7");
    }

    #[test]
    fn a_long_text_is_refused_and_only_its_beginning_repeated() {
        let parse = |text: &str| (shards::parse(text).err(), hosts::parse(text).err());
        assert_eq!(parse("5,".repeat(LONGEST / 2).trim_end_matches(',')), (None, None));
        let long = "5,".repeat(LONGEST);
        let elements = ["5", "-", "5-", "5 "].map(|part| part.repeat(1000) + "!");
        for text in elements.iter().chain([&long]) {
            let (shards, hosts) = parse(text);
            for InvalidSetting { wrong, .. } in [shards, hosts].into_iter().flatten() {
                assert!(wrong.len() < 200, "{wrong}");
            }
        }
        assert!(shards::parse(&long).is_err() && hosts::parse(&long).is_err());
    }
}
