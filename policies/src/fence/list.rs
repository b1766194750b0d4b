//! What both lists have in common.

use pg_snowflake_ids::excerpt::truncated;
use std::borrow::Cow;

/// What is wrong with the value of a fence, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    /// What is wrong, as a sentence.
    pub detail: String,
    /// What is allowed, as a sentence.
    pub hint: &'static str,
}

/// The trimmed elements of a list; none if the text is empty. Blanks are an empty element, so that they do not lift the fence.
pub fn elements(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).skip(usize::from(text.is_empty()))
}

/// The maximum length of a fence's value, in bytes: enough for every shard of the largest preset, or for tens of thousands of host names.
pub const MAX_BYTES: usize = 1_000_000;

/// Refuses a text that is too long.
pub fn check_length(text: &str, hint: &'static str) -> Result<(), InvalidSetting> {
    match text.len() {
        0..=MAX_BYTES => Ok(()),
        length => Err(InvalidSetting { detail: format!("The value has {length} bytes; the limit is {MAX_BYTES}."), hint }),
    }
}

/// The list that `room` makes for so many elements as the text has. It makes none if memory is short: the postmaster checks settings too,
/// and an error would end it.
pub(super) fn with_room<T>(text: &str, hint: &'static str, room: impl FnOnce(usize) -> Option<Vec<T>>) -> Result<Vec<T>, InvalidSetting> {
    let no_room = || InvalidSetting { detail: "Memory is too short to read the value.".into(), hint };
    room(elements(text).count()).ok_or_else(no_room)
}

/// The maximum number of characters of a fence's value that a message repeats: more than of other texts, since lists are longer.
const MAX_EXCERPT: usize = 500;

/// An excerpt of the value, for a message.
pub fn excerpt_of(text: &str) -> Cow<'_, str> {
    truncated(text, MAX_EXCERPT)
}

/// The list with one more element. A list that is too long to repeat is replaced by a placeholder that cannot be set.
pub fn append(text: &str, element: &str) -> String {
    if text.len() > MAX_EXCERPT {
        return format!("<the current list>, {element}");
    }
    elements(text).chain([element]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{InvalidSetting, MAX_BYTES, MAX_EXCERPT, append, elements};
    use crate::fence::{hosts, shards};
    use proptest::prelude::*;

    #[test]
    fn only_an_empty_list_has_no_elements() {
        assert_eq!(elements("").count(), 0);
        for blank in [" ", " \t\n"] {
            assert_eq!(elements(blank).collect::<Vec<_>>(), [""], "{blank:?}");
            assert!(shards::parse(blank, |count| Some(Vec::with_capacity(count))).is_err());
            assert!(hosts::parse(blank, |count| Some(Vec::with_capacity(count))).is_err());
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
        assert_eq!(append(&"a".repeat(MAX_EXCERPT), "db-7"), "a".repeat(MAX_EXCERPT) + ", db-7");
        assert_eq!(append(&"a".repeat(MAX_EXCERPT + 1), "db-7"), "<the current list>, db-7");
    }

    #[test]
    fn a_long_text_is_refused_and_repeated_only_in_part() {
        let parse = |text: &str| {
            let shards = shards::parse(text, |count| Some(Vec::with_capacity(count)));
            let hosts = hosts::parse(text, |count| Some(Vec::with_capacity(count)));
            (shards.err(), hosts.err())
        };
        assert_eq!(parse("5,".repeat(MAX_BYTES / 2).trim_end_matches(',')), (None, None));
        let long = "5,".repeat(MAX_BYTES);
        let elements = ["5", "-", "5-", "5 "].map(|part| part.repeat(1000) + "!");
        for text in elements.iter().chain([&long]) {
            let (shards, hosts) = parse(text);
            for InvalidSetting { detail, .. } in [shards, hosts].into_iter().flatten() {
                assert!(detail.len() < 200, "{detail}");
            }
        }
        let (shards, hosts) = parse(&long);
        assert!(shards.is_some() && hosts.is_some());
    }

    #[test]
    fn a_list_without_room_is_refused() {
        let invalid = shards::parse("5", |_| None).unwrap_err();
        assert_eq!(invalid.detail, "Memory is too short to read the value.");
    }

    proptest! {
        /// No element, no shard and no host: a value never allows more than it lists.
        #[test]
        fn only_a_blank_text_lists_nothing(text in "[-0-9, a]{0,24}|\\PC{0,24}") {
            let shards = shards::parse(&text, |count| Some(Vec::with_capacity(count))).map(|shards| shards.is_empty());
            let hosts = hosts::parse(&text, |count| Some(Vec::with_capacity(count))).map(|hosts| hosts.is_empty());
            for is_empty in [shards, hosts].into_iter().flatten() {
                prop_assert_eq!(is_empty, text.trim().is_empty());
            }
        }
    }
}
