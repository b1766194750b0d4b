//! Excerpts of texts that are too long to repeat in a message.
//!
//! The server allocates less than 1 GB at a time, and a text can be almost as long. A message that repeated all of it could not be
//! reported: pgrx copies a message outside of its error handling, and the server process would exit.

use std::borrow::Cow;

/// The maximum number of characters of a user's text that a message repeats.
const MAX_EXCERPT: usize = 100;

/// A user's text for a message: whole, or shortened with an ellipsis. Every message that repeats such a text calls this before formatting.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    truncated(text, MAX_EXCERPT)
}

/// Like [`excerpt`], for a text that may be in another encoding; `None` if the part to repeat is not ASCII.
pub fn ascii_excerpt(text: &[u8]) -> Option<Cow<'_, str>> {
    let beginning = &text[..text.len().min(MAX_EXCERPT + 1)];
    str::from_utf8(beginning).ok().filter(|text| text.is_ascii()).map(excerpt)
}

/// The text, or its first `characters` characters and an ellipsis.
///
/// ```
/// use pg_snowflake_ids::excerpt::truncated;
///
/// assert_eq!(truncated("äöü", 3), "äöü");
/// assert_eq!(truncated("äöüß", 3), "äöü...");
/// ```
pub fn truncated(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_repeated_part_must_be_ascii() {
        let long = format!("{}é", "a".repeat(MAX_EXCERPT + 1));
        let shown = format!("{}...", "a".repeat(MAX_EXCERPT));
        assert_eq!(ascii_excerpt(long.as_bytes()).as_deref(), Some(&*shown));
        assert_eq!(ascii_excerpt("é".as_bytes()), None);
        assert_eq!(ascii_excerpt(b"abc").as_deref(), Some("abc"));
    }

    proptest! {
        #[test]
        fn an_excerpt_is_a_short_prefix(text in "\\PC{0,300}") {
            let shown = excerpt(&text);
            prop_assert!(shown.chars().count() <= MAX_EXCERPT + 3);
            let begins_the_text = text.starts_with(shown.strip_suffix("...").unwrap_or(&shown));
            prop_assert!(shown == text || text.chars().count() > MAX_EXCERPT && begins_the_text);
        }
    }
}
