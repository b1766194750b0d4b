//! The two fences: which shards this server may mint, and which servers may mint at all.
//!
//! Two servers that mint for one shard repeat ids, and nothing says so. A literal shard in a default travels with a
//! dump; a setting travels with a snapshot or a base backup. `pg_snowflake.owned_shards` stops the first,
//! `pg_snowflake.allowed_hosts` the second. A fence that cannot be read, or that a session has hidden from itself,
//! stops everything: only an absent one lets all pass.

mod hosts;
mod report;
mod setting;
mod shards;

pub use setting::{define, permit, permit_any};

/// One of the two settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `pg_snowflake.owned_shards`
    OwnedShards,
    /// `pg_snowflake.allowed_hosts`
    AllowedHosts,
}

/// Why an id may not be minted here.
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
    /// The session's connection options name the setting without the right to set it, and so hide its value.
    Hidden(Fence),
}

/// What is wrong with the text of a fence, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
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

/// The same setting with one more element.
fn with(text: &str, element: &str) -> String {
    elements(text).chain([element]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{elements, with};

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
    }
}
