//! Excerpts of texts that are too long to repeat in a message.
//!
//! The server allocates less than 1 GB at a time, and a text can be almost as long. A message that repeated all
//! of it could not be reported: pgrx copies a message outside of its error handling, and the server process
//! would exit.

use std::borrow::Cow;

/// The maximum number of characters of a user's text that a message repeats.
const CHARACTERS: usize = 100;

/// A user's text for a message: whole, or shortened with an ellipsis. Every message that repeats such a text
/// calls this before formatting.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    clipped(text, CHARACTERS)
}

/// Like [`excerpt`], for a text that may be in another encoding; `None` if the part to repeat is not ASCII.
pub fn ascii_excerpt(text: &[u8]) -> Option<Cow<'_, str>> {
    let beginning = &text[..text.len().min(CHARACTERS + 1)];
    str::from_utf8(beginning).ok().filter(|text| text.is_ascii()).map(excerpt)
}

/// The text, or its first `characters` characters and an ellipsis.
///
/// ```
/// use pg_snowflake_core::excerpt::clipped;
///
/// assert_eq!(clipped("äöü", 3), "äöü");
/// assert_eq!(clipped("äöüß", 3), "äöü...");
/// ```
pub fn clipped(text: &str, characters: usize) -> Cow<'_, str> {
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
    fn a_text_is_cut_between_characters_and_only_where_it_is_longer() {
        for (text, shown) in [("", ""), ("abc", "abc"), ("abcd", "abc..."), ("äöüß", "äöü...")]
        {
            assert_eq!(clipped(text, 3), shown);
        }
    }

    #[test]
    fn only_what_would_be_repeated_has_to_be_ascii() {
        let long = format!("{}é", "a".repeat(CHARACTERS + 1));
        let shown = format!("{}...", "a".repeat(CHARACTERS));
        assert_eq!(ascii_excerpt(long.as_bytes()).as_deref(), Some(&*shown));
        assert_eq!(ascii_excerpt("é".as_bytes()), None);
        assert_eq!(ascii_excerpt(b"abc").as_deref(), Some("abc"));
    }

    proptest! {
        #[test]
        fn an_excerpt_is_short_and_begins_as_the_text_does(text in "\\PC{0,300}") {
            let shown = excerpt(&text);
            prop_assert!(shown.chars().count() <= CHARACTERS + 3);
            prop_assert!(text.starts_with(shown.trim_end_matches("...")) || shown == text);
        }
    }
}
